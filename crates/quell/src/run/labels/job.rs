//! From a configuration to labels and a student.

use quell_privacy::{
    Statement,
    ledger::{Book, Ledger, Spent, Terms},
    mechanism::Votes,
};

use super::{
    Choice, Configuration, Electors, Moment, Outcome,
    asker::{Chooser, Classroom, Neighborhood, one_record_each},
    payment, reveal,
};
use crate::{
    Error,
    data::Examples,
    dp_sgd::{Going, evaluate},
    features::{Features, Pca},
    loss::Loss,
    network::Network,
    pate::Shards,
    run::{self, Folder, Model, debt},
    student,
    voting::{Aggregator, Journal, Plan, Release},
};

/// A configuration without gaps, with the data it is about.
pub struct Job {
    /// What was asked for, and what was chosen where nothing was said.
    pub configuration: Configuration,
    /// Private records as they are.
    pub(super) records: Examples,
    /// What voters see of them.
    pub(super) private: Examples,
    /// What voters see of the questions.
    pub(super) asked: Examples,
    /// What the student sees of all public records, questions first.
    pub(super) public: Examples,
    /// How many of them may be asked about.
    pub(super) questions: usize,
    /// Names of the classes.
    pub(super) classes: Vec<String>,
    /// Where public points lie when answers spread: the features of the questions, or their principal components.
    points: (Vec<f32>, usize),
    /// Who learns.
    network: Network,
    /// What will be asked and what it costs.
    pub plan: Plan,
}

const LOSS: Loss = Loss::CrossEntropy { label_smoothing: 0.0 };

/// Share of the public records that may be asked about, if nobody says.
const QUESTIONS: f64 = 0.8;

/// Features beyond these are brought down to their principal components before answers spread.
const COMPONENTS: usize = 64;

impl Job {
    /// Reads the data and fills the gaps. Nothing is paid, and no teacher has learned.
    pub fn new(mut configuration: Configuration) -> Result<Self, Error> {
        configuration.pin()?;
        let dataset = configuration.data.open()?;
        configuration.data.check(&dataset.train, configuration.votes.neighbors)?;
        let classes = dataset.train.classes().map(<[String]>::to_vec).ok_or(Error::Setting {
            name: "targets",
            found: "numbers".into(),
            expected: "classes: teachers vote for one of several",
        })?;
        let raw = dataset.test.filter(|test| dataset.test_is_public && !test.is_empty()).ok_or(Error::Missing {
            what: "public data",
            hint: "give records that are public with --public, in a file of the same kind; or say with --public-test that the test part of the data is public",
        })?;
        let questions = configuration.questions.unwrap_or((QUESTIONS * raw.len() as f64).ceil() as usize);
        if !(1..=raw.len()).contains(&questions) {
            let found = questions.to_string();
            return Err(Error::Setting {
                name: "questions",
                found,
                expected: "at least 1 and at most as many as there are public records",
            });
        }
        configuration.questions = Some(questions);
        let pool: Vec<usize> = (0..questions).collect();
        let asked = seen(&configuration.features, raw.select(&pool))?;
        let private = seen(&configuration.features, dataset.train.clone())?;
        let public = seen(&configuration.student.features, raw)?;
        let network = configuration.student.model.build(public.shape(), classes.len())?;
        if let Electors::Teachers { model, .. } = &mut configuration.voters {
            if model.name.is_none() && model.layers.is_empty() {
                model.name = Some("logistic".into());
            }
            model.build(private.shape(), classes.len())?;
        }
        let plan = configuration.votes.plan(&configuration.election(classes.len())?)?;
        if let Electors::Teachers { count, .. } = configuration.voters {
            Shards::check(&dataset.train, count, configuration.votes.neighbors)?;
        }
        let points = points(&asked)?;
        let job =
            Self { configuration, records: dataset.train, private, asked, public, questions, classes, points, network, plan };
        let (votes, teachers) = (&job.configuration.votes, matches!(job.configuration.voters, Electors::Teachers { .. }));
        if !teachers {
            one_record_each(&job)?;
        }
        let known = matches!(votes.aggregator, Aggregator::Gaussian | Aggregator::Confident)
            && job.configuration.student.choice != Choice::Active;
        if votes.reveal && !(teachers && known) {
            return Err(reveal::unfit());
        }
        if votes.reveal {
            reveal::check(&job.plan)?;
        }
        Ok(job)
    }

