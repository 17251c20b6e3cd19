//! Synthetic data as a method that a run can pay for.

use quell_privacy::ledger::{Terms, Unit};
use serde_json::{Value, json};

use super::{Measurements, NAME, Plan, Recipe, vectors::Records};
use crate::{
    Error,
    data::Examples,
    learner::{
        Predictor, ResultFile, Results, Subject, Supervised,
        loss::Loss,
        method::{check_width, name_model},
        sums::{SumLearner, Sums},
    },
    network::Architecture,
};

/// The file of a run with synthetic rows.
const FILE: &str = crate::data::SYNTHETIC;

/// Synthetic data, with complete settings.
pub struct Synthesis {
    /// The plan of the releases.
    pub plan: Plan,
}

impl SumLearner for Synthesis {
    type Recipe = Recipe;
    type Estimates = Measurements;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        name_model(model, NAME)?;
        let plan = Plan::new(recipe, subject)?;
        model.layers.clear();
        plan.sums.complete(&mut recipe.privacy, &mut recipe.records);
        recipe.rows = Some(plan.rows.0 as u64);
        Ok(Self { plan })
    }

    /// Number of values of all columns. How many cells the model has depends on releases.
    fn parameters(&self) -> usize {
        self.plan.domain.sizes().iter().sum()
    }

    fn sums(&self) -> &Sums {
        &self.plan.sums
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("columns", json!(self.plan.domain.columns.len())),
            ("values of all columns", json!(self.parameters())),
            ("synthetic rows", json!(self.plan.rows.0)),
            ("runs", json!(self.plan.sums.runs)),
            ("sampling", json!("every record in every run")),
            ("noise multiplier", json!(self.plan.sums.noise())),
        ]
    }

    fn remarks(&self) -> Vec<String> {
        self.plan.remark().into_iter().collect()
    }

    fn check(&self, _: &Terms, examples: &Examples) -> Result<(), Error> {
        check_width(examples, self.plan.domain.features)
    }

    fn task(&self, examples: &Examples, unit: Unit) -> Result<Records, Error> {
        if examples.width() != self.plan.domain.features {
            return Err(Error::Sizes { name: "features" });
        }
        // The loss is not used: no target is read.
        let Sums { neighbors, records, .. } = self.plan.sums;
        let grouped = Supervised::new(examples, Loss::Squared, None).protecting(unit, neighbors, records)?;
        Ok(Records::new(&self.plan.domain, &grouped))
    }

    fn first(&self) -> Measurements {
        self.plan.first()
    }

    fn model(&self, estimates: &Measurements) -> Predictor {
        Predictor::Synthesizer(estimates.model())
    }

    fn results(&self, model: &Predictor) -> Results {
        let Predictor::Synthesizer(model) = model else { return Results::default() };
        let (rows, seed) = self.plan.rows;
        let [measured, others] = [true, false].map(|was_measured| model.error(was_measured));
        let lines = others.map(|error| error.describe("that were not measured"));
        let lines = lines.into_iter().chain(measured.map(|error| error.describe("that were measured")));
        let name = |column: &usize| model.domain().columns[*column].name.as_str();
        let pairs: Vec<_> = model.measured_pairs().iter().map(|(a, b)| [name(a), name(b)]).collect();
        let json = json!({
            "rows": rows,
            "synthetic": FILE,
            "measured_pairs": pairs,
            "error_of_pairs": {"measured": measured, "not_measured": others},
        });
        Results {
            file: Some(ResultFile { what: "synthetic rows", name: FILE, text: model.csv(rows, seed) }),
            lines: lines.collect(),
            json: json.as_object().cloned().unwrap_or_default(),
        }
    }
}
