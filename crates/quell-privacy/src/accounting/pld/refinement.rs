//! Refinement of the grid until the bracket of an answer is as narrow as requested.
//!
//! Every grid gives a valid bracket. Refinement only decides which grids are computed, and takes the best ends.

use super::{
    Law, Pld, PrivacyLoss, Question, REFINEMENTS, Target, compose, composed::End, question::LESS_NEGLIGIBLE,
};
use crate::accounting::{
    Bound,
    search::{Sketch, snapped},
};

/// A transform of more points than this takes a noticeable part of a second.
const LONG: usize = 1 << 17;

/// The result of refining a grid.
#[derive(Clone, Copy)]
pub(super) struct Refined {
    /// Bracket of the answer for the dominating laws.
    pub(super) bound: Bound,
    /// Where the answer was expected.
    pub(super) target: Target,
    /// The last step of the grid, if there was one.
    pub(super) h: Option<f64>,
    /// Whether a finer grid would hardly lower the upper end.
    pub(super) settled: bool,
}

impl Pld {
    /// The upper end on one grid of step `h`, near an approximate answer.
    pub(super) fn upper_once(
        &self,
        loss: &PrivacyLoss,
        question: &Question,
        answer: Bound,
        h: f64,
    ) -> Option<f64> {
        let target = question.next_target(answer, question.first_target(&loss.factors));
        let sketch = Sketch::new(&loss.factors, Question::negligible(target, &loss.factors));
        let tilt = sketch.tilt_for(target.epsilon, target.ln_delta);
        let grids = Self::grids(&loss.factors, tilt, target, h)?;
        let upper: Vec<_> = grids.iter().map(|(grid, count)| (grid.upper(), *count)).collect();
        Some(question.ask(&compose(&upper, h, tilt.theta, target, self.longest, false)?, End::Upper))
    }

    /// Refines the grid until the bracket is as narrow as requested.
    ///
    /// It also stops once the bracket ends at or below `irrelevant_below`. As little mass as possible is treated as
    /// infinite loss.
    pub(super) fn refine(
        &self,
        factors: &[(Law, u64)],
        question: &Question,
        irrelevant_below: f64,
    ) -> Refined {
        let first = question.first_target(factors);
        let found = self.refine_from(first, factors, question, irrelevant_below);
        // Where the upper end no longer decreases, treating more losses as infinite does not lower it.
        let is_done =
            found.settled || found.bound.upper <= irrelevant_below || self.is_narrow(question, found.bound);
        if is_done || factors.iter().all(|(law, _)| law.is_smooth()) {
            return found;
        }
        let mut best = found;
        for negligible in LESS_NEGLIGIBLE {
            let other = self.refine_from(Target { negligible, ..first }, factors, question, irrelevant_below);
            let bound = Bound {
                lower: best.bound.lower.max(other.bound.lower),
                upper: best.bound.upper.min(other.bound.upper),
            };
            let narrower = if other.bound.upper < best.bound.upper { other } else { best };
            best = Refined { bound: question.consistent(bound), ..narrower };
            if best.bound.upper <= irrelevant_below || self.is_narrow(question, best.bound) {
                break;
            }
        }
        best
    }

