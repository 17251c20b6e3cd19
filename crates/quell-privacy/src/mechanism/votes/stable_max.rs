//! Exact winners where a few ballots could not change them; only unstable questions are charged.

use super::{Answer, Votes};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{AboveThreshold, GaussianSparseVector, Mechanism, Sealed, Sensitive},
    units::Scale,
};

/// Winners of many questions to teachers, without noise while they are stable. [BTT18]
///
/// The mechanism stops after a fixed number of unstable questions. Each teacher has one ballot, and a record
/// affects one ballot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StableMax {
    /// Number of candidates.
    pub candidates: usize,
    /// A winner is stable if more ballots than this may change without changing the winner.
    pub threshold: u32,
    /// Number of unstable questions after which the mechanism stops.
    pub unstable: u32,
    /// Most questions between two unstable questions.
    pub questions: u32,
    /// Gaussian noise on the threshold and on the number that is compared with it.
    pub deviation: Scale,
}

impl StableMax {
    /// The sparse vector that asks whether a winner is unstable.
    ///
    /// A winner is unstable if minus the number of ballots that may change reaches minus the threshold.
    fn vector(&self) -> GaussianSparseVector {
        GaussianSparseVector {
            threshold: -i64::from(self.threshold),
            positives: self.unstable,
            questions: self.questions,
            on_threshold: self.deviation,
            on_counts: self.deviation,
        }
    }
}

impl Sealed for StableMax {}

impl Mechanism for StableMax {
    /// # Theorem
    /// (THEORY, Stable winners) If one ballot changes, the number of ballots that may change moves by at most
    /// one. The sparse vector technique therefore reveals which questions are stable, at its usual cost. If
    /// both neighbours find a question stable, both have the same winner.
    fn event(&self, neighbors: Neighbors) -> Event {
        self.vector().event(neighbors)
    }

    /// # Theorem
    /// (THEORY, Stable winners) The remainder is the probability that noise makes a winner look stable
    /// although one ballot changes it. For each question this is the probability that two independent noises
    /// differ by more than the threshold t: at most e^(-(t+1)²/4σ²), since a discrete Gaussian is subgaussian
    /// [CKS20].
    fn distance(&self) -> f64 {
        let (t, sigma) = (f64::from(self.threshold) + 1.0, self.deviation.get() * (1.0 + 1e-6));
        let asked = f64::from(self.questions) * f64::from(self.unstable);
        asked * (-t * t / (4.0 * sigma * sigma)).exp() * (1.0 + 1e-9)
    }
}

impl std::fmt::Display for StableMax {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { candidates, threshold, unstable, questions, deviation } = self;
        write!(
            f,
            "winners among {candidates} candidates that a change of {threshold} ballots does not replace; at most {unstable} unstable questions, at most {questions} questions before each of them, with Gaussian noise of standard deviation {}",
            crate::number::format_brief(deviation.get())
        )
    }
}

impl Paid<StableMax> {
    /// Starts answering questions.
    pub fn run(mut self) -> Result<Stability, Error> {
        let stable = self.mechanism;
        let above = stable.vector().open(&self.key()?);
        Ok(Stability { stable, above })
    }
}

/// Answers questions until the allowed number of them was unstable.
pub struct Stability {
    stable: StableMax,
    above: AboveThreshold,
}

impl Stability {
    /// Returns the winner if it is stable, and nothing else about the votes.
    pub fn ask(&mut self, votes: &Votes) -> Result<Answer, Error> {
        if votes.counts.len() != self.stable.candidates {
            let value = votes.counts.len() as f64;
            return Err(Error::OutOfRange {
                what: "number of candidates",
                value,
                range: "what was paid for",
            });
        }
        let (first, changes) = stability(&votes.counts);
        #[cfg(feature = "exact-statistics")]
        let (first, changes) = self.withheld(first, changes);
        Ok(match self.above.ask(&Sensitive(-changes)) {
            None => Answer::Exhausted,
            Some(true) => Answer::Refused,
            Some(false) => Answer::Winner(first),
        })
    }
}

#[cfg(feature = "exact-statistics")]
impl Stability {
    /// Returns the first candidate and the threshold if a test watches the winner.
    ///
    /// The watched vector has the number of ballots that may change, plus one half, on the axis of the
    /// winner. One changed ballot moves this vector by at most one: either along the axis or, where no ballot
    /// may change, from this axis to that of another winner.
    fn withheld(&self, first: usize, changes: i64) -> (usize, i64) {
        use crate::exact::{Norm, withhold};
        let on_axis = |candidate: usize| if candidate == first { changes as f64 + 0.5 } else { 0.0 };
        let values = || (0..self.stable.candidates).map(on_axis).collect();
        if withhold(&"stability", Norm::L1, (1.0, 1.0), values) {
            (0, self.stable.threshold.into())
        } else {
            (first, changes)
        }
    }
}

/// The first candidate with the most votes, and its margin in ballots.
///
/// So many ballots may change to anything without changing the winner. Their number is less than half of the
/// winner's lead.
fn stability(counts: &[i64]) -> (usize, i64) {
    let first = (0..counts.len()).rev().max_by_key(|&i| counts[i]).unwrap_or(0);
    let second = (0..counts.len()).filter(|&i| i != first).map(|i| counts[i]).max().unwrap_or(0);
    let lead = counts.get(first).map_or(0, |count| count - second);
    (first, (lead - 1).max(0) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways to give `ballots` ballots to three candidates.
    fn histograms(ballots: i64) -> impl Iterator<Item = [i64; 3]> {
        (0..=ballots).flat_map(move |a| (0..=ballots - a).map(move |b| [a, b, ballots - a - b]))
    }

    #[test]
    fn as_many_ballots_as_said_and_no_more_may_change_without_changing_the_winner() {
        let apart = |a: &[i64; 3], b: &[i64; 3]| a.iter().zip(b).map(|(a, b)| (a - b).max(0)).sum::<i64>();
        for ballots in 1..=9 {
            for counts in histograms(ballots) {
                let (winner, changes) = stability(&counts);
                let nearest = histograms(ballots)
                    .filter(|other| stability(other).0 != winner)
                    .map(|other| apart(&counts, &other))
                    .min()
                    .unwrap_or(i64::MAX);
                assert!(
                    changes < nearest && changes + 1 >= nearest.min(ballots) - 1,
                    "{counts:?}: {changes} of {nearest}"
                );
            }
        }
    }

    #[test]
    fn how_many_ballots_may_change_moves_by_at_most_one_if_one_does() {
        for counts in histograms(12) {
            for (from, to) in
                (0..3).flat_map(|from| (0..3).map(move |to| (from, to))).filter(|(from, _)| counts[*from] > 0)
            {
                let mut other = counts;
                other[from] -= 1;
                other[to] += 1;
                assert!((stability(&counts).1 - stability(&other).1).abs() <= 1, "{counts:?} {other:?}");
            }
        }
    }
}
