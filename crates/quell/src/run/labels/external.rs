//! Answers of teachers from elsewhere: there are ballots, and nothing else is known.

use std::path::PathBuf;

use quell_privacy::{
    ledger::{Book, Ledger, Spent, Terms, Unit},
    mechanism::{Answer, Bounds, Form, Polling, Voters},
};
use serde::{Deserialize, Serialize};

use super::{Moment, Outcome, payment, reveal};
use crate::{
    Error, data,
    dp_sgd::Going,
    pate::{Ballots, Cast, Replies},
    run::{Allowance, Folder},
    voting::{Aggregator, Asker, Facts, Journal, Plan, Recipe},
};

/// What somebody wants from ballots that lie in a file, as a file of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// A CSV or Parquet file with a row for each question and a column for each teacher.
    pub ballots: PathBuf,
    /// Name of the dataset in the ledger; that of the file if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Who touches the ballots of one teacher alone: one record, or one person with all their records.
    #[serde(default)]
    pub unit: Unit,
    /// What the ballots say.
    pub about: About,
    /// How questions are put, and what may be spent on them.
    pub votes: Recipe,
}

/// What ballots say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// One of so many classes.
    Classes(usize),
    /// Some of so many labels.
    Labels {
        /// How many labels there are.
        labels: usize,
        /// How many of them a ballot may name.
        most: usize,
    },
    /// A number, which is held to bounds.
    Range(Bounds),
}

impl Elsewhere {
    /// Name of the ledger.
    #[must_use]
    pub fn name(&self) -> String {
        self.dataset.clone().or_else(|| data::name_of(&self.ballots)).unwrap_or_default()
    }

    /// Reads the ballots and fills the gaps. Nothing is paid.
    pub fn open(&self) -> Result<External, Error> {
        let cast = match self.about {
            About::Classes(classes) => Ballots::read(&self.ballots, classes)?.into(),
            About::Labels { labels, most } => Replies::read(&self.ballots, Form::Labels { labels, most })?.into(),
            About::Range(bounds) => Replies::read(&self.ballots, Form::Number(bounds))?.into(),
        };
        External::new(cast, &self.votes, self.unit)
    }
}

/// Ballots, and how questions are put to whoever cast them.
pub struct External {
    cast: Cast,
    votes: Recipe,
    unit: Unit,
    /// What will be asked and what it costs.
    pub plan: Plan,
}

impl External {
    /// Fills the gaps. Nothing is paid.
    ///
    /// # Contract
    /// One record, or one user if that is the unit, touches the ballots of one teacher alone; where one is exchanged for another, both touch the same teacher.
    pub fn new(cast: Cast, votes: &Recipe, unit: Unit) -> Result<Self, Error> {
        let count = |number: usize| number.try_into().unwrap_or(u32::MAX);
        let teachers = match &cast {
            Cast::Classes(ballots) => ballots.teachers(),
            Cast::Replies(replies) => replies.teachers(),
        };
        // In a file with one column a line without a ballot is no line at all, and would move all questions behind it.
        if teachers < 2 {
            return Err(Error::Setting { name: "teachers", found: teachers.to_string(), expected: "at least 2" });
        }
        let plan = match &cast {
            Cast::Classes(ballots) => {
                check(votes)?;
                votes.plan(&Facts {
                    candidates: ballots.classes(),
                    voters: Voters::Teachers,
                    ballots: count(ballots.teachers()),
                    questions: count(ballots.questions()),
                })
            }
            Cast::Replies(replies) => votes.survey(replies.form(), count(replies.teachers()), count(replies.questions())),
        }?;
        if votes.reveal {
            reveal::check(&plan)?;
        }
        Ok(Self { cast, votes: votes.clone(), unit, plan })
    }

    /// The first line of a ledger that is still to be opened.
    pub fn terms(&self, dataset: &str, budget: Option<Allowance>) -> Result<Terms, Error> {
        payment::terms(&self.plan, dataset.into(), self.unit, budget, &self.votes)
    }

    /// What would be spent after it. Nothing is paid.
    pub fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
        payment::quote(&self.plan, self.unit, &self.votes, ledger)
    }

    /// Pays and asks, in the order of the questions; or goes on where the folder stands.
    pub fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut (dyn FnMut(Moment) -> Going + Send),
    ) -> Result<Outcome, Error> {
        let begun = std::time::Instant::now();
        let folder = &folder.clone().locked()?;
        payment::check(&self.plan, self.unit, ledger)?;
        let mut outcome = folder.labels()?.unwrap_or_default();
        if outcome.finished {
            return Ok(outcome);
        }
        let answers = folder.file(Folder::ANSWERS);
        let going = match &self.cast {
            Cast::Classes(ballots) => {
                let mut journal = Journal::open(&answers)?;
                let order: Vec<usize> = (0..ballots.questions()).collect();
                let votes = |question: usize| ballots.votes(question);
                let mut asker = InOrder { ballots };
                if self.votes.reveal {
                    reveal::reserve(&self.plan, ledger, folder)?;
                }
                let going = payment::answer(&self.plan, ledger, folder, &mut journal, &order, votes, &mut asker, watch)?;
                outcome.count(&journal);
                if going != Going::Stop && self.votes.reveal {
                    outcome.revealed = reveal::reveal(&self.plan, ballots, &journal, ledger, folder)?;
                    outcome.reveal_lost = outcome.revealed.is_none();
                }
                going
            }
            Cast::Replies(replies) => {
                let mut journal = Journal::open(&answers)?;
                let going = payment::survey(&self.plan, ledger, folder, &mut journal, replies, watch)?;
                outcome.count(&journal);
                going
            }
        };
        (outcome.paid, outcome.finished) = (folder.paid_if_any()?, going != Going::Stop);
        outcome.seconds += begun.elapsed().as_secs_f64();
        folder.write_labels(&outcome)?;
        Ok(outcome)
    }
}

/// Whether there is a theorem, or a student, for what is wanted.
fn check(votes: &Recipe) -> Result<(), Error> {
    if votes.aggregator == Aggregator::Interactive {
        let expected = "another: without public records there is no student";
        return Err(Error::Setting { name: "aggregator", found: "interactive".into(), expected });
    }
    if votes.reveal && !matches!(votes.aggregator, Aggregator::Gaussian | Aggregator::Confident) {
        return Err(reveal::unfit());
    }
    Ok(())
}

/// Asks one question after the other.
struct InOrder<'b> {
    ballots: &'b Ballots,
}

impl Asker for InOrder<'_> {
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error> {
        let first = journal.entries().len();
        Ok((first..self.ballots.questions()).take(64.min(polling.answers_left() as usize)).collect())
    }

    fn put(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error> {
        questions.iter().map(|question| Ok(polling.ask(&self.ballots.votes(*question), &[])?)).collect()
    }
}
