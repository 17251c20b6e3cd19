//! Composition: sums of independent losses on a grid, by Fourier transform.
//!
//! Every error has a bound. The masses are tilted first, w̃ᵢ ∝ wᵢ e^(θih), with θ chosen so that the losses
//! that decide δ are the likely ones. The rounding of the transform is relative to the largest tilted mass,
//! so a δ of 1e-15 is computed as precisely as one of 0.1. [KJH20 for the transform, ACKS23 for the tilt;
//! THEORY, Composition]

use super::{
    composed::{Composed, Values, ln_peak, payoff_norm},
    grid::{Masses, NODE_ROUNDOFFS},
    spectrum::convolve,
};
use crate::special::{PreciseSum, ROUNDOFF};

/// The approximate place of the answer, from which the window is chosen.
///
/// Mass outside the window should not affect the answer at this place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) epsilon: f64,
    pub(crate) ln_delta: f64,
    /// Share of δ that may be treated as infinite loss.
    pub(crate) negligible: f64,
}

impl Target {
    /// Tilted mass that may lie outside the window on each side.
    fn outside(self, theta: f64, ln_total: f64) -> f64 {
        let undone = ln_total - theta * self.epsilon + ln_peak(theta);
        (1e-6 * (self.ln_delta - undone).exp()).clamp(1e-60, 1e-6)
    }
}

/// A tilted law on the grid, repeated `count` times.
pub(super) struct Tilted<'a> {
    indices: &'a [i64],
    weights: Vec<f64>,
    pub(super) count: f64,
    /// ln Σ wᵢ e^(θih)
    ln_total: f64,
}

impl<'a> Tilted<'a> {
    /// Tilts the masses. `None` means that no weight is left to tilt.
    ///
    /// Then nothing is known, which is not the same as a sum of zero.
    fn new(masses: &'a Masses, count: u64, theta: f64, h: f64) -> Option<Self> {
        let exponent = |index: i64| theta * h * index as f64;
        let positive = masses.indices.iter().zip(&masses.weights).filter(|(_, w)| **w > 0.0);
        // The last node that has a weight gets a factor of at most e^600, so its term is above 10⁻⁶⁴. Terms
        // that underflow are below 10⁻²⁶⁰ of it, which is far less than the error of the transform.
        let shift = positive.map(|(index, _)| exponent(*index)).fold(f64::NEG_INFINITY, f64::max) - 600.0;
        let shift = shift.max(0.0);
        let tilt =
            |(&index, &w): (&i64, &f64)| if w > 0.0 { w * (exponent(index) - shift).exp() } else { 0.0 };
        let mut weights: Vec<f64> = masses.indices.iter().zip(&masses.weights).map(tilt).collect();
        let total: f64 = weights.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        for w in &mut weights {
            *w /= total;
        }
        Some(Self { indices: &masses.indices, weights, count: count as f64, ln_total: total.ln() + shift })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, f64)> + '_ {
        self.indices.iter().copied().zip(self.weights.iter().copied())
    }

    /// Index of the largest weight.
    pub(super) fn mode(&self) -> i64 {
        self.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index)
    }

    /// Mean and variance of the index.
    fn moments(&self) -> (f64, f64) {
        let mean: f64 = self.iter().map(|(index, w)| w * index as f64).sum();
        let variance = self.iter().map(|(index, w)| w * (index as f64 - mean).powi(2)).sum();
        (mean, variance)
    }

    /// ln E[e^(λ(i - centre))].
    fn ln_moment(&self, lambda: f64, centre: f64) -> f64 {
        self.iter()
            .filter(|(_, w)| *w > 0.0)
            .map(|(index, w)| w * (lambda * (index as f64 - centre)).exp())
            .sum::<f64>()
            .ln()
    }
}

/// The largest allowed θh, where e^(θh) is the tilt factor between adjacent nodes.
///
/// The square of this factor multiplies the error of the transform and must neither overflow nor underflow.
pub(in crate::accounting) const STEEPEST: f64 = 300.0;

