//! Private aggregation of teacher ensembles: models that learned from disjoint shards vote on public questions, and a student learns from the answers.
//!
//! The boundary is the ballot and not the teacher: whatever teachers are, a record touches one of them, and each has one ballot.

mod ballots;
mod replies;
mod shards;
mod sheet;
mod teachers;

pub use ballots::Ballots;
pub use replies::{Cast, Replies};
pub use shards::Shards;
pub use teachers::Teachers;
