//! A job that trains a model, by any method.

use quell_privacy::{
    Statement,
    ledger::{Book, Lease, Ledger, Note, Spent, Terms},
};

use super::{
    Configuration, Covered, Folder, Guarantee, Job, Metrics, Model, Outcome, PaymentRecord, Point, Progress,
    Settings, Watch, charge,
    registry::{LearnerSettings as _, Registered},
};
use crate::{
    Error,
    data::{self, Dataset, Examples, unscaled},
    features::Features,
    learner::{
        Control, Evaluation, Method, PlannedCost, Predictor, PublicFacts, ResultFile, Results, Snapshot,
        Subject,
    },
    run,
};

/// A job that trains a model: its complete settings, its data and its method.
pub struct Training<M> {
    /// The settings, with defaults filled in.
    pub configuration: Configuration,
    /// The records, as the features that the settings ask for.
    pub dataset: Dataset,
    /// Shape of a record before features are computed, channels first.
    shape: Vec<usize>,
    /// The method, planned for this data.
    pub method: M,
    /// What is to be said about the data: public test records that do not fit the schema, numbers without bounds.
    pub(super) test_remarks: Vec<String>,
}

/// Everything that a session of training needs besides its lease.
struct Session<'a, M: Method + 'a> {
    state: M::State,
    task: M::Task<'a>,
    metrics: Metrics,
    /// Steps between two checkpoints.
    every: u64,
    /// ε at each checkpoint.
    curve: Vec<f64>,
}

/// Approximate number of checkpoints, at each of which accuracy is measured.
const POINTS: u64 = 25;

/// The most pairs of targets and predicted numbers that a report draws.
const MOST_PAIRS: usize = 500;

/// The remark on an array of numbers, about which nothing public says how large they are.
const UNSCALED: &str = "note: the numbers of the array are used as they are, and a model learns little from numbers that are large or of different sizes; divide each column by a public bound first, or write a table whose schema has bounds for each column";

impl<M: Registered> Training<M> {
    /// Reads the data and completes the settings. Nothing is paid.
    pub fn new(mut configuration: Configuration) -> Result<Self, Error> {
        match &mut configuration.features {
            Some(features) => configuration.data.pin(features)?,
            None => configuration.data.pin(&mut Features::default())?,
        }
        let label = M::Recipe::LEARNER.label_use();
        let mut dataset = configuration.data.open_for(label)?;
        // Reading the data refused test records that are private.
        let mut test_remarks = configuration.data.check_public_test(label)?;
        let shape = dataset.train.shape().to_vec();
        let count = configuration.public_count(&dataset.train);
        configuration.choose_features(&shape, dataset.train.classes().map(<[String]>::len), count);
        let features = configuration.computed_features();
        let are_features = !features.is_raw();
        if are_features {
            // A plan depends on the shape of the features alone.
            let used = |examples: Examples| {
                if configuration.is_only_planned { examples.select(&[]) } else { examples }
            };
            dataset.train = features.transform(used(dataset.train))?;
            dataset.test = dataset.test.map(|test| features.transform(used(test))).transpose()?;
            // Features are made for a linear model. The default for images does not suit them.
            if configuration.model.layers.is_empty() {
                configuration.model.name.get_or_insert_with(|| "logistic".into());
            }
        }
        let is_array = !configuration.data.is_embedded()
            && configuration.data.ratings.is_none()
            && configuration.data.schema.is_none()
            && configuration.data.scaling.is_none();
        if is_array && !are_features && dataset.train.shape().len() == 1 && !dataset.train.are_bytes() {
            test_remarks.push(UNSCALED.into());
        }
        let train = &dataset.train;
        let classes = train.classes().map(<[String]>::len);
        let facts = PublicFacts { records: configuration.public_count(train), classes };
        let schema = configuration.data.schema.as_ref().filter(|_| !are_features);
        let schema = schema.map(|schema| M::Recipe::LEARNER.label_use().columns(schema));
        let subject = Subject { shape: train.shape(), are_features, facts, schema: schema.as_ref() };
        let (recipe, model) = M::Recipe::section(&mut configuration);
        let method = M::plan(recipe, model, &subject)?;
        configuration.data.check(train, method.cost().neighbors)?;
        Ok(Self { configuration, dataset, shape, method, test_remarks })
    }

    /// The model of a state, with predictions within the bounds of the target.
    pub(super) fn predictor(&self, state: &M::State) -> Predictor {
        self.method.model(state).within(self.configuration.data.target_bounds())
    }

    /// The test data, if it is public and so free to use.
    #[must_use]
    pub fn public_test(&self) -> Option<&Examples> {
        self.dataset.test.as_ref().filter(|_| self.dataset.test_is_public)
    }

