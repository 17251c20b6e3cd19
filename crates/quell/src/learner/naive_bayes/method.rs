//! Naive Bayes as a method that a run can pay for.

use std::sync::Arc;

use quell_privacy::ledger::{Terms, Unit};
use serde_json::{Value, json};

use super::{NAME, Plan, Recipe, estimate, released::ReleasedSum};
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

/// Naive Bayes with complete settings.
pub struct NaiveBayes {
    network: Arc<Network>,
    /// The plan of the release.
    pub plan: Plan,
}

impl SumLearner for NaiveBayes {
    type Recipe = Recipe;
    type Estimates = ReleasedSum;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        let plan = Plan::new(recipe, subject)?;
        name_model(model, NAME)?;
        model.layers = plan.layers();
        let network = model.build(subject.shape, plan.classes)?;
        plan.sums.complete(&mut recipe.privacy, &mut recipe.records);
        Ok(Self { network: Arc::new(network), plan })
    }

    fn parameters(&self) -> usize {
        self.network.parameters()
    }

    fn sums(&self) -> &Sums {
        &self.plan.sums
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("method", json!(NAME)),
            ("released numbers", json!(self.plan.sums.descent.dimension)),
            ("noise multiplier", json!(self.plan.sums.noise())),
        ]
    }

    fn releases(&self) -> &'static str {
        "one sum over all records"
    }

    fn check(&self, _: &Terms, examples: &Examples) -> Result<(), Error> {
        check_targets(examples, self.plan.block.features, Some(self.plan.classes))
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        let Sums { neighbors, records, .. } = self.plan.sums;
        Supervised::new(examples, Plan::loss(), None).protecting(unit, neighbors, records)
    }

    fn first(&self) -> ReleasedSum {
        ReleasedSum::new(&self.plan)
    }

    fn model(&self, released: &ReleasedSum) -> Predictor {
        let weights = estimate::weights(&self.plan, &released.values);
        Predictor::network_of(Arc::clone(&self.network), weights, Plan::loss())
    }
}
