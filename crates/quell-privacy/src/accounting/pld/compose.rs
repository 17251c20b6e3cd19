//! Composition: sums of independent losses on a grid, by Fourier transform, with every error on the books.
//!
//! The masses are tilted first, w̃ᵢ ∝ wᵢ e^(θih), with θ chosen so that the losses that decide δ are the likely ones. The
//! rounding of the transform is relative to the largest tilted mass, so a δ of 1e-15 comes out as precisely as one of 0.1.
//! [KJH20 for the transform, ACKS23 for the tilt; THEORY, Composition]

use std::f64::consts::TAU;

use realfft::{RealFftPlanner, num_complex::Complex64};

use super::grid::Masses;
use crate::special::ROUNDOFF;

/// Tilted mass that may lie outside the window, on each side.
const OUTSIDE: f64 = 1e-7;

/// A law on the grid, taken `count` times, tilted.
struct Tilted {
    start: i64,
    weights: Vec<f64>,
    count: f64,
    /// ln Σ wᵢ e^(θih)
    ln_total: f64,
}

impl Tilted {
    fn new(masses: &Masses, count: u64, theta: f64, h: f64) -> Self {
        let exponent = |j: usize| theta * h * (masses.start + j as i64) as f64;
        // Weights are above 1e-60 or irrelevant, so this keeps the largest terms in range; what underflows is below e^-600.
        let shift = (exponent(masses.weights.len()) - 600.0).max(0.0);
        let mut weights: Vec<f64> = masses
            .weights
            .iter()
            .enumerate()
            .map(|(j, &w)| if w > 0.0 { w * (exponent(j) - shift).exp() } else { 0.0 })
            .collect();
        let total: f64 = weights.iter().sum();
        for w in &mut weights {
            *w /= total.max(f64::MIN_POSITIVE);
        }
        Self { start: masses.start, weights, count: count as f64, ln_total: total.ln() + shift }
    }

    fn index(&self, j: usize) -> f64 {
        (self.start + j as i64) as f64
    }

    /// Mean and variance of the index.
    fn moments(&self) -> (f64, f64) {
        let mean: f64 = self.weights.iter().enumerate().map(|(j, w)| w * self.index(j)).sum();
        let variance = self.weights.iter().enumerate().map(|(j, w)| w * (self.index(j) - mean).powi(2)).sum();
        (mean, variance)
    }

    /// ln E[e^(λ(i - centre))], by a geometric progression.
    fn ln_moment(&self, lambda: f64, centre: f64) -> f64 {
        let ratio = lambda.exp();
        let mut factor = (lambda * (self.index(0) - centre)).exp();
        let mut sum = 0.0;
        for w in &self.weights {
            sum += w * factor;
            factor *= ratio;
        }
        if sum.is_finite() && sum > 0.0 { sum.ln() } else { f64::INFINITY }
    }
}

/// The sum of all losses, tilted, inside a window of the grid.
pub(crate) struct Composed {
    h: f64,
    theta: f64,
    /// Grid index of `values[0]`.
    first: i64,
    /// Tilted masses; those of losses outside the window are folded in.
    values: Vec<f64>,
    /// What each value may be off by.
    error: f64,
    /// What everything may be off by, relatively: tilting, powers and masses, once per step.
    relative_error: f64,
    /// ln of the factor that undoes the tilt's normalisation.
    ln_total: f64,
    /// Bounds on the tilted mass above and below the window.
    outside: (f64, f64),
    /// Untilted mass of infinite losses.
    infinite: f64,
    /// What the sum of the losses may be off by, because thresholds are rounded.
    slack: f64,
}

