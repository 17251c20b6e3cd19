//! Losses of convex learning, for which there is more theory than for networks.

mod clipped_glm;

pub use clipped_glm::{ClippedGlm, Glm, Logistic, Squared};
