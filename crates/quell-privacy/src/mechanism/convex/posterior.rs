//! One sample from the posterior of linear regression on a ball: the exponential mechanism.
//!
//! [`envelope`] finds a Gaussian distribution above the posterior. Here proposals from it are accepted or
//! rejected, and every deviation from exact sampling is bounded.

use super::{
    double::{Double, ROUNDING},
    output::check_dimension,
    records::{Design, LinearRecords},
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Sealed, unit_event},
    noise::{
        exact::bernoulli_exp,
        random::Stream,
        rounded::{self, PRECISE_BITS},
    },
    number::format_brief,
    units::{Epsilon, Power, Radius, Regularization},
};
use envelope::{Envelope, Quadratic};

mod envelope;

/// Weights of linear regression, drawn once from the posterior distribution on a ball.
///
/// The density at w is ∝ exp(-ρ Σ (yᵢ - ⟨w, xᵢ⟩)²/2 - λ/2 ‖w‖²) for ‖w‖ ≤ R, and zero elsewhere. Features are
/// scaled to norm one, and targets are clamped to [-1, 1].
///
/// # Contract
/// A dataset has at most `most_records` records, by a limit that is known without the records. Records beyond
/// it are ignored, see [`LinearObjective`](super::LinearObjective). The number of proposals must not be
/// observable.
///
/// # Theorem
/// [MT07; DDR20; WFS15] (THEORY, One posterior) On the ball, the loss of a record lies in an interval of
/// length B, which is (1 + R)²/2 for R ≥ 1 and 2R for R ≤ 1. So a record that is added or removed shifts the
/// logarithm of the density within a range of ρB, and a record that is replaced within 2ρB. The sample is
/// exact up to [`Mechanism::distance`], for every dataset.
///
/// ```
/// use quell_privacy::{
///     Event, Neighbors,
///     mechanism::{Mechanism, PosteriorSample},
///     units::{Epsilon, Power, Radius, Regularization},
/// };
/// let mut sample = PosteriorSample {
///     dimension: 8,
///     radius: Radius::new(3.0)?,
///     regularization: Regularization::new(1.0)?,
///     most_records: 1_000_000,
///     power: Power::new(0.125)?,
/// };
/// assert_eq!(sample.range(), 8.0);
/// let Event::Exponential { epsilon } = sample.event(Neighbors::AddRemove) else { unreachable!() };
/// assert!((epsilon.get() - 1.0).abs() < 1e-9);
/// assert!(sample.distance() < 1e-15);
/// // No bound on the number of proposals is small enough.
/// sample.dimension = 10_000;
/// assert!(sample.check(Neighbors::AddRemove).is_err());
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PosteriorSample {
    /// Number of features, and of weights.
    pub dimension: usize,
    /// R: the radius of the ball of weights.
    pub radius: Radius,
    /// λ: the precision of the prior.
    pub regularization: Regularization,
    /// The most records that a dataset may have.
    pub most_records: u64,
    /// ρ: the power of the likelihood.
    pub power: Power,
}

/// x: proposals in a tail of probability e^-x are rejected.
pub(super) const TAIL: f64 = 120.0;

/// The largest distance from exact sampling that is accepted.
pub(super) const MOST_DISTANCE: f64 = 1.0 / (1_u64 << 40) as f64;

/// Grid steps in the binade of the radius.
const STEPS: f64 = (1_u64 << 30) as f64;

impl PosteriorSample {
    /// B: the length of the interval in which the loss of one record lies, for all weights of the ball.
    ///
    /// # Theorem
    /// (THEORY, One posterior) (1 + R)²/2 for R ≥ 1, and 2R for R ≤ 1.
    #[must_use]
    pub fn range(&self) -> f64 {
        let radius = self.radius.get();
        if radius <= 1.0 { 2.0 * radius } else { 0.5 * (1.0 + radius) * (1.0 + radius) }
    }

    /// A bound on the mean number of proposals, for every dataset.
    ///
    /// # Theorem
    /// (THEORY, One posterior) A proposal is accepted with probability at least
    /// exp(-7.2 - 1.94 √d)/(√(ρN/4 + 2.5d) + 3). The numbers here are rounded by far less than the constants.
    #[must_use]
    pub fn most_proposals(&self) -> f64 {
        let d = self.dimension as f64;
        let tilt = (self.power.get() * self.most_records as f64 / 4.0 + 2.5 * d).sqrt();
        (7.2 + 1.94 * d.sqrt()).exp() * (tilt + 3.0)
    }

    /// Z².
    fn most_squared(&self) -> f64 {
        most_squared(self.dimension)
    }

