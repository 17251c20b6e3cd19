//! Objective perturbation: the minimiser of a regularised loss with a random linear term.

use super::{
    output::{check_dimension, deviation, grid},
    problem::{Limits, LinearObjective},
    records::{Design, LinearRecords},
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Noise, Sealed, grid::Grid, unit_event},
    noise::rounded::{self, DISTANCE, GRID},
    number::format_brief,
    units::{CurvatureRatio, NoiseMultiplier},
};

/// The minimiser of a regularised loss plus ⟨b, w⟩ for a Gaussian vector b.
///
/// The minimiser is found up to a certified tolerance. Gaussian noise on the weights hides the difference.
///
/// # Contract
/// See [`LinearObjective`] for the number of records. Features are scaled to norm one.
///
/// # Theorem
/// [KST12] in the form of THEORY, Objective perturbation. The exact minimiser is a release of its own kind.
/// Given the exact minimiser, the approximate one is at most (τ + ‖b - b̃‖)/Λ away from it, for any dataset,
/// where b̃ is b rounded to the grid. So its noisy release is a Gaussian release of sensitivity twice that.
/// What is released is a function of both.
///
/// ```
/// use quell_privacy::{
///     Neighbors,
///     accounting::Pld,
///     mechanism::{ConvexLoss, LinearObjective, Mechanism, ObjectivePerturbation},
///     units::{Delta, NoiseMultiplier, Regularization, Tolerance},
/// };
/// let objective = LinearObjective {
///     loss: ConvexLoss::Logistic,
///     regularization: Regularization::new(2.0)?,
///     dimension: 30,
///     most_records: 1_000_000,
///     tolerance: Tolerance::new(1e-7)?,
/// };
/// let mechanism = ObjectivePerturbation {
///     objective,
///     noise_multiplier: NoiseMultiplier::new(5.0)?,
///     output_multiplier: NoiseMultiplier::new(100.0)?,
/// };
/// mechanism.check(Neighbors::AddRemove)?;
/// let event = mechanism.event(Neighbors::AddRemove);
/// let epsilon = Pld::default().epsilon(&event, Neighbors::AddRemove, Delta::new(1e-6)?)?;
/// assert!(epsilon.upper < 1.1);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectivePerturbation {
    /// What is minimised.
    pub objective: LinearObjective,
    /// Standard deviation of the linear term over the largest slope of the loss.
    pub noise_multiplier: NoiseMultiplier,
    /// Standard deviation of the noise on the weights over what the tolerance lets them move.
    ///
    /// 100 costs next to nothing, and this noise is small because the tolerance is.
    pub output_multiplier: NoiseMultiplier,
}

/// The sampler of Gaussian noise ends at 13 standard deviations.
const FARTHEST: f64 = 13.001;

impl ObjectivePerturbation {
    /// Standard deviation of the linear term.
    fn linear_deviation(&self) -> f64 {
        self.noise_multiplier.get() * self.objective.loss.slope() * (1.0 + 1e-12)
    }

    fn limits(&self) -> Limits {
        self.objective.limits(self.most_linear())
    }

    /// The largest norm of the linear term that can be drawn.
    fn most_linear(&self) -> f64 {
        FARTHEST * self.linear_deviation() * (self.objective.dimension as f64).sqrt()
    }

    /// The least tolerance for which the minimisation provably ends.
    #[must_use]
    pub fn least_tolerance(&self) -> f64 {
        self.limits().least_tolerance()
    }

    /// How far the weights of any two datasets may be apart for the same exact minimiser.
    ///
    /// # Theorem
    /// (THEORY, Objective perturbation) 2(τ + ‖b - b̃‖)/Λ. Rounding b to the grid moves each coordinate by
    /// half a step, and by less than a hundredth of a step in double precision. Both datasets' weights are
    /// rounded to double precision.
    fn contribution(&self) -> f64 {
        let rounded = 0.51 * (self.objective.dimension as f64).sqrt() * self.linear_deviation() / GRID as f64;
        let distance = self.objective.tolerance.get() + rounded + self.limits().rounding();
        2.0 * distance / self.objective.regularization.get() * (1.0 + 1e-12)
    }

