//! A fitted model: what predicts, without its data, settings or payment.

use std::{borrow::Cow, sync::Arc};

use super::{
    Evaluation, Prediction, correct,
    evaluation::{compare, evaluate_outputs, outputs, some_pairs},
    factorization::Factorization,
    loss::{Loss, Target},
    prepared::Transform,
    synthesis::Synthesizer,
    tensors::Tensor,
    unsupervised::{Clusters, Components},
};
use crate::{data::Examples, network::Network};

/// A fitted model.
#[derive(Clone, Debug)]
pub enum Predictor {
    /// Predicts the target of an example.
    Network(NetworkModel),
    /// Finds the cluster of an example.
    Clusters(Clusters),
    /// Finds the coordinates of an example along a few directions.
    Components(Components),
    /// Recommends items to a user.
    Factorization(Factorization),
    /// Draws rows of a table.
    Synthesizer(Synthesizer),
}

/// What every kind of model offers to runs, commands and reports.
///
/// A model that has no answer for one example keeps the default.
pub(crate) trait Fitted {
    /// All fitted numbers.
    fn weights(&self) -> &[f32];

    /// The tensors of a model file.
    fn tensors(&self) -> Vec<(String, Tensor)>;

    /// Hashes all numbers that predictions depend on.
    fn hash(&self, update: &mut dyn FnMut(&[u8])) {
        hash_numbers(self.weights(), update);
    }

    /// What is measured where records are public, in one or two words.
    fn measure(&self) -> &'static str;

    /// Measures the model on examples.
    fn evaluate(&self, examples: &Examples) -> Evaluation;

    /// Measures the model like [`Fitted::evaluate`], for a progress bar: accuracy or error alone.
    fn evaluate_briefly(&self, examples: &Examples) -> Evaluation {
        self.evaluate(examples)
    }

    /// At most `most` pairs of a target and a predicted number, on the scale of training.
    fn some_pairs(&self, _: &Examples, _most: usize) -> Vec<[f64; 2]> {
        Vec::new()
    }

    /// The names of the columns of a prediction.
    fn columns(&self) -> Vec<String> {
        vec!["prediction".into()]
    }

    /// The class or number that is predicted for each example.
    fn targets(&self, examples: &Examples) -> Vec<Option<Target>> {
        vec![None; examples.len()]
    }

    /// The prediction for each example. `name` converts a class or number.
    fn predict(
        &self,
        examples: &Examples,
        name: &dyn Fn(Target) -> Option<Prediction>,
    ) -> Vec<Option<Prediction>> {
        self.targets(examples).into_iter().map(|target| target.and_then(name)).collect()
    }

    /// Numbers for each example, from which its prediction follows.
    fn scores(&self, examples: &Examples) -> Vec<Vec<f32>> {
        vec![Vec::new(); examples.len()]
    }

    /// Whether the class of each example is predicted.
    fn correct(&self, examples: &Examples) -> Vec<bool> {
        vec![false; examples.len()]
    }
}

/// Hashes numbers.
pub(super) fn hash_numbers<'n>(numbers: impl IntoIterator<Item = &'n f32>, update: &mut dyn FnMut(&[u8])) {
    numbers.into_iter().for_each(|number| update(&number.to_le_bytes()));
}

/// A network with its weights.
#[derive(Clone)]
pub struct NetworkModel {
    /// The layers.
    pub network: Arc<Network>,
    /// The weights of all layers.
    pub weights: Vec<f32>,
    /// The loss that was minimised. It defines the meaning of the outputs.
    pub loss: Loss,
    /// What transforms every record before the network, if it was trained on prepared records.
    pub preparation: Option<Transform>,
    /// Whether targets are numbers with declared bounds, scaled to [-1, 1]. Then so are predictions.
    pub is_bounded: bool,
}

impl std::fmt::Debug for NetworkModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkModel")
            .field("weights", &self.weights.len())
            .field("loss", &self.loss)
            .finish_non_exhaustive()
    }
}

impl NetworkModel {
    /// The records as the network reads them. A record of another width is read as it is.
    fn prepared<'e>(&self, examples: &'e Examples) -> Cow<'e, Examples> {
        let transformed = self.preparation.as_ref().and_then(|transform| transform.apply(examples).ok());
        transformed.map_or(Cow::Borrowed(examples), Cow::Owned)
    }

    /// The outputs for each example, within the bounds of the target.
    fn outputs(&self, examples: &Examples) -> Vec<Vec<f32>> {
        let mut all = outputs(&self.network, &self.weights, &self.prepared(examples));
        // The outputs of other losses are no targets.
        if self.is_bounded && self.loss.predicts_outputs() {
            all.iter_mut().flatten().for_each(|output| *output = output.clamp(-1.0, 1.0));
        }
        all
    }
}

