//! A fitted model: what predicts, without its data, settings or payment.

use std::{borrow::Cow, sync::Arc};

use super::{
    Evaluation, correct, evaluate,
    factorization::Factorization,
    loss::{Loss, Target},
    predictions,
    prepared::Transform,
    scores,
    synthesis::Synthesizer,
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
}

impl Predictor {
    /// A network with its weights, and the loss that was minimised.
    pub(crate) fn network_of(network: Arc<Network>, weights: Vec<f32>, loss: Loss) -> Self {
        Self::Network(NetworkModel { network, weights, loss, preparation: None })
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
            Self::Clusters(_) | Self::Components(_) | Self::Factorization(_) | Self::Synthesizer(_) => None,
        }
    }

    /// The weights of all layers, centres of all clusters, directions of all components, numbers of all items,
    /// or probabilities of all cells.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        match self {
            Self::Network(network) => &network.weights,
            Self::Clusters(clusters) => &clusters.centres,
            Self::Components(components) => &components.pca.components,
            Self::Factorization(factorization) => factorization.weights(),
            Self::Synthesizer(synthesizer) => synthesizer.weights(),
        }
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

    /// The class or number that is predicted for each example; `None` where the outputs are not numbers.
    ///
    /// The class is the cluster where the model has clusters. The other models predict nothing for
    /// one example.
    #[must_use]
    pub fn predictions(&self, examples: &Examples) -> Vec<Option<Target>> {
        match self {
            Self::Network(model) => {
                predictions(&model.network, &model.weights, &model.prepared(examples), model.loss)
            }
            Self::Clusters(clusters) => {
                clusters.assignments(examples).into_iter().map(|nearest| nearest.map(Target::Class)).collect()
            }
            Self::Components(_) | Self::Factorization(_) | Self::Synthesizer(_) => vec![None; examples.len()],
        }
    }

    /// The predicted probabilities of the classes, the predicted number, or the scores of the components.
    ///
    /// For clusters: the squared distance to each centre. For the other models: nothing.
    #[must_use]
    pub fn scores(&self, examples: &Examples) -> Vec<Vec<f32>> {
        match self {
            Self::Network(model) => {
                scores(&model.network, &model.weights, &model.prepared(examples), model.loss)
            }
            Self::Clusters(clusters) => clusters.distances(examples),
            Self::Components(components) => components.scores(examples),
            Self::Factorization(_) | Self::Synthesizer(_) => vec![Vec::new(); examples.len()],
        }
    }

    /// Whether the class of each example is predicted. The result is exact, not private.
    ///
    /// Always false for models that predict no target.
    #[must_use]
    pub fn correct(&self, examples: &Examples) -> Vec<bool> {
        match self {
            Self::Network(model) => {
                correct(&model.network, &model.weights, &model.prepared(examples), model.loss)
            }
            Self::Clusters(_) | Self::Components(_) | Self::Factorization(_) | Self::Synthesizer(_) => {
                vec![false; examples.len()]
            }
        }
    }

    /// Measures the model on examples. The result is exact, not private.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        match self {
            Self::Network(model) => {
                evaluate(&model.network, &model.weights, &model.prepared(examples), model.loss)
            }
            Self::Clusters(clusters) => clusters.evaluate(examples),
            Self::Components(components) => components.evaluate(examples),
            Self::Factorization(factorization) => factorization.evaluate(examples),
            Self::Synthesizer(synthesizer) => synthesizer.evaluate(examples),
        }
    }
}
