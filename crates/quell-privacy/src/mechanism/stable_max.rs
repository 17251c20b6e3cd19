//! Who has most votes, where no few ballots could change that: only the other questions are paid for.

use super::{AboveThreshold, Answer, GaussianSparseVector, Mechanism, Sealed, Sensitive, Votes};
use crate::{Error, Event, Neighbors, ledger::Paid, units::Scale};

/// The winners of many questions to teachers, without noise, as long as they are stable; stops after so many that are not. [BTT18]
///
/// Each teacher has one ballot, and a record touches one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StableMax {
    /// How many candidates there are.
    pub candidates: usize,
    /// Ballots that may change without changing the winner, more than which makes it stable.
    pub threshold: u32,
    /// After how many unstable questions to stop.
    pub unstable: u32,
    /// Most questions between two of them.
    pub questions: u32,
    /// Gaussian noise on the threshold and on what is compared with it.
    pub deviation: Scale,
}

impl StableMax {
    /// Asks whether a winner is unstable: minus the ballots that may change reaches minus the threshold.
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
    /// (THEORY, Stable winners) How many ballots may change moves by at most one if one does. Which questions are stable is then what the sparse vector technique
    /// tells, at its price; who wins a question that both neighbours find stable is the same for both.
    fn event(&self, neighbors: Neighbors) -> Event {
        self.vector().event(neighbors)
    }

    /// # Theorem
    /// (THEORY, Stable winners) The rest is the probability that noise takes a winner for stable that one ballot changes: for each question that of
    /// two independent noises differing by more than the threshold, at most e^(-t²/4σ²), since a discrete Gaussian is subgaussian [CKS20].
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
            "winners among {candidates} candidates that {threshold} teachers could not change, until {unstable} were unstable, at most {questions} questions each, with Gaussian noise of {}",
            crate::number::brief(deviation.get())
        )
    }
}

impl Paid<StableMax> {
    /// Opens the questions.
    pub fn run(mut self) -> Result<Stability, Error> {
        let stable = self.mechanism;
        let above = stable.vector().open(&self.key()?);
        Ok(Stability { candidates: stable.candidates, above })
    }
}

/// Questions that are being answered, until enough were unstable.
pub struct Stability {
    candidates: usize,
    above: AboveThreshold,
}

impl Stability {
    /// The winner if it is stable, and nothing else about the votes.
    pub fn ask(&mut self, votes: &Votes) -> Result<Answer, Error> {
        if votes.counts.len() != self.candidates {
            let value = votes.counts.len() as f64;
            return Err(Error::OutOfRange { what: "number of candidates", value, range: "what was paid for" });
        }
        let (first, changes) = stability(&votes.counts);
        #[cfg(feature = "exact-statistics")]
        let (first, changes) =
            if crate::exact::withhold(&"stability", crate::exact::Norm::L1, (1.0, 1.0), || vec![changes as f64]) {
                (0, 0)
            } else {
                (first, changes)
            };
        Ok(match self.above.ask(&Sensitive(-changes)) {
            None => Answer::Exhausted,
            Some(true) => Answer::Refused,
            Some(false) => Answer::Winner(first),
        })
    }
}

/// The first of those with most votes, and how many ballots may change, to anything, without changing that: fewer than half of its lead.
fn stability(counts: &[i64]) -> (usize, i64) {
    let first = (0..counts.len()).rev().max_by_key(|&i| counts[i]).unwrap_or(0);
    let second = (0..counts.len()).filter(|&i| i != first).map(|i| counts[i]).max().unwrap_or(0);
    let lead = counts.get(first).map_or(0, |count| count - second);
    (first, (lead - 1).max(0) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways to give so many ballots to three candidates.
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
                assert!(changes < nearest && changes + 1 >= nearest.min(ballots) - 1, "{counts:?}: {changes} of {nearest}");
            }
        }
    }

    #[test]
    fn how_many_ballots_may_change_moves_by_at_most_one_if_one_does() {
        for counts in histograms(12) {
            for (from, to) in (0..3).flat_map(|from| (0..3).map(move |to| (from, to))).filter(|(from, _)| counts[*from] > 0) {
                let mut other = counts;
                other[from] -= 1;
                other[to] += 1;
                assert!((stability(&counts).1 - stability(&other).1).abs() <= 1, "{counts:?} {other:?}");
            }
        }
    }
}
