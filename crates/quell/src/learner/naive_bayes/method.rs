//! Naive Bayes as a method that a run can pay for.

use std::sync::Arc;

use quell_privacy::{
    ledger::{Book, Lease, Terms, Unit},
    mechanism::Descent,
};
use serde_json::{Value, json};

use super::{NAME, Plan, Recipe, estimate, vectors::Vectors};
use crate::{
    Error,
    data::Examples,
    learner::{
        Control, Method, PlannedCost, Predictor, Subject, Supervised,
        glm::Weights,
        method::{check_targets, name_model},
        sums::Sums,
    },
    network::{Architecture, Network},
    terms,
};

/// Naive Bayes with complete settings.
pub struct NaiveBayes {
    network: Arc<Network>,
    /// The plan of the release.
    pub plan: Plan,
}

impl Method for NaiveBayes {
    type Recipe = Recipe;
    type Mechanism = Descent;
    type Task<'a> = Supervised<'a>;
    /// The released sum.
    type State = Weights;

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

    fn state(&self, saved: Option<&[u8]>) -> Result<Weights, Error> {
        Weights::new(self.plan.sums.descent.dimension, saved)
    }

    fn fit<B: Book>(
        &self,
        mut lease: Lease<'_, Descent, B>,
        task: &mut Supervised<'_>,
        state: &mut Weights,
        mut watch: impl FnMut(&Weights) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        terms::check_lease(&mut lease, self.plan.sums.neighbors)?;
        while let Some(paid) = lease.next() {
            let (paid, run) = (paid?, lease.position() - 1);
            let mut batches = paid.start(task.records())?;
            let Some(released) = batches.next(&mut Vectors::new(&self.plan, task)) else { continue };
            state.values = released?.sum.iter().map(|sum| f64::from(*sum)).collect();
            state.advance(run);
            match watch(state)? {
                Control::Stop => return Ok(()),
                Control::Saved => lease.confirm()?,
                Control::Continue => {}
            }
        }
        Ok(())
    }

    fn model(&self, state: &Weights) -> Predictor {
        let weights = estimate::weights(&self.plan, &state.values);
        Predictor::network_of(Arc::clone(&self.network), weights, Plan::loss())
    }
}