    /// Does all work that can fail without a release, before the run pays.
    fn prepare(&self, folder: &Folder) -> Result<Session<'_, M>, Error> {
        let state = self.method.state(folder.checkpoint()?.as_deref())?;
        let task = self.method.task(&self.dataset.train, self.configuration.data.unit)?;
        let every = self.method.steps().div_ceil(POINTS).max(1);
        Ok(Session { state, task, metrics: folder.metrics()?, every, curve: self.curve(every)? })
    }

    /// Takes the remaining steps of the lease.
    /// Returns the metrics, the position, and whether all steps were taken.
    fn train<B: Book>(
        &self,
        lease: Lease<'_, M::Mechanism, B>,
        folder: &Folder,
        Session { mut state, mut task, mut metrics, every, curve }: Session<'_, M>,
        watch: &mut Watch<'_>,
    ) -> Result<(Metrics, u64, bool), Error> {
        let (begun, steps) = (std::time::Instant::now(), self.method.steps());
        metrics.steps = steps;
        let before = metrics.seconds;
        // A mechanism run that has several steps is leased alone.
        let per_run = self.method.steps_per_run();
        let lease = lease.in_blocks_of(if per_run == 1 { every } else { 1 });
        // Steps that are leased and not taken are lost. So a run stops at the end of a block.
        let block = if per_run == 1 { every } else { per_run };
        // Between two checkpoints this is the ε of the later one, which is never less than the ε spent.
        let all = self.method.cost().epsilon.upper;
        let spent = |step: u64| curve.get(step.div_ceil(every) as usize).copied().unwrap_or(all);
        let bounds = self.configuration.data.target_bounds();
        let mut accuracy = metrics.points.last().and_then(|point| point.accuracy);
        let (mut is_asked, mut stopped) = (false, false);
        self.method.fit(lease, &mut task, &mut state, |state| {
            let step = state.position();
            let saved = step % every == 0 || step == steps || self.method.saves_at(step);
            if saved {
                let model = self.public_test().map(|test| (self.predictor(state), test));
                let found = model.map(|(model, test)| model.fitted().evaluate_briefly(test).in_units(bounds));
                accuracy = found.as_ref().and_then(Evaluation::accuracy);
                let error = found.as_ref().and_then(Evaluation::error);
                metrics.points.push(Point { step, epsilon: spent(step), accuracy, error });
            }
            let progress =
                Progress { epsilon: Some(spent(step)), accuracy, ..Progress::counted("step", step, steps) };
            let control = watch(progress);
            is_asked |= control == Control::Stop;
            stopped = is_asked && (step % block == 0 || step == steps);
            if saved || stopped {
                folder.write_checkpoint(&state.save()?)?;
                metrics.taken = state.taken();
                metrics.seconds = before + begun.elapsed().as_secs_f64();
                folder.write_metrics(&metrics)?;
            }
            Ok(if stopped {
                Control::Stop
            } else if saved {
                Control::Saved
            } else {
                Control::Continue
            })
        })?;
        let finished = !stopped;
        if finished && state.taken() == 0 {
            return Err(run::Error::AllStepsLost { path: folder.path().to_owned() }.into());
        }
        metrics.taken = state.taken();
        metrics.seconds = before + begun.elapsed().as_secs_f64();
        if finished {
            let model = self.public_test().map(|test| (self.predictor(&state), test));
            metrics.evaluation = model.as_ref().map(|(model, test)| model.evaluate(test).in_units(bounds));
            let pairs = model.map(|(model, test)| model.fitted().some_pairs(test, MOST_PAIRS));
            let in_units = |number: f64| bounds.map_or(number, |bounds| unscaled(number, bounds));
            metrics.predictions =
                pairs.unwrap_or_default().into_iter().map(|pair| pair.map(in_units)).collect();
            metrics.in_target_units = true;
        }
        folder.write_metrics(&metrics)?;
        Ok((metrics, state.position(), finished))
    }

    /// ε at each checkpoint.
    fn curve(&self, every: u64) -> Result<Vec<f64>, Error> {
        let (_, runs) = self.method.mechanism();
        let runs_of = |steps: u64| steps.div_ceil(self.method.steps_per_run()).min(runs);
        (0..=self.method.steps().div_ceil(every))
            .map(|point| self.method.spent_after(runs_of(point * every)))
            .collect()
    }

    /// The model, with the current privacy statement of the ledger.
    pub fn model<B: Book>(&self, ledger: &mut Ledger<B>, folder: &Folder) -> Result<Model, Error> {
        let bytes =
            folder.checkpoint()?.ok_or_else(|| run::Error::NotFound { path: folder.path().to_owned() })?;
        self.model_at(&bytes, ledger, folder)
    }

    /// The model of a checkpoint, with the current privacy statement of the ledger.
    pub(super) fn model_at<B: Book>(
        &self,
        checkpoint: &[u8],
        ledger: &mut Ledger<B>,
        folder: &Folder,
    ) -> Result<Model, Error> {
        let mut configuration = self.configuration.clone();
        if let Some(path) = &configuration.data.path {
            configuration.data.location = data::whole(path).ancestors().map(data::location).collect();
        }
        Ok(Model {
            configuration,
            shape: self.shape.clone(),
            classes: self.dataset.train.classes().map(<[String]>::to_vec),
            paid: folder.paid()?,
            statement: Statement::new(ledger.state()?)?.to_string(),
            predictor: self.predictor(&self.method.state(Some(checkpoint))?),
        })
    }
}

