//! The job that labels public records by private votes, and its results.
//! A student is trained on the labels.

use std::sync::Arc;

use quell_privacy::{
    Statement,
    ledger::{Book, Ledger, Note, Spent, Terms},
    number::{Toward, format_exact, format_rounded},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{
    Choice, Configuration, Revealed, VoterSettings,
    payment::{self, Payment},
    voters::check_nearest_unit,
};
use crate::{
    Error, Input,
    data::Examples,
    features::Pca,
    learner::{Control, Evaluation, Predictor, evaluate, loss::Loss},
    network::Network,
    run::{self, Folder, Guarantee, Job, Model, Outcome, PaymentRecord, Progress, Settings, Watch, charge},
    voting::{Aggregator, Journal, Plan, pate::Shards},
};

/// The job that labels public records: its complete settings and its data.
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
    /// The coordinates of the questions for label spreading, and their dimension.
    /// The coordinates are features or principal components.
    pub(super) points: (Vec<f32>, usize),
    /// The network of the student.
    network: Network,
    /// What will be asked, and what it costs.
    pub plan: Plan,
}

const LOSS: Loss = Loss::CrossEntropy { label_smoothing: 0.0 };

/// The default share of public records that may be asked about.
const QUESTIONS: f64 = 0.8;

/// The largest dimension for label spreading.
/// More features than this are reduced to this number of principal components.
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
        let asked = configuration.features.transform(raw.select(&pool))?;
        let private = configuration.features.transform(dataset.train.clone())?;
        let public = configuration.student.features.transform(raw)?;
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
        job.check()?;
        Ok(job)
    }

    /// Checks settings that depend on the kind of voters: the unit and the reveal.
    fn check(&self) -> Result<(), Error> {
        let Configuration { votes, voters, student, data, .. } = &self.configuration;
        let has_teachers = matches!(voters, VoterSettings::Teachers { .. });
        if !has_teachers {
            check_nearest_unit(data.unit)?;
        }
        if !votes.reveal {
            return Ok(());
        }
        let has_theorem = matches!(votes.aggregator, Aggregator::Gaussian | Aggregator::Confident)
            && student.choice != Choice::Active;
        if !(has_teachers && has_theorem) {
            return Err(payment::unfit_for_reveal());
        }
        payment::check_reveal(&self.plan)
    }

    /// Spreads the answers to all questions. Returns the soft labels, question after question.
    pub(super) fn spread(&self, answers: &[(usize, u32)]) -> Result<Vec<f32>, Error> {
        self.configuration.student.propagation.spread(
            &self.points.0,
            self.points.1,
            answers,
            self.classes.len(),
        )
    }

    /// The soft label of one question: a probability for each class.
    pub(super) fn soft_label<'s>(&self, soft_labels: &'s [f32], question: usize) -> &'s [f32] {
        &soft_labels[question * self.classes.len()..(question + 1) * self.classes.len()]
    }

    /// Trains a student on the answers; returns its weights.
    /// `progress` receives the share of the training that is done.
    pub(super) fn train_student(
        &self,
        answers: &[(usize, u32)],
        mut progress: impl FnMut(f64),
    ) -> Result<Vec<f32>, Error> {
        let soft_labels = self.spread(answers)?;
        let pool = self.public.select(&(0..self.questions).collect::<Vec<_>>());
        let seed = self.configuration.seed;
        let progress = |done: u64, of: u64| progress(done as f64 / of.max(1) as f64);
        self.configuration.student.training.train(&self.network, &pool, &soft_labels, seed, progress)
    }

    /// Trains the student on all answers, evaluates it and writes the model.
    fn finish_student<B: Book>(
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
        let weights = self.train_student(&answers, |share| {
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
            features: Some(self.configuration.student.features.clone()).filter(|computed| !computed.is_raw()),
            model: self.configuration.student.model.clone(),
            ..run::Configuration::default()
        };
        let network = configuration.model.build(self.public.shape(), self.classes.len())?;
        Ok(Model {
            configuration,
            shape: self.records.shape().to_vec(),
            classes: Some(self.classes.clone()),
            paid: folder.paid()?,
            statement: Statement::new(ledger.state()?)?.to_string(),
            predictor: Predictor::network_of(Arc::new(network), weights, LOSS),
        })
    }

    /// The share of answers that agree with the labels of the public records.
    fn share_correct(&self, answers: &[(usize, u32)]) -> Option<f64> {
        let is_correct = |(question, class): &&(usize, u32)| self.public.label(*question) == Some(*class);
        let correct = answers.iter().filter(is_correct).count();
        (!answers.is_empty()).then(|| correct as f64 / answers.len() as f64)
    }
}

impl Job for Labelling {
    fn dataset(&self) -> String {
        self.configuration.data.name()
    }

    fn former_names(&self) -> Vec<String> {
        self.configuration.data.former_names()
    }

