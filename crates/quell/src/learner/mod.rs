//! Private learners, and the parts that all of them share: tasks, losses, optimizers, evaluation.
//!
//! The learner for neural networks is [`dp_sgd`]. This example plans a run and shows its price before any
//! data is read:
//!
//! ```
//! use quell::{learner::{PublicFacts, dp_sgd::Recipe}, network};
//! let network = network::named("logistic", &[20], 2)?;
//! let mut recipe = Recipe { steps: Some(100), ..Recipe::default() };
//! recipe.privacy.epsilon = Some(1.0);
//! let plan = recipe.plan(&PublicFacts { records: Some(10_000), classes: Some(2) }, &network)?;
//! assert!(plan.steps() == 100 && plan.epsilon.upper <= 1.0);
//! println!("the noise multiplier is {}", plan.descent.noise_multiplier.get());
//! # Ok::<(), quell::Error>(())
//! ```

pub mod average;
pub mod bayes;
mod blocks;
mod calibration;
mod control;
pub mod convex;
pub mod dp_sgd;
mod evaluation;
pub mod factorization;
mod facts;
pub mod glm;
mod gradients;
pub mod loss;
mod measures;
mod method;
pub mod naive_bayes;
pub mod optimizer;
mod parts;
mod prediction;
mod predictor;
pub mod prepared;
pub(crate) mod privacy;
pub mod schedule;
pub(crate) mod section;
mod signal;
pub mod sums;
mod supervised;
pub mod synthesis;
pub(crate) mod tensors;
pub mod tree;
pub mod unsupervised;

pub use control::Control;
pub(crate) use evaluation::outputs;
pub use evaluation::{Evaluation, correct, evaluate, predictions, scores};
pub use facts::{PublicFacts, default_delta};
pub use gradients::Gradients;
pub use measures::{Calibration, CalibrationBin, ClassMeasure, ClassMeasures, NumberMeasures};
pub use method::{Method, PlannedCost, ProtectedRecords, ResultFile, Results, Snapshot, Subject};
pub use prediction::Prediction;
pub use predictor::{NetworkModel, Predictor};
pub use privacy::Privacy;
pub(crate) use privacy::budget_for;
pub(crate) use supervised::NO_USERS;
pub use supervised::{Augmentation, Supervised};
