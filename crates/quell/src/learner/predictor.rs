//! A fitted model: what predicts, without its data, settings or payment.

use std::sync::Arc;

use super::{
    Evaluation, correct, evaluate,
    loss::{Loss, Target},
    predictions, scores,
};
use crate::{data::Examples, network::Network};

/// A fitted model.
///
/// Code outside of this module uses the methods, so that another kind of model changes this module alone.
#[derive(Clone)]
pub struct Predictor {
    /// The layers.
    pub network: Arc<Network>,
    /// The weights of all layers.
    pub weights: Vec<f32>,
    /// The loss that was minimised. It defines the meaning of the outputs.
    pub loss: Loss,
}

impl Predictor {
    /// Number of weights.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.weights.len()
    }

    /// The class or number that is predicted for each example; `None` where the outputs are not numbers.
    #[must_use]
    pub fn predictions(&self, examples: &Examples) -> Vec<Option<Target>> {
        predictions(&self.network, &self.weights, examples, self.loss)
    }

    /// The predicted probabilities of the classes, or the predicted number, for each example.
    #[must_use]
    pub fn scores(&self, examples: &Examples) -> Vec<Vec<f32>> {
        scores(&self.network, &self.weights, examples, self.loss)
    }

    /// Whether the class of each example is predicted. The result is exact, not private.
    #[must_use]
    pub fn correct(&self, examples: &Examples) -> Vec<bool> {
        correct(&self.network, &self.weights, examples, self.loss)
    }

    /// Compares the predictions with the targets. The result is exact, not private.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        evaluate(&self.network, &self.weights, examples, self.loss)
    }
}
