//! What is asked of a composition, ε or δ, and how to go about it.

use super::{
    Pld,
    compose::{Composed, Side, Target},
    exact::{exact_delta, exact_epsilon},
    finite::Finite,
    law::Law,
    sketch::{Sketch, Tilt},
};
use crate::Bound;

/// What is asked of a composition.
pub(super) enum Question {
    Epsilon { delta: f64 },
    Delta { epsilon: f64 },
}

/// Share of δ that may be called infinite: it raises δ by as much, which does not show.
pub(super) const NEGLIGIBLE: f64 = 1e-5;

/// The share where that leaves a wide bracket: losses that are huge, and rare but not rare enough, then no longer choose tilt and grid.
pub(super) const LESS_NEGLIGIBLE: f64 = 0.02;

impl Question {
    /// The exact answer, where there is just one law or all sums of losses can be listed.
    pub(super) fn exact(&self, factors: &[(Law, u64)]) -> Option<Bound> {
        if let [(law, 1)] = factors {
            return Some(match self {
                Self::Epsilon { delta } => exact_epsilon(law, *delta),
                Self::Delta { epsilon } => exact_delta(law, *epsilon),
            });
        }
        // Of an unknown δ no loss is negligible.
        let negligible = if let Self::Epsilon { delta } = self { 1e-6 * delta / steps(factors) } else { 0.0 };
        let finite = Finite::new(factors, negligible)?;
        Some(match self {
            Self::Epsilon { delta } => finite.epsilon(*delta),
            Self::Delta { epsilon } => finite.delta(*epsilon),
        })
    }

    pub(super) fn ask(&self, composed: &Composed, side: Side) -> f64 {
        match self {
            Self::Epsilon { delta } => composed.epsilon(side, *delta),
            Self::Delta { epsilon } => composed.delta(side, *epsilon),
        }
    }

    /// The answer for an event without any guarantee.
    pub(super) fn worst(&self) -> Bound {
        let worst = self.worst_bracket().upper;
        Bound { lower: worst, upper: worst }
    }

    /// What is known before anything is composed: ε is at most the largest loss.
    pub(super) fn first_bracket(&self, factors: &[(Law, u64)]) -> Bound {
        let worst = self.worst_bracket();
        let Self::Epsilon { .. } = self else { return worst };
        let largest: f64 = factors.iter().map(|(law, count)| law.largest() * *count as f64).sum();
        Bound { upper: if largest.is_nan() { worst.upper } else { (largest * (1.0 + 1e-12)).max(0.0) }, ..worst }
    }

    pub(super) fn worst_bracket(&self) -> Bound {
        Bound { lower: 0.0, upper: if matches!(self, Self::Epsilon { .. }) { f64::INFINITY } else { 1.0 } }
    }

    pub(super) fn tolerance(&self, pld: &Pld, upper: f64) -> f64 {
        match self {
            Self::Epsilon { .. } => (pld.relative * upper).max(pld.absolute),
            Self::Delta { .. } => (pld.relative * upper).max(1e-300),
        }
    }

    /// A step at which the bracket should be two thirds as wide as asked.
    pub(super) fn first_step(&self, pld: &Pld, sketch: &Sketch, tilt: Tilt, target: Target) -> f64 {
        let gap = match self {
            Self::Epsilon { .. } => self.tolerance(pld, target.epsilon),
            Self::Delta { .. } => pld.relative / tilt.theta.max(1e-3),
        };
        sketch.step_for(0.7 * gap, tilt.theta).min(tilt.deviation.max(1e-9) / 4.0)
    }

    /// Whether losses that are infinite with this probability leave no finite answer.
    pub(super) fn is_exceeded(&self, infinite: f64) -> bool {
        matches!(self, Self::Epsilon { delta } if infinite > *delta)
    }

    /// A guess at the answer, to compare directions by.
    pub(super) fn guess(&self, factors: &[(Law, u64)]) -> f64 {
        let target = self.first_target(factors);
        match self {
            Self::Epsilon { .. } => target.epsilon,
            Self::Delta { .. } => target.ln_delta.exp(),
        }
    }

