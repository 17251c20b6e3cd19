//! Linear models that one release of weights fits: perturbed minimisers, and the last iterate of descent.
//!
//! The mechanisms scale features to norm one themselves, so the declared bounds decide how much noise there
//! is relative to the features. With more than two classes, one release separates each class from all others.

use std::sync::Arc;

use quell_privacy::{
    Bound, Neighbors,
    ledger::{Book, Lease, Paid, Terms, Unit},
    mechanism::{
        ConvexLoss, HiddenDescent, LinearObjective, LinearRecords, Mechanism, ObjectivePerturbation,
        OutputPerturbation,
    },
    units::{
        Delta, LearningRate, NoiseMultiplier, Probability, Radius, Regularization, Threshold, Tolerance,
    },
};
use safetensors::{Dtype, SafeTensors, serialize};
use serde_json::{Value, json};

use super::{Algorithm, Columns, Family, Recipe, plan::checked_records};
use crate::{
    Error,
    data::Examples,
    layer::Spec,
    learner::{
        Control, Method, PlannedCost, Predictor, Snapshot, Subject, Supervised, default_delta,
        loss::{Loss, Target},
        privacy,
        tensors::{Tensor, numbers},
    },
    network::{Architecture, Network, Task},
};

/// A mechanism whose one release is the weights of a linear model.
pub trait Minimizer: Mechanism {
    /// The algorithm that uses this mechanism.
    const ALGORITHM: Algorithm;

    /// The mechanism for a problem, with this much noise.
    fn new(problem: &Problem, noise: NoiseMultiplier) -> Result<Self, quell_privacy::Error>;

    /// Releases the weights.
    fn release(paid: Paid<Self>, records: &impl LinearRecords) -> Result<Vec<f64>, quell_privacy::Error>;

    /// The settings, for the report.
    fn settings(&self) -> Vec<(&'static str, Value)>;

    /// Writes the choices of a plan into the settings, so that they yield the same plan again.
    ///
    /// The number of records is written already.
    fn complete(&self, recipe: &mut Recipe);
}

impl Recipe {
    fn set_noise(&mut self, noise: NoiseMultiplier, regularization: Option<Regularization>) {
        self.privacy.noise_multiplier = Some(noise.get());
        let records = self.records.unwrap_or(1) as f64;
        self.regularization = regularization.map(|weight| weight.get() / records);
    }
}

/// Public facts about the problem that is minimised.
pub struct Problem {
    loss: ConvexLoss,
    /// Number of weights, with the bias.
    pub(crate) dimension: usize,
    pub(crate) records: u64,
    neighbors: Neighbors,
    /// The standard deviation of Gaussian noise that would be private enough for one release.
    noise: f64,
    /// W: the length of the weights of a good model.
    weight_length: f64,
    /// The weight of the penalty in the settings, relative to the mean loss.
    pub(crate) regularization: Option<f64>,
    steps: Option<u64>,
    learning_rate: Option<f64>,
}

/// The most records that these methods accept: the theorem needs a limit that is known without the records.
pub(crate) const MOST_RECORDS: u64 = 1 << 26;

/// The largest norm of the gradient at a minimiser, in units of one record.
const TOLERANCE: f64 = 1e-4;

/// The radius of the ball of weights, for examples of length one.
const RADIUS: f64 = 20.0;

/// Default number of hidden steps.
const STEPS: u64 = 400;

impl Problem {
    /// The weight of the penalty on the sum of the losses, if the settings have none.
    fn regularization(&self, default: f64) -> Result<Regularization, quell_privacy::Error> {
        Regularization::new(short(self.regularization.map_or(default, |weight| weight * self.records as f64)))
    }

    /// The usual length of a noise vector, in units of one record.
    fn noise_length(&self) -> f64 {
        self.noise * (self.dimension as f64).sqrt()
    }

    /// The penalty Λ that minimises nβ(σL/Λ)²/2 + ΛW²/2: what noise on the weights and the penalty cost.
    fn output_penalty(&self) -> f64 {
        let noise = self.noise * self.loss.slope() / self.weight_length;
        (2.0 * self.records as f64 * self.loss.curvature() * noise * noise).cbrt()
    }

    fn objective(&self, regularization: Regularization) -> Result<LinearObjective, quell_privacy::Error> {
        Ok(LinearObjective {
            loss: self.loss,
            regularization,
            dimension: self.dimension,
            most_records: MOST_RECORDS,
            tolerance: Tolerance::new(TOLERANCE)?,
        })
    }
}

impl Minimizer for OutputPerturbation {
    const ALGORITHM: Algorithm = Algorithm::OutputPerturbation;

