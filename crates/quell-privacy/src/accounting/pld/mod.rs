//! Privacy loss distributions: ε and δ of anything for which a dominating pair is known, as an interval.
//!
//! An event becomes one list of [`law::Law`]s per direction (record there, record not there). Each law is laid on a grid
//! from above and from below ([`grid`]), the grids are composed with an account of every error ([`compose`]), and the step of the
//! grid is refined until the two answers are as close as asked. What remains is then a theorem: `lower ≤ truth ≤ upper`.

mod atoms;
mod compose;
mod composite;
mod exact;
mod factors;
mod finite;
mod grid;
mod law;
mod question;
mod sketch;
mod spectrum;

use compose::{Composed, Side, Target, compose};
pub(crate) use exact::{exact_delta, exact_epsilon};
pub(crate) use factors::{Direction, directions, fixed_size_rate};
pub(crate) use grid::Masses;
use grid::{Grid, OnGrid};
pub(crate) use law::{Law, sampled_loss};
use question::{LESS_NEGLIGIBLE, NEGLIGIBLE, Question};
pub(crate) use sketch::Sketch;
use sketch::Tilt;

use super::Bound;
use crate::{Error, Event, Neighbors, units::Delta};

/// The accountant by privacy loss distributions.
///
/// # Theorem
/// Dominating pairs compose adaptively [ZDW22, Theorem 10]; sampled pairs by [ZDW22, Theorem 11] and, for Poisson sampling
/// under replacement of a record, by THEORY, Replace. Upper bounds are rounded up, lower bounds down.
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
    /// `upper - lower` aimed at, as a fraction of ε …
    pub relative: f64,
    /// … or absolutely, whichever is larger.
    pub absolute: f64,
    /// Longest Fourier transform, in points of 8 bytes; about ten such arrays are alive at once.
    pub longest: usize,
}

impl Default for Pld {
    /// 0.1 % of ε or 1e-4, in at most about 350 MB. Where memory, or the rounding of the transform at a tiny δ, does not allow
    /// that, the bracket is wider, and as true.
    fn default() -> Self {
        Self { relative: 1e-3, absolute: 1e-4, longest: 1 << 22 }
    }
}

/// A transform of more points than this takes a noticeable part of a second.
const LONG: usize = 1 << 17;