/// Sums `count` independent copies of each law; `None` if the window would be longer than `longest`.
pub(crate) fn compose(factors: &[(&Masses, u64)], h: f64, theta: f64, longest: usize) -> Option<Composed> {
    let tilted: Vec<Tilted> = factors.iter().map(|(masses, count)| Tilted::new(masses, *count, theta, h)).collect();
    let (mut mean, mut variance) = (0.0, 0.0);
    let mut centres = Vec::with_capacity(tilted.len());
    for t in &tilted {
        let (m, v) = t.moments();
        centres.push(m);
        mean += t.count * m;
        variance += t.count * v;
    }
    let (below, above) = window(&tilted, &centres, variance);
    let length = (below.0 + above.0 + 4.0).ceil();
    if !length.is_finite() || length > longest as f64 {
        return None;
    }
    let points = transform_length(length as usize);
    let first = (mean - below.0).floor() as i64 - 1;
    let (values, error) = convolve(&tilted, points, first);
    let steps: f64 = tilted.iter().map(|t| t.count).sum();
    let widest = tilted.iter().map(|t| t.index(0).abs().max(t.index(t.weights.len()).abs())).fold(0.0, f64::max) * h;
    Some(Composed {
        h,
        theta,
        first,
        values,
        error,
        relative_error: steps * ROUNDOFF * (4.0 * theta.abs() * widest + 128.0),
        ln_total: tilted.iter().map(|t| t.count * t.ln_total).sum(),
        outside: (above.1, below.1),
        infinite: factors.iter().map(|(m, count)| m.infinite * *count as f64).sum(),
        slack: 16.0 * ROUNDOFF * steps * widest,
    })
}

/// How far below and above its mean (in indices) the tilted sum reaches, each with a bound on the mass beyond.
///
/// # Theorem
/// Chernoff: Pr[S - E S ≥ B] ≤ exp(Σ count κ(λ) - λB) for every λ > 0, κ the centred cumulant function. The λ tried are
/// those at which a Gaussian and a heavier tail would be best.
fn window(tilted: &[Tilted], centres: &[f64], variance: f64) -> ((f64, f64), (f64, f64)) {
    let wanted = -OUTSIDE.ln();
    let gaussian = (2.0 * wanted).sqrt() / variance.max(1e-12).sqrt();
    let side = |sign: f64| {
        let mut best = f64::INFINITY;
        for scale in [1.0, 0.6, 0.35, 0.2, 0.1, 0.03, 0.01] {
            let lambda = gaussian.min(20.0) * scale;
            let cumulant: f64 =
                tilted.iter().zip(centres).map(|(t, &c)| t.count * t.ln_moment(sign * lambda, c)).sum();
            let reach = (cumulant + wanted) / lambda;
            if reach > best {
                break; // past the best λ
            }
            best = reach;
        }
        (best.max(1.0), 1.1 * OUTSIDE)
    };
    (side(-1.0), side(1.0))
}

/// The next length that transforms fast: a power of two, perhaps times 3, 5 or 9.
fn transform_length(at_least: usize) -> usize {
    let power = at_least.next_power_of_two().max(64);
    [power / 16 * 9, power / 8 * 5, power / 4 * 3].into_iter().find(|&n| n >= at_least).unwrap_or(power)
}

