//! Linear models as a method that a run can pay for.

use std::sync::Arc;

use quell_privacy::{
    ledger::{Book, Lease, Terms, Unit},
    mechanism::{Descent, Sampling},
};
use serde_json::{Value, json};

use super::{
    Family, Plan, Recipe, State, compact::CompactRecords, stages::Stage, suitability::check_examples,
    vectors::Vectors,
};
use crate::{
    Error,
    data::Examples,
    learner::{Control, Method, PlannedCost, Predictor, Subject, Supervised, privacy, signal::NOISE_ALONE},
    network::{Architecture, Network, Task},
    terms,
};

/// A linear model with complete settings.
pub struct Glm {
    /// The model, with the layers that standardise its input.
    network: Arc<Network>,
    /// The training plan.
    pub plan: Plan,
    requested: Option<f64>,
    /// The model as its name says, which an additive one is before it is planned as a linear one.
    family: Family,
    /// Whether no model was named.
    is_chosen: bool,
}

impl Method for Glm {
    type Recipe = Recipe;
    type Mechanism = Descent;
    type Task<'a> = Supervised<'a>;
    type State = State;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        let is_chosen = model.name.is_none();
        let family = Family::of(model, subject, recipe.method)?;
        let plan = Plan::new(recipe, family, subject)?;
        model.name = Some(family.name().into());
        model.layers = plan.layers();
        let network = model.build(subject.shape, plan.outputs())?;
        let requested = recipe.privacy.epsilon;
        recipe.complete(&plan);
        Ok(Self { network: Arc::new(network), plan, requested, family, is_chosen })
    }

    fn parameters(&self) -> usize {
        self.plan.outputs() * (self.plan.features() + 1)
    }

    fn cost(&self) -> PlannedCost {
        let Plan { epsilon, delta, neighbors, .. } = self.plan;
        PlannedCost { epsilon, delta, neighbors, requested: self.requested }
    }

    fn mechanism(&self) -> (Descent, u64) {
        (self.plan.descent.clone(), self.plan.runs)
    }

    fn steps_per_run(&self) -> u64 {
        self.plan.descent.sampling.batches()
    }

    fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        privacy::spent_after(&self.plan.descent, runs, self.plan.neighbors, self.plan.delta)
    }

    fn records(&self) -> u64 {
        self.plan.records
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let plan = &self.plan;
        let sampling = match plan.descent.sampling {
            Sampling::Full => "every record in every step".to_owned(),
            sampling => sampling.to_string(),
        };
        let of = |stage: Stage| plan.stages.iter().find(|(used, _)| *used == stage).map(|(_, steps)| *steps);
        let mut settings = vec![("method", json!(plan.algorithm.name()))];
        for (stage, name) in [
            (Stage::Means, "steps that find means of columns"),
            (Stage::Deviations, "steps that find spreads of columns"),
            (Stage::Moments, "steps that find products of columns"),
            (Stage::Gradient, "gradient steps"),
            (Stage::Reference, "steps that find reference gradients"),
            (Stage::Correction, "steps that correct gradients"),
            (Stage::Calibration, "steps that calibrate predictions"),
        ] {
            settings.extend(of(stage).map(|steps| (name, json!(steps))));
        }
        settings.extend([
            ("sampling", json!(sampling)),
            ("noise multiplier", json!(plan.descent.noise_multiplier.get())),
            ("loss", json!(plan.loss)),
            ("learning rate", json!(plan.learning_rate)),
            ("averaging of iterates", json!(plan.average)),
        ]);
        if let Some(power) = plan.langevin_power() {
            settings.push(("power of the likelihood in the limit of short steps", json!(power)));
        }
        if let Some((trees, seed)) = plan.trees {
            settings.extend([("random trees", json!(trees)), ("public seed of the trees", json!(seed))]);
        }
        if self.family.is_additive() {
            let waves = match plan.waves.len() {
                0 if plan.is_too_noisy_for_curves() => {
                    json!("0: the noise is too large for curves, so each number has a straight line")
                }
                0 => json!("0: each number has a straight line"),
                waves => json!(waves),
            };
            settings.push(("waves for each number", waves));
        }
        if plan.regularization > 0.0 {
            settings.push(("regularization", json!(plan.regularization)));
        }
        settings
    }

    fn remarks(&self) -> Vec<String> {
        let plan = &self.plan;
        let mut remarks = Vec::new();
        remarks.extend(self.family.remark(plan.algorithm, self.is_chosen));
        let has_lines = self.family == Family::Additive && plan.waves.is_empty();
        if plan.is_mostly_noise() {
            remarks.push(
                "with so few records and so much noise, the model will be mostly noise: more records, fewer \
                 columns or a larger ε changes that"
                    .into(),
            );
        } else if has_lines && plan.columns.numbers() > 0 && plan.is_too_noisy_for_curves() {
            remarks.push(
                "the noise is too large for curves, so each number gets a straight line: more records or a \
                 larger ε changes that"
                    .into(),
            );
        }
        remarks
    }

    fn remarks_on(&self, state: &State) -> Vec<String> {
        state.is_noise(&self.plan).then(|| NOISE_ALONE.into()).into_iter().collect()
    }

    fn releases(&self) -> &'static str {
        "the noisy sum of each step"
    }

    fn check(&self, _: &Terms, examples: &Examples) -> Result<(), Error> {
        check_examples(examples, &self.plan.columns, self.plan.classes)
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        Supervised::new(examples, self.plan.loss, None).protecting(
            unit,
            self.plan.neighbors,
            self.plan.records,
        )
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<State, Error> {
        match saved {
            Some(bytes) => State::restore(bytes, &self.plan),
            None => State::new(&self.plan),
        }
    }

    fn fit<B: Book>(
        &self,
        mut lease: Lease<'_, Descent, B>,
        task: &mut Supervised<'_>,
        state: &mut State,
        mut watch: impl FnMut(&State) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        let plan = &self.plan;
        terms::check_lease(&mut lease, task.unit(), plan.neighbors)?;
        let mut records = CompactRecords::new(task, &plan.columns);
        let mut has_leaves = false;
        while let Some(paid) = lease.next() {
            let (paid, run) = (paid?, lease.position() - 1);
            let mut batches = paid.start(task.records())?;
            let mut is_saved = false;
            let first = run * self.steps_per_run();
            for position in first..first + self.steps_per_run() {
                let (stage, _) = plan.stage(position);
                let standardization = state.standardization(plan);
                // Thresholds do not change once gradients are computed.
                if let (Some(trees), true, false) = (&plan.forest, stage.has_scores(), has_leaves) {
                    records = records.with_leaves(task, trees, &plan.thresholds(&standardization));
                    has_leaves = true;
                }
                let [weights, anchor] = state.weights(plan, stage);
                let records = (&records, task.is_grouped());
                let mut vectors = Vectors::new(plan, records, stage, &standardization, [&weights, &anchor]);
                let Some(released) = batches.next(&mut vectors) else { break };
                state.apply(plan, &released?.sum, position)?;
                let control = watch(state)?;
                if control == Control::Stop {
                    return Ok(());
                }
                is_saved = control == Control::Saved;
            }
            // A run of several batches is confirmed once all of its batches are saved.
            if is_saved {
                lease.confirm()?;
            }
        }
        Ok(())
    }

    fn model(&self, state: &State) -> Predictor {
        Predictor::network_of(Arc::clone(&self.network), state.model(&self.plan), self.plan.loss)
    }
}

impl Recipe {
    /// Writes the choices of a plan into the settings, so that they yield the same plan again.
    fn complete(&mut self, plan: &Plan) {
        self.privacy.noise_multiplier = Some(plan.descent.noise_multiplier.get());
        self.privacy.delta = Some(plan.delta.get());
        self.records = Some(plan.records);
        self.calibration = Some(plan.calibration.is_some());
        self.waves = plan.algorithm.has("waves").then_some(plan.waves.len() as u64);
        (self.trees, self.tree_seed) = plan.trees.unzip();
        self.steps = Some(plan.steps);
        self.learning_rate = plan.algorithm.has("learning_rate").then_some(plan.learning_rate);
        self.regularization = Some(plan.regularization);
        self.sampling_rate = match plan.descent.sampling {
            Sampling::Poisson { rate } => Some(rate.get()),
            _ => None,
        };
    }
}
