//! Questions put to voters: who has most votes, after noise, where enough of them agree.

use super::{
    Mechanism, Noise, Sampling, Sealed, Votes,
    noisy_max::{Rule, drawn, laplace_event, winner},
    unit_event,
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{
        random::Key,
        rounded::{self, DISTANCE},
    },
    number::brief,
    units::{NoiseMultiplier, SamplingRate},
};

/// Whose ballots are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Voters {
    /// Models that learned from disjoint parts of the records, with one ballot each. A record touches one ballot.
    Teachers,
    /// The records nearest to a question, a fixed number of them, within a sample that is drawn for it alone.
    Nearest {
        /// Probability that a record enters a sample.
        rate: SamplingRate,
    },
}

/// Answer only where the largest count, with noise, reaches a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Screening {
    /// What the largest count must reach.
    pub threshold: i64,
    /// Standard deviation of the Gaussian noise on the largest count.
    pub deviation: NoiseMultiplier,
}

/// So many questions, and so many answers to them. [PSMRTE18, ZYCW20]
///
/// Several of them, one after the other, make a plan; what one leaves over the next may use ([`Polling::add`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poll {
    /// How many candidates there are.
    pub candidates: usize,
    /// Whose ballots are counted.
    pub voters: Voters,
    /// Which questions are answered; all, if there is none.
    pub screening: Option<Screening>,
    /// How the winner is found.
    pub rule: Rule,
    /// How many questions may be screened; nothing is charged for it where there is no screening.
    pub questions: u32,
    /// How many may be answered.
    pub answers: u32,
}

impl Poll {
    /// The largest contribution of a record to the largest count, as the relation in force counts it; that to the counts is √2 of these.
    fn contribution(&self, neighbors: Neighbors) -> f64 {
        match self.voters {
            // A contribution is half of what an exchange moves.
            Voters::Teachers => 1.0 / neighbors.reach(),
            // What a sample with the record has against one without.
            Voters::Nearest { .. } => 1.0,
        }
    }

    /// On the records that take part.
    fn sampled(&self, event: Event) -> Event {
        match self.voters {
            Voters::Teachers => event,
            Voters::Nearest { rate } => Sampling::Poisson { rate }.event(event),
        }
    }

    fn answer_event(&self, neighbors: Neighbors) -> Event {
        match self.rule {
            Rule::Gaussian(deviation) => gaussian(deviation, std::f64::consts::SQRT_2 * self.contribution(neighbors)),
            Rule::Laplace(scale) => laplace_event(scale, Neighbors::Replace),
            Rule::Exponential(epsilon) | Rule::PermuteAndFlip(epsilon) => Event::Pure { epsilon },
        }
    }
}

/// Of noise on whole numbers of votes, each a whole number of grid steps.
pub(super) fn gaussian(deviation: NoiseMultiplier, moves: f64) -> Event {
    unit_event(NoiseMultiplier::new(drawn(deviation) / moves * (1.0 - 1e-15)), Event::gaussian)
}

impl Sealed for Poll {}

impl Mechanism for Poll {
    /// # Theorem
    /// (THEORY, Polls) Whether a record comes, goes or is exchanged,
    /// - of teachers, one ballot changes: two counts move by one, the largest count by at most one;
    /// - of the k nearest within a sample that holds the record or another in its place, all but one are the same: likewise.
    ///
    /// The screenings and the answers are two interactive mechanisms, of which each question is a fresh release. Whoever asks may choose
    /// which to turn to next by all that was said: by concurrent composition the cost is that of both one after the other [VZ23].
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
            return Err(Error::OutOfRange { what: "answers", value: self.answers.into(), range: "[1, questions]" });
        }
        if self.candidates < 2 {
            return Err(Error::OutOfRange { what: "candidates", value: self.candidates as f64, range: "[2, 2^53)" });
        }
        match (self.voters, self.rule) {
            (Voters::Teachers, _) | (Voters::Nearest { .. }, Rule::Gaussian(_)) => Ok(()),
            (Voters::Nearest { .. }, _) => Err(Error::Unfit {
                what: "a poll of the nearest in a sample",
                because: "it takes Gaussian noise on the counts; hint: name a Gaussian rule",
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
        write!(f, "{answers} answers of ")?;
        match voters {
            Voters::Teachers => f.write_str("teachers")?,
            Voters::Nearest { rate } => write!(f, "the nearest in Poisson samples of rate {}", brief(rate.get()))?,
        }
        write!(f, " among {candidates} candidates with {rule}")?;
        if let Some(Screening { threshold, deviation }) = screening {
            let deviation = brief(deviation.get());
            write!(
                f,
                ", to those of {questions} questions whose largest count reaches {threshold} with Gaussian noise of standard deviation {deviation}"
            )?;
        }
        Ok(())
    }
}

impl Paid<Poll> {
    /// Opens the questions.
    pub fn run(mut self) -> Result<Polling, Error> {
        let key = self.key()?;
        let Poll { questions, answers, .. } = self.mechanism;
        Ok(Polling { poll: self.mechanism, key, drawn: 0, questions: questions.into(), answers: answers.into() })
    }
}

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The candidate with most votes, after noise.
    Winner(usize),
    /// Too few agreed.
    Refused,
    /// What was paid for is used up. Nothing was looked at.
    Exhausted,
}

