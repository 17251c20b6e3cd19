//! Convex learning: what theory says more about than about networks.

mod clipped_glm;

pub use clipped_glm::{ClippedGlm, Glm, Logistic, Squared};
