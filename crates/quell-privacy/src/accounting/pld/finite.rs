//! Compositions of laws with finitely many losses, by enumeration: no grid, no transform.
//!
//! A law with a losses that is repeated c times has C(c + a - 1, a - 1) sums of losses, with multinomial
//! probabilities. Where all sums of a composition can be listed, its profile is a finite sum of positive
//! terms, precise to the last digits.

use super::law::Law;
use crate::{Bound, special::ROUNDOFF};

/// Most sums that are listed; listing so many takes a tenth of a second.
const MOST_SUMS: u64 = 1 << 20;

/// All sums of losses of a composition, with their probabilities under P.
pub(super) struct Finite {
    /// Sums and their probabilities, in decreasing order of the sums.
    sums: Vec<(f64, f64)>,
    /// Lower and upper bound on P[L = ∞].
    ///
    /// The upper bound includes losses that are too unlikely to be listed.
    infinite: (f64, f64),
    /// Relative error bound on the probabilities.
    relative_error: f64,
    /// Error bound on a sum.
    slack: f64,
}

/// Probabilities below this may have lost digits or underflowed.
const SMALLEST: f64 = 1e-300;

impl Finite {
    /// Lists all sums; `None` for a law with a density or too many sums.
    ///
    /// Losses of probability at most `negligible` are not listed. The upper bound counts them as infinite,
    /// and the lower bound ignores them.
    pub(super) fn new(factors: &[(Law, u64)], negligible: f64) -> Option<Self> {
        let mut laws = Vec::with_capacity(factors.len());
        let mut states = 1_u64;
        for (law, count) in factors {
            let (mut losses, infinite) = law.finite()?;
            let unlikely: f64 = losses.iter().map(|(_, mass)| mass).filter(|mass| **mass <= negligible).sum();
            losses.retain(|(_, mass)| *mass > negligible);
            states =
                states.checked_mul(compositions(*count, losses.len() as u64)?).filter(|n| *n <= MOST_SUMS)?;
            laws.push((losses, infinite, infinite + unlikely));
        }
        let mut sums = vec![(0.0, 1.0)];
        let (mut relative_error, mut slack, mut ln_finite) = (0.0, 0.0, (0.0, 0.0));
        for ((losses, infinite, at_most), (law, count)) in laws.iter().zip(factors) {
            let power = Power::new(losses, *count);
            sums = sums
                .iter()
                .flat_map(|(sum, mass)| {
                    power.sums.iter().map(move |(more, share)| (sum + more, mass * share))
                })
                .collect();
            relative_error += power.relative_error + 4.0 * ROUNDOFF;
            let farthest = losses.iter().map(|(loss, _)| loss.abs()).fold(0.0, f64::max);
            slack += *count as f64 * (law.rounding(farthest) + 4.0 * ROUNDOFF * farthest);
            ln_finite.0 += *count as f64 * (-infinite.min(1.0)).ln_1p();
            ln_finite.1 += *count as f64 * (-at_most.min(1.0)).ln_1p();
        }
        sums.sort_by(|a, b| b.0.total_cmp(&a.0));
        relative_error += 8.0 * ROUNDOFF * sums.len() as f64;
        // 1 - Π (1 - p)^count
        let infinite = (-ln_finite.0.exp_m1() * (1.0 - 1e-12), -ln_finite.1.exp_m1() * (1.0 + 1e-12));
        (relative_error < 1e-6).then_some(Self { sums, infinite, relative_error, slack })
    }

    /// The least ε ≥ 0 with δ(ε) ≤ δ.
    pub(super) fn epsilon(&self, delta: f64) -> Bound {
        let underflow = SMALLEST * self.sums.len() as f64;
        let upper = self.solve((delta - self.infinite.1 - underflow) / (1.0 + self.relative_error));
        let lower = self.solve((delta - self.infinite.0) / (1.0 - self.relative_error));
        let (upper, lower) = ((upper + self.slack).max(0.0), (lower - self.slack).max(0.0));
        Bound { lower: lower.min(upper), upper }
    }

