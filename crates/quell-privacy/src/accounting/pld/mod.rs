//! Privacy loss distributions: ε and δ, as an interval, of every event with known dominating pairs.
//!
//! An event becomes one list of [`law::Law`]s per direction (record removed, record added). Each law is
//! discretised on a grid from above and from below ([`grid`]). The grids are composed with a bound on every
//! error ([`compose`]). The step of the grid is refined until the two answers are as close as requested. The
//! result is then a theorem: `lower ≤ truth ≤ upper`.

mod atoms;
mod compose;
mod composite;
mod exact;
mod factors;
mod finite;
mod grid;
mod law;
mod question;
mod spectrum;

pub(super) use compose::{Composed, STEEPEST, Target};
use compose::{End, compose};
pub(crate) use exact::{exact_delta, exact_epsilon, gaussian_epsilon};
pub(crate) use factors::{PrivacyLoss, fixed_size_rate, privacy_losses};
pub(crate) use grid::Masses;
use grid::{Grid, OnGrid};
pub(crate) use law::{Law, sampled_loss};
use question::LESS_NEGLIGIBLE;
pub(super) use question::{NEGLIGIBLE, Question, steps};

use super::{
    Bound,
    search::{Sketch, Tilt},
};
use crate::{Error, Event, Neighbors, units::Delta};

/// The accountant that uses privacy loss distributions.
///
/// # Theorem
/// Dominating pairs compose adaptively [ZDW22, Theorem 10]; sampled pairs by [ZDW22, Theorem 11] and, for
/// Poisson sampling under replacement of a record, by THEORY, Replace. Upper bounds are rounded up, lower
/// bounds down.
///
/// ```
/// use quell_privacy::{Event, Neighbors, accounting::Pld, units::{Delta, NoiseMultiplier, SamplingRate}};
/// // Private-kNN of the lecture: 1000 answers, rate 0.01, noise 5.
/// let votes = Event::dp_sgd(NoiseMultiplier::new(5.0)?, SamplingRate::new(0.01)?, 1000);
/// let epsilon = Pld::default().epsilon(&votes, Neighbors::AddRemove, Delta::new(1e-6)?)?;
/// assert!(epsilon.lower <= 0.249026 && 0.249026 <= epsilon.upper + 1e-6 && epsilon.upper < 0.2492);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pld {
    /// The target for `upper - lower`, as a fraction of ε …
    pub relative: f64,
    /// … or as an absolute number, whichever is larger.
    pub absolute: f64,
    /// Longest Fourier transform, in points of 8 bytes. About ten such arrays exist at once.
    pub longest: usize,
}

impl Default for Pld {
    /// 0.1 % of ε or 1e-4, in at most about 350 MB.
    ///
    /// The bracket is wider, but still valid, where memory or the rounding of the transform at a tiny δ does
    /// not allow that.
    fn default() -> Self {
        Self { relative: 1e-3, absolute: 1e-4, longest: 1 << 22 }
    }
}

/// A transform of more points than this takes a noticeable part of a second.
const LONG: usize = 1 << 17;

/// Most refinements of the grid.
const REFINEMENTS: usize = 16;

impl Pld {
    /// The least ε for which the event is (ε, δ)-DP.
    pub fn epsilon(&self, event: &Event, neighbors: Neighbors, delta: Delta) -> Result<Bound, Error> {
        self.answer(event, neighbors, &Question::Epsilon { delta: delta.get() })
    }

