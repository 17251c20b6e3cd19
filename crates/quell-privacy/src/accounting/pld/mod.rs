//! Privacy loss distributions: ε and δ of anything for which a dominating pair is known, as an interval.
//!
//! An event becomes one list of [`law::Law`]s per direction (record there, record not there). Each law is laid on a grid
//! from above and from below ([`grid`]), the grids are composed with an account of every error ([`compose`]), and the step of the
//! grid is refined until the two answers are as close as asked. What remains is then a theorem: `lower ≤ truth ≤ upper`.

mod atoms;
mod compose;
mod exact;
mod factors;
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
use question::{Question, Start};
use sketch::Saddle;
pub(crate) use sketch::Sketch;

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

/// How often the grid is refined at most.
const REFINEMENTS: usize = 12;

impl Pld {
    /// The least ε for which the event is (ε, δ)-DP.
    pub fn epsilon(&self, event: &Event, neighbors: Neighbors, delta: Delta) -> Result<Bound, Error> {
        self.largest(event, neighbors, &Question::Epsilon { delta: delta.get() })
    }

    /// The least δ for which the event is (ε, δ)-DP.
    pub fn delta(&self, event: &Event, neighbors: Neighbors, epsilon: f64) -> Result<Bound, Error> {
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return Err(Error::OutOfRange { what: "epsilon", value: epsilon, range: "[0, inf)" });
        }
        self.largest(event, neighbors, &Question::Delta { epsilon })
    }

    /// The larger answer of the two directions; the second is only worked out where it might be the larger.
    fn largest(&self, event: &Event, neighbors: Neighbors, question: &Question) -> Result<Bound, Error> {
        let directions = directions(event, neighbors)?;
        if directions.iter().any(|d| d.non_private) {
            return Ok(question.worst());
        }
        let mut starts: Vec<(Start, &Direction)> = directions.iter().map(|d| (question.start(d), d)).collect();
        starts.sort_by(|a, b| b.0.guess().total_cmp(&a.0.guess()));
        let mut answer = Bound { lower: 0.0, upper: 0.0 };
        let mut h = None;
        for (start, direction) in starts {
            match start {
                Start::Exact(bound) => answer = answer.max(bound),
                Start::Tilted(sketch, saddle) => {
                    // A coarse grid often shows that this direction is the smaller one.
                    let coarse = h.and_then(|h| self.once(direction, question, saddle, question.target(answer), 4.0 * h, false));
                    if coarse.is_some_and(|bound| bound.upper <= answer.lower) {
                        continue;
                    }
                    let (bound, step) = self.refine(direction, question, &sketch, saddle);
                    answer = answer.max(bound);
                    h = Some(step);
                }
            }
        }
        Ok(answer)
    }

    /// Refines the grid until the bracket is as narrow as asked, or the transform too long.
    fn refine(&self, direction: &Direction, question: &Question, sketch: &Sketch, saddle: Saddle) -> (Bound, f64) {
        let mut best = question.worst_bracket();
        let mut h = question.first_step(self, sketch, saddle);
        let mut target = question.first_target(saddle);
        let (mut too_fine, mut last_gap, mut stalled) = (false, f64::INFINITY, 0);
        for _ in 0..REFINEMENTS {
            let Some(bound) = self.once(direction, question, saddle, target, h, true) else {
                // Too many points: coarser, and that is then the answer.
                too_fine = true;
                h *= 2.0;
                continue;
            };
            best = Bound { lower: best.lower.max(bound.lower), upper: best.upper.min(bound.upper) };
            let (gap, wanted) = (best.upper - best.lower, question.tolerance(self, best.upper));
            if gap <= wanted || too_fine {
                break;
            }
            // A first guess far from the answer spoils the window, not the grid.
            let moved = question.target(best);
            if saddle.theta * (target.epsilon - moved.epsilon) + target.ln_delta - moved.ln_delta < 3.0 {
                stalled = if gap > 0.8 * last_gap { stalled + 1 } else { 0 };
                if stalled == 2 {
                    break; // the rest is not the grid's
                }
                last_gap = gap;
                h *= (0.5 * wanted / gap).sqrt().clamp(0.05, 0.6);
            }
            target = moved;
        }
        (best, h)
    }

    /// One grid, one composition.
    fn once(
        &self,
        direction: &Direction,
        question: &Question,
        saddle: Saddle,
        target: Target,
        h: f64,
        both: bool,
    ) -> Option<Bound> {
        if !both {
            let grids = Self::grids(&direction.factors, question, saddle, target, h)?;
            let upper: Vec<_> = grids.iter().map(|(grid, count)| (grid.upper(), *count)).collect();
            let upper = question.ask(&compose(&upper, h, saddle.theta, target, self.longest, false)?, Side::Upper);
            return Some(Bound { lower: 0.0, upper });
        }
        let (upper, lower) = self.compose_both(direction, question, saddle, target, h, false)?;
        let upper = question.ask(&upper, Side::Upper);
        let lower = lower.map_or(0.0, |lower| question.ask(&lower, Side::Lower));
        Some(Bound { lower: lower.min(upper), upper })
    }
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
        let question = Question::Epsilon { delta: tail };
        let target = Target { epsilon: 0.0, ln_delta: (1e-3 * tail).ln() };
        let mut profiles = Vec::new();
        for direction in &directions {
            let sketch = Sketch::new(&direction.factors);
            let saddle = sketch.saddle_for_delta(tail);
            let mut h = question.first_step(self, &sketch, saddle);
            // Without a tilt: all probabilities are wanted alike.
            let flat = Saddle { theta: 0.0, ..saddle };
            let mut best: Option<Profiles> = None;
            for _ in 0..REFINEMENTS {
                let Some((upper, lower)) = self.compose_both(direction, &question, flat, target, h, true) else {
                    if best.is_some() {
                        break;
                    }
                    h *= 4.0;
                    continue;
                };
                // The widest place is where most is decided, at ε = 0.
                let at_zero = |composed: &Composed, side: Side| composed.delta(side, 0.0);
                let gap = at_zero(&upper, Side::Upper) - lower.as_ref().map_or(0.0, |l| at_zero(l, Side::Lower));
                best = Some(Profiles {
                    upper: upper.profile(Side::Upper),
                    lower: lower.map_or_else(Vec::new, |l| l.profile(Side::Lower)),
                });
                if gap <= 0.5 * self.absolute {
                    break;
                }
                h *= (0.25 * self.absolute / gap).sqrt().clamp(0.1, 0.7);
            }
            profiles.push(best.unwrap_or_else(Profiles::trivial));
        }
        Ok(Some(profiles))
    }

    /// The composition from above, and from below if anything can be said.
    fn compose_both(
        &self,
        direction: &Direction,
        question: &Question,
        saddle: Saddle,
        target: Target,
        h: f64,
        dense: bool,
    ) -> Option<(Composed, Option<Composed>)> {
        let grids = Self::grids(&direction.factors, question, saddle, target, h)?;
        let upper: Vec<_> = grids.iter().map(|(grid, count)| (grid.upper(), *count)).collect();
        let upper = compose(&upper, h, saddle.theta, target, self.longest, dense)?;
        let lower: Vec<_> = match direction.attained() {
            None => grids.iter().map(|(grid, count)| (grid.lower(), *count)).collect(),
            Some(factors) => {
                let grids = Self::grids(&factors, question, saddle, target, h)?;
                grids.iter().map(|(grid, count)| (grid.lower(), *count)).collect()
            }
        };
        if lower.iter().any(|(masses, _)| masses.weights.iter().all(|w| *w <= 0.0)) {
            return Some((upper, None));
        }
        Some((upper, Some(compose(&lower, h, saddle.theta, target, self.longest, dense)?)))
    }

    /// Laws on grids of step `h`; `None` if that takes too many nodes.
    fn grids(factors: &[(Law, u64)], question: &Question, saddle: Saddle, target: Target, h: f64) -> Option<Vec<(OnGrid, u64)>> {
        let steps: f64 = factors.iter().map(|(_, count)| *count as f64).sum();
        let (relevant, high_tail) = (question.relevant(saddle, target), question.negligible(saddle) / steps);
        let lay = |(law, count): &(Law, u64)| {
            let (low, high) = law.range(1e-9 / steps, high_tail);
            Some((OnGrid::new(law, Grid { h, low, high, theta: saddle.theta, relevant })?, *count))
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
