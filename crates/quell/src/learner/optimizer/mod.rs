//! Optimizers: they update the weights with released gradients.
//!
//! This is post-processing and costs no privacy. An [`Optimizer`] holds the settings. [`Optimizer::start`]
//! creates a [`Stepper`], which holds the moments and can be saved and restored. Learning rates come from a
//! [`Schedule`](crate::learner::schedule::Schedule).

mod pass;
mod recipe;
mod stepper;

pub use recipe::Optimizer;
pub use stepper::{Stepper, Update};