    fn note(&self) -> Note {
        let voters = match self.configuration.voters {
            VoterSettings::Teachers { count, .. } => format!("votes of {count} teachers"),
            VoterSettings::Nearest { .. } => "votes of the nearest records".into(),
        };
        Note {
            file: self.configuration.data.file_name(),
            release: Some(format!("labels by {voters}")),
            ..Note::default()
        }
    }

    fn is_demonstration(&self) -> bool {
        self.configuration.data.is_embedded()
    }

    fn guarantee(&self) -> Guarantee {
        payment::guarantee(&self.plan, self.configuration.data.unit, &self.configuration.votes)
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

    /// Asks the voters, then trains the student.
    /// Trained teachers are not trained again, and recorded answers are not paid for again.
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
        let before = results.seconds;
        folder.write_labels_configuration(&self.configuration)?;
        let mut journal = Journal::open(&folder.file(Folder::ANSWERS))?;
        // The results get a payment after the last question only.
        let control = if results.paid.is_some() {
            charge::check(ledger, folder)?;
            folder.forget_private()?;
            Control::Continue
        } else {
            let payment = Payment { plan: &self.plan, votes: &self.configuration.votes, ledger, folder };
            let control = self.ask_voters(payment, &mut journal, &mut results, watch);
            // A refused run may never be resumed. Nothing else would remove the ballots of its teachers then.
            if control.is_err() && folder.paid_if_any()?.is_none() {
                folder.forget_private()?;
            }
            control?
        };
        results.count(&journal);
        results.right = self.share_correct(&journal.answers());
        if control != Control::Stop {
            self.finish_student(ledger, folder, &journal, &mut results, watch)?;
        }
        results.seconds = before + begun.elapsed().as_secs_f64();
        folder.write_labels(&results)?;
        Ok(results.describe(&self.plan, true))
    }
}

/// The public results of a labelling run, as `outcome.json` holds them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// The payment; `None` if nothing was paid yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paid: Option<PaymentRecord>,
    /// The data-dependent cost of the votes, if it was requested and released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revealed: Option<Revealed>,
    /// Whether the data-dependent cost was paid for, and lost when the run was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reveal_lost: bool,
    /// The number of answered questions.
    pub answered: usize,
    /// The number of refused questions.
    pub refused: usize,
    /// The share of correct answers, if the public records have labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<f64>,
    /// The evaluation of the student on public records outside the questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Evaluation>,
    /// The evaluation of the student on all public records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Evaluation>,
    /// Total time of the run in seconds, including earlier sessions.
    pub seconds: f64,
    /// Whether the run is complete.
    pub finished: bool,
}

impl Results {
    /// Describes the results, in words and as JSON.
    pub(super) fn describe(&self, plan: &Plan, has_student: bool) -> Outcome {
        let right = self
            .right
            .map(|share| format!(", {:.1} % of the answers are correct", 100.0 * share))
            .unwrap_or_default();
        let mut results =
            vec![format!("questions: {} answered, {} refused{right}", self.answered, self.refused)];
        let evaluations =
            [(&self.unseen, "public records without a question"), (&self.all, "public records in all")];
        results.extend(evaluations.iter().filter_map(|(found, whose)| Some(found.as_ref()?.describe(whose))));
        if let Some(Revealed { epsilon, of_the_dataset }) = self.revealed {
            let scope = if of_the_dataset {
                "for this dataset and its neighbours"
            } else {
                "for the released answers"
            };
            let delta = self.paid.as_ref().map_or(plan.delta.get(), |paid| paid.delta);
            let (epsilon, delta) = (format_rounded(epsilon, 4, Toward::Up), format_exact(delta));
            results.push(format!(
                "data-dependent ε ≤ {epsilon} at δ = {delta}, {scope}; includes the cost of showing it"
            ));
        }
        let lost = "the data-dependent ε was paid for, and lost when the run was killed";
        let mut json = json!({
            "revealed": self.revealed,
            "reveal_lost": self.reveal_lost,
            "answered": self.answered,
            "refused": self.refused,
        });
        if has_student {
            let accuracy = |found: &Option<Evaluation>| found.as_ref().and_then(Evaluation::accuracy);
            json["answers_right"] = json!(self.right);
            json["accuracy"] = json!({"unseen": accuracy(&self.unseen), "all": accuracy(&self.all)});
            json["evaluation"] = json!({"unseen": self.unseen, "all": self.all});
            json["seconds"] = json!(self.seconds);
        }
        Outcome {
            is_finished: self.finished,
            position: format!("{} answers", self.answered),
            paid: self.paid.clone(),
            results,
            remarks: self.reveal_lost.then(|| lost.to_owned()).into_iter().collect(),
            json: json.as_object().cloned().unwrap_or_default(),
            answers: (!has_student).then_some(Folder::ANSWERS),
        }
    }

    /// Counts the answered and the refused questions.
    pub(super) fn count<A: Clone + Serialize + DeserializeOwned>(&mut self, journal: &Journal<A>) {
        self.answered = journal.answers().len();
        self.refused = journal.entries().len() - self.answered;
    }
}

/// The numbers of all examples, row after row.
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
