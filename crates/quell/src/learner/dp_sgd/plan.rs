//! The complete plan of a DP-SGD run.

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Calibration, Target},
    ledger::{Book, Ledger, Terms, Unit},
    mechanism::{Clipping, Descent, Mechanism, Sampling, StagedDescent},
    units::{
        BatchSize, ClipNorm, Delta, LearningRate, NoiseMultiplier, Probability, SamplingRate, Scale,
        Stability,
    },
};

use super::{
    Checkpoint, Clip, Recipe, Sampler,
    rules::{Kind, Rules},
    train,
};
use crate::{
    Error, Input,
    data::Examples,
    learner::{
        Augmentation, Control, PublicFacts, Supervised, average::Average, loss::Loss, optimizer::Optimizer,
        prepared::Recalibration, privacy, schedule::Schedule,
    },
    network::Network,
    terms,
};

/// All settings of a run, fixed before the first record is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Runs that prepare the records, and how many there are of each kind. They are paid for, too.
    pub preparation: Vec<(Descent, u64)>,
    /// The run after the steps that calibrates the model, if there is one. It is paid for, too.
    pub calibration: Option<Descent>,
    /// The mechanism of the steps that the ledger is charged for.
    pub descent: Descent,
    /// Number of runs of the mechanism that are paid for, without preparation and calibration.
    pub runs: u64,
    /// When two datasets are neighbours.
    pub neighbors: Neighbors,
    /// δ of the guarantee.
    pub delta: Delta,
    /// ε of the whole plan, as an interval.
    pub epsilon: Bound,
    /// Number of records (or users) that the plan was made for: a public number.
    pub records: u64,
    /// The divisor of a sum of gradients: a public number.
    pub expected_batch: f64,
    /// The loss that training minimises.
    pub loss: Loss,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The learning rate over the steps.
    pub schedule: Schedule,
    /// The learning rate that the rules choose.
    pub usual_learning_rate: f64,
    /// How gradients are clipped, as settings say it.
    pub clipping: Clip,
    /// The average of the iterates that becomes the model.
    pub average: Average,
    /// Augmentation of images.
    pub augmentation: Option<Augmentation>,
    /// Seed of the initial weights and of other public randomness.
    pub seed: u64,
}

impl Plan {
    /// The privacy event of the whole plan.
    #[must_use]
    pub fn event(&self) -> Event {
        let (staged, runs) = self.staged();
        staged.event_of_runs(self.neighbors, runs)
    }

    /// The mechanism with preparation and calibration, and the number of all runs.
    #[must_use]
    pub fn staged(&self) -> (StagedDescent, u64) {
        staged((&self.preparation, self.calibration.as_ref()), self.descent.clone(), self.runs)
    }

