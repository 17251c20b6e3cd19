//! Where to look for the answer to a question.
//!
//! Here are targets, steps of the grid, and the losses that may be neglected.

use super::{Sketch, Tilt};
use crate::accounting::{
    Bound, Pld,
    pld::{Composed, Law, NEGLIGIBLE, Question, STEEPEST, Target, steps},
};

impl Question {
    /// A step at which the bracket should be two thirds as wide as requested.
    ///
    /// No loss moves by more than a step. So with few releases, a step that is this fraction of the bracket
    /// is small enough, however narrow the distribution of their sum is. The step must not be so large that
    /// the tilt is too steep for the grid: then the sum has no bound.
    pub(in crate::accounting) fn first_step(
        &self,
        pld: &Pld,
        sketch: &Sketch,
        tilt: Tilt,
        target: Target,
    ) -> f64 {
        let gap = match self {
            Self::Epsilon { .. } => self.tolerance(pld, target.epsilon),
            Self::Delta { .. } => pld.relative / tilt.theta.max(1e-3),
        };
        let resolved = sketch.step_for(0.7 * gap, tilt.theta).min(tilt.deviation.max(1e-9) / 4.0);
        let steepest = if tilt.theta > 0.0 { 0.1 * STEEPEST / tilt.theta } else { f64::INFINITY };
        resolved.max((0.3 * gap / sketch.releases()).min(steepest))
    }

    /// An estimate of the answer, for comparing directions.
    pub(in crate::accounting) fn guess(&self, factors: &[(Law, u64)]) -> f64 {
        let target = self.first_target(factors);
        match self {
            Self::Epsilon { .. } => target.epsilon,
            Self::Delta { .. } => target.ln_delta.exp(),
        }
    }

    /// Where the answer probably lies, estimated from sketches alone.
    ///
    /// Losses above the tail that makes up a third of δ are left out. The Rényi conversion is then close to
    /// the truth also where losses are rare and huge.
    pub(in crate::accounting) fn first_target(&self, factors: &[(Law, u64)]) -> Target {
        let steps = steps(factors);
        match self {
            Self::Epsilon { delta } => {
                let sketch = Sketch::new(factors, 0.3 * delta / steps);
                let (epsilon, mean) = (sketch.epsilon(*delta), sketch.mean());
                // The Rényi conversion is above the truth, by some fraction of the distance from the mean.
                let below =
                    if epsilon > mean { mean.max(0.0) + 0.85 * (epsilon - mean.max(0.0)) } else { epsilon };
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

    /// How much the rounding of the transform contributes to a bracket around the target.
    pub(in crate::accounting) fn rounding_error(
        &self,
        composed: &Composed,
        tilt: Tilt,
        target: Target,
    ) -> f64 {
        let rounding_error = 2.0 * composed.rounding_error(target.epsilon);
        match self {
            // δ decreases about as e^(-θε).
            Self::Epsilon { delta } => rounding_error / (delta * tilt.theta.max(1e-3)),
            Self::Delta { .. } => rounding_error,
        }
    }

    /// Where the answer lies, given a narrow bracket of it.
    pub(in crate::accounting) fn target_at(&self, bound: Bound) -> Target {
        let (epsilon, ln_delta) = match self {
            Self::Epsilon { delta } => (bound.lower.min(f64::MAX), delta.ln()),
            Self::Delta { epsilon } => (*epsilon, bound.upper.max(f64::MIN_POSITIVE).ln()),
        };
        Target { epsilon, ln_delta, negligible: NEGLIGIBLE }
    }

    /// Where the answer lies, given a bracket of it and the previous target.
    pub(in crate::accounting) fn next_target(&self, bound: Bound, last: Target) -> Target {
        match self {
            Self::Epsilon { .. } => {
                // A target that is too high spoils the window; one that is too low only makes the window
                // longer.
                let is_near = bound.upper - bound.lower <= 0.05 * bound.upper;
                let epsilon = match (bound.lower > 0.0, bound.upper.is_finite()) {
                    // The bracket may be wide because the grid is coarse: a target inside it is fine.
                    (true, true) if is_near => last.epsilon.clamp(bound.lower, bound.upper),
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

    /// The share of the tilted mass that decides the answer.
    ///
    /// It is δ divided by the untilted value of a tilted mass of one at ε.
    pub(in crate::accounting) fn relevant(tilt: Tilt, target: Target) -> f64 {
        (30.0 * (target.ln_delta - tilt.ln_total + tilt.theta * target.epsilon).exp()).clamp(1e-60, 1.0)
    }

    /// Mass of one law that may be treated as infinite loss without a visible effect.
    pub(in crate::accounting) fn negligible(target: Target, factors: &[(Law, u64)]) -> f64 {
        target.negligible * target.ln_delta.exp() / steps(factors)
    }
}

impl Target {
    /// Whether a tilt and a window for this target do not suit the other.
    pub(in crate::accounting) fn is_far_from(self, other: Self, tilt: Tilt) -> bool {
        let moved = (self.epsilon - other.epsilon).abs();
        moved > (0.1 * self.epsilon).min(0.5 * tilt.deviation)
            || tilt.theta * moved + (self.ln_delta - other.ln_delta).abs() > 1.0
    }
}

/// A step of at most `h` that divides the spacing of the most important atoms.
///
/// Atoms beside the nodes make a lower bound much worse.
pub(in crate::accounting) fn snapped(factors: &[(Law, u64)], h: f64) -> f64 {
    let lattices = factors.iter().filter_map(|(law, count)| Some((law.lattice()?.spacing, *count as f64)));
    let widest =
        lattices.filter(|(spacing, _)| *spacing > h).max_by(|a, b| (a.0 * a.1).total_cmp(&(b.0 * b.1)));
    widest.map_or(h, |(spacing, _)| spacing / (spacing / h).ceil())
}
