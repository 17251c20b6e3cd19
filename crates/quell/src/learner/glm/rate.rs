//! The learning rate of a linear model, and what follows from it.

use quell_privacy::mechanism::Sampling;

use super::{Algorithm, Plan, rules::Rate};
use crate::{Error, learner::loss::Loss, range::POSITIVE};

/// Number of gradient steps for which the learning rates were found.
const REFERENCE_STEPS: f64 = 100.0;
/// The length of the noise in the mean of all gradients, beyond which it hides them.
///
/// Clipped gradients, and so their mean, are at most this long.
const MOST_NOISE: f64 = 1.0;

/// The largest learning rate, far beyond any use. A run that diverges has paid, and has no model.
const FASTEST: f64 = 1e6;

impl Plan {
    /// Standard deviation of the noise in the mean of all gradients of unit length, as if all steps were one.
    fn noise_share(&self) -> f64 {
        let noise = self.descent.noise_multiplier.get() / (self.runs as f64).sqrt();
        let outputs = self.classes.map_or(1, |classes| classes - 1).max(1);
        noise * ((self.columns.width() + 1) as f64 * outputs as f64).sqrt() / self.records as f64
    }

    /// Whether the noise in the mean gradient is longer than any mean gradient.
    pub(super) fn is_mostly_noise(&self) -> bool {
        self.noise_share() > MOST_NOISE
    }

    /// Refuses steps with which the weights grow beyond all numbers, whatever the records are.
    pub(super) fn check_learning_rate(&self) -> Result<(), Error> {
        POSITIVE.check("learning_rate", self.learning_rate)?;
        let (value, range) = (self.learning_rate, "(0, 1e6], and at most 2 divided by the regularization");
        // Each step multiplies a weight by 1 - ηλ.
        let is_penalty_stable =
            !self.rules.penalty_shrinks || self.learning_rate * self.regularization <= 2.0;
        if self.learning_rate > FASTEST || !is_penalty_stable {
            return Err(Error::OutOfRange { what: "learning_rate", value, range });
        }
        Ok(())
    }

    /// The learning rate. It falls with the noise, and is at most one over the weight of the penalty.
    pub(super) fn default_learning_rate(&self) -> f64 {
        let most = if self.rules.penalty_shrinks { 1.0 / self.regularization } else { f64::INFINITY };
        self.unpenalized_learning_rate().min(most)
    }

    /// The learning rate for a loss without penalty.
    fn unpenalized_learning_rate(&self) -> f64 {
        let noise = self.noise_share();
        match self.rules.rate {
            Rate::Measured if self.classes.is_some() => {
                (1.4 * noise.powf(-0.75)).min(192.0) * REFERENCE_STEPS / self.steps as f64
            }
            Rate::Measured => {
                let most = if self.waves.is_empty() { 1.0 } else { 3.0 };
                // Leaves add weights, and so noise.
                let rate = if self.forest.is_none() { 0.005 } else { 0.0025 };
                (rate / noise).min(most) * REFERENCE_STEPS / self.steps as f64
            }
            Rate::Fixed(rate) => rate,
            Rate::Theory => self.theoretical_learning_rate(),
        }
    }

    /// The learning rate η that minimises R²/(2ηT) + η(variance)/2, at most 1/smoothness.
    fn theoretical_learning_rate(&self) -> f64 {
        let dimension = (self.outputs() * (self.columns.width() + 1)) as f64;
        let noise = self.descent.noise_multiplier.get() / self.expected_batch();
        let sampled = if self.descent.sampling == Sampling::Full { 0.0 } else { 1.0 / self.expected_batch() };
        let variance = dimension * noise * noise + sampled;
        (self.family.weight_length() / (self.steps as f64 * variance).sqrt()).min(1.0 / self.curvature())
    }

    /// Largest second derivative of the loss, for examples of length one.
    pub(super) fn curvature(&self) -> f64 {
        curvature(self.loss)
    }