    /// The largest gradient of the logarithm of the density: ρN(1 + R) + λR.
    fn gradient(&self) -> f64 {
        let radius = self.radius.get();
        self.power.get() * self.most_records as f64 * (1.0 + radius) + self.regularization.get() * radius
    }

    /// h: the step of the grid on which weights are released, a power of two.
    fn step(&self) -> f64 {
        self.radius.get().log2().floor().exp2() / STEPS
    }

    /// The largest condition number of the matrices that are factored, over what double precision can do.
    ///
    /// # Theorem
    /// (THEORY, One posterior) ω = 8d²uκ with κ = 1 + ρN/λ bounds how far a factor misses the identity. With
    /// Z²ω ≤ 1/2 every envelope has its certificate.
    fn inaccuracy(&self) -> f64 {
        let d = self.dimension as f64;
        let condition = 1.0 + self.power.get() * self.most_records as f64 / self.regularization.get();
        8.0 * d * d * crate::special::ROUNDOFF * condition * self.most_squared()
    }

    fn checked(&self) -> Result<(), Error> {
        if !(1..=1 << 20).contains(&self.dimension) {
            let value = self.dimension as f64;
            return Err(Error::OutOfRange { what: "dimension", value, range: "[1, 2^20]" });
        }
        if !(1..=1 << 40).contains(&self.most_records) {
            let value = self.most_records as f64;
            return Err(Error::OutOfRange { what: "most_records", value, range: "[1, 2^40]" });
        }
        // Written so that NaN is refused.
        if self.inaccuracy() <= 0.5 && self.distance() <= MOST_DISTANCE {
            return Ok(());
        }
        Err(Error::Unfit {
            what: "a sample from the posterior",
            because: "the sampler may be inexact or take too long for so many weights or records; lower the dimension, the number of records or the power of the likelihood, or raise the regularization",
        })
    }

    /// The accepted proposal, and the number of proposals.
    fn sample(&self, design: &Design, stream: &mut Stream) -> (Vec<f64>, u64) {
        let posterior = Quadratic::new(self, design);
        let envelope = posterior.envelope(self.radius.get(), self.most_squared());
        for proposals in 1.. {
            let proposal = self.proposal(&envelope, stream);
            if let Some((weights, squares)) = proposal
                && accepts(posterior.potential(&weights).add(squares), envelope.offset, stream)
            {
                return (weights.into_iter().map(|weight| self.rounded(weight)).collect(), proposals);
            }
        }
        unreachable!("rejected for ever has probability zero")
    }

    /// Weights in the ball from the envelope, and -‖z‖²/2 for the numbers z behind them.
    fn proposal(&self, envelope: &Envelope, stream: &mut Stream) -> Option<(Vec<Double>, Double)> {
        let numbers: Vec<Double> = (0..self.dimension).map(|_| gaussian(stream)).collect();
        let squares = sum_of_squares(&numbers);
        let weights = envelope.weights(&numbers);
        let radius = self.radius.get();
        let excess = sum_of_squares(&weights).add(Double::from(radius).times(-radius));
        (squares.high <= self.most_squared() && excess.high <= 0.0).then(|| (weights, squares.times(-0.5)))
    }

    /// The nearest multiple of the step, exactly.
    fn rounded(&self, weight: Double) -> f64 {
        let step = self.step();
        weight.times(1.0 / step).plus(0.5).floor() * step
    }
}

/// Z²: the largest squared norm of the Gaussian numbers behind a proposal.
///
/// # Theorem
/// [LM00, Lemma 1] d + 2√(dx) + 2x is exceeded with probability e^-x at most.
pub(super) fn most_squared(dimension: usize) -> f64 {
    let d = dimension as f64;
    d + 2.0 * (d * TAIL).sqrt() + 2.0 * TAIL
}

/// A standard Gaussian number.
pub(super) fn gaussian(stream: &mut Stream) -> Double {
    let (is_negative, size) = rounded::precise_gaussian(stream);
    let unit = 1.0 / (1_u128 << PRECISE_BITS) as f64;
    exact(size as i128).times(if is_negative { -unit } else { unit })
}

/// An integer of at most 106 bits.
fn exact(integer: i128) -> Double {
    let high = integer as f64;
    Double { high, low: (integer - high as i128) as f64 }
}

pub(super) fn sum_of_squares(numbers: &[Double]) -> Double {
    numbers.iter().fold(Double::default(), |sum, number| sum.add(number.multiply(*number)))
}

