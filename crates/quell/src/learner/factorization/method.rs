//! Factorization of ratings as a method that a run can pay for.

use quell_privacy::{
    ledger::{Book, Lease, Terms, Unit},
    mechanism::Descent,
};
use serde_json::{Value, json};

use super::{
    Plan, Recipe, State,
    recipe::NAME,
    state::MOST_FACTORS,
    vectors::{Ratings, check_unit},
};
use crate::{
    Error,
    data::Examples,
    learner::{Control, Method, PlannedCost, Predictor, Subject, method::name_model, sums::Sums},
    network::Architecture,
};

/// A factorization of ratings, with complete settings.
pub struct Factorizing {
    /// The training plan.
    pub plan: Plan,
}

impl Method for Factorizing {
    type Recipe = Recipe;
    type Mechanism = Descent;
    type Task<'a> = Ratings;
    type State = State;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        name_model(model, NAME)?;
        let plan = Plan::new(recipe, subject)?;
        model.layers.clear();
        // The same settings yield the same plan again.
        plan.sums.complete(&mut recipe.privacy, &mut recipe.records);
        recipe.factors = Some(plan.paired > 0);
        Ok(Self { plan })
    }

    fn parameters(&self) -> usize {
        2 * self.plan.kept + MOST_FACTORS.min(self.plan.paired) * self.plan.paired
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
        let Plan { sums, items, kept, paired, .. } = &self.plan;
        vec![
            ("items in the public list", json!(items)),
            ("items with a bias", json!(kept)),
            ("items with factors", json!(paired)),
            ("runs", json!(sums.runs)),
            ("sampling", json!("every user in every run")),
            ("noise multiplier", json!(self.plan.sums.noise())),
        ]
    }

    fn remarks(&self) -> Vec<String> {
        self.plan.remark().into_iter().collect()
    }

    fn releases(&self) -> &'static str {
        "the noisy sum of each run"
    }

    fn check(&self, terms: &Terms, _: &Examples) -> Result<(), Error> {
        check_unit(terms.unit)
    }

    fn task(&self, examples: &Examples, unit: Unit) -> Result<Ratings, Error> {
        let Plan { sums: Sums { neighbors, records, .. }, items, scale, .. } = self.plan;
        Ratings::new(examples, (unit, neighbors, records), items, scale)
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<State, Error> {
        self.plan.state(saved)
    }

    fn fit<B: Book>(
        &self,
        lease: Lease<'_, Descent, B>,
        task: &mut Ratings,
        state: &mut State,
        watch: impl FnMut(&State) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        self.plan.sums.fit(lease, (task, task.records()), state, watch)
    }

    fn model(&self, state: &State) -> Predictor {
        Predictor::Factorization(state.estimates().model())
    }
}