    /// Standard deviation of the noise on the weights; `None` if there are too many weights for the grid.
    #[must_use]
    pub fn output_deviation(&self) -> Option<f64> {
        deviation(self.contribution(), self.output_multiplier, self.objective.dimension)
    }

    /// The grids of the linear term and of the weights.
    fn checked(&self) -> Result<(Grid, Grid), Error> {
        self.objective.check(self.most_linear())?;
        Ok((Grid::new(self.linear_deviation())?, grid(self.output_deviation(), self.objective.dimension)?))
    }
}

impl Sealed for ObjectivePerturbation {}

impl Mechanism for ObjectivePerturbation {
    fn event(&self, _: Neighbors) -> Event {
        let LinearObjective { loss, regularization, .. } = self.objective;
        if self.checked().is_err() {
            return Event::NonPrivate;
        }
        let ratio = CurvatureRatio::new(loss.curvature() / regularization.get() * (1.0 + 1e-12));
        unit_event(ratio, |curvature_ratio| {
            let noise_multiplier = self.noise_multiplier;
            Event::Composed(vec![
                Event::PerturbedObjective { noise_multiplier, curvature_ratio },
                Event::gaussian(self.output_multiplier),
            ])
        })
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        self.checked().map(drop)
    }

    fn distance(&self) -> f64 {
        2.0 * self.objective.dimension as f64 * DISTANCE
    }
}

impl std::fmt::Display for ObjectivePerturbation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (linear, output) =
            (format_brief(self.noise_multiplier.get()), format_brief(self.output_multiplier.get()));
        write!(
            f,
            "{}, with Gaussian noise multiplier {linear} on the objective and {output} on the weights",
            self.objective
        )
    }
}

impl Paid<ObjectivePerturbation> {
    /// Returns the weights of the minimiser of the perturbed objective.
    pub fn run(mut self, records: &impl LinearRecords) -> Result<Vec<f64>, Error> {
        let mechanism = self.mechanism;
        let objective = mechanism.objective;
        let (linear_grid, grid) = mechanism.checked()?;
        check_dimension(objective.dimension, records)?;
        // One call draws both noises, so that they are independent.
        let mut noise = vec![0; 2 * objective.dimension];
        rounded::add(Noise::Gaussian.shape(), &self.key()?, &mut noise);
        let (linear, output) = noise.split_at(objective.dimension);
        let linear: Vec<f64> = linear.iter().map(|index| linear_grid.value(i128::from(*index))).collect();
        let design = Design::new(records, objective.most_records);
        let weights = objective.minimizer(&design, &linear, mechanism.limits());
        let indices: Vec<i64> = weights.iter().map(|weight| grid.nearest(*weight)).collect();
        #[cfg(feature = "exact-statistics")]
        let indices = mechanism.withheld(indices, grid);
        let noisy = indices.iter().zip(output).map(|(index, noise)| index.wrapping_add(*noise));
        Ok(noisy.map(|index| grid.value(i128::from(index))).collect())
    }
}

#[cfg(feature = "exact-statistics")]
impl ObjectivePerturbation {
    /// Replaces the weights by zeros if a test observes them.
    ///
    /// For the same linear term, one record moves the weights as it does in output perturbation.
    fn withheld(&self, indices: Vec<i64>, grid: Grid) -> Vec<i64> {
        let LinearObjective { loss, regularization, dimension, .. } = self.objective;
        let rounding = 2.0 * (dimension as f64).sqrt() * grid.value(1);
        let reach = loss.slope() / regularization.get() + self.contribution() + rounding;
        let values = || indices.iter().map(|index| grid.value(i128::from(*index)) / reach).collect();
        let is_observed = crate::exact::withhold(self, crate::exact::Norm::L2, (1.0, 2.0), values);
        if is_observed { vec![0; dimension] } else { indices }
    }
}