    /// Number of steps of the optimizer.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.runs.saturating_mul(self.steps_per_run())
    }

    /// Number of steps in one run of the mechanism.
    #[must_use]
    pub fn steps_per_run(&self) -> u64 {
        self.descent.sampling.batches()
    }

    /// Trains on examples in memory, and returns the weights of the model.
    ///
    /// The ledger is charged for the whole plan first. No progress is saved: a program that is killed has
    /// paid and has no model. [`Training`](crate::run::Training) saves its progress in a folder.
    ///
    /// ```
    /// use quell::{
    ///     data,
    ///     learner::{PublicFacts, dp_sgd::Recipe, evaluate},
    ///     ledger::InMemory,
    ///     network,
    ///     privacy::units::Epsilon,
    /// };
    /// let digits = data::digits()?;
    /// let network = network::named("logistic", &[8, 8, 1], 10)?;
    /// let mut recipe = Recipe { steps: Some(20), ..Recipe::default() };
    /// recipe.privacy.epsilon = Some(2.0);
    /// let plan = recipe.plan(&PublicFacts { records: Some(1438), classes: Some(10) }, &network)?;
    /// let mut ledger = InMemory::ledger("digits", Epsilon::new(2.0)?, plan.delta)?;
    /// let weights = plan.train(&network, &digits.train, &mut ledger)?;
    /// assert!(evaluate(&network, &weights, &digits.test.unwrap(), plan.loss).accuracy() > Some(0.3));
    /// # Ok::<(), quell::Error>(())
    /// ```
    pub fn train<B: Book>(
        &self,
        network: &Network,
        examples: &Examples,
        ledger: &mut Ledger<B>,
    ) -> Result<Vec<f32>, Error> {
        let unit = ledger.state()?.terms().unit;
        terms::check(ledger, unit, self.neighbors)?;
        self.check_count(ledger.state()?.terms(), examples)?;
        let mut task = self.task(examples, unit)?;
        let mut checkpoint = Checkpoint::new(network, self)?;
        let mut lease = ledger.reserve(self.descent.clone(), self.runs)?;
        train(&mut lease, 0, (self, network), &mut task, &mut checkpoint, |_| Ok(Control::Continue))?;
        Ok(checkpoint.model().into_owned())
    }

    /// Checks that the number of records is the planned one, for batches of a fixed size.
    ///
    /// It is compared only if the ledger protects the replacement of one example, because only then is the
    /// number public.
    pub(in crate::learner) fn check_count(&self, terms: &Terms, examples: &Examples) -> Result<(), Error> {
        let is_public = terms.neighbors == Neighbors::Replace && terms.unit == Unit::Example;
        match self.descent.sampling {
            Sampling::WithoutReplacement { records, .. }
                if is_public && records != examples.row_count() as u64 =>
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

    /// The records, one for each privacy unit.
    pub(in crate::learner) fn task<'a>(
        &self,
        examples: &'a Examples,
        unit: Unit,
    ) -> Result<Supervised<'a>, Error> {
        let task = Supervised::new(examples, self.loss, self.augmentation);
        task.protecting(unit, self.neighbors, self.records)
    }

    /// Upper bound on ε after the first `runs` runs.
    pub(crate) fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        privacy::spent_after(&self.staged().0, runs, self.neighbors, self.delta)
    }
}

/// Runs before the steps and after them, which the same plan pays for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::learner) struct OtherRuns {
    /// Runs that prepare the records, and how many there are of each kind.
    pub(in crate::learner) preparation: Vec<(Descent, u64)>,
    /// The run that calibrates the model.
    pub(in crate::learner) calibration: Option<Descent>,
}

impl OtherRuns {
    /// A mechanism with these runs around it, and the number of all runs.
    fn around(&self, descent: Descent, runs: u64) -> (StagedDescent, u64) {
        staged((&self.preparation, self.calibration.as_ref()), descent, runs)
    }
}

/// A mechanism with what is run before it and after it, and the number of all runs.
fn staged(
    (preparation, calibration): (&[(Descent, u64)], Option<&Descent>),
    descent: Descent,
    runs: u64,
) -> (StagedDescent, u64) {
    let before: u64 = preparation.iter().map(|(_, runs)| runs).sum();
    let all = before.saturating_add(runs);
    let preparation = preparation.to_vec();
    let Some(calibration) = calibration.cloned() else {
        return (StagedDescent { preparation, descent }, all);
    };
    let first = preparation.into_iter().chain([(descent, runs)]).collect();
    (StagedDescent { preparation: first, descent: calibration }, all.saturating_add(1))
}

/// The public facts from which a mechanism follows.
struct Public<'a> {
    records: u64,
    delta: Delta,
    network: &'a Network,
    rules: Rules,
    clipping: Clip,
}

/// The most versions of an image.
const MOST_VERSIONS: usize = 1 << 12;

impl Recipe {
    /// Completes the settings for a network, from public facts. Nothing is charged yet.
    pub fn plan(&self, facts: &PublicFacts, network: &Network) -> Result<Plan, Error> {
        self.check_runs()?;
        self.plan_with(OtherRuns::default(), Kind::of_shape(network.input()), facts, network)
    }

    /// Checks that the settings ask for no runs besides the steps.
    pub(super) fn check_runs(&self) -> Result<(), Error> {
        let refused = |name| Error::Setting {
            name,
            found: "given, and the method is dp-sgd alone".into(),
            expected: "none, or the method of `learner::prepared`",
        };
        match self.calibration {
            _ if self.preparation.is_some() => Err(refused("preparation")),
            Some(Recalibration::Scores { .. }) => Err(refused("calibration")),
            None | Some(Recalibration::None {}) => Ok(()),
        }
    }

    /// The public number of records.
    pub(in crate::learner) fn records(&self, facts: &PublicFacts) -> Result<u64, Error> {
        let records = self.sampling.records.or(facts.records).filter(|records| *records > 0);
        records.ok_or(Error::Missing { what: Input::RecordCount })
    }

