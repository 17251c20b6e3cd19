//! Differentially private stochastic gradient descent.
//!
//! A [`Recipe`] holds the settings, some of which may be missing. A [`Plan`] is complete: all its numbers are
//! public and fixed before the first record is read, and the ledger is charged for its mechanism. [`train`]
//! takes the steps that were paid for. [`Checkpoint`] is the state of a run, and can be saved.

mod checkpoint;
mod plan;
mod recipe;
mod training;

pub use checkpoint::Checkpoint;
pub use plan::Plan;
pub use recipe::{Clip, Privacy, Recipe, Sample, Sampler};
pub use training::train;
