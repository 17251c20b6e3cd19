//! The Fourier accountant of the lectures.
//!
//! It adds the logarithms of the characteristic functions of dominating pairs, and inverts the sum. It is an
//! independent check on the PLD accountant: no grid of losses, no discrete transform. It integrates
//!
//! ```text
//! δ(ε) = 1/π ∫₀^∞ Re( e^(K(z) - zε) / (z(z+1)) ) dt,   z = θ + it,   K(z) = Σ count · ln E_P[e^(zL)],
//! ```
//!
//! This is Lévy's inversion formula with the line of integration moved off the pole at zero to the saddle
//! point θ. The errors of cutting the line, repeating the loss, leaving out tails and rounding are bounded;
//! the error of the quadrature is estimated by doing it twice. So an answer is an estimate with its error and
//! must not be claimed. An answer with a large error is refused.

use realfft::num_complex::Complex64;

mod rule;

use rule::Rules;

use crate::{
    Error, Event, Neighbors,
    accounting::pld::{PrivacyLoss, privacy_losses},
    special::bisect_smallest,
    units::Delta,
};

/// A number with an estimate of its error, not a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// The estimated error.
    pub error: f64,
}

impl Estimate {
    fn between(low: f64, high: f64) -> Self {
        Self { value: 0.5 * (low + high), error: 0.5 * (high - low) * (1.0 + 1e-9) + 1e-9 * high }
    }
}

/// An estimate of the least ε for δ. [ZDW22, Algorithm 1, at the saddle point]
pub fn epsilon(event: &Event, neighbors: Neighbors, delta: Delta) -> Result<Estimate, Error> {
    let delta = delta.get();
    let (mut low, mut high) = (0.0_f64, 0.0_f64);
    for loss in privacy_losses(event, neighbors)?.into_iter().filter(|loss| !loss.is_free()) {
        let rules = Rules::new(&loss, 1e-6 * delta);
        if loss.non_private || rules.infinite > delta * (1.0 + 1e-9) {
            return Ok(Estimate { value: f64::INFINITY, error: 0.0 });
        }
        let rough = rules.epsilon_by_chernoff(delta);
        let refused = || unclear(event);
        let mut at = 0.9 * rough;
        let mut found = (0.0, 0.0);
        // The line goes through the saddle point of the answer, which is not known at first.
        for _ in 0..2 {
            let lines = Lines::new(&rules, at, delta).ok_or_else(refused)?;
            let solve = |sign: f64| {
                let fits = |epsilon: f64| lines.delta(epsilon) + sign * lines.error(epsilon) <= delta;
                if fits(0.0) { 0.0 } else { bisect_smallest(0.0, 1.1 * rough + 1e-9, 50, fits) }
            };
            found = (solve(-1.0), solve(1.0));
            at = 0.5 * (found.0 + found.1);
        }
        // Written so that NaN is no answer.
        let clear = found.1 - found.0 <= 0.01 * found.1 + 1e-4 && found.1 <= rough * (1.0 + 1e-3) + 1e-9;
        if !clear {
            return Err(refused());
        }
        low = low.max(found.0);
        high = high.max(found.1);
    }
    Ok(Estimate::between(low, high))
}

/// An estimate of δ at ε ≥ 0.
pub fn delta(event: &Event, neighbors: Neighbors, epsilon: f64) -> Result<Estimate, Error> {
    let (mut low, mut high) = (0.0_f64, 0.0_f64);
    for loss in privacy_losses(event, neighbors)?.into_iter().filter(|loss| !loss.is_free()) {
        if loss.non_private {
            return Ok(Estimate { value: 1.0, error: 0.0 });
        }
        let rough = Rules::new(&loss, 1e-20).delta_by_chernoff(epsilon);
        let rules = Rules::new(&loss, 1e-6 * rough);
        let lines = Lines::new(&rules, epsilon, rough).ok_or_else(|| unclear(event))?;
        let (value, error) = (lines.delta(epsilon), lines.error(epsilon));
        let clear = error <= 0.05 * value;
        if !clear {
            return Err(unclear(event));
        }
        low = low.max(value - error);
        high = high.max(value + error);
    }
    Ok(Estimate::between(low, high))
}

fn unclear(event: &Event) -> Error {
    Error::Unsupported {
        accountant: "fourier",
        event: event.to_string(),
        because: "because its transform does not decay within reach, so cutting it off would cause a large error",
    }
}

/// The same line with fine and with coarse quadrature.
struct Lines<'a> {
    rules: &'a Rules,
    fine: Line,
    coarse: Line,
    delta: f64,
}