    /// ρ: the power of the likelihood whose posterior Langevin steps sample from; `None` for other methods.
    ///
    /// # Theorem
    /// [WFS15, Section 4] (THEORY, Langevin steps) A step moves the weights by -η∇f, with f the mean loss,
    /// plus noise of variance (ηz/b)², where b is the expected batch. These are Langevin steps of length η
    /// for the density e^(-f/T) if the variance is 2ηT. So T = ηz²/2b² and ρ = 1/(NT). The steps have a finite
    /// length, batches are samples and gradients are clipped, so the last iterate is only nearly a sample.
    /// Privacy does not depend on that: every step is paid for.
    #[must_use]
    pub fn langevin_power(&self) -> Option<f64> {
        let noise = self.descent.noise_multiplier.get() / self.expected_batch();
        let temperature = 0.5 * self.learning_rate * noise * noise;
        (self.algorithm == Algorithm::Sgld).then(|| 1.0 / (self.records as f64 * temperature))
    }
}

/// Largest second derivative of a loss, for examples of length one.
pub(super) fn curvature(loss: Loss) -> f64 {
    match loss {
        Loss::BinaryCrossEntropy => 0.25,
        Loss::CrossEntropy { .. } => 0.5,
        Loss::Hinge { smoothing } | Loss::Pinball { smoothing, .. } => 0.5 / f64::from(smoothing),
        Loss::Squared | Loss::Huber { .. } | Loss::Poisson => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        learner::{
            PublicFacts, Subject,
            glm::{Family, Recipe, State, stages::Stage},
        },
        random::PublicRandom,
    };

    /// Two numbers of the standard normal distribution.
    fn normal(random: &mut PublicRandom) -> [f64; 2] {
        let mut unit = || (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let (radius, angle) = ((-2.0 * (1.0 - unit()).ln()).sqrt(), std::f64::consts::TAU * unit());
        [radius * angle.cos(), radius * angle.sin()]
    }

    /// For the mean loss c/2 w², the density with the power ρ has variance 1/(ρNc). Steps of length η inflate
    /// it by 1/(1 - ηc/2): the variance v solves v = (1 - ηc)²v + (ηz/b)².
    #[test]
    fn langevin_steps_have_the_variance_of_the_posterior_with_the_stated_power() {
        let mut recipe = Recipe { method: Algorithm::Sgld, learning_rate: Some(0.2), ..Recipe::default() };
        (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-5));
        let facts = PublicFacts { records: Some(5_000), classes: None };
        let subject = Subject { shape: &[1], are_features: false, facts, schema: None };
        let plan = Plan::new(&recipe, Family::Linear, &subject).unwrap();
        let (power, records, batch) =
            (plan.langevin_power().unwrap(), plan.records as f64, plan.expected_batch());
        let (eta, noise) = (plan.learning_rate, plan.descent.noise_multiplier.get());
        let injected = (eta * noise / batch).powi(2);
        assert!((injected / (2.0 * eta / (power * records)) - 1.0).abs() < 1e-12);
        let curvature = 0.5;
        let mut state = State::new(&plan).unwrap();
        let mut random = PublicRandom::new(5);
        let steps = 200_000;
        let mut squares = 0.0;
        for step in 0..steps {
            let [weights, _] = state.weights(&plan, Stage::Gradient);
            let gradient: Vec<f32> = weights
                .iter()
                .zip(normal(&mut random))
                .map(|(w, z)| (batch * curvature * f64::from(*w) + noise * z) as f32)
                .collect();
            state.apply(&plan, &gradient, step).unwrap();
            squares += f64::from(weights[0]).powi(2) / steps as f64;
        }
        let expected = 1.0 / (power * records * curvature * (1.0 - 0.5 * eta * curvature));
        // 200,000 steps with correlation time 2/ηc count like 10,000 samples: 4.9 √(2/10⁴) is seven hundredths.
        assert!((squares / expected - 1.0).abs() < 0.07, "{squares} {expected}");
        // Other methods state no power.
        recipe.method = Algorithm::NoisySgd;
        assert_eq!(Plan::new(&recipe, Family::Linear, &subject).unwrap().langevin_power(), None);
    }
}
