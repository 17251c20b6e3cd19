//! The objective of a linear model, and minimisers of it that are certified.

use serde::{Deserialize, Serialize};

use super::{
    double::{Double, ROUNDING, split},
    loss::ConvexLoss,
    newton,
    records::Design,
};
use crate::{
    Error,
    special::ROUNDOFF,
    units::{Regularization, Tolerance},
};

/// The objective J(w) = Σ ℓ(⟨w, xᵢ⟩; yᵢ) + Λ/2 ‖w‖², and how precisely it is minimised.
///
/// The losses are added up and not averaged, so that nothing depends on the number of records.
///
/// # Contract
/// A dataset has at most `most_records` records, by a limit that is known without the records: of the file,
/// of the protocol, of memory. Records beyond it are ignored. Under replacement that is private whatever the
/// number of records is, because positions are public. If records are added or removed, it is private only
/// for datasets that keep the limit: beyond it, a record that leaves lets another one in.
///
/// ```
/// use quell_privacy::{mechanism::{ConvexLoss, LinearObjective}, units::{Regularization, Tolerance}};
/// let objective = LinearObjective {
///     loss: ConvexLoss::Logistic,
///     regularization: Regularization::new(10.0)?,
///     dimension: 100,
///     most_records: 1_000_000,
///     tolerance: Tolerance::new(1e-6)?,
/// };
/// assert!(objective.least_tolerance() < 1e-6);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearObjective {
    /// The loss of one record.
    pub loss: ConvexLoss,
    /// Λ.
    pub regularization: Regularization,
    /// Number of features, and of weights.
    pub dimension: usize,
    /// The most records that a dataset may have.
    pub most_records: u64,
    /// τ: the largest norm of the gradient at a minimiser that is accepted.
    pub tolerance: Tolerance,
}

/// Public bounds for an objective with a linear term ⟨b, w⟩.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// G: the largest ‖∇J(0)‖.
    pub(super) slope: f64,
    /// The largest norm of weights at which a search may begin: 2G/Λ.
    radius: f64,
    /// κ: the largest curvature of the objective over the least.
    condition: f64,
    /// E: the largest error of a computed gradient.
    error: f64,
}

/// Weights, and the gradient of the objective there.
struct Point {
    weights: Vec<Double>,
    gradient: Vec<Double>,
    /// ⟨w, xᵢ⟩ of each record, in double precision.
    predictions: Vec<f64>,
    /// A bound on the norm of the true gradient.
    certificate: f64,
}

/// Most steps of Newton's method before the method that surely converges takes over.
const NEWTON_STEPS: usize = 300;

/// The certificate at which a loss with rounder corners is minimised well enough, over its slope.
const EASED_TOLERANCE: f64 = 0.01;

/// Sums that are computed side by side, which is faster than one after the other.
const LANES: usize = 4;

/// The tolerance that descent surely reaches, over κE. (THEORY, Certified minimisers)
const REACHED: f64 = 8.0;

impl LinearObjective {
    /// The least tolerance for which the minimisation provably ends, for output perturbation.
    ///
    /// # Theorem
    /// (THEORY, Certified minimisers) 8κE, where κ bounds the condition number of the objective and E the
    /// error of a computed gradient.
    #[must_use]
    pub fn least_tolerance(&self) -> f64 {
        self.limits(0.0).least_tolerance()
    }

    /// Bounds for linear terms up to this norm.
    ///
    /// # Theorem
    /// (THEORY, Certified minimisers) For ‖w‖ ≤ 4.1G/Λ the computed gradient errs by at most E =
    /// v G (5κ(d + 1) + N + 40), v = 2⁻¹⁰³. The numbers here are rounded by far less than the constants are.
    pub(super) fn limits(&self, linear: f64) -> Limits {
        let (records, penalty) = (self.most_records as f64, self.regularization.get());
        let slope = records * self.loss.slope() + linear;
        let condition = 1.0 + records * self.loss.curvature() / penalty;
        let error = ROUNDING * slope * (5.0 * condition * (self.dimension as f64 + 1.0) + records + 40.0);
        Limits { slope, radius: 2.0 * slope / penalty, condition, error }
    }

    /// Checks whether a certified minimiser is found for all records, with linear terms up to this norm.
    pub(super) fn check(&self, linear: f64) -> Result<(), Error> {
        if !(1..=1 << 28).contains(&self.dimension) {
            let value = self.dimension as f64;
            return Err(Error::OutOfRange { what: "dimension", value, range: "[1, 2^28]" });
        }
        if !(1..=1 << 40).contains(&self.most_records) {
            let value = self.most_records as f64;
            return Err(Error::OutOfRange { what: "most_records", value, range: "[1, 2^40]" });
        }
        // Written so that NaN is refused.
        if self.limits(linear).least_tolerance() <= self.tolerance.get() {
            return Ok(());
        }
        Err(Error::Unfit {
            what: "the tolerance of a minimiser",
            because: "it may be out of reach for so many records; raise the tolerance or the regularization, or lower the number of records",
        })
    }

    /// Weights at which ‖∇J(w) + b‖ is at most the tolerance.
    ///
    /// # Contract
    /// `linear` is b, and its norm is at most that of the limits. The settings passed [`Self::check`] for
    /// these limits.
    ///
    /// # Theorem
    /// (THEORY, Certified minimisers) Only weights with a certificate leave this function, and it ends:
    /// Newton's method may fail, but the descent after it reaches 8κE.
    pub(super) fn minimizer(&self, design: &Design, linear: &[f64], limits: Limits) -> Vec<f64> {
        let mut point = self.likely_minimizer(design, linear, limits);
        loop {
            // A certificate that is not a number certifies nothing.
            if point.certificate <= self.tolerance.get() {
                return point.weights.iter().map(|weight| weight.high).collect();
            }
            point = self.descent_step(design, linear, limits, &point);
        }
    }

