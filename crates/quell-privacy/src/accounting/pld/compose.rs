//! Composition: sums of independent losses on a grid, by Fourier transform, with a bound on every error.
//!
//! The masses are tilted first, w̃ᵢ ∝ wᵢ e^(θih), with θ chosen so that the losses that decide δ are the
//! likely ones. The rounding of the transform is relative to the largest tilted mass, so a δ of 1e-15 is
//! computed as precisely as one of 0.1. [KJH20 for the transform, ACKS23 for the tilt; THEORY, Composition]

use std::f64::consts::TAU;

use realfft::num_complex::Complex64;

use super::{
    grid::{CHARGED_TO_SLACK, Masses},
    spectrum::{Convolved, convolve},
};
use crate::{
    accounting::search::Tilt,
    special::{PreciseSum, ROUNDOFF},
};

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
    /// Whether a tilt and a window chosen for this target are bad choices for the other.
    pub(super) fn is_far_from(self, other: Self, tilt: Tilt) -> bool {
        let moved = (self.epsilon - other.epsilon).abs();
        moved > (0.1 * self.epsilon).min(0.5 * tilt.deviation)
            || tilt.theta * moved + (self.ln_delta - other.ln_delta).abs() > 1.0
    }

    /// Tilted mass that may lie outside the window on each side.
    fn outside(self, theta: f64, ln_total: f64) -> f64 {
        let undone = ln_total - theta * self.epsilon + ln_peak(theta);
        (1e-6 * (self.ln_delta - undone).exp()).clamp(1e-60, 1e-6)
    }
}

/// ln of the largest value of e^(-θu)(1 - e^-u) over u ≥ 0.
fn ln_peak(theta: f64) -> f64 {
    let theta = theta.max(1e-12);
    theta * (theta / (theta + 1.0)).ln() - theta.ln_1p()
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

/// The tilted sum of all losses, inside a window of the grid.
pub(crate) struct Composed {
    h: f64,
    theta: f64,
    /// Loss at grid index 0.
    offset: f64,
    /// Grid index of the first point of the window.
    first: i64,
    /// Length of the window in points.
    points: usize,
    /// Tilted masses in the window. Masses of losses outside the window are folded in.
    values: Values,
    /// Error bound on all values together, in the Euclidean norm.
    error: f64,
    /// Relative error bound: tilting, powers and masses, once per step.
    relative_error: f64,
    /// ln of the factor that undoes the normalisation of the tilt.
    ln_total: f64,
    /// Bounds on the tilted mass above and below the window.
    outside: (f64, f64),
    /// Untilted mass of infinite losses.
    infinite: f64,
    /// Error bound on the sum of the losses, because thresholds are rounded.
    slack: f64,
    /// √Σ (e^(-θu)(1 - e^-u))² over the grid u = h, 2h, …
    payoff_norm: f64,
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
        slack: steps * ROUNDOFF * (16.0 * (widest + farthest_offset) + 300.0 + CHARGED_TO_SLACK),
        payoff_norm: payoff_norm(theta, h, points),
    })
}

fn payoff_norm(theta: f64, h: f64, points: usize) -> f64 {
    let (tilt, fall) = ((-2.0 * theta * h).exp(), (-h).exp());
    let (mut factor, mut discount, mut sum) = (1.0, 1.0, 0.0);
    for _ in 0..points {
        factor *= tilt;
        discount *= fall;
        sum += factor * (1.0 - discount) * (1.0 - discount);
        if factor < 1e-30 {
            break;
        }
    }
    sum.sqrt() * (1.0 + 1e-9)
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

/// The next length with a fast transform: a power of two, possibly times 3, 5 or 9.
fn transform_length(at_least: usize) -> usize {
    let power = at_least.next_power_of_two().max(64);
    [power / 16 * 9, power / 8 * 5, power / 4 * 3].into_iter().find(|&n| n >= at_least).unwrap_or(power)
}

/// The end of a bracket: the direction in which an answer may be wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Upper,
    Lower,
}