/// Sums `count` independent copies of each law. A `dense` sum also has a profile.
///
/// `None` if the window would be longer than `longest`, the tilt is too steep for the grid, or no weight is
/// left.
pub(crate) fn compose(
    factors: &[(Masses, u64)],
    h: f64,
    theta: f64,
    target: Target,
    longest: usize,
    dense: bool,
) -> Option<Composed> {
    if theta * h > STEEPEST {
        return None;
    }
    let tilted: Option<Vec<Tilted>> =
        factors.iter().map(|(masses, count)| Tilted::new(masses, *count, theta, h)).collect();
    let tilted = tilted?;
    let (mut mean, mut variance) = (0.0, 0.0);
    let mut centres = Vec::with_capacity(tilted.len());
    for t in &tilted {
        let (m, v) = t.moments();
        centres.push(m);
        mean += t.count * m;
        variance += t.count * v;
    }
    let offset: f64 = factors.iter().map(|(m, count)| m.offset * *count as f64).sum();
    let ln_total: f64 = tilted.iter().map(|t| t.count * t.ln_total).sum();
    // The tilt is undone relative to index 0, so the offset affects only the loss itself.
    let outside = target.outside(theta, ln_total + theta * offset);
    let (below, above) = window(&tilted, &centres, variance, outside);
    let length = (below.0 + above.0 + 4.0).ceil();
    // Above 2^53, indices are not exact as floating-point numbers.
    if !length.is_finite() || length > longest as f64 || mean.is_nan() || mean.abs() >= 2_f64.powi(53) {
        return None;
    }
    let points = transform_length(length as usize);
    let first = (mean - below.0).floor() as i64 - 1;
    let (values, error) = convolve(&tilted, points, first, dense);
    let steps: f64 = tilted.iter().map(|t| t.count).sum();
    let farthest =
        tilted.iter().flat_map(|t| [t.indices.first(), t.indices.last()]).flatten().map(|i| i.abs()).max();
    let widest = (farthest.unwrap_or(0) + 1) as f64 * h;
    let farthest_offset = factors.iter().map(|(m, _)| m.offset.abs()).fold(0.0, f64::max);
    Some(Composed {
        h,
        theta,
        offset,
        first,
        points,
        values: Values::new(values, theta, h, points),
        error,
        // Covers also the sums along the window, where a factor that was rounded once is multiplied once per
        // point.
        relative_error: steps * ROUNDOFF * (4.0 * theta.abs() * widest + 128.0)
            + 2.0 * ROUNDOFF * points as f64,
        ln_total,
        outside: (above.1, below.1),
        // 1 - Π (1 - p)^count
        infinite: -factors
            .iter()
            .map(|(m, count)| *count as f64 * (-m.infinite.min(1.0)).ln_1p())
            .collect::<PreciseSum>()
            .value()
            .exp_m1(),
        slack: steps * ROUNDOFF * (16.0 * (widest + farthest_offset) + 300.0 + NODE_ROUNDOFFS),
        payoff_norm: payoff_norm(theta, h, points),
    })
}

/// How far the tilted sum extends below and above its mean, in indices.
///
/// Each distance comes with a bound on the mass beyond.
///
/// # Theorem
/// Chernoff: Pr[S - E S ≥ B] ≤ exp(Σ count κ(λ) - λB) for every λ > 0, κ the centred cumulant function. The
/// search starts at the λ that is best for a Gaussian and goes down, towards those for heavier tails.
fn window(tilted: &[Tilted<'_>], centres: &[f64], variance: f64, outside: f64) -> ((f64, f64), (f64, f64)) {
    let wanted = -outside.ln();
    let gaussian = (2.0 * wanted).sqrt() / variance.max(1e-12).sqrt();
    let side = |sign: f64| {
        let mut best = f64::INFINITY;
        let mut lambda = gaussian.min(20.0);
        for _ in 0..60 {
            let cumulant: f64 =
                tilted.iter().zip(centres).map(|(t, &c)| t.count * t.ln_moment(sign * lambda, c)).sum();
            let reach = (cumulant + wanted) / lambda;
            if reach > best {
                break; // past the best λ
            }
            // Far from the best λ the moment is huge or out of range.
            lambda *= if reach < 1e3 * (wanted / lambda) { 0.6 } else { 0.2 };
            best = best.min(reach);
        }
        (best.max(1.0), 1.1 * outside)
    };
    (side(-1.0), side(1.0))
}

/// The next length with a fast transform: 2ᵏ times 1, 3, 5 or 9.
fn transform_length(at_least: usize) -> usize {
    let power = at_least.next_power_of_two().max(64);
    [power / 16 * 9, power / 8 * 5, power / 4 * 3].into_iter().find(|&n| n >= at_least).unwrap_or(power)
}