impl<'a> Lines<'a> {
    /// Builds lines through the saddle point of ε.
    ///
    /// `None` if the transform does not decay on it.
    fn new(rules: &'a Rules, epsilon: f64, delta: f64) -> Option<Self> {
        let saddle = rules.saddle(epsilon);
        let deviation = rules.deviation(saddle).max(1e-9);
        // Off the pole by a fair part of the scale on which the transform varies.
        let theta = saddle.max(0.3 / deviation).min(1e6);
        // The trapezoidal rule repeats the loss with period 2π/step; e^(-θ·period) must be negligible beside
        // δ.
        let step = (std::f64::consts::TAU * theta / (25.0 - delta.ln())).min(0.5 / deviation);
        let beyond = |end: f64| rules.beyond(theta, end);
        Some(Self {
            rules,
            fine: Line::new(theta, step, |z| rules.fine(z), beyond)?,
            coarse: Line::new(theta, step, |z| rules.coarse(z), beyond)?,
            delta,
        })
    }

    fn delta(&self, epsilon: f64) -> f64 {
        self.fine.delta(epsilon) + self.rules.infinite
    }

    /// The estimated error of δ.
    ///
    /// It adds up the part of the line that was cut off, the repetitions of the trapezoidal rule, the tails
    /// left out, rounding, and twice the difference of the quadratures.
    fn error(&self, epsilon: f64) -> f64 {
        let Line { theta, step, .. } = self.fine;
        let period = std::f64::consts::TAU / step;
        let once = |decay: f64| if decay > 0.0 { 1.0 / decay.exp_m1() } else { f64::INFINITY };
        // Σ_{m≥1} e^(-θm·period) δ(ε - m·period), and δ is at most one.
        let from_below = once(theta * period);
        // Σ_{m≥1} e^(θm·period) δ(ε + m·period), by Chernoff's bound at a larger tilt.
        let above =
            |tilt: f64| (self.rules.cumulant(tilt) - tilt * epsilon).exp() * once((tilt - theta) * period);
        let from_above = [1.2, 1.5, 2.0, 3.0]
            .into_iter()
            .map(|factor| above(factor * theta))
            .fold(f64::INFINITY, f64::min);
        let rounding = self.fine.size(epsilon) * f64::EPSILON * (8.0 + 8.0 * self.rules.steps);
        let quadrature = 2.0 * (self.fine.delta(epsilon) - self.coarse.delta(epsilon)).abs();
        let error =
            self.fine.cut(epsilon) + from_below + from_above + self.rules.left_out + rounding + quadrature;
        if error.is_nan() { f64::INFINITY } else { error + 1e-9 * self.delta }
    }
}

/// K(z) along a vertical line.
struct Line {
    theta: f64,
    step: f64,
    /// K(θ + it) at t = 0, step, 2 step, …
    cumulants: Vec<Complex64>,
    /// Bound on the log transform beyond the end of the line, relative to its start.
    beyond: f64,
}

/// Largest number of terms.
///
/// The spectrum of a composition of few laws with atoms never ends.
const LONGEST: usize = 3000;

/// How far the logarithm of the transform must fall before the line is cut.
const FALL: f64 = 34.0;

impl Line {
    /// `None` if the transform does not decay within reach.
    ///
    /// `beyond` bounds the logarithm of the rest of the transform after a position.
    fn new(
        theta: f64,
        step: f64,
        cumulant: impl Fn(Complex64) -> Complex64,
        beyond: impl Fn(f64) -> f64,
    ) -> Option<Self> {
        // Written so that NaN is no end.
        let ends = |j: usize| beyond(j as f64 * step) < -0.5 * FALL;
        if !ends(LONGEST) {
            return None;
        }
        let mut cumulants: Vec<Complex64> = Vec::new();
        for j in 0..LONGEST {
            let here = cumulant(Complex64::new(theta, j as f64 * step));
            cumulants.push(here);
            if here.re - cumulants[0].re < -FALL && beyond((j + 1) as f64 * step) < -FALL {
                break;
            }
        }
        let beyond = beyond(cumulants.len() as f64 * step);
        Some(Self { theta, step, cumulants, beyond })
    }

    fn terms(&self, epsilon: f64) -> impl Iterator<Item = Complex64> + '_ {
        self.cumulants.iter().enumerate().map(move |(j, cumulant)| {
            let z = Complex64::new(self.theta, j as f64 * self.step);
            let term = (cumulant - z * epsilon).exp() / (z * (z + 1.0));
            if j == 0 { 0.5 * term } else { term }
        })
    }

    fn delta(&self, epsilon: f64) -> f64 {
        self.terms(epsilon).map(|term| term.re).sum::<f64>() * self.step / std::f64::consts::PI
    }

    /// The sum of the absolute values of the terms.
    fn size(&self, epsilon: f64) -> f64 {
        self.terms(epsilon).map(Complex64::norm).sum::<f64>() * self.step / std::f64::consts::PI
    }

    /// Bound on the part beyond the end of the line.
    fn cut(&self, epsilon: f64) -> f64 {
        let size = self.cumulants[0].re + self.beyond;
        let end = self.cumulants.len() as f64 * self.step;
        // ∫ dt/|z|² from the end on.
        (size - self.theta * epsilon).exp() / (std::f64::consts::PI * end)
    }
}

impl Rules {
    fn new(loss: &PrivacyLoss, tail: f64) -> Self {
        Self::of(&loss.factors, tail)
    }
}
