//! Factorization of ratings as a method that a run can pay for.

use quell_privacy::ledger::{Terms, Unit};
use serde_json::{Value, json};

use super::{
    Plan, Recipe,
    recipe::NAME,
    state::{Items, MOST_FACTORS},
    vectors::{Ratings, check_unit},
};
use crate::{
    Error,
    data::Examples,
    learner::{
        Predictor, Subject,
        method::name_model,
        sums::{SumLearner, Sums},
    },
    network::Architecture,
};

/// A factorization of ratings, with complete settings.
pub struct Factorizing {
    /// The training plan.
    pub plan: Plan,
}

impl SumLearner for Factorizing {
    type Recipe = Recipe;
    type Estimates = Items;

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

    fn sums(&self) -> &Sums {
        &self.plan.sums
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

    fn check(&self, terms: &Terms, _: &Examples) -> Result<(), Error> {
        check_unit(terms.unit)
    }

    fn task(&self, examples: &Examples, unit: Unit) -> Result<Ratings, Error> {
        let Plan { sums: Sums { neighbors, records, .. }, items, scale, .. } = self.plan;
        Ratings::new(examples, (unit, neighbors, records), items, scale)
    }

    fn first(&self) -> Items {
        Items::new(&self.plan)
    }

    fn model(&self, items: &Items) -> Predictor {
        Predictor::Factorization(items.model())
    }
}