    /// δ(ε) = P[L = ∞] + Σ p (1 - e^(ε - l)) over the sums l above ε.
    pub(super) fn delta(&self, epsilon: f64) -> Bound {
        let at = |epsilon: f64| -> f64 {
            self.sums
                .iter()
                .take_while(|(loss, _)| *loss > epsilon)
                .map(|(loss, mass)| mass * -(epsilon - loss).exp_m1())
                .sum()
        };
        let underflow = SMALLEST * self.sums.len() as f64;
        let upper = self.infinite.1 + at(epsilon - self.slack) * (1.0 + self.relative_error) + underflow;
        let lower = self.infinite.0 + at(epsilon + self.slack) * (1.0 - self.relative_error);
        Bound { lower: lower.clamp(0.0, 1.0), upper: upper.clamp(0.0, 1.0) }
    }

    /// The ε at which the finite losses have δ = `delta`; infinite for a negative `delta`.
    fn solve(&self, delta: f64) -> f64 {
        if delta.is_nan() || delta < 0.0 {
            return f64::INFINITY;
        }
        // At a loss x: δ(x), and V = Σ p e^(x - l) over the sums l > x.
        // Below x: δ(x - t) = δ(x) + (1 - e^-t)(V + p).
        let (mut at_node, mut discounted) = (0.0, 0.0);
        for (j, (loss, mass)) in self.sums.iter().enumerate() {
            let mass = discounted + mass;
            let width = self.sums.get(j + 1).map_or(f64::INFINITY, |(next, _)| loss - next);
            let at_next = at_node - (-width).exp_m1() * mass;
            if at_next > delta {
                return loss + (-(delta - at_node) / mass).max(-1.0).ln_1p();
            }
            (at_node, discounted) = (at_next, mass * (-width).exp());
        }
        f64::NEG_INFINITY // all finite mass fits
    }
}

/// Number of ordered sums of `parts` numbers that give `count`; `None` if too many.
fn compositions(count: u64, parts: u64) -> Option<u64> {
    let mut ways = 1_u64;
    for i in 1..parts {
        // C(count + i, i) = C(count + i - 1, i - 1) (count + i)/i
        ways = ways.checked_mul(count.checked_add(i)?)? / i;
        if ways > MOST_SUMS {
            return None;
        }
    }
    Some(ways)
}

/// The sums of one law, repeated.
struct Power {
    sums: Vec<(f64, f64)>,
    relative_error: f64,
}

impl Power {
    fn new(losses: &[(f64, f64)], count: u64) -> Self {
        let ln_masses: Vec<f64> = losses.iter().map(|(_, mass)| mass.ln()).collect();
        let mut power = Self { sums: Vec::new(), relative_error: 0.0 };
        let start = ln_factorial(count);
        power.list(losses, &ln_masses, count, State { loss: 0.0, ln_mass: start, size: start });
        // Every probability of the law enters, with its own error, up to `count` times.
        power.relative_error += 66.0 * ROUNDOFF * count as f64;
        power
    }

    /// Adds all sums for which `left` more losses are to be chosen from `losses`.
    ///
    /// A call chooses the next loss that occurs and how often. So the depth is at most the number of
    /// different losses in one sum, which [`MOST_SUMS`] keeps small, however many losses the law has.
    fn list(&mut self, losses: &[(f64, f64)], ln_masses: &[f64], left: u64, state: State) {
        if left == 0 {
            let mass = state.ln_mass.exp();
            if mass > SMALLEST {
                self.relative_error = self.relative_error.max(8.0 * ROUNDOFF * state.size);
            }
            self.sums.push((state.loss, mass));
            return;
        }
        for (j, ((loss, _), ln_mass)) in losses.iter().zip(ln_masses).enumerate() {
            let is_last = j + 1 == losses.len();
            for times in if is_last { left..=left } else { 1..=left } {
                let (count, ways) = (times as f64, ln_factorial(times));
                let ln_share = count * ln_mass;
                let next = State {
                    loss: state.loss + count * loss,
                    ln_mass: state.ln_mass - ways + ln_share,
                    size: state.size + ways + ln_share.abs(),
                };
                self.list(&losses[j + 1..], &ln_masses[j + 1..], left - times, next);
            }
        }
    }
}

/// A partial sum of losses.
#[derive(Clone, Copy)]
struct State {
    loss: f64,
    ln_mass: f64,
    /// Sum of the absolute values of the terms of `ln_mass`.
    ///
    /// The rounding of `ln_mass` is relative to it.
    size: f64,
}

fn ln_factorial(n: u64) -> f64 {
    libm::lgamma(n as f64 + 1.0)
}