    /// A point that Newton's method reaches, nearly always with a sufficient certificate.
    fn likely_minimizer(&self, design: &Design, linear: &[f64], limits: Limits) -> Point {
        let mut point = self.evaluate(design, linear, limits, vec![Double::default(); self.dimension]);
        // Rounder corners first: Newton's method passes one corner after the other.
        for loss in self.loss.eased() {
            let eased = Self { loss, ..*self };
            point = eased.evaluate(design, linear, limits, point.weights);
            point = eased.search(design, linear, limits, EASED_TOLERANCE * loss.slope(), point);
        }
        point = self.evaluate(design, linear, limits, point.weights);
        self.search(design, linear, limits, self.tolerance.get(), point)
    }

    /// A point that Newton's method reaches, with a certificate of at most `tolerance` if it does not fail.
    fn search(
        &self,
        design: &Design,
        linear: &[f64],
        limits: Limits,
        tolerance: f64,
        mut point: Point,
    ) -> Point {
        for _ in 0..NEWTON_STEPS {
            let next =
                (point.certificate > tolerance).then(|| self.newton_step(design, linear, limits, &point));
            let Some(next) = next.flatten() else { break };
            point = next;
        }
        point
    }

    /// The point after a step of Newton's method; `None` if the step leaves the ball of the limits.
    fn newton_step(&self, design: &Design, linear: &[f64], limits: Limits, from: &Point) -> Option<Point> {
        let gradient: Vec<f64> = from.gradient.iter().map(|x| x.high).collect();
        let step = newton::step(self, design, &from.predictions, &gradient);
        let weights: Vec<Double> =
            from.weights.iter().zip(&step).map(|(weight, way)| weight.plus(*way)).collect();
        // A comparison with NaN is false.
        let is_inside = norm(weights.iter().map(|weight| weight.high)) <= limits.radius;
        is_inside.then(|| self.evaluate(design, linear, limits, weights))
    }

    /// The point after a step of gradient descent with the rate 1/(Nβ + Λ), which always converges.
    fn descent_step(&self, design: &Design, linear: &[f64], limits: Limits, from: &Point) -> Point {
        let rate = -1.0 / (limits.condition * self.regularization.get());
        let weights = from.weights.iter().zip(&from.gradient).map(|(w, g)| w.add(g.times(rate))).collect();
        self.evaluate(design, linear, limits, weights)
    }

    /// The gradient Σ ℓ'ᵢ xᵢ + Λw + b, with a bound on the norm of the true gradient.
    ///
    /// A number of 53 bits is split into one of 29 and one of 24 bits, whose products with features of 24
    /// bits are exact. Low parts are so small that double precision is enough for their sums.
    fn evaluate(&self, design: &Design, linear: &[f64], limits: Limits, weights: Vec<Double>) -> Point {
        let parts: Vec<(f64, f64)> = weights.iter().map(|weight| split::<24>(weight.high)).collect();
        let mut sums = vec![(Double::default(), 0.0); self.dimension];
        let mut predictions = Vec::new();
        for (features, target) in design.rows() {
            let (mut lanes, mut rest) = ([Double::default(); LANES], 0.0);
            for (j, ((weight, (first, second)), x)) in weights.iter().zip(&parts).zip(features).enumerate() {
                let x = f64::from(*x);
                lanes[j % LANES] = lanes[j % LANES].plus(first * x).plus(second * x);
                rest += weight.low * x;
            }
            let prediction = lanes[1..].iter().fold(lanes[0].plus(rest), |sum, lane| sum.add(*lane));
            predictions.push(prediction.high);
            let slope = self.loss.derivatives(prediction, target).0;
            let (first, second) = split::<24>(slope.high);
            for ((sum, rest), x) in sums.iter_mut().zip(features) {
                let x = f64::from(*x);
                *sum = sum.plus(first * x).plus(second * x);
                *rest += slope.low * x;
            }
        }
        let penalty = self.regularization.get();
        let total = |((sum, rest), (weight, b)): (&(Double, f64), (&Double, &f64))| {
            sum.plus(*rest).add(weight.times(penalty)).plus(*b)
        };
        let gradient: Vec<Double> = sums.iter().zip(weights.iter().zip(linear)).map(total).collect();
        // The norm is computed to a part in 2²⁰, for 2²⁸ numbers.
        let certificate = norm(gradient.iter().map(|x| x.high)) * (1.0 + 1e-6) + limits.error;
        Point { weights, gradient, predictions, certificate }
    }
}

impl Limits {
    /// 8κE, rounded up.
    pub(super) fn least_tolerance(self) -> f64 {
        REACHED * self.condition * self.error * (1.0 + 1e-9)
    }

    /// How far weights move when they are rounded to double precision, times Λ.
    pub(super) fn rounding(self) -> f64 {
        8.0 * ROUNDOFF * self.slope
    }
}

impl std::fmt::Display for LinearObjective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (penalty, tolerance) = (self.regularization.get(), self.tolerance.get());
        write!(
            f,
            "linear model of {} weights with {} and regularization {}, for at most {} records, minimised to a gradient of {}",
            self.dimension,
            self.loss,
            crate::number::format_brief(penalty),
            self.most_records,
            crate::number::format_brief(tolerance)
        )
    }
}

fn norm(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests;
