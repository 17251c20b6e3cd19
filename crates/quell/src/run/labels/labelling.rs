//! A job that labels public records by private votes and trains a student.

use quell_privacy::{
    Statement,
    ledger::{Book, Ledger, Spent, Terms},
    mechanism::Votes,
};

use super::{
    Choice, Configuration, Results, VoterSettings,
    asker::{Chooser, Classroom, Neighborhood, one_record_each},
    payment, reveal,
};
use crate::{
    Error, Input,
    data::Examples,
    features::{Features, Pca},
    learner::{Control, evaluate, loss::Loss},
    network::Network,
    run::{self, Folder, Job, Model, Outcome, Progress, Promise, Settings, Watch, charge},
    voting::{Aggregation, Aggregator, Journal, Plan, pate::Shards, student},
};

/// A job that labels public records: its complete settings and its data.
pub struct Labelling {
    /// The settings, with defaults filled in.
    pub configuration: Configuration,
    /// The private records in raw form.
    pub(super) records: Examples,
    /// The features of the private records that voters use.
    pub(super) private: Examples,
    /// The features of the questions that voters use.
    pub(super) asked: Examples,
    /// The features of all public records that the student uses, questions first.
    pub(super) public: Examples,
    /// The number of public records that may be asked about.
    pub(super) questions: usize,
    /// Names of the classes.
    pub(super) classes: Vec<String>,
    /// The coordinates and dimension of the questions for label spreading.
    /// The coordinates are features or their principal components.
    points: (Vec<f32>, usize),
    /// The network of the student.
    network: Network,
    /// What will be asked, and what it costs.
    pub plan: Plan,
}

const LOSS: Loss = Loss::CrossEntropy { label_smoothing: 0.0 };

/// The default share of public records that may be asked about.
const QUESTIONS: f64 = 0.8;

/// More features than this are reduced to so many principal components before label spreading.
const COMPONENTS: usize = 64;

impl Labelling {
    /// Reads the data and completes the settings.
    /// Nothing is paid, and no teacher is trained.
    pub fn new(mut configuration: Configuration) -> Result<Self, Error> {
        configuration.pin()?;
        let dataset = configuration.data.open()?;
        configuration.data.check(&dataset.train, configuration.votes.neighbors)?;
        let classes = dataset.train.classes().map(<[String]>::to_vec).ok_or(Error::Setting {
            name: "targets",
            found: "numbers".into(),
            expected: "classes, which teachers vote for",
        })?;
        let raw = dataset
            .test
            .filter(|test| dataset.test_is_public && !test.is_empty())
            .ok_or(Error::Missing { what: Input::PublicRecords })?;
        let questions = configuration.questions.unwrap_or((QUESTIONS * raw.len() as f64).ceil() as usize);
        if !(1..=raw.len()).contains(&questions) {
            let found = questions.to_string();
            return Err(Error::Setting {
                name: "questions",
                found,
                expected: "at least 1 and at most the number of public records",
            });
        }
        configuration.questions = Some(questions);
        let pool: Vec<usize> = (0..questions).collect();
        let asked = seen(&configuration.features, raw.select(&pool))?;
        let private = seen(&configuration.features, dataset.train.clone())?;
        let public = seen(&configuration.student.features, raw)?;
        let network = configuration.student.model.build(public.shape(), classes.len())?;
        if let VoterSettings::Teachers { model, .. } = &mut configuration.voters {
            if model.name.is_none() && model.layers.is_empty() {
                model.name = Some("logistic".into());
            }
            model.build(private.shape(), classes.len())?;
        }
        let plan = configuration.votes.plan(&configuration.vote_facts(classes.len())?)?;
        if let VoterSettings::Teachers { count, .. } = configuration.voters {
            Shards::check(&dataset.train, count, configuration.votes.neighbors)?;
        }
        let points = points(&asked)?;
        let job = Self {
            configuration,
            records: dataset.train,
            private,
            asked,
            public,
            questions,
            classes,
            points,
            network,
            plan,
        };
        let (votes, teachers) =
            (&job.configuration.votes, matches!(job.configuration.voters, VoterSettings::Teachers { .. }));
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

    /// Asks until all answers that were paid for are given.
    fn answer<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        journal: &mut Journal,
        results: &mut Results,
        watch: &mut Watch<'_>,
    ) -> Result<Control, Error> {
        let (plan, order) = (&self.plan, self.order()?);
        let answers = plan.aggregation.answers().unwrap_or(self.questions as u64);
        let chooser = Chooser::new(self, order.clone(), journal, answers);
        let control = match &self.configuration.voters {
            VoterSettings::Teachers { count, model, training } => {
                let Some(ballots) = self.ballots(*count, &mut model.clone(), training, folder, watch)? else {
                    return Ok(Control::Stop);
                };
                let votes = |question: usize| ballots.votes(question);
                if self.configuration.votes.reveal {
                    reveal::reserve(plan, ledger, folder)?;
                }
                let mut asker = Classroom { job: self, chooser, ballots: &ballots, expected: Vec::new() };
                let control =
                    payment::answer(plan, ledger, folder, journal, &order, votes, &mut asker, watch)?;
                if control != Control::Stop && self.configuration.votes.reveal {
                    results.revealed = reveal::reveal(plan, &ballots, journal, ledger, folder)?;
                    results.reveal_lost = results.revealed.is_none();
                }
                control
            }
            VoterSettings::Nearest { neighbors, components, turns, .. } => {
                let voters = self.nearest(*neighbors, *components)?;
                let nobody = |_| Votes::tally(self.classes.len(), []);
                let mut asker = Neighborhood { job: self, chooser, voters, turn: 0, turns: *turns };
                payment::answer(plan, ledger, folder, journal, &order, nobody, &mut asker, watch)?
            }
        };
        if control != Control::Stop {
            results.paid = folder.paid_if_any()?;
            results.count(journal);
            folder.write_labels(results)?;
            folder.forget_private()?;
        }
        Ok(control)
    }

