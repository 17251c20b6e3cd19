//! Noisy gradient descent of a linear model that releases its last iterate alone.

use super::{
    double::Double,
    loss::ConvexLoss,
    output::{deviation, grid},
    records::{Design, LinearRecords},
};
use crate::{
    Error, Event, Neighbors,
    event::MOST_REPETITIONS,
    ledger::Paid,
    mechanism::{Mechanism, Noise, Sealed, grid::Grid},
    noise::rounded::{self, DISTANCE},
    number::format_brief,
    special::ROUNDOFF,
    units::{Contraction, Diameter, LearningRate, NoiseMultiplier, Radius, Regularization},
};

/// Noisy projected gradient descent on the loss of a linear model; only the last iterate is released.
///
/// A step is w ← P(w) - η(a Σ ℓ'(⟨P(w), xᵢ⟩; yᵢ) xᵢ + ΛP(w)) + noise, from w = 0, with the projection P on a
/// ball. Features are scaled to norm one.
///
/// # Contract
/// Every record takes part in every step, whatever the number of records is:
/// - If records are added or removed, the weight a = 1 - (n - 1)/4N of the n records falls as n grows, and
///   from n = 2N on a = (N + 1/2)/n. So it is three quarters for n = N.
/// - If records are replaced, the first N positions are used, and a = 1.
///
/// # Theorem
/// (THEORY, Hidden descent) The steps of neighbours satisfy what [`Event::HiddenState`] states, for every
/// dataset: with β the curvature of the loss, a step contracts by 1 - ηΛ if η ≤ 2/(βN' + 2Λ), where N' = N +
/// 1/2, or N if records are replaced. One record moves a step by ηL, with L the slope of the loss. The noise
/// is z times that, and covers the rounding of all numbers.
///
/// ```
/// use quell_privacy::{
///     Event, Neighbors,
///     mechanism::{ConvexLoss, HiddenDescent, Mechanism},
///     units::{LearningRate, NoiseMultiplier, Radius, Regularization},
/// };
/// let mut mechanism = HiddenDescent {
///     loss: ConvexLoss::Logistic,
///     regularization: Some(Regularization::new(10.0)?),
///     dimension: 3,
///     radius: Radius::new(5.0)?,
///     most_records: 1_000,
///     learning_rate: LearningRate::new(0.007)?,
///     steps: 200,
///     noise_multiplier: NoiseMultiplier::new(20.0)?,
/// };
/// assert!(matches!(mechanism.event(Neighbors::AddRemove), Event::HiddenState { steps: 200, .. }));
/// // Longer steps than 2/(1000.5/4 + 20) need not contract.
/// mechanism.learning_rate = LearningRate::new(0.008)?;
/// assert!(mechanism.check(Neighbors::AddRemove).is_err());
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HiddenDescent {
    /// The loss of one record.
    pub loss: ConvexLoss,
    /// Λ; `None` is zero.
    pub regularization: Option<Regularization>,
    /// Number of features, and of weights.
    pub dimension: usize,
    /// Radius of the ball on which iterates are projected.
    pub radius: Radius,
    /// N: for more records than this, the steps no longer grow.
    pub most_records: u64,
    /// η.
    pub learning_rate: LearningRate,
    /// Number of steps.
    pub steps: u64,
    /// z: standard deviation of the noise of a step over the contribution of one record.
    pub noise_multiplier: NoiseMultiplier,
}

/// Numbers that follow from the settings.
struct Constants {
    contraction: Contraction,
    diameter: Option<Diameter>,
    grid: Grid,
}

/// Number of records that are added up in double precision, before the sum goes to 106 bits.
const BLOCK: usize = 64;

impl HiddenDescent {
    /// The largest learning rate for which every step is a contraction, whatever the records are.
    ///
    /// It is 2/(βN' + 2Λ), rounded down.
    #[must_use]
    pub fn largest_learning_rate(&self, neighbors: Neighbors) -> f64 {
        let curvature = self.loss.curvature() * self.total_weight(neighbors);
        2.0 / (curvature + 2.0 * self.penalty()) * (1.0 - 1e-9)
    }

    /// Standard deviation of the noise that is drawn in each step.
    ///
    /// `None` if there are too many weights for the grid, or too many records for double precision.
    #[must_use]
    pub fn deviation(&self, neighbors: Neighbors) -> Option<f64> {
        let exact = self.learning_rate.get() * self.loss.slope();
        let rounding = 2.0 * self.rounding(neighbors);
        // Written so that NaN is refused.
        if rounding <= 0.25 * exact {
            deviation(exact + rounding, self.noise_multiplier, self.dimension)
        } else {
            None
        }
    }

