//! Predictions of a model, and its accuracy on public examples.

use std::sync::Mutex;

use quell_privacy::number::format_brief;
use serde::{Deserialize, Serialize};

use super::supervised::gather;
use crate::{
    data::{Examples, Targets},
    learner::loss::{Loss, Target},
    network::Network,
};

/// The accuracy or error of a model. It is exact, not private.
///
/// Compute it on public examples, or show it only to people who may see the examples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evaluation {
    /// For a model that predicts classes.
    Classes {
        /// Number of correct predictions.
        correct: u64,
        /// Number of examples.
        count: u64,
        /// `confusion[true class][predicted class]` is the number of such examples.
        confusion: Vec<Vec<u64>>,
    },
    /// For a model that predicts numbers.
    Numbers {
        /// Root mean square error.
        error: f64,
        /// Number of examples.
        count: u64,
    },
    /// For a model of ratings.
    Ratings {
        /// Root mean square error, in the units of ratings.
        error: f64,
        /// Number of ratings.
        count: u64,
        /// The share of held-out items among ten recommendations, the mean of the users; none without users.
        #[serde(rename = "recall_at_10")]
        recall: Option<f64>,
        /// Number of users with enough ratings to hold some out.
        users: u64,
    },
    /// For a model of clusters.
    Clusters {
        /// Mean squared distance to the nearest centre, on the scale of the features.
        inertia: f64,
        /// Number of examples.
        count: u64,
    },
    /// For principal components.
    Components {
        /// The share of the variance that the components explain.
        explained: f64,
        /// Number of examples.
        count: u64,
    },
    /// For synthetic data.
    Pairs {
        /// Total variation distance between pairs of columns, in coarse groups: the mean of all pairs.
        distance: f64,
        /// Number of examples.
        count: u64,
    },
}

impl Evaluation {
    /// Describes the evaluation in words. `whose` names the examples, such as `public test records`.
    #[must_use]
    pub fn describe(&self, whose: &str) -> String {
        match self {
            Self::Classes { correct, count, .. } => {
                format!(
                    "accuracy: {:.1} % ({correct} of {count} {whose})",
                    100.0 * self.accuracy().unwrap_or(0.0)
                )
            }
            Self::Numbers { error, count } => {
                format!("root mean square error: {} (over {count} {whose})", format_brief(*error))
            }
            Self::Ratings { error, count, recall, .. } => {
                let recall = recall.map(|recall| format!("; recall@10: {:.1} %", 100.0 * recall));
                let error =
                    format!("root mean square error: {} (over {count} {whose})", format_brief(*error));
                error + &recall.unwrap_or_default()
            }
            Self::Clusters { inertia, count } => {
                format!(
                    "mean squared distance to the centres: {} (over {count} {whose})",
                    format_brief(*inertia)
                )
            }
            Self::Components { explained, count } => {
                format!("explained variance: {:.1} % (of {count} {whose})", 100.0 * explained)
            }
            Self::Pairs { distance, count } => format!(
                "mean distance between pairs of columns: {} (from {count} {whose})",
                format_brief(*distance)
            ),
        }
    }

    /// The same evaluation, with the error in the units of the target.
    ///
    /// Targets with declared bounds are scaled to [-1, 1] for training.
    #[must_use]
    pub fn in_units(&self, bounds: Option<[f64; 2]>) -> Self {
        match (self, bounds) {
            (Self::Numbers { error, count }, Some([low, high])) => {
                Self::Numbers { error: 0.5 * (high - low) * error, count: *count }
            }
            _ => self.clone(),
        }
    }

    /// A number that is larger for better models, to compare models of one kind on the same examples.
    pub(crate) fn goodness(&self) -> f64 {
        match self {
            Self::Classes { correct, .. } => *correct as f64,
            Self::Numbers { error, .. } | Self::Ratings { error, .. } => -error,
            Self::Clusters { inertia, .. } => -inertia,
            Self::Components { explained, .. } => *explained,
            Self::Pairs { distance, .. } => -distance,
        }
    }

    /// The share of correct predictions; `None` if there are no examples or no classes.
    #[must_use]
    pub fn accuracy(&self) -> Option<f64> {
        match self {
            Self::Classes { correct, count, .. } if *count > 0 => Some(*correct as f64 / *count as f64),
            _ => None,
        }
    }
}

/// The prediction of the network for each example.
#[must_use]
pub fn predictions(
    network: &Network,
    weights: &[f32],
    examples: &Examples,
    loss: Loss,
) -> Vec<Option<Target>> {
    each(network, weights, examples, |outputs| loss.predict(outputs))
}

/// Whether the network predicts the class of each example. False where the target is a number.
///
/// The result is exact, not private. [`Accuracy`](crate::statistics::Accuracy) releases the share of correct
/// predictions.
#[must_use]
pub fn correct(network: &Network, weights: &[f32], examples: &Examples, loss: Loss) -> Vec<bool> {
    let is_correct = |(example, prediction)| match (prediction, examples.label(example)) {
        (Some(Target::Class(class)), Some(label)) => class == label,
        _ => false,
    };
    predictions(network, weights, examples, loss).into_iter().enumerate().map(is_correct).collect()
}

/// The predicted probabilities of the classes, or the predicted number, for each example.
#[must_use]
pub fn scores(network: &Network, weights: &[f32], examples: &Examples, loss: Loss) -> Vec<Vec<f32>> {
    each(network, weights, examples, |outputs| loss.scores(outputs))
}

/// The raw network outputs for each example.
pub(crate) fn outputs(network: &Network, weights: &[f32], examples: &Examples) -> Vec<Vec<f32>> {
    each(network, weights, examples, <[f32]>::to_vec)
}

/// Converts the network outputs of each example by `make`, in the order of the examples.
fn each<T: Clone + Default + Send>(
    network: &Network,
    weights: &[f32],
    examples: &Examples,
    make: impl Fn(&[f32]) -> T + Sync,
) -> Vec<T> {
    let results = Mutex::new(vec![T::default(); examples.len()]);
    network.predict(
        weights,
        examples.len(),
        |example, input| gather(examples, example, input),
        |example, outputs| {
            let result = make(outputs);
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[example] = result;
        },
    );
    results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Evaluates a model by comparing its predictions with the targets.
#[must_use]
pub fn evaluate(network: &Network, weights: &[f32], examples: &Examples, loss: Loss) -> Evaluation {
    let predicted = predictions(network, weights, examples, loss);
    let count = predicted.len() as u64;
    match examples.targets() {
        Targets::Classes { labels, names } => {
            let mut confusion = vec![vec![0; names.len()]; names.len()];
            for (label, prediction) in labels.iter().zip(&predicted) {
                if let Some(Target::Class(prediction)) = prediction
                    && let Some(cell) =
                        confusion.get_mut(*label as usize).and_then(|row| row.get_mut(*prediction as usize))
                {
                    *cell += 1;
                }
            }
            let correct = (0..names.len()).map(|class| confusion[class][class]).sum();
            Evaluation::Classes { correct, count, confusion }
        }
        Targets::Numbers(numbers) => {
            let squares = numbers.iter().zip(&predicted).map(|(number, prediction)| match prediction {
                Some(Target::Number(prediction)) => f64::from(number - prediction).powi(2),
                _ => f64::NAN,
            });
            Evaluation::Numbers { error: (squares.sum::<f64>() / count.max(1) as f64).sqrt(), count }
        }
    }
}
