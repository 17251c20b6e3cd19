//! Models without labels as a method that a run can pay for.

use quell_privacy::{
    ledger::{Book, Lease, Terms, Unit},
    mechanism::Descent,
};
use serde_json::{Value, json};

use super::{Kind, Plan, Recipe, State, kmeans::Schedule, plan::Goal};
use crate::{
    Error,
    data::Examples,
    learner::{
        Control, Method, PlannedCost, Predictor, Subject, Supervised, loss::Loss, method::check_width,
        sums::Sums,
    },
    network::Architecture,
};

/// A model without labels, with complete settings.
pub struct Unsupervised {
    /// The training plan.
    pub plan: Plan,
}

impl Method for Unsupervised {
    type Recipe = Recipe;
    type Mechanism = Descent;
    type Task<'a> = Supervised<'a>;
    type State = State;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        let plan = Plan::new(recipe, Kind::of(model)?, subject)?;
        model.layers.clear();
        recipe.complete(&plan);
        Ok(Self { plan })
    }

    fn parameters(&self) -> usize {
        let count = match self.plan.goal {
            Goal::Clusters(Schedule { clusters, .. }) => clusters,
            Goal::Components(components) => components,
        };
        count * self.plan.width
    }

    fn cost(&self) -> PlannedCost {
        self.plan.sums.cost()
    }

    fn mechanism(&self) -> (Descent, u64) {
        self.plan.sums.mechanism()
    }

    fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        self.plan.sums.spent_after(runs)
    }

    fn records(&self) -> u64 {
        self.plan.sums.records
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let mut settings = match self.plan.goal {
            Goal::Clusters(Schedule { clusters, levels, iterations }) => vec![
                ("clusters", json!(clusters)),
                (
                    "first centres",
                    json!(if levels.is_some() { "from a division of the space" } else { "from moments" }),
                ),
                ("runs that find the first centres", json!(self.plan.sums.runs - iterations)),
                ("runs that move the centres", json!(iterations)),
            ],
            Goal::Components(components) => {
                vec![("components", json!(components)), ("runs", json!(self.plan.sums.runs))]
            }
        };
        settings.extend([
            ("sampling", json!("every record in every run")),
            ("noise multiplier", json!(self.plan.sums.noise())),
        ]);
        settings
    }

    fn remarks(&self) -> Vec<String> {
        self.plan.remark().into_iter().collect()
    }

    fn releases(&self) -> &'static str {
        "the noisy sum of each run"
    }

    fn check(&self, _: &Terms, examples: &Examples) -> Result<(), Error> {
        check_width(examples, self.plan.width)
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        // The loss is not used: no target is read.
        let Sums { neighbors, records, .. } = self.plan.sums;
        Supervised::new(examples, Loss::Squared, None).protecting(unit, neighbors, records)
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<State, Error> {
        self.plan.state(saved)
    }

    fn fit<B: Book>(
        &self,
        lease: Lease<'_, Descent, B>,
        task: &mut Supervised<'_>,
        state: &mut State,
        watch: impl FnMut(&State) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        self.plan.sums.fit(lease, (task, task.records()), state, watch)
    }

    fn model(&self, state: &State) -> Predictor {
        state.estimates().model()
    }
}

impl Recipe {
    /// Writes the choices of a plan into the settings, so that they yield the same plan again.
    fn complete(&mut self, plan: &Plan) {
        plan.sums.complete(&mut self.privacy, &mut self.records);
        if let Goal::Clusters(Schedule { levels, iterations, .. }) = plan.goal {
            (self.levels, self.iterations) = (levels, Some(iterations));
        }
    }
}
