//! Privacy loss distributions: ε and δ of anything for which a dominating pair is known, as an interval.
//!
//! An event becomes one list of [`law::Law`]s per direction (record there, record not there). Each law is laid on a grid
//! from above and from below ([`grid`]), the grids are composed with an account of every error ([`compose`]), and the step of the
//! grid is refined until the two answers are as close as asked. What remains is then a theorem: `lower ≤ truth ≤ upper`.

mod compose;
mod factors;
mod grid;
mod law;
mod sketch;

use compose::{Composed, Side, Target, compose};
pub(crate) use factors::{Direction, directions, fixed_size_rate};
pub(crate) use grid::Masses;
use grid::{Grid, OnGrid};
pub(crate) use law::Law;
use sketch::Saddle;
pub(crate) use sketch::Sketch;

use super::Bound;
use crate::{
    Error, Event, Neighbors,
    special::{bisect_smallest, ln_gaussian_delta},
    units::Delta,
};

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
        let delta = delta.get();
        self.largest(
            event,
            neighbors,
            |direction| {
                if let Some(law) = direction.single() {
                    return Start::Exact(exact_epsilon(law, delta));
                }
                let sketch = Sketch::new(&direction.factors);
                let saddle = sketch.saddle_for_delta(delta);
                Start::Tilted(sketch, saddle)
            },
            &Question::Epsilon { delta },
        )
    }

    /// The least δ for which the event is (ε, δ)-DP.
    pub fn delta(&self, event: &Event, neighbors: Neighbors, epsilon: f64) -> Result<Bound, Error> {
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return Err(Error::OutOfRange { what: "epsilon", value: epsilon, range: "[0, inf)" });
        }
        self.largest(
            event,
            neighbors,
            |direction| {
                if let Some(law) = direction.single() {
                    return Start::Exact(exact_delta(law, epsilon));
                }
                let sketch = Sketch::new(&direction.factors);
                let saddle = sketch.saddle_for_epsilon(epsilon);
                Start::Tilted(sketch, saddle)
            },
            &Question::Delta { epsilon },
        )
    }

    /// The larger answer of the two directions; the second is only worked out where it might be the larger.
    fn largest(
        &self,
        event: &Event,
        neighbors: Neighbors,
        start: impl Fn(&Direction) -> Start,
        question: &Question,
    ) -> Result<Bound, Error> {
        let directions = directions(event, neighbors)?;
        if directions.iter().any(|d| d.non_private) {
            return Ok(question.worst());
        }
        let mut starts: Vec<(Start, &Direction)> = directions.iter().map(|d| (start(d), d)).collect();
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

/// How to start on one direction: with the exact answer, or with a tilt.
enum Start {
    Exact(Bound),
    Tilted(Sketch, Saddle),
}

impl Start {
    fn guess(&self) -> f64 {
        match self {
            Self::Exact(bound) => bound.upper,
            Self::Tilted(_, saddle) => saddle.value,
        }
    }
}

/// What is asked of a composition.
enum Question {
    Epsilon { delta: f64 },
    Delta { epsilon: f64 },
}

impl Question {
    fn ask(&self, composed: &Composed, side: Side) -> f64 {
        match self {
            Self::Epsilon { delta } => composed.epsilon(side, *delta),
            Self::Delta { epsilon } => composed.delta(side, *epsilon),
        }
    }

    /// The answer for an event without any guarantee.
    fn worst(&self) -> Bound {
        let worst = self.worst_bracket().upper;
        Bound { lower: worst, upper: worst }
    }

    fn worst_bracket(&self) -> Bound {
        Bound { lower: 0.0, upper: if matches!(self, Self::Epsilon { .. }) { f64::INFINITY } else { 1.0 } }
    }

    fn tolerance(&self, pld: &Pld, upper: f64) -> f64 {
        match self {
            Self::Epsilon { .. } => (pld.relative * upper).max(pld.absolute),
            Self::Delta { .. } => (pld.relative * upper).max(1e-300),
        }
    }

    /// A step at which the bracket should be two thirds as wide as asked.
    fn first_step(&self, pld: &Pld, sketch: &Sketch, saddle: Saddle) -> f64 {
        let gap = match self {
            Self::Epsilon { .. } => self.tolerance(pld, 0.85 * saddle.value.max(0.0)),
            Self::Delta { .. } => pld.relative / saddle.theta.max(1e-3),
        };
        sketch.step_for(0.7 * gap, saddle.theta).min(saddle.deviation.max(1e-9) / 4.0)
    }

    /// Where the answer probably lies, before anything is known but the sketch.
    fn first_target(&self, saddle: Saddle) -> Target {
        match self {
            Self::Epsilon { delta } => Target { epsilon: 0.8 * saddle.value.max(0.0), ln_delta: delta.ln() },
            Self::Delta { epsilon } => Target { epsilon: *epsilon, ln_delta: saddle.value.min(0.0) - 3.0 },
        }
    }

    /// Where the answer lies, given a bracket of it.
    fn target(&self, bound: Bound) -> Target {
        match self {
            Self::Epsilon { delta } => Target { epsilon: bound.lower, ln_delta: delta.ln() },
            Self::Delta { epsilon } => Target { epsilon: *epsilon, ln_delta: bound.lower.max(bound.upper * 1e-9).ln() },
        }
    }

    /// The share of the tilted mass that decides the answer: δ over what undoing the tilt makes of a mass of one at ε.
    fn relevant(&self, saddle: Saddle, target: Target) -> f64 {
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
    fn negligible(&self, saddle: Saddle) -> f64 {
        1e-5 * match self {
            Self::Epsilon { delta } => *delta,
            Self::Delta { .. } => saddle.value.min(0.0).exp() * 0.01,
        }
    }
}

/// δ(ε) = P[L > ε] - e^ε Q[L > ε] of a single pair.
pub(crate) fn exact_delta(law: &Law, epsilon: f64) -> Bound {
    if let Law::Gaussian { mu } = law {
        let delta = ln_gaussian_delta(*mu, epsilon).exp();
        return Bound { lower: delta * (1.0 - 1e-11), upper: (delta * (1.0 + 1e-11) + f64::MIN_POSITIVE).min(1.0) };
    }
    let tails = law.tails(epsilon);
    let (p, q) = (tails.p.above, (epsilon + tails.q.above.ln()).exp());
    // The threshold itself may be off by a few units in its last place, which moves the loss by as much.
    let error = law::TAIL_ERROR * (p + q) * (1.0 + epsilon);
    Bound { lower: (p - q - error).max(0.0), upper: (p - q + error).clamp(0.0, 1.0) }
}

/// The least ε ≥ 0 with δ(ε) ≤ δ of a single pair.
pub(crate) fn exact_epsilon(law: &Law, delta: f64) -> Bound {
    if law.infinite() > delta {
        return Bound { lower: f64::INFINITY, upper: f64::INFINITY };
    }
    let solve = |side: &dyn Fn(Bound) -> f64| {
        let fits = |epsilon: f64| side(exact_delta(law, epsilon)) <= delta;
        if fits(0.0) {
            return 0.0;
        }
        let mut far = 1.0;
        while !fits(far) && far < 1e15 {
            far *= 2.0;
        }
        if far >= 1e15 {
            return f64::INFINITY;
        }
        bisect_smallest(0.0, far, 80, fits)
    };
    let upper = solve(&|b| b.upper);
    // The step of the bisection is below one part in 1e15, so one more is a lower bound.
    let lower = solve(&|b| b.lower) * (1.0 - 1e-14);
    Bound { lower: lower.min(upper), upper }
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

/// Grids of about `cells` cells that dominate laws of bounded loss, and their step; `None` if there are far too many.
pub(crate) fn upper_masses(laws: &[Law], cells: usize) -> Option<(Vec<Masses>, f64)> {
    let ranges: Vec<(f64, f64)> = laws.iter().map(|law| law.range(0.0, 0.0)).collect();
    let widest = ranges.iter().map(|(low, high)| high - low).fold(0.0, f64::max);
    let h = widest.max(1e-12) / cells as f64;
    // A steep tilt keeps all nodes.
    let lay = |(law, (low, high)): (&Law, (f64, f64))| {
        OnGrid::new(law, Grid { h, low, high, theta: 1e9, relevant: 0.0 }).map(|grid| grid.upper())
    };
    let masses: Option<Vec<Masses>> = laws.iter().zip(ranges).map(lay).collect();
    Some((masses?, h))
}
