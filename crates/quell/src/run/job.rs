//! From a configuration to a model.

use quell_privacy::{
    Neighbors, Statement,
    ledger::{Book, Budget, Composition, Ledger, Terms, Unit},
    mechanism::{ClippedSum, Sampling},
    units::{Delta, Epsilon},
};

use super::{Configuration, Folder, Metrics, Model, Moment, Outcome, Paid, Point, debt};
use crate::{
    Error,
    data::{Dataset, Examples},
    dp_sgd::{Evaluation, Facts, Going, Leased, Plan, Progress, Release, Sampler, Supervised, evaluate, train},
    network::Network,
};

/// A configuration without gaps, with the data it is about.
pub struct Job {
    /// What was asked for, and what was chosen where nothing was said.
    pub configuration: Configuration,
    /// The records, as the features that were asked for.
    pub dataset: Dataset,
    /// Shape of a record before that, channels first.
    shape: Vec<usize>,
    /// What learns.
    pub network: Network,
    /// What will be done.
    pub plan: Plan,
}

/// What a sitting needs besides its lease.
struct Prepared<'a> {
    progress: Progress,
    task: Supervised<'a>,
    metrics: Metrics,
    /// Steps between two moments at which progress is written down.
    every: u64,
    /// ε at these moments.
    curve: Vec<f64>,
}

/// How often, about, progress is written down and accuracy is measured.
const POINTS: u64 = 25;

impl Job {
    /// Reads the data and fills the gaps. Nothing is paid.
    pub fn new(mut configuration: Configuration) -> Result<Self, Error> {
        configuration.features.pin(&mut configuration.data)?;
        let mut dataset = configuration.data.open()?;
        let shape = dataset.train.shape().to_vec();
        if !configuration.features.is_raw() {
            if configuration.training.augmentation.is_some() {
                let found = "several versions of every image".into();
                return Err(Error::Setting {
                    name: "augmentation",
                    found,
                    expected: "none, since features are made of images as they are",
                });
            }
            dataset.train = configuration.features.apply(&dataset.train)?;
            dataset.test = dataset.test.map(|test| configuration.features.apply(&test)).transpose()?;
            // They are made for it; what is usual for pictures is not meant for them.
            if configuration.model.layers.is_empty() {
                configuration.model.name.get_or_insert_with(|| "logistic".into());
            }
        }
        let train = &dataset.train;
        configuration.data.check(train, configuration.training.privacy.neighbors)?;
        let classes = train.classes().map(<[String]>::len);
        let facts = Facts { records: configuration.public_count(train), classes };
        let recipe = &mut configuration.training;
        let loss = recipe.loss(classes);
        if loss.classifies() != classes.is_some() {
            let found = if classes.is_some() {
                "one for numbers, and the targets are classes"
            } else {
                "one for classes, and the targets are numbers"
            };
            return Err(Error::Setting { name: "loss", found: found.into(), expected: "one that fits the targets" });
        }
        let network = configuration.model.build(train.shape(), loss.outputs(classes.unwrap_or(1)))?;
        let plan = recipe.plan(&facts, &network)?;
        let mut job = Self { configuration, dataset, shape, network, plan };
        job.resolve(facts.records);
        Ok(job)
    }

    /// Writes what was chosen into the configuration, so that it plans the same again.
    fn resolve(&mut self, records: Option<u64>) {
        let (plan, recipe) = (&self.plan, &mut self.configuration.training);
        recipe.sampling.records = recipe.sampling.records.or(records);
        if let Some(records) = recipe.sampling.records
            && recipe.sampling.by != Sampler::Full
        {
            recipe.sampling.rate = Some(match &plan.release {
                Release::Epochs(epoch, _) => 1.0 / f64::from(epoch.batches),
                Release::Sums(..) => recipe.sampling.rate.unwrap_or(plan.expected_batch / records as f64),
            });
            recipe.sampling.batch = None;
        }
        (recipe.steps, recipe.epochs) = (Some(plan.release.steps()), None);
        recipe.privacy.noise_multiplier = Some(plan.release.noise_multiplier());
        recipe.privacy.delta = Some(plan.delta.get());
        (recipe.loss, recipe.optimizer, recipe.schedule) = (Some(plan.loss), Some(plan.optimizer), Some(plan.schedule));
    }

