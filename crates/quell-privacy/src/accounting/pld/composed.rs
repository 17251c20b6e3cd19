//! The sum of all losses on a grid, and its bounds on ε and δ.
//!
//! [`compose`](super::compose) computes the sum. Here the bounds on its errors are turned into bounds on the
//! answer.

use std::f64::consts::TAU;

use realfft::num_complex::Complex64;

use super::spectrum::Convolved;
use crate::special::ROUNDOFF;

/// The tilted sum of all losses, inside a window of the grid.
pub(crate) struct Composed {
    pub(super) h: f64,
    pub(super) theta: f64,
    /// Loss at grid index 0.
    pub(super) offset: f64,
    /// Grid index of the first point of the window.
    pub(super) first: i64,
    /// Length of the window in points.
    pub(super) points: usize,
    /// Tilted masses in the window. Masses of losses outside the window are folded in.
    pub(super) values: Values,
    /// Error bound on all values together, in the Euclidean norm.
    pub(super) error: f64,
    /// Relative error bound: tilting, powers and masses, once per step.
    pub(super) relative_error: f64,
    /// ln of the factor that undoes the normalisation of the tilt.
    pub(super) ln_total: f64,
    /// Bounds on the tilted mass above and below the window.
    pub(super) outside: (f64, f64),
    /// Untilted mass of infinite losses.
    pub(super) infinite: f64,
    /// Error bound on the sum of the losses, because thresholds are rounded.
    pub(super) slack: f64,
    /// √Σ (e^(-θu)(1 - e^-u))² over the grid u = h, 2h, …
    pub(super) payoff_norm: f64,
}

/// ln of the largest value of e^(-θu)(1 - e^-u) over u ≥ 0.
pub(super) fn ln_peak(theta: f64) -> f64 {
    let theta = theta.max(1e-12);
    theta * (theta / (theta + 1.0)).ln() - theta.ln_1p()
}

/// √Σ (e^(-θu)(1 - e^-u))² over the grid u = h, 2h, …, rounded up.
pub(super) fn payoff_norm(theta: f64, h: f64, points: usize) -> f64 {
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
pub(super) struct Above {
    p: f64,
    q: f64,
    delta: f64,
    /// Error bounds on q and δ, because terms of both signs were added.
    q_error: f64,
    delta_error: f64,
}

/// Relative error of one term of a sum over the spectrum.
///
/// Angles are precise to a few units in the last place of 2π.
const TERM_ERROR: f64 = 256.0 * ROUNDOFF;

/// The composed masses, prepared for sums from any node upwards.
pub(super) enum Values {
    /// Sums at every node.
    Summed(Vec<Above>),
    /// The spectrum, from which sums are computed as geometric series.
    Spectrum { bins: Vec<(usize, Complex64)>, theta: f64, h: f64, points: usize },
}

impl Values {
    pub(super) fn new(convolved: Convolved, theta: f64, h: f64, points: usize) -> Self {
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

    /// The untilted sums X and V at a node of the window.
    ///
    /// Up to the next node δ(x + u) = X - e^u V.
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
    /// A bound on the Q-mass above times e^loss.
    ///
    /// It is a lower bound for an upper δ, and an upper bound for a lower δ.
    fn v(&self, end: End) -> f64 {
        match end {
            End::Upper => (self.v - self.v_error).max(0.0),
            End::Lower => self.v + self.v_error,
        }
    }
}