    /// Completes the settings for a network with runs before the steps or after them.
    pub(super) fn plan_with(
        &self,
        others: OtherRuns,
        kind: Kind,
        facts: &PublicFacts,
        network: &Network,
    ) -> Result<Plan, Error> {
        let records = self.records(facts)?;
        let delta = self.privacy.delta_for(records)?;
        let loss = self.loss(facts.classes);
        let optimizer = self.optimizer.unwrap_or(Optimizer::Momentum {
            momentum: 0.9,
            nesterov: false,
            weight_decay: 0.0,
        });
        loss.check()?;
        optimizer.check()?;
        self.schedule.map_or(Ok(()), |schedule| schedule.check())?;
        self.average.map_or(Ok(()), |average| average.check())?;
        self.check_augmentation()?;
        let rules = Rules::new(kind, network, loss);
        let clipping = self.clipping.unwrap_or(Clip::Flat { norm: rules.clip_norm() });
        let neighbors = self.privacy.neighbors;
        let public = Public { records, delta, network, rules, clipping };
        let plan = |target| self.mechanism(&others, &public, target);
        let cost = |(descent, runs, _): &(Descent, u64, f64)| {
            let (staged, runs) = others.around(descent.clone(), *runs);
            privacy::cost(&staged, runs, neighbors, delta)
        };
        let ((descent, runs, expected_batch), epsilon) = self.privacy.meet(delta, plan, cost)?;
        let (augmentation, seed) = (self.augmentation, self.seed);
        let steps = runs.saturating_mul(descent.sampling.batches());
        let norm = descent.clipping.norm();
        let noise = descent.noise_multiplier.get() * norm / expected_batch;
        let usual = rules.schedule(optimizer, steps, noise, norm);
        let schedule = self.schedule.unwrap_or(usual);
        let average = self.average.unwrap_or_else(|| Rules::average(steps));
        let OtherRuns { preparation, calibration } = others;
        Ok(Plan {
            preparation,
            calibration,
            descent,
            runs,
            neighbors,
            delta,
            epsilon,
            records,
            expected_batch,
            loss,
            optimizer,
            schedule,
            usual_learning_rate: usual.learning_rate,
            clipping,
            average,
            augmentation,
            seed,
        })
    }

    /// The loss. By default it is cross-entropy for classes and half the squared error for numbers.
    #[must_use]
    pub fn loss(&self, classes: Option<usize>) -> Loss {
        self.loss.unwrap_or(match classes {
            Some(_) => Loss::CrossEntropy { label_smoothing: 0.0 },
            None => Loss::Squared,
        })
    }

    fn check_augmentation(&self) -> Result<(), Error> {
        match self.augmentation {
            Some(Augmentation { versions, .. }) if !(1..=MOST_VERSIONS).contains(&versions) => {
                Err(Error::Setting {
                    name: "versions",
                    found: versions.to_string(),
                    expected: "a number in [1, 4096]",
                })
            }
            _ => Ok(()),
        }
    }