/// Sums over the losses strictly above a node j, tilted and relative to the node.
///
/// `p` is Σ F(s) e^(-θ(s-j)h), `q` has the additional factor e^(-(s-j)h), and `delta` is their difference,
/// which is δ.
#[derive(Clone, Copy, Debug, Default)]
struct Above {
    p: f64,
    q: f64,
    delta: f64,
    /// Error bounds on q and δ, because terms of both signs were added.
    q_error: f64,
    delta_error: f64,
}

/// Relative error of one term of a sum over the spectrum: angles are good to a few units of 2π.
const TERM_ERROR: f64 = 256.0 * ROUNDOFF;

/// The composed masses, prepared for sums from any node upwards.
enum Values {
    /// Sums at every node.
    Summed(Vec<Above>),
    /// The spectrum, from which sums are computed as geometric series.
    Spectrum { bins: Vec<(usize, Complex64)>, theta: f64, h: f64, points: usize },
}

impl Values {
    fn new(convolved: Convolved, theta: f64, h: f64, points: usize) -> Self {
        match convolved {
            Convolved::Spectrum(bins) => Self::Spectrum { bins, theta, h, points },
            Convolved::Masses(masses) => {
                let (tilt, shrink, fall) = ((-theta * h).exp(), (-h).exp(), -(-h).exp_m1());
                let mut sums = vec![Above::default(); masses.len()];
                for j in (1..masses.len()).rev() {
                    let above = sums[j];
                    let (p, q) = (above.p + masses[j], above.q + masses[j]);
                    // δ = Σ F (1 - e^-u): the previous δ discounted, plus what one more step of discount
                    // takes off the rest.
                    let delta = tilt * (above.delta + fall * q);
                    sums[j - 1] = Above { p: tilt * p, q: tilt * shrink * q, delta, ..Above::default() };
                }
                Self::Summed(sums)
            }
        }
    }

    /// Sums over the losses of the window above its node j.
    fn above(&self, j: usize) -> Above {
        match self {
            Self::Summed(sums) => sums[j],
            Self::Spectrum { bins, theta, h, points } => {
                // F(s) = 1/n Σₖ Φₖ e^(2πiks/n), and
                // Σ_{m=1}^{M} r^m = (1 - r^M)/(1/r - 1) for r = e^(2πik/n - θh).
                let n = *points as f64;
                let terms = (*points - 1 - j) as f64;
                let mut sum = Above::default();
                for &(k, value) in bins {
                    let twice = if k == 0 || 2 * k == *points { 1.0 } else { 2.0 };
                    let angle = TAU * k as f64 / n;
                    let turn =
                        Complex64::from_polar(1.0, TAU * ((k as u64 * j as u64) % *points as u64) as f64 / n);
                    // 1/r - 1 and 1 - r^M without cancellation. The angle of r^M is -(j + 1) turns of k.
                    let end = -TAU * ((k as u64 * (j as u64 + 1)) % *points as u64) as f64 / n;
                    let back = |decay: f64| complex_exp_m1(Complex64::new(decay, -angle));
                    let series =
                        |decay: f64| -complex_exp_m1(Complex64::new(-decay * terms, end)) / back(decay);
                    let (p, q) = (series(theta * h), series((theta + 1.0) * h));
                    // p - q without cancellation: both may be far larger than the difference. With p = (1 -
                    // r^M)/(1/r - 1), and q the same for r e^-h, it is (p (e^h - 1)/r + r^M (e^(-hM) - 1)) /
                    // (e^h/r - 1).
                    let grown = Complex64::from_polar((theta * h).exp(), -angle) * h.exp_m1();
                    let last = Complex64::from_polar((-theta * h * terms).exp(), end) * (-h * terms).exp_m1();
                    let difference = (p * grown + last) / back((theta + 1.0) * h);
                    let weight = value * turn * (twice / n);
                    let (of_q, of_delta) = (weight * q, weight * difference);
                    sum.p += (weight * p).re;
                    sum.q += of_q.re;
                    sum.delta += of_delta.re;
                    sum.q_error += TERM_ERROR * of_q.norm();
                    sum.delta_error += TERM_ERROR
                        * (weight.norm() * (p * grown).norm() + weight.norm() * last.norm())
                        / back((theta + 1.0) * h).norm();
                }
                sum
            }
        }
    }
}

