//! Polls: the noisy winner of each question, where enough voters agree.

use super::{
    Votes,
    noisy_max::{Rule, drawn, laplace_event, winner},
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Noise, Sampling, Sealed, unit_event},
    noise::{
        random::Key,
        rounded::{self, DISTANCE},
    },
    number::format_brief,
    units::{NoiseMultiplier, SamplingRate},
};

/// Whose ballots are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Voters {
    /// Models trained on disjoint parts of the records, with one ballot each.
    ///
    /// A record affects one ballot.
    Teachers,
    /// The k records nearest to a question, within a Poisson sample.
    ///
    /// Each question has its own sample. k is fixed.
    Nearest {
        /// Probability that a record enters a sample.
        rate: SamplingRate,
    },
}

/// A question is answered only if its largest noisy count reaches a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Screening {
    /// The threshold for the noisy largest count.
    pub threshold: i64,
    /// Standard deviation of the Gaussian noise on the largest count.
    pub deviation: NoiseMultiplier,
}

/// A fixed number of questions and of answers to them. [PSMRTE18, ZYCW20]
///
/// A plan may hold several polls, one after the other. A later poll may use what an earlier poll left over
/// ([`Polling::add`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poll {
    /// Number of candidates.
    pub candidates: usize,
    /// Whose ballots are counted.
    pub voters: Voters,
    /// Selects the questions that are answered; `None` answers all of them.
    pub screening: Option<Screening>,
    /// How the winner is computed.
    pub rule: Rule,
    /// Number of questions that may be screened. Without screening they cost nothing.
    pub questions: u32,
    /// Number of questions that may be answered.
    pub answers: u32,
}

impl Poll {
    /// The largest contribution of a record to the largest count.
    ///
    /// It depends on the neighbour relation.
    ///
    /// The contribution to the vector of counts is √2 times this number.
    fn contribution(&self, neighbors: Neighbors) -> f64 {
        match self.voters {
            // Under replacement a contribution is half of what a replacement moves.
            Voters::Teachers => 1.0 / neighbors.reach(),
            // The difference between a sample with the record and a sample without it.
            Voters::Nearest { .. } => 1.0,
        }
    }

    /// The event on the records that take part in the sample.
    fn sampled(&self, event: Event) -> Event {
        match self.voters {
            Voters::Teachers => event,
            Voters::Nearest { rate } => Sampling::Poisson { rate }.event(event),
        }
    }

    fn answer_event(&self, neighbors: Neighbors) -> Event {
        match self.rule {
            Rule::Gaussian(deviation) => {
                gaussian(deviation, std::f64::consts::SQRT_2 * self.contribution(neighbors))
            }
            Rule::Laplace(scale) => laplace_event(scale, Neighbors::Replace),
            Rule::Exponential(epsilon) | Rule::PermuteAndFlip(epsilon) => Event::Pure { epsilon },
        }
    }
}

/// The event of Gaussian noise on a statistic that moves by `moves` votes.
///
/// Every vote is a whole number of grid steps.
pub(super) fn gaussian(deviation: NoiseMultiplier, moves: f64) -> Event {
    unit_event(NoiseMultiplier::new(drawn(deviation) / moves * (1.0 - 1e-15)), Event::gaussian)
}

impl Sealed for Poll {}

impl Mechanism for Poll {
    /// # Theorem
    /// (THEORY, Polls) Whether a record is added, removed or replaced,
    /// - with teachers, one ballot changes: two counts move by one, and the largest count moves by at most
    ///   one;
    /// - with the k nearest within a sample that holds the record or another record in its place, all of the
    ///   k but one are the same, so the counts move likewise.
    ///
    /// The screenings and the answers are two interactive mechanisms, in which each question is a fresh
    /// release. The analyst may choose which mechanism to query next from everything released so far. By
    /// concurrent composition the cost is that of running both one after the other [VZ23].
    fn event(&self, neighbors: Neighbors) -> Event {
        if self.check(neighbors).is_err() {
            return Event::NonPrivate;
        }
        let answers = self.sampled(self.answer_event(neighbors)).repeated(self.answers.into());
        match self.screening {
            None => answers,
            Some(Screening { deviation, .. }) => {
                let screening = gaussian(deviation, self.contribution(neighbors));
                let screenings = self.sampled(screening).repeated(self.questions.into());
                Event::Composed(vec![screenings, answers])
            }
        }
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        if self.answers == 0 || self.questions < self.answers {
            return Err(Error::OutOfRange {
                what: "answers",
                value: self.answers.into(),
                range: "[1, questions]",
            });
        }
        if self.candidates < 2 {
            return Err(Error::OutOfRange {
                what: "candidates",
                value: self.candidates as f64,
                range: "[2, 2^53)",
            });
        }
        match (self.voters, self.rule) {
            (Voters::Teachers, _) | (Voters::Nearest { .. }, Rule::Gaussian(_)) => Ok(()),
            (Voters::Nearest { .. }, _) => Err(Error::Unfit {
                what: "a poll of the nearest in a sample",
                because: "it needs Gaussian noise on the counts, as the Gaussian rules have",
            }),
        }
    }