/// How the records vote on a question, held by someone who can find the nearest of them.
///
/// # Contract
/// The votes for a question follow from the question and its sample alone; one record more in the sample adds at most one ballot and takes at most one
/// away. [`laws`](crate::laws) checks it on small cases.
pub trait Electorate {
    /// The votes on each of the questions, by the records of its own sample, which are in increasing order.
    fn tally(&mut self, questions: &[(usize, Vec<usize>)]) -> Vec<Votes>;
}

/// Questions that are being answered, until what was paid for is used up.
pub struct Polling {
    poll: Poll,
    /// All keys follow from this one …
    key: Key,
    /// … and from their number.
    drawn: u64,
    questions: u64,
    answers: u64,
}

impl Polling {
    /// More of the same: what is left of the old is not lost.
    ///
    /// # Contract
    /// An error if it is not the same poll; nothing changes then.
    pub fn add(&mut self, more: Paid<Poll>) -> Result<(), Error> {
        if more.mechanism != self.poll {
            return Err(Error::Unfit { what: "this poll", because: "another one is under way" });
        }
        let Self { questions, answers, .. } = more.run()?;
        (self.questions, self.answers) = (self.questions + questions, self.answers + answers);
        Ok(())
    }

    /// Whether another question would be looked at.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.answers > 0 && self.questions > 0
    }

    /// Answers that are left.
    #[must_use]
    pub fn answers_left(&self) -> u64 {
        self.answers
    }

    /// Puts a question to teachers.
    ///
    /// `expected` is what the counts are thought to be, by what is public; screening then asks whether some count exceeds that by the threshold.
    /// An empty slice expects nothing.
    pub fn ask(&mut self, votes: &Votes, expected: &[i64]) -> Result<Answer, Error> {
        let teachers = self.poll.voters == Voters::Teachers;
        if !teachers || votes.counts.len() != self.poll.candidates {
            let value = votes.counts.len() as f64;
            return Err(Error::OutOfRange { what: "number of candidates", value, range: "what was paid for, of teachers" });
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

    /// Puts questions to the records nearest to them, each to its own samples. Those that come after everything is used up stay unanswered.
    pub fn ask_nearest(
        &mut self,
        records: usize,
        questions: &[usize],
        electorate: &mut impl Electorate,
    ) -> Result<Vec<Answer>, Error> {
        let Voters::Nearest { rate } = self.poll.voters else {
            return Err(Error::Unfit { what: "a sample of records", because: "the poll that was paid for is one of teachers" });
        };
        let mut answers = vec![Answer::Exhausted; questions.len()];
        // With screening, no more than may be screened; without, no more than may be answered.
        let most = if self.poll.screening.is_some() { self.questions } else { self.questions.min(self.answers) };
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
        // The answer comes from a sample of its own: a sample that was looked at twice would cost more than two.
        let votes = self.tally(records, rate, &waiting, questions, electorate)?;
        for (position, votes) in waiting.into_iter().zip(&votes) {
            answers[position] = Answer::Winner(self.elect(votes)?);
        }
        Ok(answers)
    }

    /// Votes on some of the questions, by samples drawn now.
    fn tally(
        &mut self,
        records: usize,
        rate: SamplingRate,
        positions: &[usize],
        questions: &[usize],
        electorate: &mut impl Electorate,
    ) -> Result<Vec<Votes>, Error> {
        let mut draw =
            |position: &usize| (questions[*position], Sampling::Poisson { rate }.draw(records, &mut self.next_key().stream(0)));
        let sampled: Vec<(usize, Vec<usize>)> = positions.iter().map(&mut draw).collect();
        let votes = electorate.tally(&sampled);
        let fits = votes.len() == positions.len() && votes.iter().all(|votes| votes.counts.len() == self.poll.candidates);
        // How many votes come back follows from the questions, which are public.
        if fits {
            Ok(votes)
        } else {
            Err(Error::OutOfRange { what: "number of tallies", value: votes.len() as f64, range: "one for each question" })
        }
    }

    fn next_key(&mut self) -> Key {
        self.drawn += 1;
        self.key.next(self.drawn)
    }

    /// Whether the largest count, less what was expected, stays below the threshold, with noise.
    fn screens_out(&mut self, votes: &Votes, expected: &[i64]) -> bool {
        let Some(Screening { threshold, deviation }) = self.poll.screening else { return false };
        let over = |(number, count): (usize, &i64)| count.saturating_sub(expected.get(number).copied().unwrap_or(0));
        let largest = votes.counts.iter().enumerate().map(over).max().unwrap_or(0);
        #[cfg(feature = "exact-statistics")]
        let largest = if crate::exact::withhold(&"screening", crate::exact::Norm::L1, (1.0, 1.0), || vec![largest as f64]) {
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
        // Whatever the change, a ballot is exchanged.
        winner(votes, self.poll.rule, Neighbors::Replace, &self.next_key()).ok_or(Error::OutOfRange {
            what: "number of candidates",
            value: 0.0,
            range: "at least one",
        })
    }
}
