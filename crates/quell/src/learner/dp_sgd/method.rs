//! DP-SGD as a method that a run can pay for, and its training loop.

use std::sync::Arc;

use quell_privacy::{
    ledger::{Book, Lease, Terms, Unit},
    mechanism::{Descends, Descent, Sampling},
    number::format_brief,
    units::ClipNorm,
};
use serde_json::{Value, json};

use super::{Checkpoint, Kind, OtherRuns, Plan, Recipe, Sampler};
use crate::{
    Error,
    data::Examples,
    learner::{
        Control, Gradients, Method, PlannedCost, Predictor, Subject, Supervised, method::check_targets,
        signal::NOISE_ALONE,
    },
    network::{Architecture, Network, Workspace},
    random::PublicRandom,
    terms,
};

/// DP-SGD with complete settings, for one network.
pub struct DpSgd {
    /// The network.
    pub network: Arc<Network>,
    /// The training plan.
    pub plan: Plan,
    recipe: Recipe,
    /// Number of classes; `None` if numbers are predicted.
    pub(in crate::learner) classes: Option<usize>,
}

/// From this many times the usual learning rate on, a plan has a remark.
const MUCH_LARGER: f64 = 20.0;

impl Method for DpSgd {
    type Recipe = Recipe;
    type Mechanism = Descent;
    type Task<'a> = Supervised<'a>;
    type State = Checkpoint;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        recipe.check_runs()?;
        Self::plan_with(OtherRuns::default(), Kind::of(subject), recipe, model, subject)
    }

    fn parameters(&self) -> usize {
        self.network.parameters()
    }

    fn cost(&self) -> PlannedCost {
        let Plan { epsilon, delta, neighbors, .. } = self.plan;
        PlannedCost { epsilon, delta, neighbors, requested: self.recipe.privacy.epsilon }
    }

    fn mechanism(&self) -> (Descent, u64) {
        (self.plan.descent.clone(), self.plan.runs)
    }

    fn steps_per_run(&self) -> u64 {
        self.plan.steps_per_run()
    }

    fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        self.plan.spent_after(runs)
    }

    fn records(&self) -> u64 {
        self.plan.records
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let Self { plan, recipe, .. } = self;
        let sampling = match recipe.sampling.by {
            Sampler::Poisson => "Poisson sampling: each record independently",
            Sampler::Full => "every record in every step",
            Sampler::WithoutReplacement => "a random set of fixed size",
            Sampler::Shuffled => "every record once per epoch",
        };
        let rate = recipe.sampling.rate.map(|rate| format!(", rate {}", format_brief(rate)));
        let mut settings = vec![
            ("steps", json!(plan.steps())),
            ("sampling", json!(format!("{sampling}{}", rate.unwrap_or_default()))),
            ("expected batch size", json!(plan.expected_batch)),
            ("noise multiplier", json!(plan.descent.noise_multiplier.get())),
            ("clipping", json!(plan.clipping)),
            ("loss", json!(plan.loss)),
            ("optimizer", json!(plan.optimizer)),
            ("learning rate", json!(plan.schedule.learning_rate)),
            ("schedule", json!(plan.schedule.shape)),
            ("averaging of iterates", json!(plan.average)),
        ];
        if plan.schedule.warm_up > 0 {
            settings.push(("warm-up", json!(format!("{} steps", plan.schedule.warm_up))));
        }
        if let Some(augmentation) = plan.augmentation {
            settings.push(("augmentation", json!(augmentation)));
        }
        settings.push(("seed of public randomness", json!(plan.seed)));
        settings
    }

    fn remarks(&self) -> Vec<String> {
        let (found, usual) = (self.plan.schedule.learning_rate, self.plan.usual_learning_rate);
        let remark = || {
            format!(
                "the learning rate is {}, expected about {}; training may diverge",
                format_brief(found),
                format_brief(usual)
            )
        };
        (found > MUCH_LARGER * usual).then(remark).into_iter().collect()
    }

    fn remarks_on(&self, state: &Checkpoint) -> Vec<String> {
        let remark = |share: f64| {
            format!(
                "the model has not settled: in the last steps the mean gradient had {share:.2} of the clip norm, expected less than 0.5; try a learning rate of {} instead of {}, or more steps",
                format_brief(self.plan.schedule.learning_rate / 10.0),
                format_brief(self.plan.schedule.learning_rate),
            )
        };
        let noise = state.agreement().is_noise().then(|| NOISE_ALONE.into());
        state.agreement().unsettled().map(remark).into_iter().chain(noise).collect()
    }

    fn releases(&self) -> &'static str {
        "every iterate"
    }

    /// Features and classes must be the planned ones, and for batches of a fixed size the number of records, too.
    /// That number is compared only if the terms protect the replacement of one example: only then is it public.
    fn check(&self, terms: &Terms, examples: &Examples) -> Result<(), Error> {
        check_targets(examples, self.network.input().iter().product(), self.classes)?;
        self.plan.check_count(terms, examples)
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        self.plan.task(examples, unit)
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<Checkpoint, Error> {
        match saved {
            Some(bytes) => Checkpoint::restore(bytes, &self.network, &self.plan),
            None => Checkpoint::new(&self.network, &self.plan),
        }
    }

    fn fit<B: Book>(
        &self,
        mut lease: Lease<'_, Descent, B>,
        task: &mut Supervised<'_>,
        state: &mut Checkpoint,
        watch: impl FnMut(&Checkpoint) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        train(&mut lease, 0, (&self.plan, &self.network), task, state, watch)?;
        Ok(())
    }

    fn model(&self, state: &Checkpoint) -> Predictor {
        let (network, weights) = (Arc::clone(&self.network), state.model().into_owned());
        Predictor::network_of(network, weights, self.plan.loss)
    }
}