    fn distance(&self) -> f64 {
        let numbers = match self.rule {
            Rule::Gaussian(_) => self.candidates as f64,
            Rule::Laplace(_) | Rule::Exponential(_) | Rule::PermuteAndFlip(_) => 0.0,
        };
        let screenings = self.screening.map_or(0.0, |_| f64::from(self.questions));
        (numbers * f64::from(self.answers) + screenings) * DISTANCE
    }
}

impl std::fmt::Display for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { candidates, voters, screening, rule, questions, answers } = self;
        let plural = if *answers == 1 { "" } else { "s" };
        write!(f, "{answers} answer{plural} by votes of ")?;
        match voters {
            Voters::Teachers => f.write_str("teachers")?,
            Voters::Nearest { rate } => {
                write!(f, "the nearest records in Poisson samples of rate {}", format_brief(rate.get()))?;
            }
        }
        write!(f, " for {candidates} candidates with {rule}")?;
        if let Some(Screening { threshold, deviation }) = screening {
            let deviation = format_brief(deviation.get());
            write!(
                f,
                "; of {questions} questions, only those are answered whose largest count reaches {threshold} with Gaussian noise of standard deviation {deviation}"
            )?;
        }
        Ok(())
    }
}

impl Paid<Poll> {
    /// Starts the poll.
    pub fn run(mut self) -> Result<Polling, Error> {
        let key = self.key()?;
        let Poll { questions, answers, .. } = self.mechanism;
        Ok(Polling {
            poll: self.mechanism,
            key,
            drawn: 0,
            questions: questions.into(),
            answers: answers.into(),
        })
    }
}

/// The outcome of one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The candidate with the most votes after noise.
    Winner(usize),
    /// Too few voters agreed.
    Refused,
    /// The paid questions or answers are used up. The votes were not read.
    Exhausted,
}

/// Computes the votes of the records on each question.
///
/// Whoever can find the nearest records implements it.
///
/// # Contract
/// The votes for a question depend only on the question and its sample. One more record in the sample adds at
/// most one ballot and removes at most one. [`laws`](crate::laws) checks this on small cases.
pub trait Electorate {
    /// The votes of each question's sample, whose records are in increasing order.
    fn tally(&mut self, questions: &[(usize, Vec<usize>)]) -> Vec<Votes>;
}

/// A running poll that answers questions until the paid number is used up.
pub struct Polling {
    poll: Poll,
    /// The key from which all other keys are derived …
    key: Key,
    /// … together with their number.
    drawn: u64,
    questions: u64,
    answers: u64,
}

impl Polling {
    /// Adds questions and answers of the same poll to those that are left.
    ///
    /// # Contract
    /// Returns an error and changes nothing if `more` is a different poll.
    pub fn add(&mut self, more: Paid<Poll>) -> Result<(), Error> {
        if more.mechanism != self.poll {
            return Err(Error::Unfit { what: "this poll", because: "another one is still running" });
        }
        let Self { questions, answers, .. } = more.run()?;
        (self.questions, self.answers) = (self.questions + questions, self.answers + answers);
        Ok(())
    }

