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
    vectors::{Ratings, Vectors, check_unit},
};
use crate::{
    Error,
    data::Examples,
    learner::{Control, Method, PlannedCost, Predictor, Subject, privacy},
    network::Architecture,
};

/// A factorization of ratings, with complete settings.
pub struct Factorizing {
    /// The training plan.
    pub plan: Plan,
    requested: Option<f64>,
}

impl Method for Factorizing {
    type Recipe = Recipe;
    type Mechanism = Descent;
    type Task<'a> = Ratings;
    type State = State;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        if model.name.get_or_insert_with(|| NAME.into()) != NAME {
            let found = model.name.clone().unwrap_or_default();
            return Err(Error::Setting { name: "model", found, expected: "factorization, for ratings" });
        }
        let plan = Plan::new(recipe, subject)?;
        model.layers.clear();
        let requested = recipe.privacy.epsilon;
        // The same settings yield the same plan again.
        recipe.privacy.noise_multiplier = Some(plan.descent.noise_multiplier.get());
        recipe.privacy.delta = Some(plan.delta.get());
        (recipe.records, recipe.factors) = (Some(plan.records), Some(plan.paired > 0));
        Ok(Self { plan, requested })
    }

    fn parameters(&self) -> usize {
        2 * self.plan.kept + MOST_FACTORS.min(self.plan.paired) * self.plan.paired
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
        let Plan { items, kept, paired, runs, .. } = &self.plan;
        vec![
            ("items in the public list", json!(items)),
            ("items with a bias", json!(kept)),
            ("items with factors", json!(paired)),
            ("runs", json!(runs)),
            ("sampling", json!("every user in every run")),
            ("noise multiplier", json!(self.plan.descent.noise_multiplier.get())),
        ]
    }

    fn remarks(&self) -> Vec<String> {
        self.plan.remark().into_iter().collect()
    }

    fn releases(&self) -> &'static str {
        "everything that is computed from the ratings, in each run"
    }

    fn check(&self, terms: &Terms, _: &Examples) -> Result<(), Error> {
        check_unit(terms.unit)
    }

    fn task(&self, examples: &Examples, unit: Unit) -> Result<Ratings, Error> {
        let Plan { neighbors, records, items, scale, .. } = self.plan;
        Ratings::new(examples, (unit, neighbors, records), items, scale)
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<State, Error> {
        State::new(&self.plan, saved)
    }

    fn fit<B: Book>(
        &self,
        mut lease: Lease<'_, Descent, B>,
        task: &mut Ratings,
        state: &mut State,
        mut watch: impl FnMut(&State) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        while let Some(paid) = lease.next() {
            let (paid, run) = (paid?, lease.position() - 1);
            state.skip_to(run);
            let Some(stage) = state.stage() else { break };
            let mut vectors = Vectors::new(task, stage, self.plan.descent.dimension);
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
        Predictor::Factorization(state.model())
    }
}
