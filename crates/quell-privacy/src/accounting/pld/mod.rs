//! Privacy loss distributions: intervals for ε and δ of events with known dominating pairs.
//!
//! An event becomes one list of [`law::Law`]s per direction: record removed, record added ([`events`]). Each
//! law is put on a grid, once from above and once from below ([`grid`]). The grids are composed with a bound
//! on every error ([`mod@compose`], [`composed`]). The step of the grid is refined until the two answers are
//! as close as requested ([`refinement`]). The result is then a theorem: `lower ≤ truth ≤ upper`.
//!
//! Here are the accountant and what [`refinement`] and [`profiles`] share.

mod atoms;
mod best_of;
mod compose;
mod composed;
mod composite;
mod contraction;
mod events;
mod exact;
mod finite;
mod grid;
mod law;
mod privacy_loss;
mod profiles;
mod question;
mod refinement;
mod spectrum;
mod tails;

use compose::compose;
pub(super) use compose::{STEEPEST, Target};
pub(super) use composed::Composed;
pub(crate) use events::{fixed_size_rate, one_law_each_way, privacy_losses};
pub(crate) use exact::{exact_delta, exact_epsilon, gaussian_epsilon};
use grid::{Grid, OnGrid};
pub(crate) use grid::{Masses, upper_masses};
pub(crate) use law::{Law, sampled_loss};
pub(crate) use privacy_loss::PrivacyLoss;
pub(crate) use profiles::Profiles;
pub(super) use question::{NEGLIGIBLE, Question, steps};
use refinement::Refined;

use super::{Bound, search::Tilt};
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

    /// The interval at the requested precision.
    ///
    /// Where that is not reached, it is intersected with the interval at the default precision.
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
        // If the upper bound of a direction is at most this, the direction cannot change the answer.
        let mut irrelevant_below = 0.0;
        let mut h = None;
        for (_, exact, loss) in starts {
            // A coarse grid often shows that this direction is the smaller one.
            if exact.is_none()
                && h.is_some_and(|h| self.is_smaller(loss, question, answer, irrelevant_below, 4.0 * h))
            {
                answer = self.with_lower_from(loss, question, answer, h);
                continue;
            }
            let refined = match exact {
                Some(bound) => Refined { bound, target: question.target_at(bound), h: None, settled: true },
                None => self.refine(&loss.factors, question, irrelevant_below),
            };
            if exact.is_none() && refined.bound.upper <= irrelevant_below {
                answer = self.with_lower_from(loss, question, answer, h);
                continue;
            }
            let mut bound = refined.bound;
            // The exact answer of a single law already includes this lower bound.
            if loss.single().is_none()
                && let Some(alternatives) = loss.attained()
            {
                let attained = alternatives.iter().map(|factors| self.attained(factors, question, refined));
                bound = question.consistent(Bound { lower: attained.fold(0.0, f64::max), ..bound });
            }
            answer = answer.max(bound);
            // If the bracket is wide, the other direction may have a better lower end.
            irrelevant_below =
                if self.is_narrow(question, refined.bound) { answer.upper } else { answer.lower };
            h = refined.h;
        }
        Ok(answer)
    }

    /// An answer whose lower end is raised by what another direction attains.
    ///
    /// That direction does not matter for the upper end.
    fn with_lower_from(
        &self,
        loss: &PrivacyLoss,
        question: &Question,
        answer: Bound,
        h: Option<f64>,
    ) -> Bound {
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

    /// Whether a grid of step `h` shows that this direction costs at most `irrelevant_below`.
    ///
    /// `answer` is the approximate answer.
    fn is_smaller(
        &self,
        loss: &PrivacyLoss,
        question: &Question,
        answer: Bound,
        irrelevant_below: f64,
        h: f64,
    ) -> bool {
        self.upper_once(loss, question, answer, h).is_some_and(|upper| upper <= irrelevant_below)
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
