//! The job that answers questions from the ballots of external teachers.

use std::path::PathBuf;

use quell_privacy::{
    ledger::{Book, Ledger, Note, Spent, Terms, Unit},
    mechanism::{Answer, Bounds, Form, Polling, Voters},
};
use serde::{Deserialize, Serialize};

use super::payment::{self, Payment};
use crate::{
    Error, data,
    learner::Control,
    run::{Folder, Guarantee, Job, NewBudget, Outcome, Settings, Watch, configuration::to_toml},
    voting::{
        Aggregator, Asker, Journal, Plan, Recipe, VoteFacts,
        pate::{AnyBallots, Ballots, SurveyBallots},
    },
};

/// The number of questions in a block.
const BLOCK: usize = 64;

/// The settings of a run on external ballots, as a TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalBallots {
    /// The file of ballots, CSV or Parquet.
    /// It has a row for each question and a column for each teacher.
    pub ballots: PathBuf,
    /// Name of the dataset in the ledger; the name of the file if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The privacy unit, a record or a user.
    /// One unit influences the ballots of one teacher only.
    #[serde(default)]
    pub unit: Unit,
    /// Names of the classes that ballots write. If omitted, ballots are the numbers of classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// What the ballots vote on.
    pub about: About,
    /// How questions are asked, and what may be spent on them.
    pub votes: Recipe,
    /// The total budget of the dataset, used if its ledger does not exist yet.
    /// If omitted, the budget is the cost of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<NewBudget>,
}

/// What ballots vote on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// One class, of this number of classes.
    Classes(usize),
    /// A set of labels.
    Labels {
        /// The number of labels.
        labels: usize,
        /// The largest number of labels that a ballot may name.
        most: usize,
    },
    /// A number, which is clamped to bounds.
    Range(Bounds),
}

impl ExternalBallots {
    /// Name of the dataset in the ledger.
    #[must_use]
    pub fn name(&self) -> String {
        self.dataset.clone().or_else(|| data::name_of(&self.ballots)).unwrap_or_default()
    }

    /// The settings as TOML.
    pub(crate) fn write(&self) -> Result<String, Error> {
        to_toml(self)
    }

    /// Names that earlier versions gave the dataset. None if the settings name the dataset.
    #[must_use]
    pub fn former_names(&self) -> Vec<String> {
        if self.dataset.is_some() { Vec::new() } else { data::former_names(&self.ballots) }
    }

    /// Reads the ballots and completes the settings. Nothing is paid.
    pub fn open(&self) -> Result<External, Error> {
        let ballots = match self.about {
            About::Classes(classes) if self.names.as_ref().is_some_and(|names| names.len() == classes) => {
                Ballots::read_named(&self.ballots, self.names.as_deref().unwrap_or_default())?.into()
            }
            About::Classes(classes) => Ballots::read(&self.ballots, classes)?.into(),
            About::Labels { labels, most } => {
                SurveyBallots::read(&self.ballots, Form::Labels { labels, most })?.into()
            }
            About::Range(bounds) => SurveyBallots::read(&self.ballots, Form::Number(bounds))?.into(),
        };
        Ok(External {
            file: Some(self.clone()),
            ..External::new(&self.name(), ballots, &self.votes, self.unit)?
        })
    }
}

/// The job that answers questions from the ballots of external teachers.
pub struct External {
    dataset: String,
    ballots: AnyBallots,
    votes: Recipe,
    unit: Unit,
    /// The file of settings, if the ballots come from a file.
    file: Option<ExternalBallots>,
    /// What will be asked, and what it costs.
    pub plan: Plan,
}

impl External {
    /// Makes a job from ballots and completes its settings. Nothing is paid.
    ///
    /// # Contract
    /// One unit, a record or a user, influences the ballots of one teacher only. If one unit replaces
    /// another, both influence the same teacher.
    pub fn new(dataset: &str, ballots: AnyBallots, votes: &Recipe, unit: Unit) -> Result<Self, Error> {
        let count = |number: usize| number.try_into().unwrap_or(u32::MAX);
        let teachers = match &ballots {
            AnyBallots::Classes(ballots) => ballots.teachers(),
            AnyBallots::Survey(ballots) => ballots.teachers(),
        };
        // In a file with one column, an empty ballot is an empty line. A reader skips empty lines, so all
        // later ballots would belong to wrong questions.
        if teachers < 2 {
            return Err(Error::Setting {
                name: "teachers",
                found: teachers.to_string(),
                expected: "at least 2",
            });
        }
        let plan = match &ballots {
            AnyBallots::Classes(ballots) => {
                check(votes)?;
                votes.plan(&VoteFacts {
                    candidates: ballots.classes(),
                    voters: Voters::Teachers,
                    ballots: count(ballots.teachers()),
                    questions: count(ballots.questions()),
                })
            }
            AnyBallots::Survey(ballots) => {
                votes.survey(ballots.form(), count(ballots.teachers()), count(ballots.questions()))
            }
        }?;
        if votes.reveal {
            payment::check_reveal(&plan)?;
        }
        Ok(Self { dataset: dataset.to_owned(), ballots, votes: votes.clone(), unit, file: None, plan })
    }
}