/// e^z - 1 without losing digits for a small z.
fn complex_exp_m1(z: Complex64) -> Complex64 {
    let (sin, cos) = z.im.sin_cos();
    let half = (z.im / 2.0).sin();
    Complex64::new(z.re.exp_m1() * cos - 2.0 * half * half, z.re.exp() * sin)
}

impl Composed {
    /// Length of the window in points.
    pub(super) fn points(&self) -> usize {
        self.points
    }

    fn loss(&self, j: usize) -> f64 {
        self.offset + (self.first + j as i64) as f64 * self.h
    }

    /// The untilted sums at a node of the window: δ(x + u) = X - e^u V up to the next node.
    fn node(&self, j: usize) -> Node {
        let ln_factor = self.ln_total - self.theta * self.h * (self.first + j as i64) as f64;
        let (above, factor) = (self.values.above(j), ln_factor.exp());
        Node {
            loss: self.loss(j),
            x: above.p * factor,
            v: above.q * factor,
            delta: above.delta * factor,
            v_error: above.q_error * factor,
            delta_error: above.delta_error * factor,
            ln_factor,
        }
    }

    /// Bound on what rounding adds to δ(ε), by Cauchy-Schwarz.
    ///
    /// It uses the norm of the payoff e^(-θu)(1 - e^-u).
    pub(in crate::accounting) fn rounding_error(&self, epsilon: f64) -> f64 {
        (self.ln_total - self.theta * (epsilon - self.offset)).exp() * self.error * self.payoff_norm
    }

    /// The correction of the window's δ between a node and the next node.
    ///
    /// For a lower bound it may be negative.
    fn correction(&self, end: End, node: &Node) -> f64 {
        let rounding_error = self.rounding_error(node.loss) + node.delta_error;
        match end {
            End::Upper => {
                let top = (self.first + self.points as i64) as f64 * self.h;
                self.infinite + (self.ln_total - self.theta * top).exp() * self.outside.0 + rounding_error
            }
            // Folded-in masses may count where they do not belong: at most all of them, where the payoff is
            // largest.
            End::Lower => {
                let folded = (node.ln_factor + ln_peak(self.theta)).exp() * (self.outside.0 + self.outside.1);
                self.infinite * (1.0 - 1e-12) - folded - rounding_error
            }
        }
    }

    fn scaled(&self, end: End, delta: f64) -> f64 {
        match end {
            End::Upper => delta * (1.0 + self.relative_error),
            End::Lower => delta * (1.0 - self.relative_error),
        }
    }

