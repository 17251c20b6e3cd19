//! Models without labels as a method that a run can pay for.

use quell_privacy::{
    ledger::{Book, Lease, Terms, Unit},
    mechanism::Descent,
};
use serde_json::{Value, json};

use super::{Kind, Plan, Recipe, State, kmeans::Schedule, plan::Goal, vectors::Vectors};
use crate::{
    Error,
    data::Examples,
    learner::{Control, Method, PlannedCost, Predictor, Subject, Supervised, loss::Loss, privacy},
    network::Architecture,
};

/// A model without labels, with complete settings.
pub struct Unsupervised {
    /// The training plan.
    pub plan: Plan,
    requested: Option<f64>,
}

impl Method for Unsupervised {
    type Recipe = Recipe;
    type Mechanism = Descent;
    type Task<'a> = Supervised<'a>;
    type State = State;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        let plan = Plan::new(recipe, Kind::of(model)?, subject)?;
        model.layers.clear();
        let requested = recipe.privacy.epsilon;
        recipe.complete(&plan);
        Ok(Self { plan, requested })
    }

    fn parameters(&self) -> usize {
        let count = match self.plan.goal {
            Goal::Clusters(Schedule { clusters, .. }) => clusters,
            Goal::Components(components) => components,
        };
        count * self.plan.width
    }

    fn cost(&self) -> PlannedCost {
        let Plan { epsilon, delta, neighbors, .. } = self.plan;
        PlannedCost { epsilon, delta, neighbors, requested: self.requested }
    }

    fn mechanism(&self) -> (Descent, u64) {
        (self.plan.descent.clone(), self.plan.runs)
    }

    fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        privacy::spent_after(&self.plan.descent, runs, self.plan.neighbors, self.plan.delta)
    }

    fn records(&self) -> u64 {
        self.plan.records
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let mut settings = match self.plan.goal {
            Goal::Clusters(Schedule { clusters, levels, iterations }) => vec![
                ("clusters", json!(clusters)),
                (
                    "first centres",
                    json!(if levels.is_some() { "from a division of the space" } else { "from moments" }),
                ),
                ("runs that find the first centres", json!(self.plan.runs - iterations)),
                ("runs that move the centres", json!(iterations)),
            ],
            Goal::Components(components) => {
                vec![("components", json!(components)), ("runs", json!(self.plan.runs))]
            }
        };
        settings.extend([
            ("sampling", json!("every record in every run")),
            ("noise multiplier", json!(self.plan.descent.noise_multiplier.get())),
        ]);
        settings
    }

    fn remarks(&self) -> Vec<String> {
        self.plan.remark().into_iter().collect()
    }

    fn releases(&self) -> &'static str {
        "everything that is computed from the records, in each run"
    }

    fn check(&self, _: &Terms, _: &Examples) -> Result<(), Error> {
        Ok(())
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        // The loss is not used: no target is read.
        Supervised::new(examples, Loss::Squared, None).protecting(
            unit,
            self.plan.neighbors,
            self.plan.records,
        )
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<State, Error> {
        State::new(&self.plan, saved)
    }

    fn fit<B: Book>(
        &self,
        mut lease: Lease<'_, Descent, B>,
        task: &mut Supervised<'_>,
        state: &mut State,
        mut watch: impl FnMut(&State) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        let Plan { width, descent, .. } = &self.plan;
        while let Some(paid) = lease.next() {
            let (paid, run) = (paid?, lease.position() - 1);
            state.skip_to(run);
            let Some(stage) = state.stage() else { break };
            let mut vectors = Vectors::new(task, stage, *width, descent.dimension);
            let Some(released) = paid.start(task.records())?.next(&mut vectors) else { continue };
            state.apply(Some(&released?.sum));
            match watch(state)? {
                Control::Stop => return Ok(()),
                Control::Saved => lease.confirm()?,
                Control::Continue => {}
            }
        }
        // A kill after the last lease loses the last runs.
        state.skip_to(self.plan.runs);
        Ok(())
    }

    fn model(&self, state: &State) -> Predictor {
        state.model()
    }
}

impl Recipe {
    /// Writes the choices of a plan into the settings, so that they yield the same plan again.
    fn complete(&mut self, plan: &Plan) {
        self.privacy.noise_multiplier = Some(plan.descent.noise_multiplier.get());
        self.privacy.delta = Some(plan.delta.get());
        self.records = Some(plan.records);
        if let Goal::Clusters(Schedule { levels, iterations, .. }) = plan.goal {
            (self.levels, self.iterations) = (levels, Some(iterations));
        }
    }
}
