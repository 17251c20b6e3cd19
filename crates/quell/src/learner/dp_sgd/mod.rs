//! Differentially private stochastic gradient descent.
//!
//! A [`Recipe`] holds the settings, some of which may be missing. A [`Plan`] is complete: all its numbers are
//! public and fixed before the first record is read, and the ledger is charged for its mechanism. [`train`]
//! takes the steps that were paid for. [`Checkpoint`] is the state of a run, and can be saved. [`DpSgd`]
//! offers all of this to [`Training`](crate::run::Training), which pays and keeps the results.

mod agreement;
mod checkpoint;
mod method;
mod plan;
mod recipe;
mod rules;

pub use checkpoint::Checkpoint;
pub use method::{DpSgd, train};
pub(super) use plan::OtherRuns;
pub use plan::Plan;
pub use recipe::{Clip, Recipe, Sample, Sampler};
pub(super) use rules::Kind;