    fn new(problem: &Problem, noise: NoiseMultiplier) -> Result<Self, quell_privacy::Error> {
        let objective = problem.objective(problem.regularization(problem.output_penalty())?)?;
        Ok(Self { objective, noise_multiplier: noise })
    }

    fn release(paid: Paid<Self>, records: &impl LinearRecords) -> Result<Vec<f64>, quell_privacy::Error> {
        paid.run(records)
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("loss", json!(self.objective.loss)),
            ("regularization of the sum of losses", json!(self.objective.regularization.get())),
            ("noise multiplier", json!(self.noise_multiplier.get())),
        ]
    }

    fn complete(&self, recipe: &mut Recipe) {
        recipe.set_noise(self.noise_multiplier, Some(self.objective.regularization));
    }
}

impl Minimizer for ObjectivePerturbation {
    const ALGORITHM: Algorithm = Algorithm::ObjectivePerturbation;

    fn new(problem: &Problem, noise: NoiseMultiplier) -> Result<Self, quell_privacy::Error> {
        let mut regularization = problem.regularization(0.3 * problem.noise_length())?;
        if problem.regularization.is_none() {
            // The curvature ratio adds to ε, so the penalty is several times the curvature.
            let least = 10.0 * problem.loss.curvature() * problem.noise.max(1.0);
            regularization = Regularization::new(short(regularization.get().max(least)))?;
        }
        Ok(Self {
            objective: problem.objective(regularization)?,
            noise_multiplier: noise,
            output_multiplier: NoiseMultiplier::new(20.0 * noise.get())?,
        })
    }

    fn release(paid: Paid<Self>, records: &impl LinearRecords) -> Result<Vec<f64>, quell_privacy::Error> {
        paid.run(records)
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("loss", json!(self.objective.loss)),
            ("regularization of the sum of losses", json!(self.objective.regularization.get())),
            ("noise multiplier of the linear term", json!(self.noise_multiplier.get())),
            ("noise multiplier of the weights", json!(self.output_multiplier.get())),
        ]
    }

    fn complete(&self, recipe: &mut Recipe) {
        recipe.set_noise(self.noise_multiplier, Some(self.objective.regularization));
    }
}

impl Minimizer for HiddenDescent {
    const ALGORITHM: Algorithm = Algorithm::HiddenState;

    fn new(problem: &Problem, noise: NoiseMultiplier) -> Result<Self, quell_privacy::Error> {
        let mut mechanism = Self {
            loss: problem.loss,
            regularization: Some(problem.regularization(0.3 * problem.noise_length())?),
            dimension: problem.dimension,
            radius: Radius::new(RADIUS)?,
            most_records: problem.records,
            learning_rate: LearningRate::new(1.0)?,
            steps: problem.steps.unwrap_or(STEPS),
            noise_multiplier: noise,
        };
        let largest = mechanism.largest_learning_rate(problem.neighbors);
        mechanism.learning_rate = LearningRate::new(problem.learning_rate.unwrap_or(largest))?;
        Ok(mechanism)
    }

    fn release(paid: Paid<Self>, records: &impl LinearRecords) -> Result<Vec<f64>, quell_privacy::Error> {
        paid.run(records)
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("loss", json!(self.loss)),
            ("hidden steps", json!(self.steps)),
            ("learning rate", json!(self.learning_rate.get())),
            ("regularization of the sum of losses", json!(self.regularization.map(Regularization::get))),
            ("radius of the weights", json!(self.radius.get())),
            ("noise multiplier", json!(self.noise_multiplier.get())),
        ]
    }

    fn complete(&self, recipe: &mut Recipe) {
        recipe.set_noise(self.noise_multiplier, self.regularization);
        (recipe.steps, recipe.learning_rate) = (Some(self.steps), Some(self.learning_rate.get()));
    }
}

/// A linear model that each run of a mechanism fits at once.
pub struct Minimized<M> {
    mechanism: M,
    runs: u64,
    network: Arc<Network>,
    columns: Columns,
    loss: Loss,
    records: u64,
    neighbors: Neighbors,
    delta: Delta,
    epsilon: Bound,
    requested: Option<f64>,
}

