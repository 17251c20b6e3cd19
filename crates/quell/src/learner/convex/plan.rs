//! Plans of convex learning: what to run, what it costs in gradients, and the excess risk to expect.
//!
//! A plan follows from public numbers alone. No record is read, and nothing is charged.

use quell_privacy::units::NoiseMultiplier;

use super::{
    Loss, Method, Privacy, Problem,
    excess_risk::{Average, StepSize},
    planner::plan,
};
use crate::Error;

/// What a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Procedure {
    /// Find the minimiser of the mean loss plus a regulariser, and add noise, to it or to the objective.
    Minimise {
        /// Weight r of the regulariser r‖w - w₁‖²/2.
        regularization: f64,
        /// Standard deviation of the noise in each coordinate, of the weights or of the gradient of the mean.
        noise: f64,
    },
    /// Take noisy steps.
    Descend(Descend),
}

/// Noisy steps.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Descend {
    /// Number T of steps.
    pub steps: u64,
    /// The step size, for the gradient of the mean loss.
    pub step_size: StepSize,
    /// The average of the iterates for which the bound holds.
    pub average: Average,
    /// Expected size of the Poisson sample of a step. The number of records means all of them.
    pub batch_size: u64,
    /// Standard deviation of the noise on the sum over a batch, over L (over 2L for `NoisySVRG`).
    pub noise_multiplier: NoiseMultiplier,
    /// Standard deviation of the random shift of the weights at which a gradient is taken; zero for none.
    pub smoothing: f64,
    /// The reference gradients of `NoisySVRG`.
    pub reference: Option<Reference>,
}

/// Reference gradients of variance-reduced steps.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Reference {
    /// Number of reference points, one for each epoch.
    pub epochs: u64,
    /// Standard deviation of the noise on the reference gradient of all records, in each step, over L.
    pub noise_multiplier: NoiseMultiplier,
}

/// What to run, and what to expect of it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Plan {
    /// The method.
    pub method: Method,
    /// The class of losses.
    pub loss: Loss,
    /// Bound on the expected excess risk, or on the expected squared gradient of a loss that is not convex.
    pub risk: f64,
    /// Expected number of gradients of single records. `None` if it depends on how the minimiser is found.
    pub gradient_evaluations: Option<f64>,
    /// What to run.
    pub procedure: Procedure,
    /// The theorem behind the bound.
    pub theorem: &'static str,
}

/// How close to its limit a plan must come. The rest is saved as work.
///
/// The limit of a method is its bound after as many steps as one likes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(f64);

impl Factor {
    /// A plan's bound is at most this number times the limit of its method. It is in [1.05, 100].
    pub fn new(factor: f64) -> Result<Self, Error> {
        if (1.05..=100.0).contains(&factor) {
            Ok(Self(factor))
        } else {
            Err(Error::OutOfRange { what: "factor", value: factor, range: "[1.05, 100]" })
        }
    }

    /// The plain number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for Factor {
    fn default() -> Self {
        Self(1.5)
    }
}

impl Plan {
    /// Plans a method for a problem, with the least work that comes close to its limit.
    ///
    /// ```
    /// use quell::learner::convex::{Factor, Loss, Method, Plan, Privacy, Problem};
    /// use quell_privacy::{Neighbors, units::{Delta, Epsilon}};
    /// let problem = Problem {
    ///     records: 10_000,
    ///     dimension: 50,
    ///     lipschitz: 1.0,
    ///     smoothness: Some(0.25),
    ///     strong_convexity: None,
    ///     radius: 1.0,
    /// };
    /// let privacy = Privacy {
    ///     epsilon: Epsilon::new(1.0)?,
    ///     delta: Delta::new(1e-6)?,
    ///     neighbors: Neighbors::AddRemove,
    /// };
    /// let plan = Plan::new(&problem, privacy, Method::NoisyGd, Loss::SmoothConvex, Factor::default())?;
    /// // Before the first step, the excess risk is at most 1/8.
    /// assert!(plan.risk < 0.005 && problem.start(Loss::SmoothConvex) == 0.125);
    /// # Ok::<(), quell::Error>(())
    /// ```
    pub fn new(
        problem: &Problem,
        privacy: Privacy,
        method: Method,
        loss: Loss,
        factor: Factor,
    ) -> Result<Self, Error> {
        problem.check()?;
        if !method.applies_to(loss) {
            return Err(Error::Setting {
                name: "method",
                found: format!("{} for a loss that is {}", method.name(), loss.name()),
                expected: "a method with a theorem for this loss",
            });
        }
        let (risk, gradient_evaluations, procedure) = plan(problem, privacy, method, loss, factor.get())?;
        Ok(Self { method, loss, risk, gradient_evaluations, procedure, theorem: method.theorem(loss) })
    }

    /// Whether the bound is below what is known of the first weights.
    #[must_use]
    pub fn is_useful(&self, problem: &Problem) -> bool {
        match self.loss {
            Loss::SmoothNonConvex => self.risk < problem.first_gradient().powi(2),
            loss => self.risk < problem.start(loss),
        }
    }

    /// Plans every method that has a theorem for a class of losses.
    pub fn all(
        problem: &Problem,
        privacy: Privacy,
        loss: Loss,
        factor: Factor,
    ) -> impl Iterator<Item = Result<Self, Error>> {
        let methods = Method::ALL.into_iter().filter(move |method| method.applies_to(loss));
        methods.map(move |method| Self::new(problem, privacy, method, loss, factor))
    }
}
