//! One sample from a strongly log-concave density, for losses that are not bounded but Lipschitz.

use super::{
    double::{Double, ROUNDING, split},
    output::check_dimension,
    posterior::{MOST_DISTANCE, TAIL, accepts, gaussian, most_squared, sum_of_squares},
    problem::LinearObjective,
    records::{Design, LinearRecords},
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Sealed, unit_event},
    noise::{
        random::Stream,
        rounded::{DISTANCE, PRECISE_BITS},
    },
    number::format_brief,
    special::ROUNDOFF,
    units::{NoiseMultiplier, Power},
};

/// Weights of a linear model, drawn once from a density that falls exponentially with the objective.
///
/// The density at w is ∝ e^(-τJ(w)) for J(w) = Σ ℓ(⟨w, xᵢ⟩; yᵢ) + Λ/2 ‖w‖², on all of space.
///
/// # Contract
/// See [`LinearObjective`] for the number of records. The loss is the logistic loss or Huber's loss. The
/// number of proposals must not be observable.
///
/// # Theorem
/// [GLL22; MASN16] (THEORY, Log-concave samples) τJ is τΛ-strongly convex, and a record adds a function with
/// Lipschitz constant τL to it, with L the slope of the loss. So samples of neighbours are at most as
/// different as Gaussian numbers with variance one and means L√(τ/Λ) apart. The sample is exact up to
/// [`Mechanism::distance`], for every dataset.
///
/// ```
/// use quell_privacy::{
///     Event, Neighbors,
///     mechanism::{ConvexLoss, LinearObjective, LogConcaveSample, Mechanism},
///     units::{Power, Regularization, Tolerance},
/// };
/// let objective = LinearObjective {
///     loss: ConvexLoss::Logistic,
///     regularization: Regularization::new(32.0)?,
///     dimension: 2,
///     most_records: 10_000,
///     tolerance: Tolerance::new(1e-6)?,
/// };
/// let mut sample = LogConcaveSample { objective, power: Power::new(2.0)? };
/// let Event::Gaussian { noise_multiplier } = sample.event(Neighbors::AddRemove) else { unreachable!() };
/// assert!((noise_multiplier.get() - 4.0).abs() < 1e-9);
/// assert!(sample.distance() < 1e-12);
/// // So many weights need too many proposals.
/// sample.objective.dimension = 20;
/// assert!(sample.check(Neighbors::AddRemove).is_err());
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogConcaveSample {
    /// J.
    pub objective: LinearObjective,
    /// τ: the power of the likelihood and of the prior.
    pub power: Power,
}

/// The largest bound on the mean number of proposals that is accepted.
const MOST_PROPOSALS: f64 = (1_u64 << 30) as f64;

/// Grid steps in the least standard deviation that a density can have.
const STEPS: f64 = (1_u64 << 20) as f64;

impl LogConcaveSample {
    /// √(Λ/τ)/L, rounded down: the cost is that of Gaussian noise with this multiplier.
    #[must_use]
    pub fn noise_multiplier(&self) -> f64 {
        let LinearObjective { loss, regularization, .. } = self.objective;
        (regularization.get() / self.power.get()).sqrt() / loss.slope() * (1.0 - 1e-12)
    }

    /// A bound on the mean number of proposals, for every dataset.
    ///
    /// # Theorem
    /// (THEORY, Log-concave samples) The potential is between two parabolas with the same vertex, of curvature
    /// τΛ and τ(Λ + Nβ). So a proposal is accepted with probability (1 + Nβ/Λ)^(-d/2) at least, up to a slack
    /// of the certificate, which is below 1.
    #[must_use]
    pub fn most_proposals(&self) -> f64 {
        let LinearObjective { loss, regularization, dimension, most_records, .. } = self.objective;
        let condition = 1.0 + most_records as f64 * loss.curvature() / regularization.get();
        condition.powf(0.5 * dimension as f64) * std::f64::consts::E
    }