    /// Determines sampling rate, steps and noise. A missing one follows from the others.
    fn mechanism(
        &self,
        others: &OtherRuns,
        public: &Public<'_>,
        target: Option<Target>,
    ) -> Result<(Descent, u64, f64), Error> {
        let (neighbors, count) = (self.privacy.neighbors, public.records as f64);
        let rate = match self.sampling.by {
            Sampler::Full => Some(1.0),
            _ => self.sampling.rate.or(self.sampling.batch.map(|batch| (batch as f64 / count).min(1.0))),
        };
        let noise = self.privacy.noise_multiplier.map(NoiseMultiplier::new).transpose()?;
        let calibration = |wanted: Target| Calibration::new(wanted, neighbors);
        // Events do not depend on clipping.
        let event = |rate: f64, noise: NoiseMultiplier, steps: u64| {
            let (descent, runs, _) = self.assemble(public, rate, noise, steps)?;
            let (staged, runs) = others.around(descent, runs);
            Ok::<_, Error>(staged.event_of_runs(neighbors, runs))
        };
        let or_non_private = |event: Result<Event, Error>| event.unwrap_or(Event::NonPrivate);
        let rate = match (rate, target, noise, self.steps) {
            (Some(rate), ..) => rate,
            (None, Some(target), Some(noise), Some(steps)) => calibration(target)
                .largest_rate(|rate| or_non_private(event(rate.get(), noise, steps)))?
                .get(),
            _ => public.rules.rate(count),
        };
        let rate = SamplingRate::new(rate)?.get();
        let steps = match (self.steps, self.epochs, target, noise) {
            (Some(steps), ..) => steps,
            (None, Some(epochs), ..) if epochs > 0.0 && epochs / rate < 1e15 => {
                (epochs / rate).round().max(1.0) as u64
            }
            (None, Some(epochs), ..) => {
                return Err(Error::Setting {
                    name: "epochs",
                    found: epochs.to_string(),
                    expected: "a positive number",
                });
            }
            (None, None, Some(target), Some(noise)) => {
                calibration(target).most_steps(|steps| or_non_private(event(rate, noise, steps)))?
            }
            (None, None, Some(_), None) => {
                let noise = self.privacy.gaussian_noise(public.delta, 1)?;
                public.rules.steps(count / noise, rate)
            }
            (None, None, None, Some(noise)) => public.rules.steps_for_noise(noise.get(), rate, count),
            (None, None, None, None) => return Err(Error::Missing { what: Input::Epsilon }),
        };
        if steps == 0 {
            return Err(Error::Setting { name: "steps", found: "0".into(), expected: "at least 1" });
        }
        let noise = match (noise, target) {
            (Some(noise), _) => noise,
            (None, Some(target)) => {
                // Report an error in the settings as such, and not as a failed calibration.
                event(rate, NoiseMultiplier::new(1.0)?, steps)?;
                calibration(target).least_noise(|noise| or_non_private(event(rate, noise, steps)))?
            }
            (None, None) => {
                return Err(Error::Missing { what: Input::Epsilon });
            }
        };
        self.assemble(public, rate, noise, steps)
    }

    /// Builds the mechanism. Returns it with its number of runs and the expected batch size.
    fn assemble(
        &self,
        public: &Public<'_>,
        rate: f64,
        noise_multiplier: NoiseMultiplier,
        steps: u64,
    ) -> Result<(Descent, u64, f64), Error> {
        let &Public { records, network, clipping, .. } = public;
        let count = records as f64;
        let (sampling, expected) = match self.sampling.by {
            Sampler::Poisson => (Sampling::Poisson { rate: SamplingRate::new(rate)? }, rate * count),
            Sampler::Full => (Sampling::Full, rate * count),
            Sampler::WithoutReplacement => {
                let size = (rate * count).round().max(1.0) as u64;
                (Sampling::WithoutReplacement { size, records }, size as f64)
            }
            Sampler::Shuffled => {
                let batches = (1.0 / rate).round().clamp(1.0, 1e9) as u32;
                (Sampling::Shuffled { batches }, count / f64::from(batches))
            }
        };
        let clipping = clipping.settings(network, noise_multiplier, expected)?;
        let descent = Descent { sampling, clipping, noise_multiplier, dimension: network.parameters() };
        descent.check(self.privacy.neighbors)?;
        Ok((descent, steps.div_ceil(sampling.batches()), expected))
    }
}

impl Clip {
    /// Converts to the clipping settings of the mechanism.
    fn settings(
        self,
        network: &Network,
        noise: NoiseMultiplier,
        expected_batch: f64,
    ) -> Result<Clipping, Error> {
        Ok(match self {
            Self::Flat { norm } => Clipping::Flat { norm: ClipNorm::new(norm)? },
            Self::PerLayer { norm } => {
                let parts = network.parts();
                let share = ClipNorm::new(norm / (parts.len().max(1) as f64).sqrt())?;
                Clipping::PerPart { norms: vec![share; parts.len()], parts }
            }
            Self::Automatic { norm, stability } => {
                Clipping::Automatic { norm: ClipNorm::new(norm)?, stability: Stability::new(stability)? }
            }
            Self::Adaptive { norm, quantile, learning_rate, count_noise } => Clipping::Adaptive {
                norm: ClipNorm::new(norm)?,
                quantile: Probability::new(quantile)?,
                learning_rate: LearningRate::new(learning_rate)?,
                // At least twice the noise multiplier, so that the count does not cost more than the step.
                count_noise: Scale::new(
                    count_noise.unwrap_or_else(|| (expected_batch / 20.0).max(2.0 * noise.get())),
                )?,
                expected_batch: BatchSize::new(expected_batch)?,
            },
        })
    }
}