    /// The first line of a ledger that is still to be opened.
    pub fn terms(&self) -> Result<Terms, Error> {
        let Configuration { data, budget, votes, .. } = &self.configuration;
        payment::terms(&self.plan, data.name(), data.unit, *budget, votes)
    }

    /// What would be spent after it. Nothing is paid.
    pub fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
        payment::quote(&self.plan, self.configuration.data.unit, &self.configuration.votes, ledger)
    }

    /// Begins, or goes on where the folder stands: teachers that have learned do not learn again, answers that were recorded are not paid for again.
    pub fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut (dyn FnMut(Moment) -> Going + Send),
    ) -> Result<Outcome, Error> {
        let begun = std::time::Instant::now();
        let folder = &folder.clone().locked()?;
        payment::check(&self.plan, self.configuration.data.unit, ledger)?;
        let mut outcome = folder.labels()?.unwrap_or_default();
        let before = outcome.seconds;
        folder.write_labels_configuration(&self.configuration)?;
        let mut journal = Journal::open(&folder.file(Folder::ANSWERS))?;
        // An outcome that says what was paid was written when the last question had been asked.
        let going = if outcome.paid.is_some() {
            debt::check(ledger, folder)?;
            folder.forget_private()?;
            Going::On
        } else {
            let going = self.answer(ledger, folder, &mut journal, &mut outcome, watch);
            // A run that was refused may never go on, and nobody would remove what its teachers left.
            if going.is_err() && folder.paid_if_any()?.is_none() {
                folder.forget_private()?;
            }
            going?
        };
        outcome.count(&journal);
        outcome.right = self.right(&journal.answers());
        if going != Going::Stop {
            self.teach(ledger, folder, &journal, &mut outcome, watch)?;
        }
        outcome.seconds = before + begun.elapsed().as_secs_f64();
        folder.write_labels(&outcome)?;
        Ok(outcome)
    }

    /// Asks until everything is answered that was paid for.
    fn answer<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        journal: &mut Journal,
        outcome: &mut Outcome,
        watch: &mut (dyn FnMut(Moment) -> Going + Send),
    ) -> Result<Going, Error> {
        let (plan, order) = (&self.plan, self.order()?);
        let answers = plan.release.answers().unwrap_or(self.questions as u64);
        let chooser = Chooser::new(self, order.clone(), journal, answers);
        let going = match &self.configuration.voters {
            Electors::Teachers { count, model, training } => {
                let Some(ballots) = self.ballots(*count, &mut model.clone(), training, folder, watch)? else {
                    return Ok(Going::Stop);
                };
                let votes = |question: usize| ballots.votes(question);
                if self.configuration.votes.reveal {
                    reveal::reserve(plan, ledger, folder)?;
                }
                let mut asker = Classroom { job: self, chooser, ballots: &ballots, expected: Vec::new() };
                let going = payment::answer(plan, ledger, folder, journal, &order, votes, &mut asker, watch)?;
                if going != Going::Stop && self.configuration.votes.reveal {
                    outcome.revealed = reveal::reveal(plan, &ballots, journal, ledger, folder)?;
                    outcome.reveal_lost = outcome.revealed.is_none();
                }
                going
            }
            Electors::Nearest { neighbors, components, turns, .. } => {
                let voters = self.nearest(*neighbors, *components)?;
                let nobody = |_| Votes::tally(self.classes.len(), []);
                let mut asker = Neighborhood { job: self, chooser, voters, turn: 0, turns: *turns };
                payment::answer(plan, ledger, folder, journal, &order, nobody, &mut asker, watch)?
            }
        };
        if going != Going::Stop {
            outcome.paid = folder.paid_if_any()?;
            outcome.count(journal);
            folder.write_labels(outcome)?;
            folder.forget_private()?;
        }
        Ok(going)
    }

    /// All questions, those to be asked first at the front.
    fn order(&self) -> Result<Vec<usize>, Error> {
        match self.configuration.student.choice {
            Choice::InOrder => Ok((0..self.questions).collect()),
            Choice::Representative | Choice::Active => {
                let wanted = match &self.plan.release {
                    Release::Polls(poll, rounds) => u64::from(poll.questions) * rounds,
                    Release::Stable(_) | Release::Surveys(..) => self.questions as u64,
                };
                let wanted = self.questions.min(wanted as usize);
                let mut order = student::representatives(&self.points.0, self.points.1, wanted, self.configuration.seed)?;
                // The others after them.
                let mut first = vec![false; self.questions];
                for question in &order {
                    first[*question] = true;
                }
                order.extend((0..self.questions).filter(|question| !first[*question]));
                Ok(order)
            }
        }
    }

    /// What the answers say about all questions: rows of probabilities.
    pub(super) fn spread(&self, answers: &[(usize, u32)]) -> Result<Vec<f32>, Error> {
        self.configuration.student.propagation.spread(&self.points.0, self.points.1, answers, self.classes.len())
    }

    /// One of such rows.
    pub(super) fn row<'r>(&self, rows: &'r [f32], question: usize) -> &'r [f32] {
        &rows[question * self.classes.len()..(question + 1) * self.classes.len()]
    }

    pub(super) fn student(&self, answers: &[(usize, u32)], mut progress: impl FnMut(f64)) -> Result<Vec<f32>, Error> {
        let soft = self.spread(answers)?;
        let pool = self.public.select(&(0..self.questions).collect::<Vec<_>>());
        let seed = self.configuration.seed;
        let progress = |done: u64, of: u64| progress(done as f64 / of.max(1) as f64);
        self.configuration.student.training.train(&self.network, &pool, &soft, seed, progress)
    }

    /// Trains the student and writes the model.
    fn teach<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        journal: &Journal,
        outcome: &mut Outcome,
        watch: &mut (dyn FnMut(Moment) -> Going + Send),
    ) -> Result<(), Error> {
        let answers = journal.answers();
        if answers.is_empty() {
            return Err(Error::Missing {
                what: "answer",
                hint: "every question was refused; lower --threshold, or take more teachers",
            });
        }
        let weights = self.student(&answers, |share| {
            watch(Moment::Student { share });
        })?;
        let unseen: Vec<usize> = (self.questions..self.public.len()).collect();
        outcome.all = Some(evaluate(&self.network, &weights, &self.public, LOSS));
        outcome.unseen = (!unseen.is_empty()).then(|| evaluate(&self.network, &weights, &self.public.select(&unseen), LOSS));
        outcome.finished = true;
        folder.write(Folder::MODEL, &self.model(ledger, folder, weights)?.save()?)
    }

    /// The student as a model like any other.
    fn model<B: Book>(&self, ledger: &mut Ledger<B>, folder: &Folder, weights: Vec<f32>) -> Result<Model, Error> {
        let mut configuration = run::Configuration {
            data: self.configuration.data.clone(),
            features: self.configuration.student.features.clone(),
            model: self.configuration.student.model.clone(),
            ..run::Configuration::default()
        };
        configuration.training.loss = Some(LOSS);
        let network = configuration.model.build(self.public.shape(), self.classes.len())?;
        Ok(Model {
            configuration,
            shape: self.records.shape().to_vec(),
            classes: Some(self.classes.clone()),
            paid: folder.paid()?,
            statement: Statement::new(ledger.state()?)?.to_string(),
            network,
            weights,
        })
    }

    /// The share of answers that are what the public records say themselves.
    fn right(&self, answers: &[(usize, u32)]) -> Option<f64> {
        let right = answers.iter().filter(|(question, class)| self.public.label(*question) == Some(*class)).count();
        (!answers.is_empty()).then(|| right as f64 / answers.len() as f64)
    }
}

pub(super) fn seen(features: &Features, examples: Examples) -> Result<Examples, Error> {
    if features.is_raw() { Ok(examples) } else { features.apply(&examples) }
}

pub(super) fn rows(examples: &Examples) -> Vec<f32> {
    let width = examples.width();
    let mut rows = vec![0.0; examples.len() * width];
    rows.chunks_exact_mut(width).enumerate().for_each(|(record, row)| examples.gather(record, row));
    rows
}

/// Where public points lie, and in how many dimensions.
fn points(asked: &Examples) -> Result<(Vec<f32>, usize), Error> {
    let components = COMPONENTS.min(asked.len());
    if asked.width() <= components {
        return Ok((rows(asked), asked.width()));
    }
    let asked = Pca::fit(asked, components)?.apply(asked)?;
    Ok((rows(&asked), asked.width()))
}
