//! Linear regression by one sample from its posterior, as a method of `quell train`.

use quell_privacy::{
    ledger::Paid,
    mechanism::{LinearRecords, PosteriorSample},
    units::{NoiseMultiplier, Power, Radius, Regularization},
};
use serde_json::{Value, json};

use crate::learner::glm::{Algorithm, MOST_RECORDS, Minimizer, Problem, Recipe, short};

/// The radius of the ball of weights, for examples of length one and targets in [-1, 1].
///
/// The power of the likelihood falls with its square.
const RADIUS: f64 = 3.0;

impl Minimizer for PosteriorSample {
    const ALGORITHM: Algorithm = Algorithm::OnePosterior;

    /// The likelihood gets the power at which the range of one record is one over the noise multiplier.
    fn new(problem: &Problem, noise: NoiseMultiplier) -> Result<Self, quell_privacy::Error> {
        let (dimension, records) = (problem.dimension, problem.records as f64);
        let mut mechanism = Self {
            dimension,
            radius: Radius::new(RADIUS)?,
            regularization: Regularization::new(1.0)?,
            most_records: MOST_RECORDS,
            power: Power::new(1.0)?,
        };
        let power = short(1.0 / (noise.get() * mechanism.range()));
        // By default the prior has weights whose usual length is the radius.
        let default = dimension as f64 / (RADIUS * RADIUS);
        let precision = problem.regularization.map_or(default, |weight| weight * records * power);
        mechanism.power = Power::new(power)?;
        mechanism.regularization = Regularization::new(short(precision))?;
        Ok(mechanism)
    }

    fn release(paid: Paid<Self>, records: &impl LinearRecords) -> Result<Vec<f64>, quell_privacy::Error> {
        paid.run(records)
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("loss", json!("squared")),
            ("power of the likelihood", json!(self.power.get())),
            ("precision of the prior", json!(self.regularization.get())),
            ("radius of the weights", json!(self.radius.get())),
        ]
    }

    fn complete(&self, recipe: &mut Recipe) {
        let power = self.power.get();
        let records = recipe.records.unwrap_or(1) as f64;
        recipe.privacy.noise_multiplier = Some(1.0 / (power * self.range()));
        recipe.regularization = Some(self.regularization.get() / (records * power));
    }
}