impl Fitted for NetworkModel {
    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn tensors(&self) -> Vec<(String, Tensor)> {
        let layers = self.network.tensors();
        layers
            .map(|(name, shape, range)| (name, Tensor::shaped(&self.weights[range], shape)))
            .chain(self.preparation.iter().flat_map(Transform::tensors))
            .collect()
    }

    fn hash(&self, update: &mut dyn FnMut(&[u8])) {
        let preparation = self.preparation.iter().flat_map(Transform::numbers);
        hash_numbers(self.weights.iter().chain(preparation), update);
    }

    fn measure(&self) -> &'static str {
        if self.loss.classifies() { "accuracy" } else { "error" }
    }

    fn evaluate(&self, examples: &Examples) -> Evaluation {
        evaluate_outputs(&self.outputs(examples), examples, self.loss)
    }

    fn evaluate_briefly(&self, examples: &Examples) -> Evaluation {
        compare(&self.outputs(examples), examples, self.loss)
    }

    fn some_pairs(&self, examples: &Examples, most: usize) -> Vec<[f64; 2]> {
        some_pairs(&self.outputs(examples), examples, self.loss, most)
    }

    fn targets(&self, examples: &Examples) -> Vec<Option<Target>> {
        self.outputs(examples).iter().map(|outputs| self.loss.predict(outputs)).collect()
    }

    fn scores(&self, examples: &Examples) -> Vec<Vec<f32>> {
        self.outputs(examples).iter().map(|outputs| self.loss.scores(outputs)).collect()
    }

    fn correct(&self, examples: &Examples) -> Vec<bool> {
        correct(&self.network, &self.weights, &self.prepared(examples), self.loss)
    }
}

impl Predictor {
    /// The model, whatever its kind.
    pub(crate) fn fitted(&self) -> &dyn Fitted {
        match self {
            Self::Network(network) => network,
            Self::Clusters(clusters) => clusters,
            Self::Components(components) => components,
            Self::Factorization(factorization) => factorization,
            Self::Synthesizer(synthesizer) => synthesizer,
        }
    }

    /// A network with its weights, and the loss that was minimised.
    pub(crate) fn network_of(network: Arc<Network>, weights: Vec<f32>, loss: Loss) -> Self {
        Self::Network(NetworkModel { network, weights, loss, preparation: None, is_bounded: false })
    }

    /// The same model for targets with these declared bounds, if there are any.
    pub(crate) fn within(mut self, bounds: Option<[f64; 2]>) -> Self {
        if let Self::Network(model) = &mut self {
            model.is_bounded = bounds.is_some();
        }
        self
    }

    /// The same model on records that are transformed first.
    pub(crate) fn prepared_by(mut self, transform: Transform) -> Self {
        if let Self::Network(model) = &mut self {
            model.preparation = Some(transform);
        }
        self
    }

    /// The network; `None` if the model is no network.
    #[must_use]
    pub fn network(&self) -> Option<&NetworkModel> {
        match self {
            Self::Network(network) => Some(network),
            _ => None,
        }
    }

    /// The weights of all layers, centres of all clusters, directions of all components, numbers of all items,
    /// or probabilities of all cells.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        self.fitted().weights()
    }

    /// Number of weights.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.weights().len()
    }

    /// Whether the model predicts a target.
    #[must_use]
    pub fn is_supervised(&self) -> bool {
        self.network().is_some()
    }

    /// What is measured where records are public, in one or two words.
    #[must_use]
    pub fn measure(&self) -> &'static str {
        self.fitted().measure()
    }

    /// The names of the columns of a prediction.
    #[must_use]
    pub fn columns(&self) -> Vec<String> {
        self.fitted().columns()
    }

    /// The class or number that is predicted for each example; `None` where the outputs are not numbers.
    ///
    /// The class is the cluster where the model has clusters. The other models predict nothing for
    /// one example.
    #[must_use]
    pub fn predictions(&self, examples: &Examples) -> Vec<Option<Target>> {
        self.fitted().targets(examples)
    }

    /// The predicted probabilities of the classes, the predicted number, or the scores of the components.
    ///
    /// For clusters: the squared distance to each centre. For the other models: nothing.
    #[must_use]
    pub fn scores(&self, examples: &Examples) -> Vec<Vec<f32>> {
        self.fitted().scores(examples)
    }

    /// Whether the class of each example is predicted. The result is exact, not private.
    ///
    /// Always false for models that predict no target.
    #[must_use]
    pub fn correct(&self, examples: &Examples) -> Vec<bool> {
        self.fitted().correct(examples)
    }

    /// Measures the model on examples. The result is exact, not private.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        self.fitted().evaluate(examples)
    }
}