    fn penalty(&self) -> f64 {
        self.regularization.map_or(0.0, Regularization::get)
    }

    /// N': the largest sum of the weights of all records.
    fn total_weight(&self, neighbors: Neighbors) -> f64 {
        match neighbors {
            Neighbors::AddRemove => self.most_records as f64 + 0.5,
            Neighbors::Replace => self.most_records as f64,
        }
    }

    /// a: the weight of each of `count` records.
    ///
    /// # Theorem
    /// (THEORY, Hidden descent) na ≤ N', and for vectors of length at most one, the weighted sum of n + 1 of
    /// them is at most one apart from the weighted sum of n of them.
    fn weight(&self, neighbors: Neighbors, count: usize) -> f64 {
        let (most, count) = (self.most_records as f64, count as f64);
        match neighbors {
            Neighbors::Replace => 1.0,
            Neighbors::AddRemove if count <= 2.0 * most => 1.0 - (count - 1.0) / (4.0 * most),
            Neighbors::AddRemove => (most + 0.5) / count,
        }
    }

    /// ρ: how far rounding moves a step, apart from the grid.
    ///
    /// # Theorem
    /// (THEORY, Hidden descent) u(ηN'(1.03dβr + 96L) + r(d + 17)) with u = 2⁻⁵³, times 1.05 for products of
    /// these errors.
    fn rounding(&self, neighbors: Neighbors) -> f64 {
        let (slope, curvature) = (self.loss.slope(), self.loss.curvature());
        let (d, r) = (self.dimension as f64, self.radius.get());
        let records = self.learning_rate.get() * self.total_weight(neighbors);
        1.05 * ROUNDOFF * (records * (1.03 * d * curvature * r + 96.0 * slope) + r * (d + 17.0))
    }

    /// Checks all conditions of the theorem.
    fn constants(&self, neighbors: Neighbors) -> Result<Constants, Error> {
        for (what, value, most, range) in [
            ("dimension", self.dimension as u64, 1 << 28, "[1, 2^28]"),
            ("most_records", self.most_records, 1 << 40, "[1, 2^40]"),
            ("steps", self.steps, MOST_REPETITIONS, "[1, 2^53]"),
        ] {
            if !(1..=most).contains(&value) {
                return Err(Error::OutOfRange { what, value: value as f64, range });
            }
        }
        let rate = self.learning_rate.get();
        if rate > self.largest_learning_rate(neighbors) {
            let range = "the range up to 2/(curvature of all records + twice the regularization)";
            return Err(Error::OutOfRange { what: "learning_rate", value: rate, range });
        }
        let Some(deviation) = self.deviation(neighbors) else {
            return Err(Error::Unfit {
                what: "hidden descent",
                because: "rounding would move a step by more than a record does; lower the number of records, the dimension, the noise multiplier or the radius",
            });
        };
        // 1 - ηΛ errs by two units in the last place of one.
        let contraction = Contraction::new((1.0 - rate * self.penalty() + 4.0 * ROUNDOFF).clamp(0.0, 1.0))?;
        let contribution = deviation / self.noise_multiplier.get();
        // A domain that is too large for the unit is no help to the bound.
        let diameter = Diameter::new(2.0 * self.radius.get() / contribution * (1.0 + 1e-12));
        let diameter = match diameter {
            Err(Error::OutOfRange { value, .. }) if value > 1.0 => None,
            checked => Some(checked?),
        };
        Ok(Constants { contraction, diameter, grid: grid(Some(deviation), self.dimension)? })
    }

    /// ψ: one step, without noise, in steps of the grid.
    fn step(&self, design: &Design, weight: f64, grid: Grid, iterate: &[i64]) -> Vec<i64> {
        let weights = self.projected(grid, iterate);
        let gradient = self.gradient(design, &weights);
        let (keep, rate) =
            (1.0 - self.learning_rate.get() * self.penalty(), self.learning_rate.get() * weight);
        let moved = weights.iter().zip(&gradient).map(|(weight, slope)| keep * weight - rate * slope.high);
        moved.map(|coordinate| grid.nearest(coordinate)).collect()
    }

    /// The nearest point of the ball.
    fn projected(&self, grid: Grid, iterate: &[i64]) -> Vec<f64> {
        let mut weights: Vec<f64> = iterate.iter().map(|index| grid.value(i128::from(*index))).collect();
        let norm = weights.iter().map(|weight| weight * weight).sum::<f64>().sqrt();
        if norm > self.radius.get() {
            let factor = self.radius.get() / norm;
            for weight in &mut weights {
                *weight *= factor;
            }
        }
        weights
    }

