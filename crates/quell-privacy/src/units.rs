//! Numbers with a range, checked once when they are created.
//!
//! A value of one of these types is always in its range, so later code does not check again. The types
//! serialize as plain numbers in JSON, and a number out of range does not parse.

use serde::{Deserialize, Serialize};

use crate::Error;

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident, $symbol:literal, $valid:expr, $range:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Checks the range.
            pub fn new(value: f64) -> Result<Self, Error> {
                let valid: fn(f64) -> bool = $valid;
                if valid(value) {
                    Ok(Self(value))
                } else {
                    Err(Error::OutOfRange { what: $symbol, value, range: $range })
                }
            }

            /// The plain number.
            #[must_use]
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = Error;
            fn try_from(value: f64) -> Result<Self, Error> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(unit: $name) -> f64 {
                unit.0
            }
        }
    };
}

unit!(
    /// Probability that the guarantee fails.
    Delta, "delta", |x| x > 0.0 && x < 1.0, "(0, 1)");
unit!(
    /// ε of an (ε, δ) guarantee, of a pure guarantee or of a bounded range.
    Epsilon, "epsilon", |x| x >= 0.0 && x.is_finite(), "[0, inf)");
unit!(
    /// Largest norm of one record's contribution.
    ClipNorm, "clip_norm", |x| (1e-30..=1e30).contains(&x), "[1e-30, 1e30]");
unit!(
    /// Scale of the noise over the largest contribution of one record.
    ///
    /// It is σ/C for Gaussian and b/C for Laplace noise.
    NoiseMultiplier, "noise_multiplier", |x| (1e-6..=1e12).contains(&x), "[1e-6, 1e12]");
unit!(
    /// Probability that a record enters a batch.
    SamplingRate, "sampling_rate", |x| (1e-15..=1.0).contains(&x), "[1e-15, 1]");
unit!(
    /// A positive scale of a distribution on the integers.
    Scale, "scale", |x| (1e-3..=1e9).contains(&x), "[1e-3, 1e9]");
unit!(
    /// Constant γ of automatic clipping: vectors much shorter than this stay short.
    Stability, "stability", |x| (1e-9..=1e30).contains(&x), "[1e-9, 1e30]");
unit!(
    /// Step size of an update.
    LearningRate, "learning_rate", |x| x > 0.0 && x <= 1e3, "(0, 1000]");
unit!(
    /// Number of records in a batch, or its expectation.
    BatchSize, "batch_size", |x| (1e-3..=1e15).contains(&x), "[1e-3, 1e15]");
unit!(
    /// A probability, including 0 and 1.
    Probability, "probability", |x| (0.0..=1.0).contains(&x), "[0, 1]");
unit!(
    /// ρ of zero-concentrated differential privacy.
    Rho, "rho", |x| x >= 0.0 && x.is_finite(), "[0, inf)");
unit!(
    /// Order of a Rényi divergence.
    Order, "order", |x| x > 1.0 && x.is_finite(), "(1, inf)");
unit!(
    /// A threshold or a width of a loss function.
    Threshold, "threshold", |x| (1e-6..=1e6).contains(&x), "[1e-6, 1e6]");
unit!(
    /// Factor Λ of the penalty Λ/2 ‖w‖² on the weights of a linear model.
    Regularization, "regularization", |x| (1e-6..=1e12).contains(&x), "[1e-6, 1e12]");
unit!(
    /// Largest norm of a gradient at which a minimisation ends.
    Tolerance, "tolerance", |x| (1e-15..=1e6).contains(&x), "[1e-15, 1e6]");
unit!(
    /// Largest curvature that one record adds to an objective, over the curvature of its penalty.
    CurvatureRatio, "curvature_ratio", |x| (0.0..=1e12).contains(&x), "[0, 1e12]");
unit!(
    /// Lipschitz constant of a step that stretches no distance.
    Contraction, "contraction", |x| (0.0..=1.0).contains(&x), "[0, 1]");
unit!(
    /// Diameter of a bounded domain over the largest contribution of one record to a step.
    Diameter, "diameter", |x| (1e-12..=1e15).contains(&x), "[1e-12, 1e15]");
unit!(
    /// Radius of the ball on which the weights of a model are projected.
    Radius, "radius", |x| (1e-9..=1e9).contains(&x), "[1e-9, 1e9]");
unit!(
    /// Power ρ of a likelihood, by which a posterior is flattened.
    Power, "power", |x| (1e-9..=1e6).contains(&x), "[1e-9, 1e6]");
