//! The convex loss that DP-SGD with clipping minimises in a generalised linear model.
//!
//! The loss of a record with features x is ℓ(z) at z = ⟨w, x⟩, and its gradient is ℓ'(z)x. Clipping the
//! gradient to length C multiplies it by a number. The clipped gradient is the gradient of
//!
//! ```text
//!        ⎧ ℓ(a) - s(z - a)   z < a        where ℓ' = -s
//! g(z) = ⎨ ℓ(z)              a ≤ z ≤ b
//!        ⎩ ℓ(b) + s(z - b)   z > b        where ℓ' = +s,    s = C/‖x‖
//! ```
//!
//! ℓ' grows, so ℓ' clipped to [-s, s] grows too: g is convex and s-Lipschitz, and its gradients are no longer
//! than C. So DP-SGD with clipping converges to the minimum of Σg, and not of Σℓ. The difference is the bias
//! of clipping. This does not carry over to losses with several outputs or to networks: their clipped
//! gradients may not be the gradient of any function. (Song, Steinke, Thakkar and Thakurta 2021, "Evading the
//! curse of dimensionality in unconstrained private GLMs".)

use quell_privacy::units::ClipNorm;

use crate::learner::loss::sigmoid;

/// A convex loss ℓ of one number ⟨w, x⟩. The target is part of the loss.
pub trait Glm {
    /// ℓ(z).
    fn loss(&self, z: f64) -> f64;

    /// ℓ'(z), which grows with z.
    fn derivative(&self, z: f64) -> f64;

    /// The z where ℓ'(z) is `slope`: -∞ if ℓ' is larger everywhere, ∞ if ℓ' is smaller everywhere.
    fn where_derivative_is(&self, slope: f64) -> f64;
}

/// The loss ln(1 + eᶻ) - yz of logistic regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logistic {
    /// The target y, in [0, 1].
    pub target: f64,
}

impl Glm for Logistic {
    fn loss(&self, z: f64) -> f64 {
        z.max(0.0) - self.target * z + (-z.abs()).exp().ln_1p()
    }

    fn derivative(&self, z: f64) -> f64 {
        (1.0 - self.target) * sigmoid(z) - self.target * sigmoid(-z)
    }

    fn where_derivative_is(&self, slope: f64) -> f64 {
        // σ(z) = y + slope, so z = ln(y + slope) - ln(1 - y - slope). Outside (0, 1) a logarithm is -∞.
        (self.target + slope).max(0.0).ln() - ((1.0 - self.target) - slope).max(0.0).ln()
    }
}

/// The loss (z - y)²/2 of linear regression.
///
/// Clipped, it is the Huber loss that becomes linear at residuals of C/‖x‖.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Squared {
    /// The target y.
    pub target: f64,
}

impl Glm for Squared {
    fn loss(&self, z: f64) -> f64 {
        0.5 * (z - self.target).powi(2)
    }

    fn derivative(&self, z: f64) -> f64 {
        z - self.target
    }

    fn where_derivative_is(&self, slope: f64) -> f64 {
        self.target + slope
    }
}

/// The convex loss g whose gradient is the clipped gradient of ℓ.
///
/// It equals ℓ where nothing is clipped, and is linear elsewhere.
///
/// ```
/// use quell::learner::convex::{ClippedGlm, Squared};
/// use quell_privacy::units::ClipNorm;
/// // The features are x = (3, 4), of length 5.
/// let clipped = ClippedGlm::new(Squared { target: 0.0 }, 5.0, ClipNorm::new(10.0)?);
/// assert_eq!(clipped.unclipped(), (-2.0, 2.0));
/// // At z = 7 the gradient 7x has length 35, and is clipped to 2x, of length 10.
/// assert_eq!(clipped.derivative(7.0), 2.0);
/// assert_eq!(clipped.loss(7.0), 2.0 + 2.0 * (7.0 - 2.0));
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedGlm<G> {
    glm: G,
    slope: f64,
    from: f64,
    to: f64,
}

impl<G: Glm> ClippedGlm<G> {
    /// Creates the clipped loss of a record whose features have this norm.
    ///
    /// The norm includes the constant feature of an intercept. With a norm of zero nothing is clipped. With a
    /// norm that is negative or not finite, the loss is NaN.
    #[must_use]
    pub fn new(glm: G, feature_norm: f64, clip_norm: ClipNorm) -> Self {
        let slope = if feature_norm >= 0.0 && feature_norm.is_finite() {
            clip_norm.get() / feature_norm
        } else {
            f64::NAN
        };
        let (from, to) = (glm.where_derivative_is(-slope), glm.where_derivative_is(slope));
        Self { glm, slope, from, to }
    }

    /// The interval [a, b] of z in which nothing is clipped. Its ends may be infinite.
    #[must_use]
    pub fn unclipped(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// g(z).
    #[must_use]
    pub fn loss(&self, z: f64) -> f64 {
        if z < self.from {
            self.glm.loss(self.from) - self.slope * (z - self.from)
        } else if z > self.to {
            self.glm.loss(self.to) + self.slope * (z - self.to)
        } else if self.slope.is_nan() {
            f64::NAN
        } else {
            self.glm.loss(z)
        }
    }

    /// g'(z). Multiplied by the features, it is the clipped gradient.
    #[must_use]
    pub fn derivative(&self, z: f64) -> f64 {
        if z < self.from {
            -self.slope
        } else if z > self.to {
            self.slope
        } else if self.slope.is_nan() {
            f64::NAN
        } else {
            self.glm.derivative(z)
        }
    }
}