/// Values of the composed, tilted masses at indices first, first + 1, …, and a bound on the error of each.
///
/// # Theorem
/// A transform of length n computed in floating point is off by at most 16 u log₂n times the length of the exact one, in
/// the Euclidean norm [Hig02, Theorem 24.2, with room]; so each coefficient of φⱼ by eⱼ = 16 u log₂n √n ‖w̃ⱼ‖, the product
/// Π φⱼ^countⱼ by at most Π (|φⱼ| + eⱼ)^countⱼ - Π |φⱼ|^countⱼ, and a value by the mean of that over the frequencies.
fn convolve(tilted: &[Tilted], points: usize, first: i64) -> (Vec<f64>, f64) {
    let mut planner = RealFftPlanner::<f64>::new();
    let forward = planner.plan_fft_forward(points);
    let inverse = planner.plan_fft_inverse(points);
    let transform_error = 16.0 * ROUNDOFF * (points as f64).log2();
    let bins = points / 2 + 1;
    let mut spectrum = Spectrum { ln_size: vec![0.0; bins], angle: vec![0.0; bins], ln_excess: vec![0.0; bins] };
    let mut buffer = forward.make_input_vec();
    let mut output = forward.make_output_vec();
    let mut scratch = forward.make_scratch_vec();
    for t in tilted {
        buffer.fill(0.0);
        for (j, &w) in t.weights.iter().enumerate() {
            // Folding the index is exact: sums of folded indices are folded sums.
            buffer[(t.start + j as i64).rem_euclid(points as i64) as usize] += w;
        }
        let length: f64 = buffer.iter().map(|w| w * w).sum::<f64>().sqrt();
        // Lengths are the planner's own: there is nothing that can fail.
        let _ = forward.process_with_scratch(&mut buffer, &mut output, &mut scratch);
        let error = transform_error * (points as f64).sqrt() * length + 8.0 * ROUNDOFF;
        spectrum.multiply(&output, t.count, error);
    }
    let mut spectrum_error = 0.0;
    let mut power = 0.0;
    // Moving the window to index 0 is a rotation of the angles, reduced in integers because angles lose digits as they grow.
    let shift = first.rem_euclid(points as i64) as u64;
    let rotation = |k: usize| ((shift * k as u64) % points as u64) as f64 / points as f64 * TAU;
    for (k, bin) in output.iter_mut().enumerate() {
        let twice = if k == 0 || 2 * k == points { 1.0 } else { 2.0 };
        let (size, error) = spectrum.size_and_error(k);
        spectrum_error += twice * error;
        power += twice * size * size;
        *bin = if size == 0.0 {
            Complex64::ZERO
        } else {
            Complex64::from_polar(size, spectrum.angle[k] % TAU + rotation(k))
        };
    }
    output[0].im = 0.0;
    if points % 2 == 0 {
        output[bins - 1].im = 0.0;
    }
    let mut scratch = inverse.make_scratch_vec();
    // Lengths are the planner's own, and the two bins that must be real were made so.
    let _ = inverse.process_with_scratch(&mut output, &mut buffer, &mut scratch);
    let n = points as f64;
    for value in &mut buffer {
        *value /= n;
    }
    (buffer, spectrum_error / n + transform_error * (power / n).sqrt() * 2.0)
}

/// A product of powers of transforms, kept as logarithms, with a bound on its error.
struct Spectrum {
    ln_size: Vec<f64>,
    angle: Vec<f64>,
    /// ln of Π (|φ| + e)^count over Π |φ|^count.
    ln_excess: Vec<f64>,
}

impl Spectrum {
    /// e^-90: below it a coefficient counts as its own error.
    const DEAD: f64 = -90.0;

    fn multiply(&mut self, transform: &[Complex64], count: f64, error: f64) {
        for (k, bin) in transform.iter().enumerate() {
            if self.ln_size[k] + self.ln_excess[k] < Self::DEAD {
                continue;
            }
            let size = bin.norm_sqr().sqrt().max(1e-300);
            self.ln_size[k] += count * size.ln();
            let ratio = error / size;
            self.ln_excess[k] += count * if ratio < 1e-4 { ratio } else { ratio.ln_1p() };
            if self.ln_size[k] + self.ln_excess[k] >= Self::DEAD {
                self.angle[k] += count * bin.arg();
            }
        }
    }

    fn size_and_error(&self, k: usize) -> (f64, f64) {
        let (size, excess) = (self.ln_size[k], self.ln_excess[k]);
        if size + excess < Self::DEAD {
            return (0.0, 2.0 * Self::DEAD.exp());
        }
        let error = if excess < 1.0 { size.exp() * excess.exp_m1() } else { (size + excess).exp() };
        (size.exp(), error)
    }
}

/// Which way an answer may err.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Upper,
    Lower,
}