    /// Where the answer probably lies, before anything is known but sketches.
    ///
    /// Losses above the tail that makes up a third of δ are left out: Rényi's conversion is then near the truth also where
    /// losses are rare and huge.
    pub(super) fn first_target(&self, factors: &[(Law, u64)]) -> Target {
        let steps = steps(factors);
        match self {
            Self::Epsilon { delta } => {
                let sketch = Sketch::new(factors, 0.3 * delta / steps);
                let (epsilon, mean) = (sketch.epsilon(*delta), sketch.mean());
                // Rényi's conversion is above the truth, by some part of the distance from the mean.
                let below = if epsilon > mean { mean.max(0.0) + 0.85 * (epsilon - mean.max(0.0)) } else { epsilon };
                Target { epsilon: below, ln_delta: delta.ln(), negligible: NEGLIGIBLE }
            }
            Self::Delta { epsilon } => {
                let mut ln_delta: f64 = 0.0;
                for _ in 0..4 {
                    let sketch = Sketch::new(factors, 0.3 * ln_delta.exp() / steps);
                    ln_delta = sketch.tilt_for(*epsilon, ln_delta).ln_delta(*epsilon).min(0.0) - 3.0;
                }
                Target { epsilon: *epsilon, ln_delta, negligible: NEGLIGIBLE }
            }
        }
    }

    /// How much of a bracket around the target is the rounding of the transform.
    pub(super) fn noise(&self, composed: &Composed, tilt: Tilt, target: Target) -> f64 {
        let noise = 2.0 * composed.noise(target.epsilon);
        match self {
            // δ falls about as e^(-θε).
            Self::Epsilon { delta } => noise / (delta * tilt.theta.max(1e-3)),
            Self::Delta { .. } => noise,
        }
    }

    /// Where the answer lies, given a narrow bracket of it.
    pub(super) fn target_at(&self, bound: Bound) -> Target {
        let (epsilon, ln_delta) = match self {
            Self::Epsilon { delta } => (bound.lower.min(f64::MAX), delta.ln()),
            Self::Delta { epsilon } => (*epsilon, bound.upper.max(f64::MIN_POSITIVE).ln()),
        };
        Target { epsilon, ln_delta, negligible: NEGLIGIBLE }
    }

    /// Where the answer lies, given a bracket of it and where it was looked for.
    pub(super) fn next_target(&self, bound: Bound, last: Target) -> Target {
        match self {
            Self::Epsilon { .. } => {
                // Looking too high spoils the window, looking too low only makes it longer.
                let epsilon = match (bound.lower > 0.0, bound.upper.is_finite()) {
                    (_, true) => bound.lower.max(0.6 * bound.upper),
                    (true, false) => bound.lower,
                    (false, false) => last.epsilon / 4.0,
                };
                Target { epsilon, ..last }
            }
            Self::Delta { .. } => {
                let ln_delta = if bound.lower > 0.0 {
                    0.5 * (bound.lower.ln() + bound.upper.ln())
                } else {
                    bound.upper.ln().min(last.ln_delta) - 10.0
                };
                Target { ln_delta, ..last }
            }
        }
    }

    /// The share of the tilted mass that decides the answer: δ over what undoing the tilt makes of a mass of one at ε.
    pub(super) fn relevant(tilt: Tilt, target: Target) -> f64 {
        (30.0 * (target.ln_delta - tilt.ln_total + tilt.theta * target.epsilon).exp()).clamp(1e-60, 1.0)
    }

    /// Mass of one law that may be called infinite without showing.
    pub(super) fn negligible(target: Target, factors: &[(Law, u64)]) -> f64 {
        target.negligible * target.ln_delta.exp() / steps(factors)
    }
}

fn steps(factors: &[(Law, u64)]) -> f64 {
    factors.iter().map(|(_, count)| *count as f64).sum::<f64>().max(1.0)
}
