//! A job that trains a model with DP-SGD.

use quell_privacy::{
    Statement,
    ledger::{Book, Budget, Composition, Lease, Ledger, Spent, Terms},
    mechanism::{Descent, Sampling},
    units::{Delta, Epsilon},
};

use super::{
    Configuration, Folder, Guarantee, Job, Metrics, Model, Outcome, PaymentRecord, Point, Progress, Settings,
    Watch, charge,
};
use crate::{
    Error,
    data::{Dataset, Examples},
    learner::{
        Control, Evaluation, PublicFacts, Supervised,
        dp_sgd::{Checkpoint, Plan, Sampler, train},
        evaluate,
    },
    network::Network,
    run,
};

/// A job that trains a model: its complete settings and its data.
pub struct Training {
    /// The settings, with defaults filled in.
    pub configuration: Configuration,
    /// The records, as the features that the settings ask for.
    pub dataset: Dataset,
    /// Shape of a record before features are computed, channels first.
    shape: Vec<usize>,
    /// The network.
    pub network: Network,
    /// The training plan.
    pub plan: Plan,
}

/// Everything that a session needs besides its lease.
struct Prepared<'a> {
    checkpoint: Checkpoint,
    task: Supervised<'a>,
    metrics: Metrics,
    /// Steps between two checkpoints.
    every: u64,
    /// ε at each checkpoint.
    curve: Vec<f64>,
}

/// Approximate number of checkpoints, at each of which accuracy is measured.
const POINTS: u64 = 25;

impl Training {
    /// Reads the data and completes the settings. Nothing is paid.
    pub fn new(mut configuration: Configuration) -> Result<Self, Error> {
        configuration.features.pin(&mut configuration.data.scaling)?;
        let mut dataset = configuration.data.open()?;
        let shape = dataset.train.shape().to_vec();
        if !configuration.features.is_raw() {
            if configuration.training.augmentation.is_some() {
                let found = "several versions of every image".into();
                return Err(Error::Setting {
                    name: "augmentation",
                    found,
                    expected: "none: features are computed from the unchanged images",
                });
            }
            dataset.train = configuration.features.apply(&dataset.train)?;
            dataset.test = dataset.test.map(|test| configuration.features.apply(&test)).transpose()?;
            // Features are made for a linear model. The default for images does not suit them.
            if configuration.model.layers.is_empty() {
                configuration.model.name.get_or_insert_with(|| "logistic".into());
            }
        }
        let train = &dataset.train;
        configuration.data.check(train, configuration.training.privacy.neighbors)?;
        let classes = train.classes().map(<[String]>::len);
        let facts = PublicFacts { records: configuration.public_count(train), classes };
        let recipe = &mut configuration.training;
        let loss = recipe.loss(classes);
        if loss.classifies() != classes.is_some() {
            let found = if classes.is_some() {
                "one for numbers, and the targets are classes"
            } else {
                "one for classes, and the targets are numbers"
            };
            return Err(Error::Setting {
                name: "loss",
                found: found.into(),
                expected: "one that fits the targets",
            });
        }
        let network = configuration.model.build(train.shape(), loss.outputs(classes.unwrap_or(1)))?;
        let plan = recipe.plan(&facts, &network)?;
        let mut job = Self { configuration, dataset, shape, network, plan };
        job.resolve(facts.records);
        Ok(job)
    }

    /// Writes the chosen defaults into the settings, so that they yield the same plan again.
    fn resolve(&mut self, records: Option<u64>) {
        let (plan, recipe) = (&self.plan, &mut self.configuration.training);
        recipe.sampling.records = recipe.sampling.records.or(records);
        if let Some(records) = recipe.sampling.records
            && recipe.sampling.by != Sampler::Full
        {
            recipe.sampling.rate = Some(match plan.descent.sampling {
                Sampling::Shuffled { batches } => 1.0 / f64::from(batches),
                Sampling::Poisson { .. } | Sampling::Full | Sampling::WithoutReplacement { .. } => {
                    recipe.sampling.rate.unwrap_or(plan.expected_batch / records as f64)
                }
            });
            recipe.sampling.batch = None;
        }
        (recipe.steps, recipe.epochs) = (Some(plan.steps()), None);
        recipe.privacy.noise_multiplier = Some(plan.descent.noise_multiplier.get());
        recipe.privacy.delta = Some(plan.delta.get());
        (recipe.loss, recipe.optimizer, recipe.schedule) =
            (Some(plan.loss), Some(plan.optimizer), Some(plan.schedule));
    }