    /// Σ ℓ'(⟨w, xᵢ⟩; yᵢ) xᵢ.
    fn gradient(&self, design: &Design, weights: &[f64]) -> Vec<Double> {
        let mut total = vec![Double::default(); self.dimension];
        let mut block = vec![0.0; self.dimension];
        let mut flush = |block: &mut [f64]| {
            for (total, sum) in total.iter_mut().zip(block) {
                *total = total.plus(std::mem::take(sum));
            }
        };
        for (number, (features, target)) in design.rows().enumerate() {
            if number % BLOCK == 0 {
                flush(&mut block);
            }
            let slope = self.loss.slope_at(product(weights, features), target);
            for (sum, x) in block.iter_mut().zip(features) {
                *sum += slope * f64::from(*x);
            }
        }
        flush(&mut block);
        total
    }
}

/// ⟨w, x⟩, in an order that vector instructions can follow.
fn product(weights: &[f64], features: &[f32]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (weights, features) = (weights.chunks(LANES), features.chunks(LANES));
    for (weights, features) in weights.zip(features) {
        for (sum, (weight, x)) in sums.iter_mut().zip(weights.iter().zip(features)) {
            *sum += weight * f64::from(*x);
        }
    }
    sums.iter().sum()
}

impl Sealed for HiddenDescent {}

impl Mechanism for HiddenDescent {
    fn event(&self, neighbors: Neighbors) -> Event {
        self.constants(neighbors).map_or(Event::NonPrivate, |constants| Event::HiddenState {
            noise_multiplier: self.noise_multiplier,
            contraction: constants.contraction,
            steps: self.steps,
            diameter: constants.diameter,
        })
    }

    fn check(&self, neighbors: Neighbors) -> Result<(), Error> {
        self.constants(neighbors).map(drop)
    }

    fn distance(&self) -> f64 {
        self.steps as f64 * self.dimension as f64 * DISTANCE
    }
}

impl std::fmt::Display for HiddenDescent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "last of {} hidden steps of gradient descent for a linear model of {} weights with {} and regularization {}, in a ball of radius {}, with learning rate {} for up to {} records and Gaussian noise multiplier {} in each step",
            self.steps,
            self.dimension,
            self.loss,
            format_brief(self.penalty()),
            format_brief(self.radius.get()),
            format_brief(self.learning_rate.get()),
            self.most_records,
            format_brief(self.noise_multiplier.get())
        )
    }
}

impl Paid<HiddenDescent> {
    /// Takes all steps and returns the weights after the last one, projected on the ball.
    pub fn run(mut self, records: &impl LinearRecords) -> Result<Vec<f64>, Error> {
        let (mechanism, neighbors) = (self.mechanism, self.neighbors);
        let Constants { grid, .. } = mechanism.constants(neighbors)?;
        if records.dimension() != mechanism.dimension {
            let (value, range) = (records.dimension() as f64, "[d, d] for the paid dimension d");
            return Err(Error::OutOfRange { what: "dimension", value, range });
        }
        let key = self.key()?;
        let used = match neighbors {
            Neighbors::AddRemove => u64::MAX,
            Neighbors::Replace => mechanism.most_records,
        };
        let design = Design::new(records, used);
        let weight = mechanism.weight(neighbors, design.rows().count());
        let mut iterate = vec![0; mechanism.dimension];
        for step in 0..mechanism.steps {
            iterate = mechanism.step(&design, weight, grid, &iterate);
            #[cfg(feature = "exact-statistics")]
            mechanism.withhold(&mut iterate);
            rounded::add(Noise::Gaussian.shape(), &key.next(step), &mut iterate);
        }
        Ok(mechanism.projected(grid, &iterate))
    }
}

#[cfg(feature = "exact-statistics")]
impl HiddenDescent {
    /// Replaces a step by zeros if a test observes it, in units of one record's contribution.
    ///
    /// Then the next steps of neighbours begin at the same point.
    fn withhold(&self, indices: &mut [i64]) {
        let unit = self.noise_multiplier.get() / crate::noise::rounded::GRID as f64;
        let values = || indices.iter().map(|index| *index as f64 * unit).collect();
        if crate::exact::withhold(self, crate::exact::Norm::L2, (1.0, 2.0), values) {
            indices.fill(0);
        }
    }
}

#[cfg(test)]
mod tests;