    /// The least δ for which the event is (ε, δ)-DP.
    pub fn delta(&self, event: &Event, neighbors: Neighbors, epsilon: f64) -> Result<Bound, Error> {
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return Err(Error::OutOfRange { what: "epsilon", value: epsilon, range: "[0, inf)" });
        }
        self.answer(event, neighbors, &Question::Delta { epsilon })
    }

    /// The answer as narrow as requested, or at least as narrow as with the default settings.
    fn answer(&self, event: &Event, neighbors: Neighbors, question: &Question) -> Result<Bound, Error> {
        let found = self.largest(event, neighbors, question)?;
        let usual = Self { longest: self.longest, ..Self::default() };
        let is_wide =
            found.upper.is_infinite() || found.upper - found.lower > question.tolerance(self, found.upper);
        if self.relative >= usual.relative || !is_wide || found.lower.is_infinite() {
            return Ok(found);
        }
        let other = usual.largest(event, neighbors, question)?;
        Ok(question
            .consistent(Bound { lower: found.lower.max(other.lower), upper: found.upper.min(other.upper) }))
    }

    /// The larger answer of the two directions.
    ///
    /// The second direction is computed only if its answer could be the larger one.
    fn largest(&self, event: &Event, neighbors: Neighbors, question: &Question) -> Result<Bound, Error> {
        let losses = privacy_losses(event, neighbors)?;
        if losses.iter().any(|loss| loss.non_private || question.is_exceeded(loss.infinite())) {
            return Ok(question.worst());
        }
        // Start with the direction that looks larger: it may show that the other one is irrelevant.
        let mut starts: Vec<(f64, Option<Bound>, &PrivacyLoss)> = Vec::new();
        for loss in &losses {
            let exact = question.exact(&loss.factors);
            let guess = exact.map_or_else(|| question.guess(&loss.factors), |bound| bound.upper);
            starts.push((guess, exact, loss));
        }
        starts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut answer = Bound { lower: 0.0, upper: 0.0 };
        // A direction that costs no more than this is irrelevant. If `enough` is the upper end of the answer,
        // the maximum over both directions lies in the same bracket.
        let mut enough = 0.0;
        let mut h = None;
        for (_, exact, loss) in starts {
            // A coarse grid often shows that this direction is the smaller one.
            if exact.is_none() && h.is_some_and(|h| self.is_smaller(loss, question, answer, enough, 4.0 * h))
            {
                answer = self.raised(loss, question, answer, h);
                continue;
            }
            let refined = match exact {
                Some(bound) => Refined { bound, target: question.target_at(bound), h: None, settled: true },
                None => self.refine(&loss.factors, question, enough),
            };
            if exact.is_none() && refined.bound.upper <= enough {
                answer = self.raised(loss, question, answer, h);
                continue;
            }
            let mut bound = refined.bound;
            // For a single law the exact answer already uses what is attained.
            if loss.single().is_none()
                && let Some(alternatives) = loss.attained()
            {
                let attained = alternatives.iter().map(|factors| self.attained(factors, question, refined));
                bound = question.consistent(Bound { lower: attained.fold(0.0, f64::max), ..bound });
            }
            answer = answer.max(bound);
            // If the bracket is wide, the other direction may have a better lower end.
            enough = if self.is_narrow(question, refined.bound) { answer.upper } else { answer.lower };
            h = refined.h;
        }
        Ok(answer)
    }

    /// An answer whose lower end is raised by what another direction attains.
    ///
    /// That direction does not matter for the upper end.
    fn raised(&self, loss: &PrivacyLoss, question: &Question, answer: Bound, h: Option<f64>) -> Bound {
        if self.is_narrow(question, answer) {
            return answer;
        }
        let target = question.next_target(answer, question.first_target(&loss.factors));
        let refined = Refined { bound: answer, target, h, settled: true };
        let alternatives = loss.attained().unwrap_or_else(|| vec![loss.factors.clone()]);
        let attained = alternatives.iter().map(|factors| self.attained(factors, question, refined));
        question.consistent(Bound { lower: attained.fold(answer.lower, f64::max), ..answer })
    }

    fn is_narrow(&self, question: &Question, bound: Bound) -> bool {
        bound.upper.is_finite() && bound.upper - bound.lower <= 2.0 * question.tolerance(self, bound.upper)
    }

    /// Whether a grid of step `h` shows that this direction costs at most `enough`.
    ///
    /// `answer` is the approximate answer.
    fn is_smaller(
        &self,
        loss: &PrivacyLoss,
        question: &Question,
        answer: Bound,
        enough: f64,
        h: f64,
    ) -> bool {
        let Some(bound) = self.upper_once(loss, question, answer, h) else { return false };
        bound <= enough
    }

    fn upper_once(&self, loss: &PrivacyLoss, question: &Question, answer: Bound, h: f64) -> Option<f64> {
        let target = question.next_target(answer, question.first_target(&loss.factors));
        let sketch = Sketch::new(&loss.factors, Question::negligible(target, &loss.factors));
        let tilt = sketch.tilt_for(target.epsilon, target.ln_delta);
        let grids = Self::grids(&loss.factors, tilt, target, h)?;
        let upper: Vec<_> = grids.iter().map(|(grid, count)| (grid.upper(), *count)).collect();
        Some(question.ask(&compose(&upper, h, tilt.theta, target, self.longest, false)?, End::Upper))
    }

    /// Refines the grid until the bracket is as narrow as requested.
    ///
    /// It also stops once the bracket ends at or below `enough`. As little mass as possible is treated as
    /// infinite loss.
    fn refine(&self, factors: &[(Law, u64)], question: &Question, enough: f64) -> Refined {
        let first = question.first_target(factors);
        let found = self.refine_from(first, factors, question, enough);
        // Where the upper end no longer decreases, treating more losses as infinite does not lower it.
        let is_done = found.settled || found.bound.upper <= enough || self.is_narrow(question, found.bound);
        if is_done || factors.iter().all(|(law, _)| law.is_smooth()) {
            return found;
        }
        let mut best = found;
        for negligible in LESS_NEGLIGIBLE {
            let other = self.refine_from(Target { negligible, ..first }, factors, question, enough);
            let bound = Bound {
                lower: best.bound.lower.max(other.bound.lower),
                upper: best.bound.upper.min(other.bound.upper),
            };
            let narrower = if other.bound.upper < best.bound.upper { other } else { best };
            best = Refined { bound: question.consistent(bound), ..narrower };
            if best.bound.upper <= enough || self.is_narrow(question, best.bound) {
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
        enough: f64,
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
            if bound.upper <= enough || (bound.upper.is_finite() && gap <= wanted) {
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
    fn attained(&self, factors: &[(Law, u64)], question: &Question, refined: Refined) -> f64 {
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

/// A step of at most `h` that divides the spacing of the most important atoms.
///
/// Atoms beside the nodes make a lower bound much worse.
fn snapped(factors: &[(Law, u64)], h: f64) -> f64 {
    let lattices = factors.iter().filter_map(|(law, count)| Some((law.lattice()?.spacing, *count as f64)));
    let widest =
        lattices.filter(|(spacing, _)| *spacing > h).max_by(|a, b| (a.0 * a.1).total_cmp(&(b.0 * b.1)));
    widest.map_or(h, |(spacing, _)| spacing / (spacing / h).ceil())
}

/// The result of refining a grid.
#[derive(Clone, Copy)]
struct Refined {
    /// Bracket of the answer for the dominating laws.
    bound: Bound,
    /// Where the answer was expected.
    target: Target,
    /// The last step of the grid, if there was one.
    h: Option<f64>,
    /// Whether a finer grid would hardly lower the upper end.
    settled: bool,
}

/// Upper and lower profiles of one direction at many ε, including negative ones.
///
/// Each is a list of (ε, δ(ε)) in decreasing order of ε.
pub(crate) struct Profiles {
    pub(crate) upper: Vec<(f64, f64)>,
    pub(crate) lower: Vec<(f64, f64)>,
}

impl Profiles {
    /// The trivial profiles: valid, but without information.
    fn trivial() -> Self {
        Self { upper: vec![(f64::NEG_INFINITY, 1.0)], lower: Vec::new() }
    }
}

impl Pld {
    /// The profiles of the event, precise for probabilities down to `tail`.
    ///
    /// `None` if the event has no guarantee.
    pub(crate) fn profiles(
        &self,
        event: &Event,
        neighbors: Neighbors,
        tail: f64,
    ) -> Result<Option<Vec<Profiles>>, Error> {
        let losses = privacy_losses(event, neighbors)?;
        if losses.iter().any(|loss| loss.non_private) {
            return Ok(None);
        }
        Ok(Some(losses.iter().map(|loss| self.profiles_of(loss, tail)).collect()))
    }

    /// The profiles of one direction.
    fn profiles_of(&self, loss: &PrivacyLoss, tail: f64) -> Profiles {
        let question = Question::Epsilon { delta: tail };
        let target = Target { epsilon: 0.0, ln_delta: (1e-3 * tail).ln(), negligible: NEGLIGIBLE };
        let likely = question.first_target(&loss.factors);
        let sketch = Sketch::new(&loss.factors, Question::negligible(likely, &loss.factors));
        let tilt = sketch.tilt_for(likely.epsilon, likely.ln_delta);
        let mut h = question.first_step(self, &sketch, tilt, likely);
        // No tilt: all probabilities matter equally.
        let flat = Tilt { theta: 0.0, ln_total: 0.0, ..tilt };
        let lower = loss.attained().and_then(|alternatives| alternatives.into_iter().next());
        let lower = lower.as_deref().unwrap_or(&loss.factors);
        let (mut best, mut last_gap): (Option<Profiles>, f64) = (None, f64::INFINITY);
        for _ in 0..REFINEMENTS {
            let step = snapped(&loss.factors, h);
            let Some((upper, lower)) = self.compose_both(&loss.factors, lower, flat, target, step, true)
            else {
                if best.is_some() {
                    break;
                }
                h *= 4.0;
                continue;
            };
            let found = Profiles {
                upper: upper.profile(End::Upper),
                lower: lower.as_ref().map_or_else(Vec::new, |lower| lower.profile(End::Lower)),
            };
            // The widest gap may be next to an atom, anywhere. No profile is below that of two equal
            // distributions, 1 - e^ε.
            let from_below = |epsilon: f64| {
                lower.as_ref().map_or(0.0, |lower| lower.delta(End::Lower, epsilon)).max(-epsilon.exp_m1())
            };
            let nodes = found.upper.iter().filter(|(epsilon, _)| epsilon.is_finite());
            let gap = nodes.map(|(epsilon, delta)| delta - from_below(*epsilon)).fold(0.0, f64::max);
            best = Some(found);
            // Lower bounds next to atoms may not rise however fine the grid is.
            if gap <= 0.5 * self.absolute || gap > 0.9 * last_gap {
                break;
            }
            last_gap = gap;
            h *= (0.25 * self.absolute / gap).sqrt().clamp(0.1, 0.7);
        }
        best.unwrap_or_else(Profiles::trivial)
    }

    /// The upper profile, tilted to where δ is about `likely`.
    ///
    /// It is precise for probabilities down to `least`, and empty if it takes too many points.
    fn far_profile(&self, factors: &[(Law, u64)], likely: f64, least: f64) -> Vec<(f64, f64)> {
        let question = Question::Epsilon { delta: likely };
        let first = question.first_target(factors);
        let sketch = Sketch::new(factors, Question::negligible(first, factors));
        let tilt = sketch.tilt_for(first.epsilon, first.ln_delta);
        let target = Target { ln_delta: least.ln(), ..first };
        let mut h = snapped(factors, question.first_step(self, &sketch, tilt, target));
        for _ in 0..REFINEMENTS {
            let composed = Self::grids(factors, tilt, target, h).and_then(|grids| {
                let upper: Vec<_> = grids.iter().map(|(grid, count)| (grid.upper(), *count)).collect();
                compose(&upper, h, tilt.theta, target, self.longest, true)
            });
            if let Some(composed) = composed {
                return composed.profile(End::Upper);
            }
            h *= 2.0;
        }
        Vec::new()
    }

    /// Composes `from_above` from above, and `from_below` from below if a lower bound exists.
    fn compose_both(
        &self,
        from_above: &[(Law, u64)],
        from_below: &[(Law, u64)],
        tilt: Tilt,
        target: Target,
        h: f64,
        dense: bool,
    ) -> Option<(Composed, Option<Composed>)> {
        let grids = Self::grids(from_above, tilt, target, h)?;
        let upper: Vec<_> = grids.iter().map(|(grid, count)| (grid.upper(), *count)).collect();
        let upper = compose(&upper, h, tilt.theta, target, self.longest, dense)?;
        let lower: Vec<_> = if std::ptr::eq(from_above, from_below) {
            grids.iter().map(|(grid, count)| (grid.lower(), *count)).collect()
        } else {
            let Some(grids) = Self::grids(from_below, tilt, target, h) else { return Some((upper, None)) };
            grids.iter().map(|(grid, count)| (grid.lower(), *count)).collect()
        };
        if lower.iter().any(|(masses, _)| masses.weights.iter().all(|w| *w <= 0.0)) {
            return Some((upper, None));
        }
        Some((upper, compose(&lower, h, tilt.theta, target, self.longest, dense)))
    }

    /// Laws on grids of step `h`; `None` if that takes too many nodes.
    fn grids(factors: &[(Law, u64)], tilt: Tilt, target: Target, h: f64) -> Option<Vec<(OnGrid, u64)>> {
        let steps: f64 = factors.iter().map(|(_, count)| *count as f64).sum();
        // Without a tilt all probabilities matter equally.
        let relevant = if tilt.theta == 0.0 { 1e-5 } else { Question::relevant(tilt, target) };
        let high_tail = Question::negligible(target, factors);
        let lay = |(law, count): &(Law, u64)| {
            let (low, high) = law.range(1e-9 / steps, high_tail);
            Some((OnGrid::new(law, Grid { h, low, high, theta: tilt.theta, relevant })?, *count))
        };
        factors.iter().map(lay).collect()
    }
}

/// The single law of an event, in each direction; empty without a guarantee.
pub(crate) fn one_law_each_way(event: &Event, neighbors: Neighbors) -> Result<Vec<Law>, Error> {
    let losses = privacy_losses(event, neighbors)?;
    if losses.iter().any(|loss| loss.non_private) {
        return Ok(Vec::new());
    }
    // An event without releases counts as one constant release.
    let one = |loss: &PrivacyLoss| {
        if loss.is_free() { Some(Law::nothing()) } else { loss.single().cloned() }
    };
    let laws: Option<Vec<Law>> = losses.iter().map(one).collect();
    laws.ok_or_else(|| Error::Unsupported {
        accountant: "PLD",
        event: event.to_string(),
        because: "as a single release",
    })
}

/// Grids of about `cells` cells that dominate the laws, and their step.
///
/// `None` if there are far too many nodes. At most `high_tail` of the finite losses becomes infinite: with a
/// tail of zero, losses must be bounded.
pub(crate) fn upper_masses(
    laws: &[Law],
    cells: usize,
    low_tail: f64,
    high_tail: f64,
) -> Option<(Vec<Masses>, f64)> {
    let ranges: Vec<(f64, f64)> = laws.iter().map(|law| law.range(low_tail, high_tail)).collect();
    let widest = ranges.iter().map(|(low, high)| high - low).fold(0.0, f64::max);
    let h = widest.max(1e-12) / cells as f64;
    // A steep tilt keeps all nodes.
    let lay = |(law, (low, high)): (&Law, (f64, f64))| {
        OnGrid::new(law, Grid { h, low, high, theta: 1e9, relevant: 0.0 }).map(|grid| grid.upper())
    };
    let masses: Option<Vec<Masses>> = laws.iter().zip(ranges).map(lay).collect();
    Some((masses?, h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{NoiseMultiplier, SamplingRate};

    #[test]
    fn profiles_have_no_more_points_than_their_accuracy_needs() {
        let training =
            Event::dp_sgd(NoiseMultiplier::new(2.0).unwrap(), SamplingRate::new(0.01).unwrap(), 100);
        let profiles = Pld::default().profiles(&training, Neighbors::AddRemove, 1e-9).unwrap().unwrap();
        for direction in profiles {
            assert!(direction.upper.len() < 1 << 14, "{} points", direction.upper.len());
            let at = |side: &[(f64, f64)]| side.iter().find(|(epsilon, _)| *epsilon <= 0.0).unwrap().1;
            let (upper, lower) = (at(&direction.upper), at(&direction.lower));
            assert!(upper >= lower && upper - lower < 1e-4, "{lower} {upper}");
        }
    }
}