/// How often the grid is refined at most.
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

    /// The answer as narrow as asked; where that is out of reach, at least as narrow as the usual one.
    fn answer(&self, event: &Event, neighbors: Neighbors, question: &Question) -> Result<Bound, Error> {
        let found = self.largest(event, neighbors, question)?;
        let usual = Self { longest: self.longest, ..Self::default() };
        let is_wide = found.upper.is_infinite() || found.upper - found.lower > question.tolerance(self, found.upper);
        if self.relative >= usual.relative || !is_wide || found.lower.is_infinite() {
            return Ok(found);
        }
        let other = usual.largest(event, neighbors, question)?;
        let both = Bound { lower: found.lower.max(other.lower), upper: found.upper.min(other.upper) };
        // Bounds that contradict each other are no bounds.
        Ok(if both.lower <= both.upper * (1.0 + 1e-9) + f64::MIN_POSITIVE { both } else { question.worst_bracket() })
    }

    /// The larger answer of the two directions; the second is only worked out where it might be the larger.
    fn largest(&self, event: &Event, neighbors: Neighbors, question: &Question) -> Result<Bound, Error> {
        let directions = directions(event, neighbors)?;
        if directions.iter().any(|d| d.non_private || question.is_exceeded(d.infinite())) {
            return Ok(question.worst());
        }
        // The direction that looks larger first: it may show that the other one does not matter.
        let mut starts: Vec<(f64, Option<Bound>, &Direction)> = Vec::new();
        for direction in &directions {
            let exact = question.exact(&direction.factors);
            let guess = exact.map_or_else(|| question.guess(&direction.factors), |bound| bound.upper);
            starts.push((guess, exact, direction));
        }
        starts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut answer = Bound { lower: 0.0, upper: 0.0 };
        let mut h = None;
        for (_, exact, direction) in starts {
            // A coarse grid often shows that this direction is the smaller one.
            if exact.is_none() && h.is_some_and(|h| self.is_smaller(direction, question, answer, 4.0 * h)) {
                continue;
            }
            let refined = match exact {
                Some(bound) => Refined { bound, target: question.target_at(bound), h: None },
                None => self.refine(&direction.factors, question),
            };
            let mut bound = refined.bound;
            // Of a single law the exact answer knows what is attained.
            if direction.single().is_none()
                && let Some(alternatives) = direction.attained()
            {
                let attained = alternatives.iter().map(|factors| self.attained(factors, question, refined));
                bound.lower = attained.fold(0.0, f64::max).min(bound.upper);
            }
            answer = answer.max(bound);
            h = refined.h;
        }
        Ok(answer)
    }

    /// Whether a grid of step `h` shows that this direction costs no more than `answer`, which is proven.
    fn is_smaller(&self, direction: &Direction, question: &Question, answer: Bound, h: f64) -> bool {
        let Some(bound) = self.upper_once(direction, question, answer, h) else { return false };
        bound <= answer.lower
    }

    fn upper_once(&self, direction: &Direction, question: &Question, answer: Bound, h: f64) -> Option<f64> {
        let target = question.next_target(answer, question.first_target(&direction.factors));
        let sketch = Sketch::new(&direction.factors, Question::negligible(target, &direction.factors));
        let tilt = sketch.tilt_for(target.epsilon, target.ln_delta);
        let grids = Self::grids(&direction.factors, tilt, target, h)?;
        let upper: Vec<_> = grids.iter().map(|(grid, count)| (grid.upper(), *count)).collect();
        Some(question.ask(&compose(&upper, h, tilt.theta, target, self.longest, false)?, Side::Upper))
    }

    /// The bracket for dominating laws, which may be attained by none.
    fn bracket(&self, factors: &[(Law, u64)], question: &Question) -> Bound {
        question.exact(factors).unwrap_or_else(|| self.refine(factors, question).bound)
    }

    /// Refines the grid until the bracket is as narrow as asked, with as little called infinite as possible.
    fn refine(&self, factors: &[(Law, u64)], question: &Question) -> Refined {
        let first = question.first_target(factors);
        let found = self.refine_from(first, factors, question);
        let is_narrow = |bound: Bound| bound.upper - bound.lower <= 2.0 * question.tolerance(self, bound.upper);
        if is_narrow(found.bound) || factors.iter().all(|(law, _)| law.is_smooth()) {
            return found;
        }
        let other = self.refine_from(Target { negligible: LESS_NEGLIGIBLE, ..first }, factors, question);
        let bound = Bound { lower: found.bound.lower.max(other.bound.lower), upper: found.bound.upper.min(other.bound.upper) };
        // Bounds that contradict each other are no bounds.
        let is_sound = bound.lower <= bound.upper * (1.0 + 1e-9) + f64::MIN_POSITIVE;
        let narrower = if other.bound.upper < found.bound.upper { other } else { found };
        Refined { bound: if is_sound { bound } else { question.worst_bracket() }, ..narrower }
    }

    /// The same from where the answer probably lies, or until the transform is too long or rounding all that is left.
    fn refine_from(&self, first: Target, factors: &[(Law, u64)], question: &Question) -> Refined {
        let mut target = first;
        let mut sketch = Sketch::new(factors, Question::negligible(target, factors));
        let mut tilt = sketch.tilt_for(target.epsilon, target.ln_delta);
        let mut h = snapped(factors, question.first_step(self, &sketch, tilt, target));
        let is_smooth = factors.iter().all(|(law, _)| law.is_smooth());
        let mut bound = question.first_bracket(factors);
        let (mut coarsened, mut last_width, mut last_upper, mut stalled) = (false, f64::INFINITY, f64::INFINITY, 0);
        for _ in 0..REFINEMENTS {
            let Some((upper, lower)) = self.compose_both(factors, factors, tilt, target, h, false) else {
                // Too many points: coarser, and that is then the answer.
                coarsened = true;
                h *= 2.0;
                continue;
            };
            let (noise, is_long) = (question.noise(&upper, tilt, target), upper.points() > LONG);
            let upper = question.ask(&upper, Side::Upper);
            let lower = lower.map_or(0.0, |lower| question.ask(&lower, Side::Lower));
            // Bounds that contradict each other are no bounds.
            if lower.max(bound.lower) > upper.min(bound.upper) * (1.0 + 1e-9) + f64::MIN_POSITIVE {
                return Refined { bound: question.worst_bracket(), target, h: None };
            }
            bound = Bound { lower: bound.lower.max(lower.min(upper)), upper: bound.upper.min(upper) };
            let (gap, wanted) = (bound.upper - bound.lower, question.tolerance(self, bound.upper));
            if bound.upper.is_finite() && gap <= wanted {
                break;
            }
            // Where the answer is elsewhere than it was looked for, tilt and window were chosen badly, not the grid.
            let moved = question.next_target(bound, target);
            if target.is_far_from(moved, tilt) {
                target = moved;
                sketch = Sketch::new(factors, Question::negligible(target, factors));
                tilt = sketch.tilt_for(target.epsilon, target.ln_delta);
                h = snapped(factors, h.min(question.first_step(self, &sketch, tilt, target)));
                (coarsened, last_width, last_upper) = (false, f64::INFINITY, f64::INFINITY);
                continue;
            }
            // A finer grid does not help against the rounding of longer transforms.
            let width = upper - lower;
            stalled = if width.is_finite() && width > 0.8 * last_width { stalled + 1 } else { 0 };
            // Lower bounds of laws with atoms are slow to rise, and nothing but their looks is at stake.
            let settled = is_long && !is_smooth && last_upper - upper < 0.1 * wanted;
            let is_hopeless = is_long && bound.upper.is_infinite();
            if is_hopeless || coarsened || settled || stalled == 3 || noise > 0.5 * gap {
                break;
            }
            (last_width, last_upper) = (width, upper);
            let finer = if gap.is_finite() { (0.5 * wanted / gap).sqrt().clamp(0.05, 0.6) } else { 0.25 };
            h = snapped(factors, h * finer);
        }
        Refined { bound, target, h: Some(h) }
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
            let answer = question.ask(&lower, Side::Lower);
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

/// A step of at most `h` that fits the atoms of the law with the most of them: atoms beside the nodes cost a lower bound dear.
fn snapped(factors: &[(Law, u64)], h: f64) -> f64 {
    let lattices = factors.iter().filter_map(|(law, count)| Some((law.lattice()?.spacing, *count as f64)));
    let widest = lattices.filter(|(spacing, _)| *spacing > h).max_by(|a, b| (a.0 * a.1).total_cmp(&(b.0 * b.1)));
    widest.map_or(h, |(spacing, _)| spacing / (spacing / h).ceil())
}

/// What refining a grid came to.
#[derive(Clone, Copy)]
struct Refined {
    /// Bracket of the answer for the dominating laws.
    bound: Bound,
    /// Where the answer was looked for.
    target: Target,
    /// The last step of the grid, if there was one.
    h: Option<f64>,
}

/// Profiles of one direction at many ε, negative ones included: (ε, δ(ε)) in decreasing order of ε, from above and from below.
pub(crate) struct Profiles {
    pub(crate) upper: Vec<(f64, f64)>,
    pub(crate) lower: Vec<(f64, f64)>,
}

impl Profiles {
    /// Says nothing, truly.
    fn trivial() -> Self {
        Self { upper: vec![(f64::NEG_INFINITY, 1.0)], lower: Vec::new() }
    }
}

impl Pld {
    /// The profiles of the event, good for probabilities down to `tail`; none if it has no guarantee.
    pub(crate) fn profiles(&self, event: &Event, neighbors: Neighbors, tail: f64) -> Result<Option<Vec<Profiles>>, Error> {
        let directions = directions(event, neighbors)?;
        if directions.iter().any(|d| d.non_private) {
            return Ok(None);
        }
        Ok(Some(directions.iter().map(|direction| self.profiles_of(direction, tail)).collect()))
    }

    /// The profiles of one direction.
    fn profiles_of(&self, direction: &Direction, tail: f64) -> Profiles {
        let question = Question::Epsilon { delta: tail };
        let target = Target { epsilon: 0.0, ln_delta: (1e-3 * tail).ln(), negligible: NEGLIGIBLE };
        let likely = question.first_target(&direction.factors);
        let sketch = Sketch::new(&direction.factors, Question::negligible(likely, &direction.factors));
        let tilt = sketch.tilt_for(likely.epsilon, likely.ln_delta);
        let mut h = question.first_step(self, &sketch, tilt, likely);
        // Without a tilt: all probabilities are wanted alike.
        let flat = Tilt { theta: 0.0, ln_total: 0.0, ..tilt };
        let lower = direction.attained().and_then(|alternatives| alternatives.into_iter().next());
        let lower = lower.as_deref().unwrap_or(&direction.factors);
        let (mut best, mut last_gap): (Option<Profiles>, f64) = (None, f64::INFINITY);
        for _ in 0..REFINEMENTS {
            let step = snapped(&direction.factors, h);
            let Some((upper, lower)) = self.compose_both(&direction.factors, lower, flat, target, step, true) else {
                if best.is_some() {
                    break;
                }
                h *= 4.0;
                continue;
            };
            let found = Profiles {
                upper: upper.profile(Side::Upper),
                lower: lower.as_ref().map_or_else(Vec::new, |lower| lower.profile(Side::Lower)),
            };
            // The widest place may be next to an atom, anywhere.
            // No profile is below that of a pair of equals, 1 - e^ε.
            let from_below =
                |epsilon: f64| lower.as_ref().map_or(0.0, |lower| lower.delta(Side::Lower, epsilon)).max(-epsilon.exp_m1());
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

    /// The composition of `from_above` from above, and of `from_below` from below if anything can be said.
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
            let grids = Self::grids(from_below, tilt, target, h)?;
            grids.iter().map(|(grid, count)| (grid.lower(), *count)).collect()
        };
        if lower.iter().any(|(masses, _)| masses.weights.iter().all(|w| *w <= 0.0)) {
            return Some((upper, None));
        }
        Some((upper, Some(compose(&lower, h, tilt.theta, target, self.longest, dense)?)))
    }

    /// Laws on grids of step `h`; `None` if that takes too many nodes.
    fn grids(factors: &[(Law, u64)], tilt: Tilt, target: Target, h: f64) -> Option<Vec<(OnGrid, u64)>> {
        let steps: f64 = factors.iter().map(|(_, count)| *count as f64).sum();
        // Without a tilt all probabilities are wanted alike.
        let relevant = if tilt.theta == 0.0 { 1e-5 } else { Question::relevant(tilt, target) };
        let high_tail = Question::negligible(target, factors);
        let lay = |(law, count): &(Law, u64)| {
            let (low, high) = law.range(1e-9 / steps, high_tail);
            Some((OnGrid::new(law, Grid { h, low, high, theta: tilt.theta, relevant })?, *count))
        };
        factors.iter().map(lay).collect()
    }
}

/// The one law an event consists of, in each direction; none if it has no guarantee.
pub(crate) fn one_law_each_way(event: &Event, neighbors: Neighbors) -> Result<Vec<Law>, Error> {
    let directions = directions(event, neighbors)?;
    if directions.iter().any(|d| d.non_private) {
        return Ok(Vec::new());
    }
    let laws: Option<Vec<Law>> = directions.iter().map(|d| d.single().cloned()).collect();
    laws.ok_or_else(|| Error::Unsupported { accountant: "PLD", event: event.to_string(), because: "as a single release" })
}

/// Grids of about `cells` cells that dominate laws, and their step; `None` if there are far too many.
///
/// At most `high_tail` of the finite losses becomes infinite: with a tail of zero, losses must be bounded.
pub(crate) fn upper_masses(laws: &[Law], cells: usize, low_tail: f64, high_tail: f64) -> Option<(Vec<Masses>, f64)> {
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
        let training = Event::dp_sgd(NoiseMultiplier::new(2.0).unwrap(), SamplingRate::new(0.01).unwrap(), 100);
        let profiles = Pld::default().profiles(&training, Neighbors::AddRemove, 1e-9).unwrap().unwrap();
        for direction in profiles {
            assert!(direction.upper.len() < 1 << 14, "{} points", direction.upper.len());
            let at = |side: &[(f64, f64)]| side.iter().find(|(epsilon, _)| *epsilon <= 0.0).unwrap().1;
            let (upper, lower) = (at(&direction.upper), at(&direction.lower));
            assert!(upper >= lower && upper - lower < 1e-4, "{lower} {upper}");
        }
    }
}
