//! Differentially private machine learning: train models, label data and release statistics.
//!
//! This example trains a linear regression on arrays in memory, with ε = 1 for each record:
//!
//! ```
//! use quell::{data::{Examples, Targets}, learner::{PublicFacts, dp_sgd::Recipe}, network};
//! use quell::{ledger::InMemory, privacy::units::Epsilon};
//! let x: Vec<f32> = (0..2000).map(|i| i as f32 / 2000.0).collect();
//! let y = x.iter().map(|x| 0.7 * x).collect();
//! let examples = Examples::numbers(&[1], x, Targets::Numbers(y))?;
//! let network = network::named("logistic", &[1], 1)?;
//! let mut recipe = Recipe { steps: Some(50), ..Recipe::default() };
//! recipe.privacy.epsilon = Some(1.0);
//! let plan = recipe.plan(&PublicFacts { records: Some(2000), classes: None }, &network)?;
//! let mut ledger = InMemory::ledger("points", Epsilon::new(1.0)?, plan.delta)?;
//! let weights = plan.train(&network, &examples, &mut ledger)?;
//! assert_eq!(weights.len(), 2);
//! # Ok::<(), quell::Error>(())
//! ```
//!
//! The ledger is charged for the whole plan before the first step. A charge beyond the budget is an error,
//! and nothing is released.
//!
//! | module | contents |
//! |---|---|
//! | [`data`] | Tables, arrays and images as records; schemas; predicates that select rows |
//! | [`features`] | Transforms of single records, at no privacy cost: scattering, HOG, public networks |
//! | [`layer`] | Layers with per-example gradients |
//! | [`network`] | Networks of layers, predefined models, and sums of clipped gradients |
//! | [`learner`] | DP-SGD, losses, optimizers, schedules and evaluation |
//! | [`voting`] | PATE and Private-kNN, and the student model that learns from their answers |
//! | [`statistics`] | Private counts, sums, means, histograms and quantiles of a table |
//! | [`run`] | Training and labelling jobs that keep their results in a folder and can be resumed |
//! | [`random`] | Random numbers for public choices |
//! | [`privacy`] | The crate `quell-privacy`: accounting, mechanisms, and the ledger that charges for them |
//! | [`ledger`] | The crate `quell-ledger`: storage of ledgers in SQLite, in PostgreSQL or in memory |
//!
//! This crate handles people's data. Every release goes through a mechanism of [`privacy`], which the ledger
//! charges for first.
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "reads the files of datasets")]
pub mod data;
mod error;
pub mod features;
#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "reads whole files")]
mod file;
mod hint;
mod kernel;
pub mod layer;
pub mod learner;
pub mod network;
mod onnx;
pub mod random;
mod range;
#[allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "keeps run folders and reads the clock"
)]
pub mod run;
pub mod statistics;
mod terms;
mod toml_error;
pub mod voting;

pub use error::Error;
pub use hint::{Hint, Input};
pub use quell_ledger as ledger;
pub use quell_privacy as privacy;
pub use toml_error::describe as describe_toml_error;
