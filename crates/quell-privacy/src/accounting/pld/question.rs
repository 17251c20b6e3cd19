//! What is asked of a composition, ε or δ, and how to go about it.

use super::{
    Pld,
    compose::{Composed, Side, Target},
    exact::{exact_delta, exact_epsilon},
    factors::Direction,
    sketch::{Saddle, Sketch},
};
use crate::Bound;

/// How to start on one direction: with the exact answer, or with a tilt.
pub(super) enum Start {
    Exact(Bound),
    Tilted(Sketch, Saddle),
}

impl Start {
    pub(super) fn guess(&self) -> f64 {
        match self {
            Self::Exact(bound) => bound.upper,
            Self::Tilted(_, saddle) => saddle.value,
        }
    }
}

/// What is asked of a composition.
pub(super) enum Question {
    Epsilon { delta: f64 },
    Delta { epsilon: f64 },
}

impl Question {
    /// How to start on a direction.
    pub(super) fn start(&self, direction: &Direction) -> Start {
        if let Some(law) = direction.single() {
            return Start::Exact(match self {
                Self::Epsilon { delta } => exact_epsilon(law, *delta),
                Self::Delta { epsilon } => exact_delta(law, *epsilon),
            });
        }
        let sketch = Sketch::new(&direction.factors);
        let saddle = match self {
            Self::Epsilon { delta } => sketch.saddle_for_delta(*delta),
            Self::Delta { epsilon } => sketch.saddle_for_epsilon(*epsilon),
        };
        Start::Tilted(sketch, saddle)
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
    pub(super) fn first_step(&self, pld: &Pld, sketch: &Sketch, saddle: Saddle) -> f64 {
        let gap = match self {
            Self::Epsilon { .. } => self.tolerance(pld, 0.85 * saddle.value.max(0.0)),
            Self::Delta { .. } => pld.relative / saddle.theta.max(1e-3),
        };
        sketch.step_for(0.7 * gap, saddle.theta).min(saddle.deviation.max(1e-9) / 4.0)
    }

    /// Where the answer probably lies, before anything is known but the sketch.
    pub(super) fn first_target(&self, saddle: Saddle) -> Target {
        match self {
            Self::Epsilon { delta } => Target { epsilon: 0.8 * saddle.value.max(0.0), ln_delta: delta.ln() },
            Self::Delta { epsilon } => Target { epsilon: *epsilon, ln_delta: saddle.value.min(0.0) - 3.0 },
        }
    }

    /// Where the answer lies, given a bracket of it.
    pub(super) fn target(&self, bound: Bound) -> Target {
        match self {
            Self::Epsilon { delta } => Target { epsilon: bound.lower, ln_delta: delta.ln() },
            Self::Delta { epsilon } => Target { epsilon: *epsilon, ln_delta: bound.lower.max(bound.upper * 1e-9).ln() },
        }
    }

    /// The share of the tilted mass that decides the answer: δ over what undoing the tilt makes of a mass of one at ε.
    pub(super) fn relevant(&self, saddle: Saddle, target: Target) -> f64 {
        let theta = saddle.theta;
        if theta == 0.0 {
            return 1e-5;
        }
        let ln_share = match self {
            // The saddle's ε is where Rényi's conversion puts it, above the true one.
            Self::Epsilon { .. } => theta * (target.epsilon - saddle.value) + theta * (theta / (theta + 1.0)).ln(),
            Self::Delta { .. } => target.ln_delta - saddle.value,
        };
        (30.0 * (ln_share - theta.ln_1p()).exp()).clamp(1e-60, 1.0)
    }

    /// Mass that may be called infinite without showing.
    pub(super) fn negligible(&self, saddle: Saddle) -> f64 {
        1e-5 * match self {
            Self::Epsilon { delta } => *delta,
            Self::Delta { .. } => saddle.value.min(0.0).exp() * 0.01,
        }
    }
}