    /// The first line of a ledger that is still to be opened.
    pub fn terms(&self) -> Result<Terms, Error> {
        let budget = match self.configuration.budget {
            Some(allowance) => (allowance.epsilon, Delta::new(allowance.delta)?),
            // A little room for rounding: what is promised is what is spent.
            None => (self.configuration.training.privacy.epsilon.unwrap_or(self.plan.epsilon.upper * 1.001), self.plan.delta),
        };
        Ok(Terms {
            dataset: self.configuration.data.name(),
            unit: self.configuration.data.unit,
            neighbors: self.plan.neighbors,
            budget: Budget { epsilon: Some(Epsilon::new(budget.0)?), delta: budget.1 },
            composition: Composition::Combined,
        })
    }

    /// Test data that may be looked at for free.
    #[must_use]
    pub fn public_test(&self) -> Option<&Examples> {
        self.dataset.test.as_ref().filter(|_| self.dataset.test_is_public)
    }

    /// Pays for the whole plan and trains.
    pub fn start<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: impl FnMut(Moment) -> Going,
    ) -> Result<Outcome, Error> {
        let folder = folder.clone().locked()?;
        self.check(ledger)?;
        folder.write_configuration(&self.configuration)?;
        self.resume(ledger, &folder, watch)
    }

    /// Goes on where the last lease ended. Nothing is paid but by a run that was killed before it had.
    pub fn resume<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: impl FnMut(Moment) -> Going,
    ) -> Result<Outcome, Error> {
        let folder = &folder.clone().locked()?;
        self.check(ledger)?;
        let prepared = self.prepare(folder)?;
        let price = (self.plan.epsilon, self.plan.delta);
        let (lease, paid) = match &self.plan.release {
            Release::Sums(sum, steps) => {
                let (lease, paid) = debt::lease(ledger, folder, (sum.clone(), *steps), price)?;
                (Leased::Sums(lease), paid)
            }
            Release::Epochs(epoch, epochs) => {
                let (lease, paid) = debt::lease(ledger, folder, (epoch.clone(), *epochs), price)?;
                (Leased::Epochs(lease), paid)
            }
        };
        let leased = lease.position() * (self.plan.release.steps() / self.plan.release.runs().max(1));
        debt::within_lease(folder, "steps", prepared.progress.position(), leased)?;
        self.go(lease, folder, paid, prepared, watch)
    }

    /// Whatever can fail without a release is done before the run pays.
    fn prepare(&self, folder: &Folder) -> Result<Prepared<'_>, Error> {
        let progress = match folder.checkpoint()? {
            Some(bytes) => Progress::restore(&bytes, &self.network, &self.plan)?,
            None => Progress::new(&self.network, &self.plan)?,
        };
        let task = self.task()?;
        let every = self.plan.release.steps().div_ceil(POINTS).max(1);
        Ok(Prepared { progress, task, metrics: folder.metrics()?, every, curve: self.curve(every)? })
    }

    /// Whether the ledger is about the same promise, and whether as many records are paid for as there are, where a batch is drawn from a fixed number of them. Their number
    /// is public if the ledger protects one that is exchanged, and is looked at after that is known.
    pub fn check<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<(), Error> {
        let terms = ledger.state()?.terms();
        if terms.neighbors != self.plan.neighbors || terms.unit != self.configuration.data.unit {
            return Err(Error::OtherPromise { dataset: terms.dataset.clone() });
        }
        let is_public = terms.neighbors == Neighbors::Replace && terms.unit == Unit::Example;
        match &self.plan.release {
            Release::Sums(ClippedSum { sampling: Sampling::WithoutReplacement { records, .. }, .. }, _)
                if is_public && *records != self.dataset.train.row_count() as u64 =>
            {
                Err(Error::Setting {
                    name: "records",
                    found: format!("{records}, and the data has another number of rows"),
                    expected: "the number of rows, from which batches of a fixed size are drawn",
                })
            }
            _ => Ok(()),
        }
    }

    fn go<B: Book>(
        &self,
        lease: Leased<'_, B>,
        folder: &Folder,
        paid: Paid,
        Prepared { mut progress, mut task, mut metrics, every, curve }: Prepared<'_>,
        mut watch: impl FnMut(Moment) -> Going,
    ) -> Result<Outcome, Error> {
        let (begun, steps) = (std::time::Instant::now(), self.plan.release.steps());
        metrics.steps = steps;
        let before = metrics.seconds;
        let lease = lease.in_blocks_of(every);
        let loss = self.plan.loss;
        // Between two moments, what the later one costs: never less than was spent.
        let spent = |step: u64| curve.get(step.div_ceil(every) as usize).copied().unwrap_or(self.plan.epsilon.upper);
        let mut accuracy = metrics.points.last().and_then(|point| point.accuracy);
        let mut stopped = false;
        train(lease, &self.plan, &self.network, &mut task, &mut progress, |progress| {
            let step = progress.position();
            let saved = step % every == 0 || step == steps;
            if saved {
                let test = self.public_test().map(|test| evaluate(&self.network, &progress.model(), test, loss));
                accuracy = test.as_ref().and_then(Evaluation::accuracy);
                metrics.points.push(Point { step, epsilon: spent(step), accuracy });
            }
            let going = watch(Moment { step, steps, epsilon: spent(step), accuracy });
            stopped = going == Going::Stop;
            if saved || stopped {
                folder.write_checkpoint(&progress.save()?)?;
                metrics.taken = progress.taken();
                metrics.seconds = before + begun.elapsed().as_secs_f64();
                folder.write_metrics(&metrics)?;
            }
            Ok(if stopped {
                Going::Stop
            } else if saved {
                Going::Saved
            } else {
                Going::On
            })
        })?;
        metrics.taken = progress.taken();
        metrics.seconds = before + begun.elapsed().as_secs_f64();
        let finished = !stopped;
        if finished {
            metrics.evaluation = self.public_test().map(|test| evaluate(&self.network, &progress.model(), test, loss));
        }
        folder.write_metrics(&metrics)?;
        Ok(Outcome { paid, metrics, position: progress.position(), finished })
    }

    /// What is learned: one vector for each unit that is protected.
    fn task(&self) -> Result<Supervised<'_>, Error> {
        let task = Supervised::new(&self.dataset.train, self.plan.loss, self.plan.augmentation);
        let task = match (self.configuration.data.unit, self.plan.neighbors) {
            (Unit::Example, Neighbors::AddRemove) => Some(task),
            (Unit::Example, Neighbors::Replace) => Some(task.by_row()),
            (Unit::User, Neighbors::AddRemove) => task.by_user(),
            (Unit::User, Neighbors::Replace) => task.by_users(self.configuration.training.sampling.records.unwrap_or(0) as usize),
        };
        task.ok_or(super::configuration::NO_USERS)
    }

    /// ε after each of the moments at which progress is written down.
    fn curve(&self, every: u64) -> Result<Vec<f64>, Error> {
        let runs = self.plan.release.runs();
        let per_run = (self.plan.release.steps() / runs.max(1)).max(1);
        (0..=self.plan.release.steps().div_ceil(every))
            .map(|point| {
                let run = (point * every).div_ceil(per_run).min(runs);
                let part = match &self.plan.release {
                    Release::Sums(sum, _) => Release::Sums(sum.clone(), run),
                    Release::Epochs(epoch, _) => Release::Epochs(epoch.clone(), run),
                };
                if run == 0 {
                    return Ok(0.0);
                }
                part.upper(self.plan.neighbors, self.plan.delta)
            })
            .collect()
    }

    /// The model, with the statement of the ledger as it is now.
    pub fn model<B: Book>(&self, ledger: &mut Ledger<B>, folder: &Folder) -> Result<Model, Error> {
        let bytes = folder.checkpoint()?.ok_or_else(|| Error::NoRun { path: folder.path().to_owned() })?;
        let progress = Progress::restore(&bytes, &self.network, &self.plan)?;
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
            weights: progress.model().into_owned(),
        })
    }
}
