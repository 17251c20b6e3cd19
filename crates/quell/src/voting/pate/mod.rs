//! Private aggregation of teacher ensembles (PATE).
//!
//! Teachers are models trained on disjoint shards of the private records. They vote on public questions, and
//! a student is trained on the answers.
//!
//! Voting needs the ballots only, not the teachers. So teachers may be any models, as long as a record
//! influences one teacher only and each teacher has one ballot on each question.

mod ballots;
mod teachers;

pub use ballots::{AnyBallots, Ballots, SurveyBallots};
pub use teachers::{Shards, Teachers};