    /// Refines as `refine` does, starting from a likely place of the answer.
    ///
    /// It also stops when the transform gets too long or when only rounding errors remain.
    fn refine_from(
        &self,
        first: Target,
        factors: &[(Law, u64)],
        question: &Question,
        irrelevant_below: f64,
    ) -> Refined {
        let mut target = first;
        let mut sketch = Sketch::new(factors, Question::negligible(target, factors));
        let mut tilt = sketch.tilt_for(target.epsilon, target.ln_delta);
        let mut h = snapped(factors, question.first_step(self, &sketch, tilt, target));
        let is_smooth = factors.iter().all(|(law, _)| law.is_smooth());
        let mut bound = question.first_bracket(factors);
        let (mut coarsened, mut last_width, mut last_upper, mut stalled) =
            (false, f64::INFINITY, f64::INFINITY, 0);
        let (mut last_step, mut settled) = (h, false);
        for _ in 0..REFINEMENTS {
            let Some((upper, lower)) = self.compose_both(factors, factors, tilt, target, h, false) else {
                // Too many points: use a coarser grid and accept its answer.
                coarsened = true;
                h *= 2.0;
                continue;
            };
            let (rounding_error, is_long) =
                (question.rounding_error(&upper, tilt, target), upper.points() > LONG);
            let upper = question.ask(&upper, End::Upper);
            let lower = lower.map_or(0.0, |lower| question.ask(&lower, End::Lower));
            // Bounds that contradict each other are invalid.
            if lower.max(bound.lower) > upper.min(bound.upper) * (1.0 + 1e-9) + f64::MIN_POSITIVE {
                return Refined { bound: question.worst_bracket(), target, h: None, settled: false };
            }
            bound = Bound { lower: bound.lower.max(lower.min(upper)), upper: bound.upper.min(upper) };
            let (gap, wanted) = (bound.upper - bound.lower, question.tolerance(self, bound.upper));
            if bound.upper <= irrelevant_below || (bound.upper.is_finite() && gap <= wanted) {
                break;
            }
            // If the answer is far from the target, the tilt and the window were chosen badly, not the grid.
            let moved = question.next_target(bound, target);
            if target.is_far_from(moved, tilt) {
                target = moved;
                sketch = Sketch::new(factors, Question::negligible(target, factors));
                tilt = sketch.tilt_for(target.epsilon, target.ln_delta);
                h = snapped(factors, h.min(question.first_step(self, &sketch, tilt, target)));
                (coarsened, last_width, last_upper) = (false, f64::INFINITY, f64::INFINITY);
                continue;
            }
            // A finer grid does not reduce the rounding of longer transforms.
            let width = upper - lower;
            stalled = if width.is_finite() && width > 0.8 * last_width { stalled + 1 } else { 0 };
            // Lower bounds of laws with atoms rise slowly, and they only show how tight the answer is. The
            // rest estimates how much the upper bound can still fall, if its excess is proportional to the
            // step. The excess of a grid is proportional to the step or to its square.
            let share = h / last_step;
            settled = is_long && !is_smooth && (last_upper - upper) * share < 0.1 * wanted * (1.0 - share);
            let is_hopeless = is_long && bound.upper.is_infinite();
            if is_hopeless || coarsened || settled || stalled == 3 || rounding_error > 0.5 * gap {
                break;
            }
            (last_width, last_upper, last_step) = (width, upper, h);
            let finer = if gap.is_finite() { (0.5 * wanted / gap).sqrt().clamp(0.05, 0.6) } else { 0.25 };
            h = snapped(factors, h * finer);
        }
        Refined { bound, target, h: Some(h), settled }
    }

    /// A lower bound that a mechanism with these laws attains.
    pub(super) fn attained(&self, factors: &[(Law, u64)], question: &Question, refined: Refined) -> f64 {
        if let Some(bound) = question.exact(factors) {
            return bound.lower;
        }
        let (mut target, mut best) = (refined.target, 0.0_f64);
        // The attained value may lie far below the upper bound, so the tilt follows it.
        for _ in 0..3 {
            let sketch = Sketch::new(factors, Question::negligible(target, factors));
            let tilt = sketch.tilt_for(target.epsilon, target.ln_delta);
            let first_step = question.first_step(self, &sketch, tilt, target);
            let mut h = refined.h.map_or(first_step, |h| h.min(first_step));
            let mut lower = None;
            for _ in 0..6 {
                let grids = Self::grids(factors, tilt, target, h);
                lower = grids.and_then(|grids| {
                    let lower: Vec<_> = grids.iter().map(|(grid, count)| (grid.lower(), *count)).collect();
                    compose(&lower, h, tilt.theta, target, self.longest, false)
                });
                if lower.is_some() {
                    break;
                }
                h *= 2.0;
            }
            let Some(lower) = lower else { break };
            let answer = question.ask(&lower, End::Lower);
            let improved = answer > best * (1.0 + self.relative);
            best = best.max(answer);
            if !improved {
                break;
            }
            target = question.next_target(Bound { lower: best, upper: best }, target);
        }
        best
    }
}
