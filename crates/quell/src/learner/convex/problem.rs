//! What is public about a problem of empirical risk minimisation, and what its theorems need.
//!
//! The empirical risk is the mean loss F(w) = (1/n) Σ ℓᵢ(w) over n records. All numbers here are
//! declared. None is read from records.

use quell_privacy::{
    Neighbors,
    accounting::closed,
    units::{Delta, Epsilon},
};

use crate::{
    Error,
    range::{NOT_NEGATIVE, POSITIVE},
};

/// Public facts about an empirical risk, on which its bounds depend.
///
/// ```
/// use quell::learner::convex::{Loss, Problem};
/// // Logistic regression on features of norm at most 1.
/// let problem = Problem {
///     records: 10_000,
///     dimension: 50,
///     lipschitz: 1.0,
///     smoothness: Some(0.25),
///     strong_convexity: None,
///     radius: 1.0,
/// };
/// assert!(problem.has(Loss::SmoothConvex) && !problem.has(Loss::StronglyConvex));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// Number n of records, a public number.
    pub records: u64,
    /// Number d of weights.
    pub dimension: u64,
    /// L: every loss ℓᵢ is L-Lipschitz.
    pub lipschitz: f64,
    /// β: the gradient of every loss ℓᵢ is β-Lipschitz. `None` if it may jump.
    pub smoothness: Option<f64>,
    /// λ: the mean loss F is λ-strongly convex. `None` if it may be flat.
    pub strong_convexity: Option<f64>,
    /// R: the first weights w₁ are at most this far from a minimiser w* of F.
    pub radius: f64,
}

/// A class of losses, by what its theorems assume.
///
/// Every class assumes L-Lipschitz losses. "Convex" and "smooth" hold for the loss of every record, "strongly
/// convex" holds for their mean. The hypotheses hold on the ball of radius R around the first weights where a
/// method projects onto it, and everywhere else where it does not (see the theorem of a plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Convex.
    Convex,
    /// Convex and smooth.
    SmoothConvex,
    /// Convex and smooth, a function of one product ⟨w, x⟩: a generalised linear model.
    SmoothGlm,
    /// Strongly convex.
    StronglyConvex,
    /// Strongly convex and smooth.
    SmoothStronglyConvex,
    /// Smooth, with any number of minima. The bound is on the expected squared gradient.
    SmoothNonConvex,
}

impl Loss {
    /// All classes.
    pub const ALL: [Self; 6] = [
        Self::Convex,
        Self::SmoothConvex,
        Self::SmoothGlm,
        Self::StronglyConvex,
        Self::SmoothStronglyConvex,
        Self::SmoothNonConvex,
    ];

    /// The name of the class, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Convex => "convex",
            Self::SmoothConvex => "smooth-convex",
            Self::SmoothGlm => "smooth-glm",
            Self::StronglyConvex => "strongly-convex",
            Self::SmoothStronglyConvex => "smooth-strongly-convex",
            Self::SmoothNonConvex => "smooth-non-convex",
        }
    }

    /// Whether the theorems use the smoothness β.
    #[must_use]
    pub fn is_smooth(self) -> bool {
        !matches!(self, Self::Convex | Self::StronglyConvex)
    }

    /// Whether the theorems use the strong convexity λ.
    #[must_use]
    pub fn is_strongly_convex(self) -> bool {
        matches!(self, Self::StronglyConvex | Self::SmoothStronglyConvex)
    }
}

/// The guarantee that a plan must meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Privacy {
    /// ε.
    pub epsilon: Epsilon,
    /// δ.
    pub delta: Delta,
    /// The neighbour relation.
    pub neighbors: Neighbors,
}

impl Privacy {
    /// The noise multiplier z₁ of one Gaussian release, in units of one record's contribution, rounded up.
    ///
    /// T releases of multiplier √T z₁ meet the same guarantee.
    pub fn one_release(&self) -> Result<f64, Error> {
        let over_sensitivity = closed::gaussian_sigma(self.epsilon, self.delta)?.get();
        Ok(over_sensitivity * self.neighbors.reach())
    }
}

/// The largest count that is exact in formulas.
const LARGEST_COUNT: u64 = 1 << 53;

impl Problem {
    /// Checks all numbers.
    pub fn check(&self) -> Result<(), Error> {
        for (what, count) in [("records", self.records), ("dimension", self.dimension)] {
            if !(1..=LARGEST_COUNT).contains(&count) {
                return Err(Error::OutOfRange { what, value: count as f64, range: "[1, 2^53]" });
            }
        }
        POSITIVE.check("lipschitz", self.lipschitz)?;
        POSITIVE.check("radius", self.radius)?;
        if let Some(smoothness) = self.smoothness {
            POSITIVE.check("smoothness", smoothness)?;
        }
        if let Some(strong_convexity) = self.strong_convexity {
            POSITIVE.check("strong_convexity", strong_convexity)?;
            self.check_strong_convexity(strong_convexity)?;
        }
        NOT_NEGATIVE.check("lipschitz times radius", self.lipschitz * self.radius)
    }

    /// A function that is both λ-strongly convex and L-Lipschitz, or β-smooth, satisfies λ ≤ L/R, or λ ≤ β.
    fn check_strong_convexity(&self, strong_convexity: f64) -> Result<(), Error> {
        // On the ball of radius R around w₁, two points are 2R apart. There subgradients differ by at least 2λR,
        // and by at most 2L.
        let largest = (self.lipschitz / self.radius).min(self.smoothness.unwrap_or(f64::INFINITY));
        if strong_convexity > largest {
            return Err(Error::Setting {
                name: "strong_convexity",
                found: strong_convexity.to_string(),
                expected: "at most the smoothness, and at most lipschitz / radius: other losses do not exist",
            });
        }
        Ok(())
    }

    /// Whether the numbers that a class of losses needs are given.
    #[must_use]
    pub fn has(&self, loss: Loss) -> bool {
        (!loss.is_smooth() || self.smoothness.is_some())
            && (!loss.is_strongly_convex() || self.strong_convexity.is_some())
    }

    /// A bound on the excess risk F(w₁) - F(w*) before the first step.
    ///
    /// # Theorem
    /// (THEORY, Noisy descent) It is LR. For smooth losses, βR²/2, because ∇F(w*) = 0.
    #[must_use]
    pub fn start(&self, loss: Loss) -> f64 {
        let lipschitz = self.lipschitz * self.radius;
        let smooth = self
            .smoothness
            .filter(|_| loss.is_smooth())
            .map_or(f64::INFINITY, |beta| 0.5 * beta * self.radius * self.radius);
        lipschitz.min(smooth)
    }

    /// A bound on the gradient at w₁: L, and βR for smooth losses, because ∇F(w*) = 0.
    pub(super) fn first_gradient(&self) -> f64 {
        self.smoothness.map_or(self.lipschitz, |beta| self.lipschitz.min(beta * self.radius))
    }

    pub(super) fn beta(&self) -> Result<f64, Error> {
        self.smoothness.ok_or_else(|| missing("smoothness"))
    }

    pub(super) fn lambda(&self) -> Result<f64, Error> {
        self.strong_convexity.ok_or_else(|| missing("strong_convexity"))
    }
}

/// The error for a number without which there is no theorem.
fn missing(name: &'static str) -> Error {
    Error::Setting { name, found: "missing".into(), expected: "a number: the theorems for this loss need it" }
}