    /// The test data, if it is public and so free to use.
    #[must_use]
    pub fn public_test(&self) -> Option<&Examples> {
        self.dataset.test.as_ref().filter(|_| self.dataset.test_is_public)
    }

    /// Does all work that can fail without a release, before the run pays.
    fn prepare(&self, folder: &Folder) -> Result<Prepared<'_>, Error> {
        let checkpoint = match folder.checkpoint()? {
            Some(bytes) => Checkpoint::restore(&bytes, &self.network, &self.plan)?,
            None => Checkpoint::new(&self.network, &self.plan)?,
        };
        let task = Supervised::new(&self.dataset.train, self.plan.loss, self.plan.augmentation);
        let task = task.protecting(self.configuration.data.unit, self.plan.neighbors, self.plan.records)?;
        let every = self.plan.steps().div_ceil(POINTS).max(1);
        Ok(Prepared { checkpoint, task, metrics: folder.metrics()?, every, curve: self.curve(every)? })
    }

    /// Takes the remaining steps of the lease.
    /// Returns the metrics, the position, and whether all steps were taken.
    fn train<B: Book>(
        &self,
        lease: Lease<'_, Descent, B>,
        folder: &Folder,
        Prepared { mut checkpoint, mut task, mut metrics, every, curve }: Prepared<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(Metrics, u64, bool), Error> {
        let (begun, steps) = (std::time::Instant::now(), self.plan.steps());
        metrics.steps = steps;
        let before = metrics.seconds;
        // A mechanism run that has several steps is leased alone.
        let lease = lease.in_blocks_of(if self.plan.steps_per_run() == 1 { every } else { 1 });
        let loss = self.plan.loss;
        // Between two checkpoints this is the ε of the later one, which is never less than the ε spent.
        let spent =
            |step: u64| curve.get(step.div_ceil(every) as usize).copied().unwrap_or(self.plan.epsilon.upper);
        let mut accuracy = metrics.points.last().and_then(|point| point.accuracy);
        let mut stopped = false;
        train(lease, &self.plan, &self.network, &mut task, &mut checkpoint, |checkpoint| {
            let step = checkpoint.position();
            let saved = step % every == 0 || step == steps;
            if saved {
                let test =
                    self.public_test().map(|test| evaluate(&self.network, &checkpoint.model(), test, loss));
                accuracy = test.as_ref().and_then(Evaluation::accuracy);
                metrics.points.push(Point { step, epsilon: spent(step), accuracy });
            }
            let moment =
                Progress { epsilon: Some(spent(step)), accuracy, ..Progress::counted("step", step, steps) };
            let control = watch(moment);
            stopped = control == Control::Stop;
            if saved || stopped {
                folder.write_checkpoint(&checkpoint.save()?)?;
                metrics.taken = checkpoint.taken();
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
        metrics.taken = checkpoint.taken();
        metrics.seconds = before + begun.elapsed().as_secs_f64();
        let finished = !stopped;
        if finished {
            metrics.evaluation =
                self.public_test().map(|test| evaluate(&self.network, &checkpoint.model(), test, loss));
        }
        folder.write_metrics(&metrics)?;
        Ok((metrics, checkpoint.position(), finished))
    }

    /// ε at each checkpoint.
    fn curve(&self, every: u64) -> Result<Vec<f64>, Error> {
        let steps_of = |point: u64| point * every;
        let runs_of = |steps: u64| steps.div_ceil(self.plan.steps_per_run()).min(self.plan.runs);
        (0..=self.plan.steps().div_ceil(every))
            .map(|point| self.plan.spent_after(runs_of(steps_of(point))))
            .collect()
    }

    /// The model, with the current privacy statement of the ledger.
    pub fn model<B: Book>(&self, ledger: &mut Ledger<B>, folder: &Folder) -> Result<Model, Error> {
        let bytes =
            folder.checkpoint()?.ok_or_else(|| run::Error::NotFound { path: folder.path().to_owned() })?;
        let checkpoint = Checkpoint::restore(&bytes, &self.network, &self.plan)?;
        let mut configuration = self.configuration.clone();
        let outputs = self.plan.loss.outputs(self.dataset.train.classes().map_or(1, <[String]>::len));
        let network = configuration.model.build(self.dataset.train.shape(), outputs)?;
        Ok(Model {
            configuration,
            shape: self.shape.clone(),
            classes: self.dataset.train.classes().map(<[String]>::to_vec),
            paid: folder.paid()?,
            statement: Statement::new(ledger.state()?)?.to_string(),
            network,
            weights: checkpoint.model().into_owned(),
        })
    }
}

impl Job for Training {
    fn dataset(&self) -> String {
        self.configuration.data.name()
    }

    fn former_names(&self) -> Vec<String> {
        self.configuration.data.former_names()
    }

    fn is_demonstration(&self) -> bool {
        self.configuration.data.path.is_none()
    }

    fn guarantee(&self) -> Guarantee {
        let Plan { epsilon, delta, neighbors, .. } = self.plan;
        Guarantee { epsilon, delta, unit: self.configuration.data.unit, neighbors, is_by_vote: false }
    }

    fn settings(&self) -> Result<Settings, Error> {
        let weights = self.network.parameters();
        let json = serde_json::json!({
            "configuration": self.configuration,
            "weights": weights,
            "epsilon": self.plan.epsilon,
            "delta": self.plan.delta.get(),
        });
        Ok(Settings {
            toml: self.configuration.write()?,
            json: json.as_object().cloned().unwrap_or_default(),
            amount: format!("{weights} weights, {} steps", self.plan.steps()),
        })
    }

    fn terms(&self) -> Result<Terms, Error> {
        let budget = match self.configuration.budget {
            Some(budget) => (budget.epsilon, Delta::new(budget.delta)?),
            // The budget has a small margin for rounding.
            None => (
                self.configuration.training.privacy.epsilon.unwrap_or(self.plan.epsilon.upper * 1.001),
                self.plan.delta,
            ),
        };
        Ok(Terms {
            dataset: self.configuration.data.name(),
            unit: self.configuration.data.unit,
            neighbors: self.plan.neighbors,
            budget: Budget { epsilon: Some(Epsilon::new(budget.0)?), delta: budget.1 },
            composition: Composition::Combined,
        })
    }

    fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
        self.plan.check(ledger, self.configuration.data.unit, &self.dataset.train)?;
        Ok(ledger.quote(&self.plan.descent, self.plan.runs)?.1)
    }

    fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Error> {
        let folder = &folder.clone().locked()?;
        self.plan.check(ledger, self.configuration.data.unit, &self.dataset.train)?;
        if !folder.has_configuration() {
            folder.write_configuration(&self.configuration)?;
        }
        let prepared = self.prepare(folder)?;
        let price = (self.plan.epsilon, self.plan.delta);
        let (lease, paid) =
            charge::lease(ledger, folder, (self.plan.descent.clone(), self.plan.runs), price)?;
        let leased = lease.position() * self.plan.steps_per_run();
        charge::within_lease(folder, "steps", prepared.checkpoint.position(), leased)?;
        let (metrics, position, is_finished) = self.train(lease, folder, prepared, watch)?;
        if is_finished {
            folder.write(Folder::MODEL, &self.model(ledger, folder)?.save()?)?;
        }
        Ok(outcome(&metrics, position, is_finished, paid))
    }
}

/// The outcome of a training run.
fn outcome(metrics: &Metrics, position: u64, is_finished: bool, paid: PaymentRecord) -> Outcome {
    let lost = metrics.steps - metrics.taken.min(metrics.steps);
    let lost = (is_finished && lost > 0)
        .then(|| format!("{lost} of {} steps were charged and lost when the run was killed", metrics.steps));
    let json = serde_json::json!({
        "accuracy": metrics.evaluation.as_ref().and_then(Evaluation::accuracy),
        "evaluation": metrics.evaluation,
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
            .map(|evaluation| evaluation.describe("public test records"))
            .collect(),
        remarks: lost.into_iter().collect(),
        json: json.as_object().cloned().unwrap_or_default(),
        answers: None,
    }
}
