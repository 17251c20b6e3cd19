//! The Fourier accountant of the lectures: characteristic functions of dominating pairs, added as logarithms, inverted.
//!
//! An independent check on the PLD accountant: no grid of losses, no discrete transform. It integrates
//!
//! ```text
//! δ(ε) = 1/π ∫₀^∞ Re( e^(K(z) - zε) / (z(z+1)) ) dt,   z = θ + it,   K(z) = Σ count · ln E_P[e^(zL)],
//! ```
//!
//! which is Lévy's inversion formula with the line of integration moved off the pole at zero to the saddle point θ. Its errors
//! are estimated, not proven: an answer is an estimate and must not be claimed.

use realfft::num_complex::Complex64;

use super::pld::{Direction, Law, Sketch, directions, sampled_loss};
use crate::{
    Error, Event, Neighbors,
    special::{bisect_smallest, normal_quantile},
    units::Delta,
};

/// A number with an estimate of its error. Not a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// How far off it may be, by the size of what was cut off.
    pub error: f64,
}

/// An estimate of the least ε for δ. [ZDW22, Algorithm 1, at the saddle point]
pub fn epsilon(event: &Event, neighbors: Neighbors, delta: Delta) -> Result<Estimate, Error> {
    let mut largest = Estimate { value: 0.0, error: 0.0 };
    for direction in directions(event, neighbors)? {
        if direction.non_private {
            return Ok(Estimate { value: f64::INFINITY, error: 0.0 });
        }
        let sketch = Sketch::new(&direction.factors);
        let rough = sketch.saddle_for_delta(delta.get()).value;
        let saddle = sketch.saddle_for_epsilon(0.9 * rough);
        let line = Line::new(&direction, saddle.theta, saddle.deviation, 1e-5 * delta.get());
        let solve = |sign: f64| {
            let fits = |epsilon: f64| line.delta(epsilon) + sign * line.cut(epsilon) <= delta.get();
            if fits(0.0) { 0.0 } else { bisect_smallest(0.0, 1.5 * rough.max(0.1), 60, fits) }
        };
        let (low, middle, high) = (solve(-1.0), solve(0.0), solve(1.0));
        if middle > largest.value {
            largest = Estimate { value: middle, error: (high - low) / 2.0 + 1e-9 * middle };
        }
    }
    Ok(largest)
}

/// An estimate of δ at ε ≥ 0.
pub fn delta(event: &Event, neighbors: Neighbors, epsilon: f64) -> Result<Estimate, Error> {
    let mut largest = Estimate { value: 0.0, error: 0.0 };
    for direction in directions(event, neighbors)? {
        if direction.non_private {
            return Ok(Estimate { value: 1.0, error: 0.0 });
        }
        let saddle = Sketch::new(&direction.factors).saddle_for_epsilon(epsilon);
        let line = Line::new(&direction, saddle.theta, saddle.deviation, 1e-7 * saddle.value.min(0.0).exp());
        let value = line.delta(epsilon);
        if value > largest.value {
            largest = Estimate { value, error: line.cut(epsilon) + 1e-9 * value };
        }
    }
    Ok(largest)
}

/// K(z) along a vertical line.
struct Line {
    theta: f64,
    step: f64,
    /// K(θ + it) at t = 0, step, 2 step, …
    cumulants: Vec<Complex64>,
}

/// Longest sum; a composition of few laws with atoms has a spectrum that never ends.
const LONGEST: usize = 40_000;

impl Line {
    /// Leaves out a probability of about `tail`, which would otherwise decide the moments far from the origin.
    fn new(direction: &Direction, theta: f64, deviation: f64, tail: f64) -> Self {
        let steps: f64 = direction.factors.iter().map(|(_, count)| *count as f64).sum();
        let reach = -normal_quantile((tail / steps).max(1e-300));
        // Off the pole by a fair part of the scale on which the transform varies.
        let theta = theta.max(0.3 / deviation.max(1e-9)).min(1e6);
        // The trapezoidal rule repeats the loss with period 2π/step; e^(-θ·period) must not show.
        let step = (std::f64::consts::TAU * theta / 45.0).min(0.5 / deviation.max(1e-9));
        let rules: Vec<(Vec<(f64, f64)>, f64)> =
            direction.factors.iter().map(|(law, count)| (quadrature(law, reach), *count as f64)).collect();
        let mut cumulants = Vec::new();
        for j in 0..LONGEST {
            let z = Complex64::new(theta, j as f64 * step);
            let mut sum = Complex64::ZERO;
            for (rule, count) in &rules {
                let top = rule.iter().map(|(loss, _)| *loss).fold(f64::NEG_INFINITY, f64::max);
                let moment: Complex64 = rule.iter().map(|(loss, mass)| mass * (z * (loss - top)).exp()).sum();
                sum += count * (moment.ln() + z * top);
            }
            cumulants.push(sum);
            if sum.re - cumulants[0].re < -40.0 {
                break;
            }
        }
        Self { theta, step, cumulants }
    }

