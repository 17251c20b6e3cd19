//! Private aggregation of teacher ensembles (PATE).
//! Models trained on disjoint shards vote on public questions, and a student learns from the answers.
//!
//! The interface is the ballot, not the teacher. Teachers may be anything, as long as a record influences one
//! teacher only and each teacher has one ballot on each question.

mod ballots;
mod replies;
mod shards;
mod sheet;
mod teachers;

pub use ballots::Ballots;
pub use replies::{Cast, Replies};
pub use shards::Shards;
pub use teachers::Teachers;