impl DpSgd {
    /// Completes the settings of a network with runs before the steps or after them, in the same plan.
    pub(in crate::learner) fn plan_with(
        others: OtherRuns,
        kind: Kind,
        recipe: &mut Recipe,
        model: &mut Architecture,
        subject: &Subject<'_>,
    ) -> Result<Self, Error> {
        let classes = subject.facts.classes;
        let loss = recipe.loss(classes);
        let misfit = |name, found: &str, expected| Error::Setting { name, found: found.into(), expected };
        if subject.are_features && recipe.augmentation.is_some() {
            let expected = "none: features are computed from the unchanged images";
            return Err(misfit("augmentation", "several versions of every image", expected));
        }
        if loss.classifies() != classes.is_some() {
            let found = if classes.is_some() {
                "one for numbers, and the targets are classes"
            } else {
                "one for classes, and the targets are numbers"
            };
            return Err(misfit("loss", found, "one that fits the targets"));
        }
        let network = model.build(subject.shape, loss.outputs(classes.unwrap_or(1)))?;
        let plan = recipe.plan_with(others, kind, &subject.facts, &network)?;
        if !plan.preparation.is_empty() && plan.steps_per_run() > 1 {
            let expected = "Poisson sampling, full batches or batches of a fixed size";
            return Err(misfit("sampling", "shuffled, on records that are prepared first", expected));
        }
        recipe.complete(&plan, subject.facts.records);
        Ok(Self { network: Arc::new(network), plan, recipe: recipe.clone(), classes })
    }
}

impl Recipe {
    /// Writes the choices of a plan into the settings, so that they yield the same plan again.
    fn complete(&mut self, plan: &Plan, records: Option<u64>) {
        self.sampling.records = self.sampling.records.or(records);
        if let Some(records) = self.sampling.records
            && self.sampling.by != Sampler::Full
        {
            self.sampling.rate = Some(match plan.descent.sampling {
                Sampling::Shuffled { batches } => 1.0 / f64::from(batches),
                Sampling::Poisson { .. } | Sampling::Full | Sampling::WithoutReplacement { .. } => {
                    self.sampling.rate.unwrap_or(plan.expected_batch / records as f64)
                }
            });
            self.sampling.batch = None;
        }
        (self.steps, self.epochs) = (Some(plan.steps()), None);
        self.privacy.noise_multiplier = Some(plan.descent.noise_multiplier.get());
        self.privacy.delta = Some(plan.delta.get());
        (self.loss, self.optimizer, self.schedule) =
            (Some(plan.loss), Some(plan.optimizer), Some(plan.schedule));
        (self.clipping, self.average) = (Some(plan.clipping), Some(plan.average));
    }
}

/// Takes all remaining steps of a plan, and calls `watch` with public progress after each.
///
/// The first `before` runs of the lease are over: they prepared the records. The runs after the steps stay in
/// the lease. Returns [`Control::Stop`] if `watch` stopped the training.
pub fn train<M: Descends, B: Book, S: AsRef<Checkpoint> + AsMut<Checkpoint>>(
    lease: &mut Lease<'_, M, B>,
    before: u64,
    (plan, network): (&Plan, &Network),
    task: &mut Supervised<'_>,
    state: &mut S,
    mut watch: impl FnMut(&S) -> Result<Control, Error>,
) -> Result<Control, Error> {
    terms::check_lease(lease, task.unit(), plan.neighbors)?;
    let mut workspace = Workspace::default();
    while Lease::position(lease) < before.saturating_add(plan.runs) {
        let Some(paid) = lease.next() else { break };
        let paid = paid?;
        // The state is ahead of the lease: a run of the preparation has no use any more.
        let Some(run) = (Lease::position(lease) - 1).checked_sub(before) else { continue };
        if run >= plan.runs {
            break;
        }
        let mut batches = M::start(paid, task.records())?;
        if let Some(norm) = state.as_ref().clip_norm() {
            batches = batches.with_clip_norm(norm);
        }
        let mut is_saved = false;
        for position in run * plan.steps_per_run().. {
            task.reseed(PublicRandom::of(plan.seed, position).bits());
            let checkpoint = state.as_mut();
            let noise = plan.noise(checkpoint);
            let mut gradients = Gradients::new(network, &*task, checkpoint.weights(), &mut workspace);
            let Some(released) = batches.next(&mut gradients) else { break };
            checkpoint.apply(plan, &released?, position, noise)?;
            let control = watch(state)?;
            if control == Control::Stop {
                return Ok(Control::Stop);
            }
            is_saved = control == Control::Saved;
        }
        // A run of several batches is confirmed once all of its batches are saved.
        if is_saved {
            lease.confirm()?;
        }
    }
    Ok(Control::Continue)
}

impl Plan {
    /// Standard deviation of the noise in the next gradient sum.
    fn noise(&self, checkpoint: &Checkpoint) -> f64 {
        let norm = checkpoint.clip_norm().map_or(self.descent.clipping.norm(), ClipNorm::get);
        self.descent.noise_multiplier.get() * norm
    }
}
