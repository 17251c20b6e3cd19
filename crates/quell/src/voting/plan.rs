//! The plan of a vote: what is asked, with which noise, at which cost.

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Conversion, Pld, Renyi, distance},
    ledger::{Book, Ledger, Unit},
    mechanism::{Answer, Mechanism, Poll, StableMax, Survey, Voters},
    units::Delta,
};

use super::pate::Ballots;
use crate::{Error, terms};

/// A function that computes the ε of an event at any δ.
type EpsilonAtDelta<'a> = dyn Fn(Delta) -> Result<Bound, quell_privacy::Error> + 'a;

/// The public facts about a vote: classes, kind of voters, ballots and questions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VoteFacts {
    /// The number of classes.
    pub candidates: usize,
    /// The kind of voters.
    pub voters: Voters,
    /// The number of ballots on each question.
    pub ballots: u32,
    /// The number of questions.
    pub questions: u32,
}

/// The plan of a vote, fixed before the first ballot is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The mechanism that is paid for.
    pub aggregation: Aggregation,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// δ of the guarantee.
    pub delta: Delta,
    /// ε of the plan, as an interval.
    pub epsilon: Bound,
}

impl Plan {
    /// Pays for all answers and asks the questions in their order.
    /// Returns one answer for each question; `None` is a refused answer.
    ///
    /// The ballots and the answers are in memory. [`External`](crate::run::labels::External) keeps its
    /// answers in a folder.
    ///
    /// # Contract
    /// One `unit`, a record or a user, influences the ballots of one teacher only.
    pub fn answer<B: Book>(
        &self,
        ballots: &Ballots,
        unit: Unit,
        ledger: &mut Ledger<B>,
    ) -> Result<Vec<Option<usize>>, Error> {
        let Aggregation::Polls(poll, rounds) = self.aggregation else {
            return Err(Error::Setting {
                name: "aggregator",
                found: if let Aggregation::Stable(_) = self.aggregation { "stable" } else { "a survey" }
                    .into(),
                expected: "an aggregator with polls",
            });
        };
        terms::check(ledger, unit, self.neighbors)?;
        let mut answers = Vec::new();
        for paid in ledger.reserve(poll, rounds)? {
            let mut polling = paid?.run()?;
            while polling.is_open() && answers.len() < ballots.questions() {
                match polling.ask(&ballots.votes(answers.len()), &[])? {
                    Answer::Winner(class) => answers.push(Some(class)),
                    Answer::Refused => answers.push(None),
                    Answer::Exhausted => break,
                }
            }
        }
        Ok(answers)
    }
}

/// The mechanism that the ledger is charged for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregation {
    /// A poll about classes, and the number of its rounds.
    Polls(Poll, u64),
    /// Exact winners of the questions whose winner is stable.
    Stable(StableMax),
    /// A survey about labels or numbers, and the number of its rounds.
    Surveys(Survey, u64),
}

impl Aggregation {
    /// The event of all rounds, for accountants.
    #[must_use]
    pub fn event(&self, neighbors: Neighbors) -> Event {
        match self {
            Self::Polls(poll, rounds) => poll.event(neighbors).repeated(*rounds),
            Self::Stable(stable) => stable.event(neighbors),
            Self::Surveys(survey, rounds) => survey.event(neighbors).repeated(*rounds),
        }
    }

    /// The total variation distance between all rounds and their event.
    #[must_use]
    pub fn distance(&self) -> f64 {
        match self {
            Self::Polls(poll, rounds) => poll.distance() * *rounds as f64,
            Self::Stable(stable) => stable.distance(),
            Self::Surveys(survey, rounds) => survey.distance() * *rounds as f64,
        }
    }

    /// The ε of all rounds at δ, as an interval that accounts for [`distance`](Self::distance).
    pub fn epsilon(&self, neighbors: Neighbors, delta: Delta) -> Result<Bound, Error> {
        self.with_event_epsilon(neighbors, |ideal| distance::epsilon(ideal, self.distance(), delta))
    }

    /// The upper end of the interval of [`Aggregation::epsilon`].
    pub(super) fn upper(&self, neighbors: Neighbors, delta: Delta) -> Result<f64, Error> {
        self.with_event_epsilon(neighbors, |ideal| distance::upper(ideal, self.distance(), delta))
    }

    /// Calls `compute` with the ε of the event as a function of δ.
    /// Privacy loss distributions give this ε, except for stable winners, which have only a Rényi bound.
    pub(super) fn with_event_epsilon<T>(
        &self,
        neighbors: Neighbors,
        compute: impl FnOnce(&EpsilonAtDelta<'_>) -> Result<T, quell_privacy::Error>,
    ) -> Result<T, Error> {
        let event = self.event(neighbors);
        if let Self::Stable(_) = self {
            let renyi = Renyi::new(&event, neighbors)?;
            return Ok(compute(&|delta| Ok(renyi.epsilon(delta, Conversion::Tight)))?);
        }
        Ok(compute(&|delta| Pld::default().epsilon(&event, neighbors, delta))?)
    }

    /// The number of paid answers; `None` for stable winners, whose number is not limited.
    #[must_use]
    pub fn answers(&self) -> Option<u64> {
        match self {
            Self::Polls(poll, rounds) => Some(u64::from(poll.answers) * rounds),
            Self::Stable(_) => None,
            Self::Surveys(survey, rounds) => Some(u64::from(survey.questions) * rounds),
        }
    }
}
