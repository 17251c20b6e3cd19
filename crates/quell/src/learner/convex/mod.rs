//! Convex learning, for which there is more theory than for networks: losses, bounds and plans.
//!
//! [`ClippedGlm`] is the convex loss that clipped gradients descend on. [`Plan`] says what excess risk to expect
//! of a [`Method`], and how much work it is, before any record is read. The bounds are in [`excess_risk`] and
//! [`perturbation`].

mod clipped_glm;
pub mod excess_risk;
mod method;
mod noise;
pub mod perturbation;
mod plan;
mod planner;
mod problem;
mod search;

pub use clipped_glm::{ClippedGlm, Glm, Logistic, Squared};
pub use method::Method;
pub use noise::DpGdNoise;
pub use plan::{Descend, Factor, Plan, Procedure, Reference};
pub use problem::{Loss, Privacy, Problem};