impl<M: Registered> Job for Training<M> {
    fn dataset(&self) -> String {
        self.configuration.data.name()
    }

    fn former_names(&self) -> Vec<String> {
        self.configuration.data.former_names()
    }

    fn note(&self) -> Note {
        Note {
            file: self.configuration.data.file_name(),
            release: Some(self.configuration.subject()),
            ..Note::default()
        }
    }

    fn is_demonstration(&self) -> bool {
        self.configuration.data.is_embedded()
    }

    fn guarantee(&self) -> Guarantee {
        let PlannedCost { epsilon, delta, neighbors, .. } = self.method.cost();
        Guarantee {
            epsilon,
            delta,
            unit: self.configuration.data.unit,
            neighbors,
            covers: Covered::Everything,
        }
    }

    fn settings(&self) -> Result<Settings, Error> {
        let (weights, cost) = (self.method.parameters(), self.method.cost());
        let json = serde_json::json!({
            "configuration": self.configuration,
            "weights": weights,
            "epsilon": cost.epsilon,
            "delta": cost.delta.get(),
        });
        Ok(Settings {
            toml: self.configuration.write()?,
            json: json.as_object().cloned().unwrap_or_default(),
            amount: format!("{weights} weights, {} steps", self.method.steps()),
        })
    }

    fn remarks(&self) -> Vec<String> {
        self.test_remarks.iter().cloned().chain(self.method.remarks()).collect()
    }

    fn terms(&self) -> Result<Terms, Error> {
        let Configuration { data, budget, .. } = &self.configuration;
        self.guarantee().terms(data.name(), *budget, self.method.cost().requested)
    }

    fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
        self.guarantee().check(ledger)?;
        if !self.configuration.is_only_planned {
            self.method.check(ledger.state()?.terms(), &self.dataset.train)?;
        }
        let (mechanism, runs) = self.method.mechanism();
        Ok(ledger.quote(&mechanism, runs)?.1)
    }

    fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Error> {
        if self.configuration.is_only_planned {
            let expected = "a run that was made to start";
            return Err(Error::Setting { name: "the run", found: "only planned".into(), expected });
        }
        let folder = &folder.clone().locked()?;
        self.guarantee().check(ledger)?;
        self.method.check(ledger.state()?.terms(), &self.dataset.train)?;
        if !folder.has_configuration() {
            folder.write_configuration(&self.configuration)?;
        }
        let session = self.prepare(folder)?;
        let PlannedCost { epsilon, delta, .. } = self.method.cost();
        let (lease, paid) = charge::lease(ledger, folder, self.method.mechanism(), (epsilon, delta))?;
        let leased = lease.position() * self.method.steps_per_run();
        charge::within_lease(folder, "steps", session.state.position(), leased)?;
        let (metrics, position, is_finished) = self.train(lease, folder, session, watch)?;
        let (mut further, mut remarks) = (Results::default(), Vec::new());
        if is_finished {
            remarks = self.method.remarks_on(&self.method.state(folder.checkpoint()?.as_deref())?);
            let model = self.model(ledger, folder)?;
            folder.write(Folder::MODEL, &model.save()?)?;
            further = self.method.results(&model.predictor);
            further.lines.extend(model.summary());
            if let Some(learned) = model.learned().and_then(|learned| serde_json::to_value(learned).ok()) {
                further.json.insert("learned".into(), learned);
            }
        }
        let mut outcome =
            outcome(&metrics, position, is_finished, paid, self.configuration.model.name.as_deref());
        if let Some(ResultFile { what, name, text }) = further.file {
            folder.write(name, text.as_bytes())?;
            outcome.results.push(format!("{what}: {}", folder.file(name).display()));
        }
        outcome.results.extend(further.lines);
        outcome.remarks.extend(remarks);
        outcome.json.extend(further.json);
        Ok(outcome)
    }
}

/// The outcome of a training run. `model` is the name of the model, if it has one.
fn outcome(
    metrics: &Metrics,
    position: u64,
    is_finished: bool,
    paid: PaymentRecord,
    model: Option<&str>,
) -> Outcome {
    let lost = metrics.steps - metrics.taken.min(metrics.steps);
    let lost = (is_finished && lost > 0).then(|| {
        format!("{lost} of {} steps were charged, and lost when the run was ended at once", metrics.steps)
    });
    let json = serde_json::json!({
        "accuracy": metrics.evaluation.as_ref().and_then(Evaluation::accuracy),
        "evaluation": metrics.evaluation,
        "model": model,
        "steps": metrics.steps,
        "taken": metrics.taken,
        "seconds": metrics.seconds,
    });
    Outcome {
        is_finished,
        position: format!("step {position} of {}", metrics.steps),
        paid: Some(paid),
        results: metrics
            .evaluation
            .iter()
            .flat_map(|evaluation| {
                let first = evaluation.describe("public test records");
                std::iter::once(first).chain(evaluation.describe_measures())
            })
            .chain(model.map(|name| format!("model: {name}")))
            .collect(),
        remarks: lost.into_iter().collect(),
        json: json.as_object().cloned().unwrap_or_default(),
        answers: None,
    }
}