    /// All questions, in the order in which to ask them.
    fn order(&self) -> Result<Vec<usize>, Error> {
        match self.configuration.student.choice {
            Choice::InOrder => Ok((0..self.questions).collect()),
            Choice::Representative | Choice::Active => {
                let wanted = match &self.plan.aggregation {
                    Aggregation::Polls(poll, rounds) => u64::from(poll.questions) * rounds,
                    Aggregation::Stable(_) | Aggregation::Surveys(..) => self.questions as u64,
                };
                let wanted = self.questions.min(wanted as usize);
                let mut order =
                    student::representatives(&self.points.0, self.points.1, wanted, self.configuration.seed)?;
                // The other questions follow.
                let mut first = vec![false; self.questions];
                for question in &order {
                    first[*question] = true;
                }
                order.extend((0..self.questions).filter(|question| !first[*question]));
                Ok(order)
            }
        }
    }

    /// Spreads the answers to all questions: one row of class probabilities for each.
    pub(super) fn spread(&self, answers: &[(usize, u32)]) -> Result<Vec<f32>, Error> {
        self.configuration.student.propagation.spread(
            &self.points.0,
            self.points.1,
            answers,
            self.classes.len(),
        )
    }

    /// The row of class probabilities of one question.
    pub(super) fn row<'r>(&self, rows: &'r [f32], question: usize) -> &'r [f32] {
        &rows[question * self.classes.len()..(question + 1) * self.classes.len()]
    }

    pub(super) fn student(
        &self,
        answers: &[(usize, u32)],
        mut progress: impl FnMut(f64),
    ) -> Result<Vec<f32>, Error> {
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
        results: &mut Results,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        let answers = journal.answers();
        if answers.is_empty() {
            return Err(Error::Missing { what: Input::Answers });
        }
        let weights = self.student(&answers, |share| {
            watch(Progress::counted("percent of the student's training", (100.0 * share) as u64, 100));
        })?;
        let unseen: Vec<usize> = (self.questions..self.public.len()).collect();
        results.all = Some(evaluate(&self.network, &weights, &self.public, LOSS));
        results.unseen = (!unseen.is_empty())
            .then(|| evaluate(&self.network, &weights, &self.public.select(&unseen), LOSS));
        results.finished = true;
        folder.write(Folder::MODEL, &self.model(ledger, folder, weights)?.save()?)
    }

    /// The student as a model file.
    fn model<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        weights: Vec<f32>,
    ) -> Result<Model, Error> {
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

    /// The share of answers that agree with the labels of the public records.
    fn right(&self, answers: &[(usize, u32)]) -> Option<f64> {
        let right =
            answers.iter().filter(|(question, class)| self.public.label(*question) == Some(*class)).count();
        (!answers.is_empty()).then(|| right as f64 / answers.len() as f64)
    }
}

impl Job for Labelling {
    fn dataset(&self) -> String {
        self.configuration.data.name()
    }

    fn former_names(&self) -> Vec<String> {
        self.configuration.data.former_names()
    }

    fn is_demonstration(&self) -> bool {
        self.configuration.data.path.is_none()
    }

    fn promise(&self) -> Promise {
        payment::promise(&self.plan, self.configuration.data.unit)
    }

    fn settings(&self) -> Result<Settings, Error> {
        let mut json = payment::settings(&self.plan);
        json.insert("configuration".into(), serde_json::json!(self.configuration));
        Ok(Settings { toml: self.configuration.write()?, json, amount: payment::amount(&self.plan) })
    }

    fn terms(&self) -> Result<Terms, Error> {
        let Configuration { data, budget, votes, .. } = &self.configuration;
        payment::terms(&self.plan, data.name(), data.unit, *budget, votes)
    }

    fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
        payment::quote(&self.plan, self.configuration.data.unit, &self.configuration.votes, ledger)
    }

    /// Trained teachers are not trained again, and recorded answers are not paid for again.
    fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Error> {
        let begun = std::time::Instant::now();
        let folder = &folder.clone().locked()?;
        payment::check(&self.plan, self.configuration.data.unit, ledger)?;
        let mut results = folder.labels()?.unwrap_or_default();
        let before = results.seconds;
        folder.write_labels_configuration(&self.configuration)?;
        let mut journal = Journal::open(&folder.file(Folder::ANSWERS))?;
        // Results that name a payment were written after the last question.
        let control = if results.paid.is_some() {
            charge::check(ledger, folder)?;
            folder.forget_private()?;
            Control::Continue
        } else {
            let control = self.answer(ledger, folder, &mut journal, &mut results, watch);
            // A refused run may never continue. Then nothing else would remove the ballots of its teachers.
            if control.is_err() && folder.paid_if_any()?.is_none() {
                folder.forget_private()?;
            }
            control?
        };
        results.count(&journal);
        results.right = self.right(&journal.answers());
        if control != Control::Stop {
            self.teach(ledger, folder, &journal, &mut results, watch)?;
        }
        results.seconds = before + begun.elapsed().as_secs_f64();
        folder.write_labels(&results)?;
        Ok(results.describe(&self.plan, true))
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

/// The coordinates of the questions for label spreading, and their dimension.
fn points(asked: &Examples) -> Result<(Vec<f32>, usize), Error> {
    let components = COMPONENTS.min(asked.len());
    if asked.width() <= components {
        return Ok((rows(asked), asked.width()));
    }
    let asked = Pca::fit(asked, components)?.apply(asked)?;
    Ok((rows(&asked), asked.width()))
}
