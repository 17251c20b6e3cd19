//! The question to a composition, and what is known of its answer before composing.
//!
//! The strategy for answering it is in `search`.

use super::{
    Pld,
    composed::{Composed, End},
    exact::{exact_delta, exact_epsilon},
    finite::Finite,
    law::Law,
};
use crate::{accounting::Bound, special::PreciseSum};

/// The quantity to compute for a composition.
pub(in crate::accounting) enum Question {
    Epsilon { delta: f64 },
    Delta { epsilon: f64 },
}

/// Share of δ that may be treated as infinite loss without a visible effect.
pub(in crate::accounting) const NEGLIGIBLE: f64 = 1e-5;

/// Larger shares that are tried one after the other where `NEGLIGIBLE` leaves a wide bracket.
///
/// Then losses that are huge, and rare but not rare enough, no longer determine the tilt and the grid. The
/// last share is for losses that are infinite for all practical purposes and have nearly the probability δ.
pub(super) const LESS_NEGLIGIBLE: [f64; 2] = [0.02, 0.9];

impl Question {
    /// The exact answer, for a single law or for sums that can be listed.
    pub(super) fn exact(&self, factors: &[(Law, u64)]) -> Option<Bound> {
        if let [(law, 1)] = factors {
            return Some(match self {
                Self::Epsilon { delta } => exact_epsilon(law, *delta),
                Self::Delta { epsilon } => exact_delta(law, *epsilon),
            });
        }
        // If δ is unknown, no loss is negligible.
        let negligible = if let Self::Epsilon { delta } = self { 1e-6 * delta / steps(factors) } else { 0.0 };
        let finite = Finite::new(factors, negligible)?;
        Some(match self {
            Self::Epsilon { delta } => finite.epsilon(*delta),
            Self::Delta { epsilon } => finite.delta(*epsilon),
        })
    }

    pub(super) fn ask(&self, composed: &Composed, end: End) -> f64 {
        match self {
            Self::Epsilon { delta } => composed.epsilon(end, *delta),
            Self::Delta { epsilon } => composed.delta(end, *epsilon),
        }
    }

    /// The answer for an event without a guarantee.
    pub(super) fn worst(&self) -> Bound {
        let worst = self.worst_bracket().upper;
        Bound { lower: worst, upper: worst }
    }

    /// The bracket known before composing: ε is at most the largest loss.
    pub(super) fn first_bracket(&self, factors: &[(Law, u64)]) -> Bound {
        let worst = self.worst_bracket();
        let Self::Epsilon { .. } = self else { return worst };
        let largest: PreciseSum = factors.iter().map(|(law, count)| law.largest() * *count as f64).collect();
        let largest = largest.value();
        Bound {
            upper: if largest.is_nan() { worst.upper } else { (largest * (1.0 + 1e-12)).max(0.0) },
            ..worst
        }
    }

    /// The bracket, or the worst one if its ends contradict each other.
    ///
    /// Ends that differ by rounding alone are no contradiction.
    pub(super) fn consistent(&self, bound: Bound) -> Bound {
        let is_consistent = bound.lower <= bound.upper * (1.0 + 1e-9) + f64::MIN_POSITIVE;
        if is_consistent {
            Bound { lower: bound.lower.min(bound.upper), ..bound }
        } else {
            self.worst_bracket()
        }
    }

    pub(super) fn worst_bracket(&self) -> Bound {
        Bound { lower: 0.0, upper: if matches!(self, Self::Epsilon { .. }) { f64::INFINITY } else { 1.0 } }
    }

    /// The width of the bracket that is asked for.
    pub(in crate::accounting) fn tolerance(&self, pld: &Pld, upper: f64) -> f64 {
        match self {
            Self::Epsilon { .. } => (pld.relative * upper).max(pld.absolute),
            Self::Delta { .. } => (pld.relative * upper).max(1e-300),
        }
    }

    /// Whether an infinite loss of this probability rules out a finite answer.
    pub(super) fn is_exceeded(&self, infinite: f64) -> bool {
        matches!(self, Self::Epsilon { delta } if infinite > *delta)
    }
}

/// The number of composed releases, at least one.
pub(in crate::accounting) fn steps(factors: &[(Law, u64)]) -> f64 {
    factors.iter().map(|(_, count)| *count as f64).sum::<f64>().max(1.0)
}
