//! A decision tree as a method that a run can pay for.

use std::sync::Arc;

use quell_privacy::ledger::{Terms, Unit};
use serde_json::{Value, json};

use super::{NAME, Plan, Recipe, Splits, estimate, growth::Growth};
use crate::{
    Error,
    data::Examples,
    learner::{
        Predictor, Subject, Supervised,
        method::{check_targets, name_model},
        sums::{SumLearner, Sums},
    },
    network::{Architecture, Network},
};

/// A decision tree with complete settings.
pub struct Tree {
    network: Arc<Network>,
    /// The training plan.
    pub plan: Plan,
}

impl SumLearner for Tree {
    type Recipe = Recipe;
    type Estimates = Growth;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        let plan = Plan::new(recipe, subject)?;
        name_model(model, NAME)?;
        model.layers = plan.layers();
        let network = model.build(subject.shape, plan.outputs())?;
        plan.sums.complete(&mut recipe.privacy, &mut recipe.records);
        (recipe.depth, recipe.splits, recipe.tree_seed) =
            (Some(plan.depth), Some(plan.splits), Some(plan.seed));
        Ok(Self { network: Arc::new(network), plan })
    }

    fn parameters(&self) -> usize {
        self.network.parameters()
    }

    fn sums(&self) -> &Sums {
        &self.plan.sums
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let mut settings = vec![("largest depth of the tree", json!(self.plan.depth))];
        settings.extend(match self.plan.splits {
            Splits::Measured => vec![
                ("splits", json!("by noisy histograms of all columns")),
                ("runs that choose splits", json!(self.plan.sums.runs - 1)),
            ],
            Splits::Random => vec![
                ("splits", json!("at random, without looking at the records")),
                ("public seed of the splits", json!(self.plan.seed)),
            ],
        });
        settings.extend([
            ("sampling", json!("every record in every run")),
            ("noise multiplier", json!(self.plan.sums.noise())),
        ]);
        settings
    }

    fn remarks(&self) -> Vec<String> {
        let is_random = self.plan.splits == Splits::Random && self.plan.is_hidden();
        let remark = "with so few records, noise hides which splits are good: they are drawn at random, and all of \
                      the budget goes to the leaves";
        is_random.then(|| remark.to_owned()).into_iter().collect()
    }

    fn check(&self, _: &Terms, examples: &Examples) -> Result<(), Error> {
        check_targets(examples, self.plan.cells.width(), self.plan.classes)
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        let Sums { neighbors, records, .. } = self.plan.sums;
        Supervised::new(examples, self.plan.loss(), None).protecting(unit, neighbors, records)
    }

    fn first(&self) -> Growth {
        Growth::new(&self.plan)
    }

    fn model(&self, growth: &Growth) -> Predictor {
        let weights = estimate::weights(&self.plan, growth);
        Predictor::network_of(Arc::clone(&self.network), weights, self.plan.loss())
    }
}