    fn delta(&self, epsilon: f64) -> f64 {
        let mut sum = 0.0;
        for (j, cumulant) in self.cumulants.iter().enumerate() {
            let z = Complex64::new(self.theta, j as f64 * self.step);
            let term = (cumulant - z * epsilon).exp() / (z * (z + 1.0));
            sum += if j == 0 { 0.5 * term.re } else { term.re };
        }
        sum * self.step / std::f64::consts::PI
    }

    /// What lies beyond the end of the line, if the transform does not grow again beyond its last half.
    fn cut(&self, epsilon: f64) -> f64 {
        let Some(first) = self.cumulants.first() else { return 1.0 };
        let size = self.cumulants[self.cumulants.len() / 2..].iter().map(|k| k.re).fold(f64::NEG_INFINITY, f64::max);
        if self.cumulants.last().is_some_and(|last| last.re - first.re < -40.0) {
            return 0.0;
        }
        let end = self.cumulants.len() as f64 * self.step;
        (size - self.theta * epsilon).exp() / (std::f64::consts::PI * end)
    }
}

/// Losses and P-masses that integrate smooth functions of the loss: spectrally for Gaussian noise, exactly for atoms.
fn quadrature(law: &Law, reach: f64) -> Vec<(f64, f64)> {
    // The trapezoidal rule in the noise y, at which the P-density is `p` and the loss `loss`.
    let normal = |from: f64, to: f64, step: f64, p: &dyn Fn(f64) -> f64, loss: &dyn Fn(f64) -> f64| {
        let points = ((to - from) / step).ceil() as usize;
        let at = |i: usize| from + i as f64 * step;
        (0..=points).map(|i| (loss(at(i)), p(at(i)) * step)).filter(|(_, mass)| *mass > 0.0).collect()
    };
    let density = |y: f64| (-y * y / 2.0).exp() / std::f64::consts::TAU.sqrt();
    match law {
        Law::Gaussian { mu } => normal(-13.0, reach, 0.1_f64.min(0.5 / mu), &density, &|y| mu * mu / 2.0 + mu * y),
        Law::Removed { rate, inner } => match **inner {
            Law::Gaussian { mu } => {
                let p = |y: f64| (1.0 - rate) * density(y) + rate * density(y - mu);
                normal(-13.0, mu + reach, 0.05_f64.min(0.3 / mu), &p, &|y| sampled_loss(*rate, mu * y - mu * mu / 2.0))
            }
            _ => cells(law),
        },
        Law::Added { rate, inner } => match **inner {
            Law::Gaussian { mu } => {
                normal(-13.0, reach, 0.05_f64.min(0.3 / mu), &density, &|y| -sampled_loss(*rate, -(mu * mu / 2.0 + mu * y)))
            }
            _ => cells(law),
        },
        Law::Exchanged { rate, mu } => {
            let p = |y: f64| (1.0 - rate) * density(y) + rate * density(y - mu);
            let side = |s: f64, y: f64| sampled_loss(*rate, s * y - mu * mu / 2.0);
            normal(-13.0, mu + reach, 0.05_f64.min(0.3 / mu), &p, &|y| side(*mu, y) - side(-mu, y))
        }
        Law::Atoms(atoms) => atoms.list(),
        Law::Laplace { .. } | Law::BoundedRange { .. } | Law::FixedSize { .. } | Law::Mixture(_) => cells(law),
    }
}

/// Many narrow cells, each at its mean.
fn cells(law: &Law) -> Vec<(f64, f64)> {
    const COUNT: usize = 4000;
    let (low, high) = law.range(1e-15, 1e-18);
    let width = (high - low) / COUNT as f64;
    let mut rule = Vec::with_capacity(COUNT + 2);
    let mut left = law.tails(low - width);
    for j in 0..=COUNT {
        let x = low + j as f64 * width;
        let right = law.tails(x);
        let (p, q) = (left.p.between(right.p).0, left.q.between(right.q).0);
        if p > 0.0 && q > 0.0 {
            rule.push(((p / q).ln(), p));
        }
        left = right;
    }
    rule
}
