//! Models without labels as a method that a run can pay for.

use quell_privacy::ledger::{Terms, Unit};
use serde_json::{Value, json};

use super::{Kind, Plan, Recipe, kmeans::Schedule, plan::Goal, state::Findings};
use crate::{
    Error,
    data::Examples,
    learner::{
        Predictor, Subject, Supervised,
        loss::Loss,
        method::check_width,
        sums::{SumLearner, Sums},
    },
    network::Architecture,
};

/// A model without labels, with complete settings.
pub struct Unsupervised {
    /// The training plan.
    pub plan: Plan,
}

impl SumLearner for Unsupervised {
    type Recipe = Recipe;
    type Estimates = Findings;

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

    fn sums(&self) -> &Sums {
        &self.plan.sums
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

    fn check(&self, _: &Terms, examples: &Examples) -> Result<(), Error> {
        check_width(examples, self.plan.width)
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        // The loss is not used: no target is read.
        let Sums { neighbors, records, .. } = self.plan.sums;
        Supervised::new(examples, Loss::Squared, None).protecting(unit, neighbors, records)
    }

    fn first(&self) -> Findings {
        self.plan.findings()
    }

    fn model(&self, findings: &Findings) -> Predictor {
        findings.model()
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