    /// Whether the poll would still look at another question.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.answers > 0 && self.questions > 0
    }

    /// The number of answers left.
    #[must_use]
    pub fn answers_left(&self) -> u64 {
        self.answers
    }

    /// Asks the teachers one question.
    ///
    /// `expected` holds the counts that public information predicts. Screening then asks whether some count
    /// exceeds its prediction by the threshold. An empty slice predicts zero for every count.
    pub fn ask(&mut self, votes: &Votes, expected: &[i64]) -> Result<Answer, Error> {
        let teachers = self.poll.voters == Voters::Teachers;
        if !teachers || votes.counts.len() != self.poll.candidates {
            let value = votes.counts.len() as f64;
            return Err(Error::OutOfRange {
                what: "number of candidates",
                value,
                range: "what was paid for, of teachers",
            });
        }
        if !self.is_open() {
            return Ok(Answer::Exhausted);
        }
        self.questions -= 1;
        if self.screens_out(votes, expected) {
            return Ok(Answer::Refused);
        }
        self.elect(votes).map(Answer::Winner)
    }

    /// Asks the records nearest to each question, with fresh samples for each question.
    ///
    /// Questions that come after the paid number is used up stay unanswered.
    pub fn ask_nearest(
        &mut self,
        records: usize,
        questions: &[usize],
        electorate: &mut impl Electorate,
    ) -> Result<Vec<Answer>, Error> {
        let Voters::Nearest { rate } = self.poll.voters else {
            return Err(Error::Unfit {
                what: "a sample of records",
                because: "the poll that was charged has teachers as voters",
            });
        };
        let mut answers = vec![Answer::Exhausted; questions.len()];
        // With screening, at most the questions that may be screened; without, at most those that may be
        // answered.
        let most =
            if self.poll.screening.is_some() { self.questions } else { self.questions.min(self.answers) };
        let open = if self.answers == 0 { 0 } else { most.min(questions.len() as u64) as usize };
        let mut waiting: Vec<usize> = (0..open).collect();
        self.questions -= open as u64;
        if self.poll.screening.is_some() {
            let votes = self.tally(records, rate, &waiting, questions, electorate)?;
            waiting.retain(|&position| {
                let refused = self.screens_out(&votes[position], &[]);
                answers[position] = if refused { Answer::Refused } else { Answer::Exhausted };
                !refused
            });
            waiting.truncate(self.answers.min(usize::MAX as u64) as usize);
        }
        // The answer uses a fresh sample: using one sample for both releases would cost more than two
        // samples.
        let votes = self.tally(records, rate, &waiting, questions, electorate)?;
        for (position, votes) in waiting.into_iter().zip(&votes) {
            answers[position] = Answer::Winner(self.elect(votes)?);
        }
        Ok(answers)
    }

    /// Votes on some of the questions, each with a fresh sample.
    fn tally(
        &mut self,
        records: usize,
        rate: SamplingRate,
        positions: &[usize],
        questions: &[usize],
        electorate: &mut impl Electorate,
    ) -> Result<Vec<Votes>, Error> {
        let mut draw = |position: &usize| {
            (questions[*position], Sampling::Poisson { rate }.draw(records, &mut self.next_key().stream(0)))
        };
        let sampled: Vec<(usize, Vec<usize>)> = positions.iter().map(&mut draw).collect();
        let votes = electorate.tally(&sampled);
        let fits = votes.len() == positions.len()
            && votes.iter().all(|votes| votes.counts.len() == self.poll.candidates);
        // The number of tallies depends on the questions only, and those are public.
        if fits {
            Ok(votes)
        } else {
            Err(Error::OutOfRange {
                what: "number of tallies",
                value: votes.len() as f64,
                range: "one for each question",
            })
        }
    }

    fn next_key(&mut self) -> Key {
        self.drawn += 1;
        self.key.next(self.drawn)
    }

    /// Whether the largest count minus the expected count stays below the threshold after noise.
    fn screens_out(&mut self, votes: &Votes, expected: &[i64]) -> bool {
        let Some(Screening { threshold, deviation }) = self.poll.screening else { return false };
        let over =
            |(number, count): (usize, &i64)| count.saturating_sub(expected.get(number).copied().unwrap_or(0));
        let largest = votes.counts.iter().enumerate().map(over).max().unwrap_or(0);
        #[cfg(feature = "exact-statistics")]
        let largest = if crate::exact::withhold(&"screening", crate::exact::Norm::L1, (1.0, 1.0), || {
            vec![largest as f64]
        }) {
            0
        } else {
            largest
        };
        let steps = i128::from(rounded::steps_per_unit(deviation.get()));
        let noise = rounded::sample(Noise::Gaussian.shape(), &mut self.next_key().stream(0));
        (i128::from(largest) - i128::from(threshold)) * steps + i128::from(noise) < 0
    }

    fn elect(&mut self, votes: &Votes) -> Result<usize, Error> {
        self.answers -= 1;
        #[cfg(feature = "exact-statistics")]
        let votes = &votes.withheld();
        // Under every neighbour relation the change replaces one ballot.
        winner(votes, self.poll.rule, Neighbors::Replace, &self.next_key()).ok_or(Error::OutOfRange {
            what: "number of candidates",
            value: 0.0,
            range: "at least one",
        })
    }
}