    /// s: the standard deviation of proposals, 1/√(τΛ), rounded up.
    fn spread(&self) -> f64 {
        (self.power.get() * self.objective.regularization.get()).sqrt().recip() * (1.0 + 1e-12)
    }

    /// How far the gradient at the centre can move an exponent: τ · gradient · sZ.
    ///
    /// The certificate bounds the gradient before the weights are rounded to double precision. Rounding moves
    /// them by 8uNL/Λ at most, and the gradient by κ times Λ times that.
    fn slack(&self) -> f64 {
        let LinearObjective { loss, regularization, dimension, most_records, tolerance } = self.objective;
        let records = most_records as f64;
        let condition = 1.0 + records * loss.curvature() / regularization.get();
        let gradient = tolerance.get() + 8.0 * ROUNDOFF * condition * records * loss.slope();
        1.01 * self.power.get() * gradient * self.spread() * most_squared(dimension).sqrt() + 1e-6
    }

    /// The largest norm of weights that are proposed: 2NL/Λ + sZ.
    fn reach(&self) -> f64 {
        let LinearObjective { loss, regularization, dimension, most_records, .. } = self.objective;
        let search = 4.1 * most_records as f64 * loss.slope() / regularization.get();
        search + self.spread() * most_squared(dimension).sqrt()
    }

    /// The largest curvature of the potential: τ(Λ + Nβ).
    fn curvature(&self) -> f64 {
        let LinearObjective { loss, regularization, most_records, .. } = self.objective;
        self.power.get() * (regularization.get() + most_records as f64 * loss.curvature()) * (1.0 + 1e-9)
    }

    /// h: the step of the grid on which weights are released, a power of two.
    fn step(&self) -> f64 {
        self.curvature().sqrt().recip().log2().floor().exp2() / STEPS
    }

    fn checked(&self) -> Result<(), Error> {
        self.objective.check(0.0)?;
        if !self.objective.loss.has_value() {
            return Err(Error::Unfit {
                what: "a sample from a log-concave density",
                because: "it is known for the logistic loss and Huber's loss only",
            });
        }
        // Written so that NaN is refused.
        let is_exact = self.distance() <= MOST_DISTANCE
            && self.slack() <= 0.5
            && self.reach() / self.step() <= (1_u64 << 52) as f64;
        if is_exact && self.most_proposals() <= MOST_PROPOSALS {
            return Ok(());
        }
        Err(Error::Unfit {
            what: "a sample from a log-concave density",
            because: "the sampler may be inexact or take too long for so many weights or records; lower the dimension, the number of records or the tolerance, or raise the regularization",
        })
    }

    /// The accepted proposal, and the number of proposals.
    fn sample(&self, design: &Design, stream: &mut Stream) -> (Vec<f64>, u64) {
        let objective = &self.objective;
        let none = vec![0.0; objective.dimension];
        let center = objective.minimizer(design, &none, objective.limits(0.0));
        let center: Vec<Double> = center.into_iter().map(Double::from).collect();
        let values = self.values(design, &center);
        let most_squared = most_squared(objective.dimension);
        for proposals in 1.. {
            let numbers: Vec<Double> = center.iter().map(|_| gaussian(stream)).collect();
            let squares = sum_of_squares(&numbers);
            if squares.high > most_squared {
                continue;
            }
            let weights: Vec<Double> =
                center.iter().zip(&numbers).map(|(m, z)| m.add(z.times(self.spread()))).collect();
            let exponent = self.rise(design, &values, &center, &weights).add(squares.times(-0.5));
            if accepts(exponent, Double::from(-self.slack()), stream) {
                let step = self.step();
                let rounded = |weight: &Double| weight.times(1.0 / step).plus(0.5).floor() * step;
                return (weights.iter().map(rounded).collect(), proposals);
            }
        }
        unreachable!("rejected for ever has probability zero")
    }