impl Composed {
    /// Running sums from the top of the window down: at each node x = ih, the parts of δ(x + u) = X - e^u V.
    fn descend(&self, side: Side) -> impl Iterator<Item = Node> + '_ {
        let shrink = (-self.h).exp();
        let fall = -(-self.h).exp_m1();
        // Untilting factors e^(ln_total - θih), by recurrence from the top.
        let top = self.first + self.values.len() as i64 - 1;
        let mut ln_factor = self.ln_total - self.theta * self.h * top as f64;
        let (mut x, mut v, mut delta) = (0.0, 0.0, 0.0);
        (0..self.values.len()).rev().map(move |j| {
            let value = match side {
                Side::Upper => self.values[j].max(0.0) + self.error,
                Side::Lower => (self.values[j] - self.error).max(0.0),
            };
            let factor = ln_factor.exp();
            let mass = value * factor;
            // Before this node is passed, the sums hold the losses strictly above it.
            let node = Node { loss: (self.first + j as i64) as f64 * self.h, x, v, delta, ln_factor };
            delta += fall * (v + mass);
            v = shrink * (v + mass);
            x += mass;
            ln_factor += self.theta * self.h;
            node
        })
    }

    /// What must be added to, or taken from, the window's δ at a node.
    fn correction(&self, side: Side, node: &Node) -> f64 {
        match side {
            Side::Upper => {
                let top = (self.first + self.values.len() as i64) as f64 * self.h;
                self.infinite + (self.ln_total - self.theta * top).exp() * self.outside.0
            }
            // Folded-in masses may count where they do not belong: at most all of them, where e^(-θu)(1 - e^-u) is largest.
            Side::Lower => {
                let theta = self.theta.max(1e-12);
                let peak = (theta * (theta / (theta + 1.0)).ln()).exp() / (theta + 1.0);
                -node.ln_factor.exp() * (self.outside.0 + self.outside.1) * peak
            }
        }
    }

    fn scaled(&self, side: Side, delta: f64) -> f64 {
        match side {
            Side::Upper => delta * (1.0 + self.relative_error),
            Side::Lower => delta * (1.0 - self.relative_error),
        }
    }

    /// A bound on the smallest ε ≥ 0 with δ(ε) ≤ `delta`.
    pub(crate) fn epsilon(&self, side: Side, delta: f64) -> f64 {
        let mut lowest = f64::INFINITY;
        for node in self.descend(side) {
            let correction = self.correction(side, &node);
            let here = self.scaled(side, node.delta) + correction;
            if here > delta {
                // δ(x + u) = X - e^u V equals what is left for it somewhere above this node.
                let target = (delta - correction) / self.scaled(side, 1.0);
                let u = ((node.x - target) / node.v).ln().clamp(0.0, self.h);
                return match side {
                    Side::Upper => (node.loss + u + self.slack).max(0.0),
                    Side::Lower => (node.loss + u - self.slack).max(0.0),
                };
            }
            lowest = node.loss;
            if lowest <= 0.0 {
                return 0.0;
            }
        }
        match side {
            Side::Upper => (lowest + self.slack).max(0.0),
            Side::Lower => 0.0,
        }
    }

    /// A bound on δ(ε).
    pub(crate) fn delta(&self, side: Side, epsilon: f64) -> f64 {
        let epsilon = match side {
            Side::Upper => epsilon - self.slack,
            Side::Lower => epsilon + self.slack,
        };
        let Some(node) = self.descend(side).find(|node| node.loss <= epsilon) else {
            // ε is below the window, of which nothing is known but its tilted mass.
            return if side == Side::Upper { 1.0 } else { 0.0 };
        };
        let u = epsilon - node.loss;
        let inside = if u == 0.0 { node.delta } else { node.x - u.exp() * node.v };
        (self.scaled(side, inside.max(0.0)) + self.correction(side, &node)).clamp(0.0, 1.0)
    }

    /// Tails of the composed loss at the nodes from the top down: (loss, P[L > loss], Q[L > loss]), bounds on the given side.
    pub(crate) fn tails(&self, side: Side) -> Vec<(f64, f64, f64)> {
        self.descend(side)
            .map(|node| {
                let correction = self.correction(side, &node);
                let p = self.scaled(side, node.x) + correction;
                let q = self.scaled(side, node.v * (-node.loss).exp()) + correction.min(0.0);
                (node.loss, p.clamp(0.0, 1.0), q.clamp(0.0, 1.0))
            })
            .collect()
    }
}

/// Sums over the losses strictly above a node.
struct Node {
    loss: f64,
    /// P-mass above.
    x: f64,
    /// Q-mass above times e^loss.
    v: f64,
    /// x - v, summed without cancellation.
    delta: f64,
    /// ln of the untilting factor at the node.
    ln_factor: f64,
}