impl<M: Minimizer> Method for Minimized<M> {
    type Recipe = Recipe;
    type Mechanism = M;
    type Task<'a> = Supervised<'a>;
    type State = Weights;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        let family = Family::of(model, subject)?;
        let records = checked_records(recipe, family, subject)?;
        let classes = subject.facts.classes;
        let loss = family.loss(classes.unwrap_or(1), recipe.quantile)?;
        let columns = Columns::new(subject.schema, subject.shape.iter().product());
        let outputs = loss.outputs(classes.unwrap_or(1));
        let delta = Delta::new(recipe.privacy.delta.unwrap_or_else(|| default_delta(records)))?;
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
        Ok(Self { mechanism, runs, network, columns, loss, records, neighbors, delta, epsilon, requested })
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
        // The theorems need a limit. Beyond it, the refusal tells that there are so many records.
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
        Predictor { network: Arc::clone(&self.network), weights, loss: self.loss }
    }
}

/// Rounds to 24 bits, so that settings that are written and read again yield the same number.
pub(crate) fn short(number: f64) -> f64 {
    f64::from(number as f32)
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
        Family::Poisson => {
            return Err(Error::Setting {
                name: "model",
                found: "poisson".into(),
                expected: "another model for this method, or the method standardized",
            });
        }
    })
}

/// The records as a linear mechanism reads them: features of length at most one, and one target.
struct Rows<'a, 'e> {
    task: &'a Supervised<'e>,
    columns: &'a Columns,
    /// The class that is separated from all others; `None` if there are two classes or none.
    class: Option<u32>,
}

impl Rows<'_, '_> {
    /// The factor that makes an example and its constant feature at most one long.
    fn scale(&self) -> f64 {
        (self.columns.count as f64 + 1.0).sqrt().recip()
    }
}

impl LinearRecords for Rows<'_, '_> {
    fn records(&self) -> usize {
        self.task.records()
    }

    fn dimension(&self) -> usize {
        self.columns.width() + 1
    }

    fn read(&self, record: usize, features: &mut [f64]) -> Option<f64> {
        if self.task.examples(record) == 0 {
            return None;
        }
        let (constant, features) = features.split_last_mut()?;
        let mut example = vec![0.0; features.len()];
        self.task.gather(record, 0, &mut example);
        features.iter_mut().zip(&example).for_each(|(to, x)| *to = f64::from(*x) * self.scale());
        *constant = self.scale();
        Some(match (self.task.target_of(record, 0), self.class) {
            (Target::Number(number), _) => number.into(),
            (Target::Class(class), Some(wanted)) => {
                if class == wanted {
                    1.0
                } else {
                    -1.0
                }
            }
            (Target::Class(class), None) => {
                if class == 1 {
                    1.0
                } else {
                    -1.0
                }
            }
        })
    }
}

/// The weights that were released so far, and the number of releases.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    position: u64,
    taken: u64,
    pub(super) values: Vec<f64>,
}

/// Names of the tensors in a file.
const WEIGHTS: &str = "weights";
const COUNTERS: &str = "counters";

impl Weights {
    /// The state before the first release, or a saved state.
    pub(super) fn new(parameters: usize, saved: Option<&[u8]>) -> Result<Self, Error> {
        let start = Self { position: 0, taken: 0, values: vec![0.0; parameters] };
        match saved {
            Some(bytes) => start.restore(bytes),
            None => Ok(start),
        }
    }

    /// Counts a release. `position` is its number.
    pub(super) fn advance(&mut self, position: u64) {
        (self.position, self.taken) = (position + 1, self.taken + 1);
    }

    /// Restores a state that [`Snapshot::save`] wrote for the same plan.
    fn restore(mut self, bytes: &[u8]) -> Result<Self, Error> {
        let damaged =
            |part: &str| Error::saved(part, "missing or damaged", "the contents of a checkpoint of this run");
        let file = SafeTensors::deserialize(bytes).map_err(|_| damaged("the file"))?;
        let read = |name: &str, length: usize| {
            numbers(&file, name, Dtype::F64, f64::from_le_bytes)
                .filter(|values| values.len() == length && values.iter().all(|value| value.is_finite()))
                .ok_or_else(|| damaged(name))
        };
        self.values = read(WEIGHTS, self.values.len())?;
        let counters = read(COUNTERS, 2)?;
        (self.position, self.taken) = (counters[0] as u64, counters[1] as u64);
        Ok(self)
    }
}

impl Snapshot for Weights {
    fn position(&self) -> u64 {
        self.position
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    /// The file is a safetensors file.
    fn save(&self) -> Result<Vec<u8>, Error> {
        let tensors = [
            (WEIGHTS, Tensor::double(&self.values)),
            (COUNTERS, Tensor::double(&[self.position as f64, self.taken as f64])),
        ];
        serialize(tensors, None).map_err(|_| Error::saved("checkpoint", "not writable", "tensors"))
    }
}
