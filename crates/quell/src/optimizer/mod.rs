//! From a released gradient to new weights: post-processing, so nothing here costs privacy.
//!
//! An [`Optimizer`] is a recipe; [`Optimizer::start`] makes a [`Stepper`], which holds the moments and can be saved and
//! restored. Learning rates come from a [`Schedule`](crate::schedule::Schedule).

mod pass;
mod recipe;
mod stepper;

pub use recipe::Optimizer;
pub use stepper::{Step, Stepper};