    /// A bound on the smallest ε ≥ 0 with δ(ε) ≤ `delta`.
    pub(crate) fn epsilon(&self, end: End, delta: f64) -> f64 {
        // Whether δ at a node is proven to be at most the target, or above it; a NaN proves nothing.
        let here = |j: usize| {
            let node = self.node(j);
            self.scaled(end, node.delta) + self.correction(end, &node)
        };
        let within = |j: usize| here(j) <= delta;
        let beyond = |j: usize| here(j) > delta;
        let (mut low, mut high) = (0, self.points - 1);
        match end {
            End::Upper if !within(high) => return f64::INFINITY,
            End::Lower if beyond(high) => return (self.loss(high) - self.slack).max(0.0),
            _ => {}
        }
        // Find two adjacent nodes with δ above the target at the lower node and not at the upper node. This
        // is checked at the nodes, not inferred from monotonicity: low in the window the corrections of a
        // lower bound exceed the bound.
        if end == End::Upper && within(low) {
            return (self.loss(low) + self.slack).max(0.0);
        }
        if end == End::Lower {
            let (mut bottom, mut top) = (0, high);
            while top - bottom > 1 {
                let middle = usize::midpoint(bottom, top);
                if self.node(middle).delta <= delta { top = middle } else { bottom = middle }
            }
            let mut stride = 1;
            low = bottom;
            while !beyond(low) {
                high = low;
                if low == 0 {
                    return 0.0;
                }
                low = low.saturating_sub(stride);
                stride *= 2;
            }
        }
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let below = if end == End::Upper { within(middle) } else { !beyond(middle) };
            if below { high = middle } else { low = middle }
        }
        // δ(x + u) = X - e^u V equals the corrected target somewhere between the two nodes.
        let node = self.node(low);
        let target = (delta - self.correction(end, &node)) / self.scaled(end, 1.0);
        //     = δ + V - e^u V
        let u = ((node.delta - target) / node.v(end)).ln_1p();
        match end {
            End::Upper => {
                (node.loss + if u.is_nan() { self.h } else { u.clamp(0.0, self.h) } + self.slack).max(0.0)
            }
            End::Lower => {
                (node.loss + if u.is_nan() { 0.0 } else { u.clamp(0.0, self.h) } - self.slack).max(0.0)
            }
        }
    }

    /// A bound on δ(ε).
    pub(crate) fn delta(&self, end: End, epsilon: f64) -> f64 {
        let epsilon = match end {
            End::Upper => epsilon - self.slack,
            End::Lower => epsilon + self.slack,
        };
        let position = ((epsilon - self.loss(0)) / self.h).floor();
        if position < 0.0 {
            // ε is below the window, where only the tilted mass is known; and profiles decrease.
            let first = self.node(0);
            return if end == End::Upper { 1.0 } else { self.probability(end, first.delta, &first) };
        }
        let node = self.node((position as usize).min(self.points - 1));
        let u = epsilon - node.loss;
        let inside = if u <= 0.0 { node.delta } else { node.delta - u.exp_m1() * node.v(end) };
        self.probability(end, inside, &node)
    }

    /// δ with its corrections; a NaN proves nothing.
    fn probability(&self, end: End, inside: f64, node: &Node) -> f64 {
        let delta = self.scaled(end, inside) + self.correction(end, node);
        match end {
            End::Upper if delta.is_nan() => 1.0,
            End::Lower if delta.is_nan() => 0.0,
            End::Upper | End::Lower => delta.clamp(0.0, 1.0),
        }
    }

    /// The profile: bounds on δ(ε) from the given end.
    ///
    /// The points (ε, δ(ε)) are the nodes from the top down, and ε = -∞. This needs a dense sum. With a tilt
    /// only the upper profile is valid.
    pub(crate) fn profile(&self, end: End) -> Vec<(f64, f64)> {
        let slack = if end == End::Upper { self.slack } else { -self.slack };
        let at = |j: usize| {
            let node = self.node(j);
            (node.loss + slack, self.probability(end, node.delta, &node))
        };
        let mut profile: Vec<(f64, f64)> = (0..self.points).rev().map(at).collect();
        let rounding_error = self.error * (self.points as f64).sqrt() + self.outside.0 + self.outside.1;
        let total = self.scaled(end, self.node(0).x) + self.infinite - rounding_error;
        let total = if total.is_nan() { 0.0 } else { total.clamp(0.0, 1.0) };
        profile.push((f64::NEG_INFINITY, if end == End::Upper { 1.0 } else { total }));
        profile
    }
}

/// Untilted sums of the mass above a node.
struct Node {
    loss: f64,
    /// P-mass above the node.
    x: f64,
    /// Q-mass above the node times e^loss.
    v: f64,
    /// x - v, summed without cancellation.
    delta: f64,
    /// Error bounds on v and delta, because terms of both signs were added.
    v_error: f64,
    delta_error: f64,
    /// ln of the untilting factor at the node.
    ln_factor: f64,
}

impl Node {
    /// The Q-mass above times e^loss: a lower bound for an upper δ, an upper bound for a lower δ.
    fn v(&self, end: End) -> f64 {
        match end {
            End::Upper => (self.v - self.v_error).max(0.0),
            End::Lower => self.v + self.v_error,
        }
    }
}
