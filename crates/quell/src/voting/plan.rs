//! The plan of a vote: what is asked, with which noise, at which cost.

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Conversion, Pld, Renyi, distance},
    ledger::{Book, Ledger, Receipt, Unit},
    mechanism::{Answer, Mechanism, Poll, Polling, StableMax, Survey, Voters},
    units::Delta,
};

use super::{Entry, entry, knn::NearestVoters, pate::Ballots};
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
    /// Pays for all answers and asks teachers the questions in their order.
    ///
    /// The ballots and the answers are in memory. [`External`](crate::run::labels::External) keeps its
    /// answers in a folder.
    ///
    /// # Contract
    /// One `unit`, a record or a user, influences the ballots of one teacher only. The plan is for as many teachers
    /// as there are.
    pub fn answer<B: Book>(
        &self,
        ballots: &Ballots,
        unit: Unit,
        ledger: &mut Ledger<B>,
    ) -> Result<Answered, Error> {
        if let Aggregation::Stable(stable) = self.aggregation {
            terms::check(ledger, unit, self.neighbors)?;
            let paid = ledger.charge(stable)?;
            let receipt = paid.receipt().clone();
            let mut stability = paid.run()?;
            let mut ask = |question| Ok::<_, Error>((question, stability.ask(&ballots.votes(question))?));
            let answers = (0..ballots.questions()).map(&mut ask).collect::<Result<Vec<_>, _>>()?;
            let entries = answers.into_iter().filter_map(|(question, answer)| entry((&question, answer)));
            return Ok(Answered { entries: entries.collect(), receipt });
        }
        self.poll(ballots.questions(), TEACHERS_BLOCK, unit, ledger, |polling, questions| {
            questions.iter().map(|question| Ok(polling.ask(&ballots.votes(*question), &[])?)).collect()
        })
    }

    /// Pays for all answers and asks the nearest records the questions in their order.
    ///
    /// ```
    /// use quell::voting::{Recipe, VoteFacts, knn::NearestVoters};
    /// use quell::ledger::InMemory;
    /// use quell::privacy::{ledger::Unit, mechanism::Voters, units::{Epsilon, SamplingRate}};
    /// // Two clusters of 500 records each, and a question in either.
    /// let records: Vec<f32> = (0_u16..1000).map(|record| f32::from(record % 2)).collect();
    /// let labels = (0..1000).map(|record| record % 2).collect();
    /// let mut voters = NearestVoters::new((&records, 1), labels, 2, 200, vec![0.0, 1.0])?;
    /// let recipe = Recipe { epsilon: Some(1.0), delta: Some(1e-5), answers: Some(2), ..Recipe::default() };
    /// let nearest = Voters::Nearest { rate: SamplingRate::new(0.5)? };
    /// let plan = recipe.plan(&VoteFacts { candidates: 2, voters: nearest, ballots: 200, questions: 2 })?;
    /// let mut ledger = InMemory::ledger("records", Epsilon::new(2.0)?, plan.delta)?;
    /// let answered = plan.answer_nearest(&mut voters, Unit::Example, &mut ledger)?;
    /// assert_eq!(answered.entries.iter().filter_map(|entry| entry.answer).collect::<Vec<_>>(), [0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Contract
    /// The plan is for as many votes as there are nearest records. The unit is a record: several records of one user
    /// could vote at once, so users are refused.
    pub fn answer_nearest<B: Book>(
        &self,
        voters: &mut NearestVoters,
        unit: Unit,
        ledger: &mut Ledger<B>,
    ) -> Result<Answered, Error> {
        if unit == Unit::User {
            return Err(Error::Setting {
                name: "unit",
                found: "user".into(),
                expected: "example: with nearest records as voters, several records of one user could vote at once",
            });
        }
        let records = voters.records();
        self.poll(voters.questions(), NEAREST_BLOCK, unit, ledger, |polling, questions| {
            Ok(polling.ask_nearest(records, questions, voters)?)
        })
    }

    /// Pays for all rounds of a poll, and asks questions in blocks until the paid answers are used up.
    fn poll<B: Book>(
        &self,
        questions: usize,
        block: usize,
        unit: Unit,
        ledger: &mut Ledger<B>,
        mut ask: impl FnMut(&mut Polling, &[usize]) -> Result<Vec<Answer>, Error>,
    ) -> Result<Answered, Error> {
        let Aggregation::Polls(poll, rounds) = self.aggregation else {
            return Err(Error::Setting {
                name: "aggregator",
                found: if let Aggregation::Stable(_) = self.aggregation { "stable" } else { "a survey" }
                    .into(),
                expected: "an aggregator with polls",
            });
        };
        terms::check(ledger, unit, self.neighbors)?;
        let mut lease = ledger.reserve(poll, rounds)?;
        let receipt = lease.receipt().clone();
        let (mut entries, mut waiting) = (Vec::new(), (0..questions).collect::<Vec<_>>());
        let mut polling: Option<Polling> = None;
        while !waiting.is_empty() {
            let mut open = match polling.take() {
                Some(open) if open.is_open() => open,
                // The next round adds its answers to the poll of the rounds before it.
                closed => match (lease.next(), closed) {
                    (None, _) => break,
                    (Some(paid), None) => paid?.run()?,
                    (Some(paid), Some(mut closed)) => {
                        closed.add(paid?)?;
                        closed
                    }
                },
            };
            let most = if poll.screening.is_some() { block } else { block.min(open.answers_left() as usize) };
            let rest = waiting.split_off(most.min(waiting.len()));
            let answers = ask(&mut open, &waiting)?;
            let asked = std::mem::take(&mut waiting);
            for (question, answer) in asked.into_iter().zip(answers) {
                match entry((&question, answer)) {
                    Some(entry) => entries.push(entry),
                    // The votes were not read, so the question can be asked again.
                    None => waiting.push(question),
                }
            }
            waiting.extend(rest);
            polling = Some(open);
        }
        entries.sort_by_key(|entry| entry.question);
        Ok(Answered { entries, receipt })
    }
}

/// The number of questions in a block that teachers are asked.
const TEACHERS_BLOCK: usize = 64;

/// The number of questions in a block that nearest records are asked.
const NEAREST_BLOCK: usize = 256;

/// What a vote released, and the receipt of its charge.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The questions that were asked, in their order. Those that were not paid for are not among them.
    pub entries: Vec<Entry>,
    /// The receipt of the charge.
    pub receipt: Receipt,
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
