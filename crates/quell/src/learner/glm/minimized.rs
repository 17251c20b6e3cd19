//! Linear models that a few releases of weights fit, one for each output.
//!
//! With more than two classes, one release separates each class from all others.

use std::sync::Arc;

use quell_privacy::{
    Bound, Neighbors,
    ledger::{Book, Lease, Terms, Unit},
    mechanism::ConvexLoss,
    units::{Delta, Probability, Threshold},
};
use serde_json::{Value, json};

use super::{
    Columns, Family, Recipe,
    minimizer::{MOST_RECORDS, Minimizer, Problem},
    rows::Rows,
    suitability::{check_examples, checked_records},
    weights::Weights,
};
use crate::{
    Error,
    data::Examples,
    layer::Spec,
    learner::{Control, Method, PlannedCost, Predictor, Subject, Supervised, loss::Loss, privacy},
    network::{Architecture, Network},
    terms,
};

/// A linear model that each run of a mechanism fits at once.
pub struct Minimized<M> {
    mechanism: M,
    runs: u64,
    network: Arc<Network>,
    columns: Columns,
    loss: Loss,
    classes: Option<usize>,
    records: u64,
    neighbors: Neighbors,
    delta: Delta,
    epsilon: Bound,
    requested: Option<f64>,
    remark: Option<String>,
}