    /// The loss of each record.
    fn values(&self, design: &Design, weights: &[Double]) -> Vec<Double> {
        design
            .rows()
            .map(|(features, target)| self.objective.loss.value(product(weights, features), target))
            .collect()
    }

    /// τ(J(w) - J(m)), given the losses at m.
    fn rise(&self, design: &Design, values: &[Double], center: &[Double], weights: &[Double]) -> Double {
        let losses = self.values(design, weights);
        // Differences first: they are small, and so is the rounding of their sum.
        let loss = losses
            .iter()
            .zip(values)
            .fold(Double::default(), |sum, (now, before)| sum.add(now.add(before.signed(-1.0))));
        let penalty = sum_of_squares(weights).add(sum_of_squares(center).signed(-1.0));
        loss.add(penalty.times(0.5 * self.objective.regularization.get())).times(self.power.get())
    }
}

/// ⟨w, x⟩: products of features with parts of 29 and 24 bits are exact.
fn product(weights: &[Double], features: &[f32]) -> Double {
    weights.iter().zip(features).fold(Double::default(), |sum, (weight, x)| {
        let ((first, second), x) = (split::<24>(weight.high), f64::from(*x));
        sum.plus(first * x).plus(second * x).plus(weight.low * x)
    })
}

impl Sealed for LogConcaveSample {}

impl Mechanism for LogConcaveSample {
    fn event(&self, _: Neighbors) -> Event {
        if self.checked().is_err() {
            return Event::NonPrivate;
        }
        unit_event(NoiseMultiplier::new(self.noise_multiplier()), Event::gaussian)
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        self.checked()?;
        NoiseMultiplier::new(self.noise_multiplier()).map(drop)
    }

    /// # Theorem
    /// (THEORY, Log-concave samples) The sum of the errors of exponents, of roundings to the grid, of the
    /// Gaussian numbers behind all proposals, and of their tail.
    fn distance(&self) -> f64 {
        let LinearObjective { loss, regularization, dimension, most_records, .. } = self.objective;
        let (d, n) = (dimension as f64, most_records as f64);
        let squared = most_squared(dimension);
        let (spread, reach, power) = (self.spread(), self.reach(), self.power.get());
        let units = 1.0 / (1_u128 << PRECISE_BITS) as f64;
        let error = spread * units + 4.0 * ROUNDING * reach;
        let losses =
            n * loss.slope() * ((8.0 * d + 64.0) * reach + f64::from(1 << 24) + n * spread * squared.sqrt());
        let sizes =
            power * (losses + (4.0 * d + 16.0) * regularization.get() * reach * reach) + 8.0 * squared;
        let slope = power * (n * loss.slope() + regularization.get() * reach);
        let exponent = ROUNDING * sizes
            + d.sqrt() * (slope * error + squared.sqrt() * units)
            + 2.0 / (1_u128 << 64) as f64;
        let between = 2.0 * d * error * (1.01 / self.step() + self.curvature().sqrt());
        let numbers = (2.0 * d * DISTANCE + (-TAIL).exp()) * self.most_proposals();
        // Twice, for products of these errors.
        2.0 * (exponent + between + numbers)
    }
}

impl std::fmt::Display for LogConcaveSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let power = format_brief(self.power.get());
        write!(f, "one sample from the density of a {}, to the power {power}", self.objective)
    }
}

impl Paid<LogConcaveSample> {
    /// Returns one sample of the weights.
    pub fn run(mut self, records: &impl LinearRecords) -> Result<Vec<f64>, Error> {
        let mechanism = self.mechanism;
        mechanism.checked()?;
        check_dimension(mechanism.objective.dimension, records)?;
        let key = self.key()?;
        let design = Design::new(records, mechanism.objective.most_records);
        Ok(mechanism.sample(&design, &mut key.stream(0)).0)
    }
}

#[cfg(test)]
mod tests;
