//! Output perturbation: the minimiser of a regularised loss, plus Gaussian noise.

use super::{
    problem::LinearObjective,
    records::{Design, LinearRecords},
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Noise, Sealed, grid::Grid},
    noise::rounded::{self, DISTANCE, GRID},
    number::format_brief,
    units::NoiseMultiplier,
};

/// The minimiser of a regularised loss of linear predictions, plus Gaussian noise.
///
/// # Contract
/// See [`LinearObjective`] for the number of records. Features are scaled to norm one.
///
/// # Theorem
/// [CMS11, Lemma 7] in the form of THEORY, Output perturbation: adding or removing a record moves an
/// approximate minimiser by at most (L + 2τ)/Λ, and replacing it by at most twice that. L bounds the slope of
/// the loss, τ the certified norm of the gradient at the approximate minimiser, and Λ is the regularization.
///
/// ```
/// use quell_privacy::{
///     Event, Neighbors,
///     mechanism::{ConvexLoss, LinearObjective, Mechanism, OutputPerturbation},
///     units::{NoiseMultiplier, Regularization, Tolerance},
/// };
/// let objective = LinearObjective {
///     loss: ConvexLoss::Logistic,
///     regularization: Regularization::new(10.0)?,
///     dimension: 2,
///     most_records: 1_000_000,
///     tolerance: Tolerance::new(1e-6)?,
/// };
/// let noise_multiplier = NoiseMultiplier::new(4.0)?;
/// let mechanism = OutputPerturbation { objective, noise_multiplier };
/// assert_eq!(mechanism.event(Neighbors::AddRemove), Event::gaussian(noise_multiplier));
/// assert!((mechanism.contribution() - 0.1).abs() < 1e-6);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputPerturbation {
    /// What is minimised.
    pub objective: LinearObjective,
    /// Standard deviation of the noise over [`OutputPerturbation::contribution`].
    pub noise_multiplier: NoiseMultiplier,
}

impl OutputPerturbation {
    /// How far one record that is added or removed moves the minimiser: (L + 2τ)/Λ, rounded up.
    #[must_use]
    pub fn contribution(&self) -> f64 {
        let LinearObjective { loss, regularization, tolerance, .. } = self.objective;
        // Each neighbour's weights are rounded to double precision.
        let rounding = 2.0 * self.objective.limits(0.0).rounding();
        (loss.slope() + 2.0 * tolerance.get() + rounding) / regularization.get() * (1.0 + 1e-12)
    }

    /// Standard deviation of the noise that is drawn.
    ///
    /// `None` if there are too many weights for the grid. The noise covers the rounding of the weights of
    /// both neighbours to the grid. (THEORY, Noise)
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        deviation(self.contribution(), self.noise_multiplier, self.objective.dimension)
    }

    fn checked(&self) -> Result<Grid, Error> {
        self.objective.check(0.0)?;
        grid(self.deviation(), self.objective.dimension)
    }
}

/// z(C + 2√d h) for the grid step h = deviation/2³⁰: noise for vectors that move by C.
pub(super) fn deviation(contribution: f64, multiplier: NoiseMultiplier, dimension: usize) -> Option<f64> {
    let factor = 1.0 - 2.0 * multiplier.get() * (dimension as f64).sqrt() / GRID as f64;
    (factor > 0.5).then(|| multiplier.get() * contribution * (1.0 + 1e-12) / factor)
}

pub(super) fn grid(deviation: Option<f64>, dimension: usize) -> Result<Grid, Error> {
    let range = "the range where noise_multiplier times its square root is below 2^28";
    let too_long = Error::OutOfRange { what: "dimension", value: dimension as f64, range };
    Grid::new(deviation.ok_or(too_long)?)
}

/// Checks the number of features of the records, which is public.
pub(super) fn check_dimension(dimension: usize, records: &impl LinearRecords) -> Result<(), Error> {
    let (value, range) = (records.dimension() as f64, "[d, d] for the paid dimension d");
    if records.dimension() == dimension {
        Ok(())
    } else {
        Err(Error::OutOfRange { what: "dimension", value, range })
    }
}

impl Sealed for OutputPerturbation {}

impl Mechanism for OutputPerturbation {
    fn event(&self, _: Neighbors) -> Event {
        self.checked().map_or(Event::NonPrivate, |_| Event::gaussian(self.noise_multiplier))
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        self.checked().map(drop)
    }

    fn distance(&self) -> f64 {
        self.objective.dimension as f64 * DISTANCE
    }
}

impl std::fmt::Display for OutputPerturbation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let multiplier = format_brief(self.noise_multiplier.get());
        write!(f, "{}, with Gaussian noise multiplier {multiplier} on the weights", self.objective)
    }
}

impl Paid<OutputPerturbation> {
    /// Returns the weights of the minimiser plus noise.
    pub fn run(mut self, records: &impl LinearRecords) -> Result<Vec<f64>, Error> {
        let mechanism = self.mechanism;
        let objective = mechanism.objective;
        let grid = mechanism.checked()?;
        check_dimension(objective.dimension, records)?;
        let key = self.key()?;
        let design = Design::new(records, objective.most_records);
        let none = vec![0.0; objective.dimension];
        let weights = objective.minimizer(&design, &none, objective.limits(0.0));
        let mut indices: Vec<i64> = weights.iter().map(|weight| grid.nearest(*weight)).collect();
        #[cfg(feature = "exact-statistics")]
        mechanism.withhold(&mut indices);
        rounded::add(Noise::Gaussian.shape(), &key, &mut indices);
        Ok(indices.into_iter().map(|index| grid.value(i128::from(index))).collect())
    }
}

#[cfg(feature = "exact-statistics")]
impl OutputPerturbation {
    /// Replaces the weights by zeros if a test observes them, in units of one record's contribution.
    fn withhold(&self, indices: &mut [i64]) {
        let unit = self.noise_multiplier.get() / GRID as f64;
        let values = || indices.iter().map(|index| *index as f64 * unit).collect();
        if crate::exact::withhold(self, crate::exact::Norm::L2, (1.0, 2.0), values) {
            indices.fill(0);
        }
    }
}