impl<M: Minimizer> Method for Minimized<M> {
    type Recipe = Recipe;
    type Mechanism = M;
    type Task<'a> = Supervised<'a>;
    type State = Weights;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        recipe.method = M::ALGORITHM;
        let is_chosen = model.name.is_none();
        let family = Family::of(model, subject, recipe.method)?;
        let records = checked_records(recipe, family, subject)?;
        let classes = subject.facts.classes;
        let loss = family.loss(classes, recipe.quantile)?;
        let columns = Columns::new(subject.schema, subject.shape.iter().product());
        let outputs = loss.outputs(classes.unwrap_or(1));
        let delta = recipe.privacy.delta_for(records)?;
        let (runs, neighbors) = (outputs as u64, recipe.privacy.neighbors);
        // The noise of one Gaussian release for each output is the public unit of noise.
        let unit = recipe.privacy.gaussian_noise(delta, runs)?;
        let problem = Problem {
            loss: convex_loss(family, recipe.quantile)?,
            dimension: columns.width() + 1,
            records,
            neighbors,
            noise: unit,
            weight_length: family.weight_length(),
            regularization: recipe.regularization,
            steps: recipe.steps,
            learning_rate: recipe.learning_rate,
        };
        let (mechanism, epsilon) = recipe.privacy.calibrate(delta, runs, |noise| M::new(&problem, noise))?;
        model.name = Some(family.name().into());
        model.layers = declared_layers(family, outputs);
        let network = Arc::new(model.build(subject.shape, outputs)?);
        let requested = recipe.privacy.epsilon;
        recipe.privacy.delta = Some(delta.get());
        recipe.records = Some(records);
        mechanism.complete(recipe);
        Ok(Self {
            mechanism,
            runs,
            network,
            columns,
            loss,
            classes,
            records,
            neighbors,
            delta,
            epsilon,
            requested,
            remark: family.remark(M::ALGORITHM, is_chosen),
        })
    }

    fn parameters(&self) -> usize {
        self.network.parameters()
    }

    fn cost(&self) -> PlannedCost {
        let Self { epsilon, delta, neighbors, requested, .. } = *self;
        PlannedCost { epsilon, delta, neighbors, requested }
    }

    fn mechanism(&self) -> (M, u64) {
        (self.mechanism.clone(), self.runs)
    }

    fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        privacy::spent_after(&self.mechanism, runs, self.neighbors, self.delta)
    }

    fn records(&self) -> u64 {
        self.records
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let mut settings = vec![("method", json!(M::ALGORITHM.name()))];
        if self.runs > 1 {
            settings.push(("models", json!("one for each class, against all others")));
        }
        settings.extend(self.mechanism.settings());
        settings
    }

    fn remarks(&self) -> Vec<String> {
        self.remark.iter().cloned().collect()
    }

    fn releases(&self) -> &'static str {
        "the weights of the model, and nothing that they were computed from"
    }

    fn check(&self, terms: &Terms, examples: &Examples) -> Result<(), Error> {
        if terms.unit == Unit::User {
            return Err(Error::Setting {
                name: "method",
                found: format!("{}, with users as the privacy unit", M::ALGORITHM.name()),
                expected: "a method that protects users, such as standardized or dp-sgd",
            });
        }
        check_examples(examples, &self.columns, self.classes)?;
        // The theorems need a limit. Beyond it, the refusal tells that there are more records than the limit.
        if examples.row_count() as u64 > MOST_RECORDS {
            return Err(Error::Setting {
                name: "data",
                found: format!("more than {MOST_RECORDS} records"),
                expected: "fewer, for this method",
            });
        }
        Ok(())
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        Supervised::new(examples, self.loss, None).protecting(unit, self.neighbors, self.records)
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<Weights, Error> {
        Weights::new(self.parameters(), saved)
    }

    fn fit<B: Book>(
        &self,
        mut lease: Lease<'_, M, B>,
        task: &mut Supervised<'_>,
        state: &mut Weights,
        mut watch: impl FnMut(&Weights) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        terms::check_lease(&mut lease, task.unit(), self.neighbors)?;
        while let Some(paid) = lease.next() {
            let (paid, output) = (paid?, lease.position() as usize - 1);
            let is_one_of_several = self.runs > 1;
            let rows =
                Rows { task, columns: &self.columns, class: is_one_of_several.then_some(output as u32) };
            let released = M::release(paid, &rows)?;
            // Features were divided by their largest length, and so was the constant feature.
            let scale = rows.scale();
            let (width, outputs) = (self.columns.width(), self.runs as usize);
            for (feature, weight) in released.iter().enumerate() {
                let place = if feature < width { output * width + feature } else { outputs * width + output };
                state.values[place] = weight * scale;
            }
            state.advance(output as u64);
            match watch(state)? {
                Control::Stop => return Ok(()),
                Control::Saved => lease.confirm()?,
                Control::Continue => {}
            }
        }
        Ok(())
    }

    fn model(&self, state: &Weights) -> Predictor {
        let weights = state.values.iter().map(|weight| *weight as f32).collect();
        Predictor::network_of(Arc::clone(&self.network), weights, self.loss)
    }
}

/// The layers: a linear one on the declared bounds.
pub(super) fn declared_layers(family: Family, outputs: usize) -> Vec<Spec> {
    let mut layers = vec![Spec::Linear { outputs }];
    if matches!(family, Family::Linear | Family::Ridge | Family::Quantile) {
        layers.push(Spec::HardTanh {});
    }
    layers
}

/// The loss of a family, as the mechanisms know it.
fn convex_loss(family: Family, quantile: Option<f32>) -> Result<ConvexLoss, Error> {
    Ok(match family {
        Family::Logistic => ConvexLoss::Logistic,
        Family::Svm => ConvexLoss::HuberHinge { smoothing: Threshold::new(0.5)? },
        // Targets are in [-1, 1], and residuals of good models are smaller.
        Family::Linear | Family::Ridge => ConvexLoss::Huber { threshold: Threshold::new(1.0)? },
        Family::Quantile => ConvexLoss::Quantile {
            level: Probability::new(quantile.unwrap_or(0.5).into())?,
            smoothing: Threshold::new(0.1)?,
        },
        Family::Additive | Family::Forest | Family::Poisson => {
            return Err(Error::Setting {
                name: "model",
                found: family.name().into(),
                expected: "another model for this method, or the method standardized",
            });
        }
    })
}
