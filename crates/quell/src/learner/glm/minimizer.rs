//! Mechanisms whose one release is the weights of a linear model: perturbed minimisers, and hidden descent.
//!
//! The mechanisms scale features to norm one themselves, so the declared bounds decide how much noise there
//! is relative to the features.

use quell_privacy::{
    Neighbors,
    ledger::Paid,
    mechanism::{
        ConvexLoss, HiddenDescent, LinearObjective, LinearRecords, Mechanism, ObjectivePerturbation,
        OutputPerturbation,
    },
    units::{LearningRate, NoiseMultiplier, Radius, Regularization, Tolerance},
};
use serde_json::{Value, json};

use super::{Algorithm, Recipe};

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
    pub(super) loss: ConvexLoss,
    /// Number of weights, with the bias.
    pub(crate) dimension: usize,
    pub(crate) records: u64,
    pub(super) neighbors: Neighbors,
    /// The standard deviation of Gaussian noise that would be private enough for one release.
    pub(super) noise: f64,
    /// W: the length of the weights of a good model.
    pub(super) weight_length: f64,
    /// The weight of the penalty in the settings, relative to the mean loss.
    pub(crate) regularization: Option<f64>,
    pub(super) steps: Option<u64>,
    pub(super) learning_rate: Option<f64>,
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

/// Rounds to 24 bits, so that settings that are written and read again yield the same number.
pub(crate) fn short(number: f64) -> f64 {
    f64::from(number as f32)
}