/// Draws true with probability e^(-(exponent - offset)), at most one.
///
/// The difference is rounded to multiples of 2⁻⁶⁴. From 2⁵⁰ on, true is as good as impossible.
pub(super) fn accepts(exponent: Double, offset: Double, stream: &mut Stream) -> bool {
    let gap = exponent.add(offset.signed(-1.0));
    if gap.high.is_nan() || gap.high >= (1_u64 << 50) as f64 {
        return false;
    }
    let unit = (1_u128 << 64) as f64;
    // A cast cuts fractions.
    let numerator = (gap.high * unit) as i128 + (gap.low * unit) as i128;
    bernoulli_exp(numerator.max(0) as u128, 1 << 64, stream)
}

impl Sealed for PosteriorSample {}

impl Mechanism for PosteriorSample {
    fn event(&self, neighbors: Neighbors) -> Event {
        if self.checked().is_err() {
            return Event::NonPrivate;
        }
        let records = match neighbors {
            Neighbors::AddRemove => 1.0,
            Neighbors::Replace => 2.0,
        };
        let range = records * self.power.get() * self.range() * (1.0 + 1e-12);
        unit_event(Epsilon::new(range), |epsilon| Event::Exponential { epsilon })
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        self.checked()
    }

    /// # Theorem
    /// (THEORY, One posterior) The sum of five terms: exponents err by η; weights err by e in each
    /// coordinate, which matters at the border of the ball and between two points of the grid; the Gaussian
    /// numbers err, which counts once for each proposal; and their tail is cut.
    fn distance(&self) -> f64 {
        let d = self.dimension as f64;
        let (radius, penalty) = (self.radius.get(), self.regularization.get());
        let (squared, gradient, step) = (self.most_squared(), self.gradient(), self.step());
        let units = 1.0 / (1_u128 << PRECISE_BITS) as f64;
        // ‖G‖ ≤ 1.05/√λ
        let spread = 1.05 / penalty.sqrt();
        let error =
            units * d.sqrt() * spread + 2.0 * (d + 2.0) * ROUNDING * (radius + spread * squared.sqrt());
        let records = self.power.get() * self.most_records as f64;
        let size = records * (1.0 + radius) * (1.0 + radius)
            + 2.0 * penalty * radius * radius
            + records
            + 5.0 * d
            + squared;
        let exponent = (4.0 * d + 40.0) * ROUNDING * size
            + d.sqrt() * (gradient * error + squared.sqrt() * units)
            + 2.0 / (1_u128 << 64) as f64;
        let border = 32.0 * d.sqrt() * error * (2.0 * d + radius * gradient) / radius;
        let between = 2.0 * d * error * (1.01 / step + 16.0 * (2.0 * gradient + d / radius));
        let numbers = (2.0 * d * rounded::DISTANCE + (-TAIL).exp()) * self.most_proposals();
        // Twice, for products of these errors.
        2.0 * (exponent + border + between + numbers)
    }
}

impl std::fmt::Display for PosteriorSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "one sample from the posterior of a linear regression of {} weights in a ball of radius {}, with the likelihood to the power {} and prior precision {}, for at most {} records",
            self.dimension,
            format_brief(self.radius.get()),
            format_brief(self.power.get()),
            format_brief(self.regularization.get()),
            self.most_records
        )
    }
}

impl Paid<PosteriorSample> {
    /// Returns one sample of the weights.
    pub fn run(mut self, records: &impl LinearRecords) -> Result<Vec<f64>, Error> {
        let mechanism = self.mechanism;
        mechanism.checked()?;
        check_dimension(mechanism.dimension, records)?;
        let key = self.key()?;
        let design = Design::new(records, mechanism.most_records);
        #[cfg(feature = "exact-statistics")]
        let design = mechanism.withheld(design);
        Ok(mechanism.sample(&design, &mut key.stream(0)).0)
    }
}

#[cfg(feature = "exact-statistics")]
impl PosteriorSample {
    /// Leaves out all records if a test observes them, as logarithms of the density in units of its range.
    fn withheld(&self, design: Design) -> Design {
        let posterior = Quadratic::new(self, &design);
        let logarithm = |weights: Vec<Double>| posterior.potential(&weights).high;
        let unit = self.power.get() * self.range();
        let values = || {
            // The ends of the axes, relative to the centre. Each difference is at most the range.
            let zero = logarithm(vec![Double::default(); self.dimension]);
            let ends = (0..2 * self.dimension).map(|end| {
                let mut weights = vec![Double::default(); self.dimension];
                let radius = self.radius.get();
                weights[end / 2] = Double::from(if end % 2 == 0 { radius } else { -radius });
                (logarithm(weights) - zero) / unit
            });
            ends.collect()
        };
        if crate::exact::withhold(self, crate::exact::Norm::Largest, (1.0, 2.0), values) {
            let nothing = super::records::Rows { dimension: self.dimension, ..Default::default() };
            return Design::new(&nothing, 0);
        }
        design
    }
}

#[cfg(test)]
mod tests;
