//! A run from data to model: what was asked for, what was planned, and the folder in which everything about it is kept.
//!
//! Everything in the folder is public: it follows from settings and releases. The checkpoint is written before the ledger is told that steps are safe, and the ledger has paid
//! for steps before they are taken; so whatever kills a run, nothing is paid twice and at most the steps of one block are lost.

mod configuration;
mod debt;
mod folder;
mod job;
pub mod labels;
mod model;

pub use configuration::{Allowance, Architecture, Configuration, Source};
pub use folder::{Folder, Metrics, Paid, Point};
pub use job::{Job, Moment, Outcome};
pub use model::Model;