impl Job for External {
    fn dataset(&self) -> String {
        self.dataset.clone()
    }

    fn former_names(&self) -> Vec<String> {
        self.file.as_ref().map(ExternalBallots::former_names).unwrap_or_default()
    }

    fn note(&self) -> Note {
        let path = self.file.as_ref().and_then(|file| file.ballots.file_name());
        let file = path.map(|name| name.to_string_lossy().into_owned());
        Note { file, release: Some("answers by votes of external teachers".into()), ..Note::default() }
    }

    fn is_demonstration(&self) -> bool {
        false
    }

    fn guarantee(&self) -> Guarantee {
        payment::guarantee(&self.plan, self.unit, &self.votes)
    }

    fn settings(&self) -> Result<Settings, Error> {
        let toml = self.file.as_ref().map(ExternalBallots::write).transpose()?.unwrap_or_default();
        Ok(Settings { toml, json: payment::settings(&self.plan), amount: payment::amount(&self.plan) })
    }

    fn terms(&self) -> Result<Terms, Error> {
        let budget = self.file.as_ref().and_then(|file| file.budget);
        payment::terms(&self.plan, self.dataset.clone(), self.unit, budget, &self.votes)
    }

    fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
        payment::quote(&self.plan, self.unit, &self.votes, ledger)
    }

    /// Asks the questions in their order.
    fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Error> {
        let begun = std::time::Instant::now();
        let folder = &folder.clone().locked()?;
        self.guarantee().check(ledger)?;
        let mut results = folder.labels()?.unwrap_or_default();
        if results.finished {
            return Ok(results.describe(&self.plan, false));
        }
        if let Some(settings) = &self.file {
            folder.write_ballots_configuration(settings)?;
        }
        let answers = folder.file(Folder::ANSWERS);
        let mut payment = Payment { plan: &self.plan, votes: &self.votes, ledger, folder };
        let control = match &self.ballots {
            AnyBallots::Classes(ballots) => {
                let mut journal = Journal::open(&answers)?;
                let order: Vec<usize> = (0..ballots.questions()).collect();
                let mut asker = InOrderAsker { ballots };
                let control = payment.answer_from_ballots(
                    ballots,
                    &order,
                    &mut asker,
                    &mut journal,
                    &mut results,
                    watch,
                )?;
                results.count(&journal);
                control
            }
            AnyBallots::Survey(ballots) => {
                let mut journal = Journal::open(&answers)?;
                let control = payment.answer_survey(ballots, &mut journal, watch)?;
                results.count(&journal);
                control
            }
        };
        (results.paid, results.finished) = (folder.paid_if_any()?, control != Control::Stop);
        results.seconds += begun.elapsed().as_secs_f64();
        folder.write_labels(&results)?;
        Ok(results.describe(&self.plan, false))
    }
}

/// Checks that the settings need no student, and that a theorem covers them.
fn check(votes: &Recipe) -> Result<(), Error> {
    if votes.aggregator == Aggregator::Interactive {
        let expected = "another aggregator: without public records there is no student";
        return Err(Error::Setting { name: "aggregator", found: "interactive".into(), expected });
    }
    if votes.reveal && !matches!(votes.aggregator, Aggregator::Gaussian | Aggregator::Confident) {
        return Err(payment::unfit_for_reveal());
    }
    Ok(())
}

/// Asks the questions in the order of the file.
struct InOrderAsker<'b> {
    ballots: &'b Ballots,
}

impl Asker for InOrderAsker<'_> {
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error> {
        let first = journal.entries().len();
        Ok((first..self.ballots.questions()).take(BLOCK.min(polling.answers_left() as usize)).collect())
    }

    fn ask(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error> {
        questions.iter().map(|question| Ok(polling.ask(&self.ballots.votes(*question), &[])?)).collect()
    }
}
