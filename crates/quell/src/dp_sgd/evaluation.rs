//! How good a model is on examples that may be looked at.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::supervised::gather;
use crate::{
    data::{Examples, Targets},
    loss::{Loss, Target},
    network::Network,
};

/// What a model gets right. For examples that are public, or for the eyes of who holds them: nothing here is noisy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evaluation {
    /// Of classes.
    Classes {
        /// Examples predicted right.
        correct: u64,
        /// Examples in all.
        count: u64,
        /// `confusion[is][said]` is how often.
        confusion: Vec<Vec<u64>>,
    },
    /// Of numbers.
    Numbers {
        /// Root of the mean squared difference.
        error: f64,
        /// Examples in all.
        count: u64,
    },
}

impl Evaluation {
    /// The share of examples predicted right, where classes are predicted and there are examples.
    #[must_use]
    pub fn accuracy(&self) -> Option<f64> {
        match self {
            Self::Classes { correct, count, .. } if *count > 0 => Some(*correct as f64 / *count as f64),
            _ => None,
        }
    }
}

/// What the network predicts for each example.
#[must_use]
pub fn predictions(network: &Network, weights: &[f32], examples: &Examples, loss: Loss) -> Vec<Option<Target>> {
    each(network, weights, examples, |outputs| loss.predict(outputs))
}

/// What comes out of the network for each example, in the order of the examples: of classes the probability that each has according to the model, otherwise the number.
#[must_use]
pub fn scores(network: &Network, weights: &[f32], examples: &Examples, loss: Loss) -> Vec<Vec<f32>> {
    each(network, weights, examples, |outputs| loss.scores(outputs))
}

/// What comes out of the network for each example, as it is, in the order of the examples.
pub(crate) fn outputs(network: &Network, weights: &[f32], examples: &Examples) -> Vec<Vec<f32>> {
    each(network, weights, examples, <[f32]>::to_vec)
}

fn each<T: Clone + Default + Send>(
    network: &Network,
    weights: &[f32],
    examples: &Examples,
    make: impl Fn(&[f32]) -> T + Sync,
) -> Vec<T> {
    let all = Mutex::new(vec![T::default(); examples.len()]);
    network.predict(
        weights,
        examples.len(),
        |example, input| gather(examples, example, input),
        |example, outputs| {
            let made = make(outputs);
            all.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[example] = made;
        },
    );
    all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Compares predictions with targets.
#[must_use]
pub fn evaluate(network: &Network, weights: &[f32], examples: &Examples, loss: Loss) -> Evaluation {
    let predicted = predictions(network, weights, examples, loss);
    let count = predicted.len() as u64;
    match examples.targets() {
        Targets::Classes { labels, names } => {
            let mut confusion = vec![vec![0; names.len()]; names.len()];
            for (label, said) in labels.iter().zip(&predicted) {
                if let Some(Target::Class(said)) = said
                    && let Some(cell) = confusion.get_mut(*label as usize).and_then(|row| row.get_mut(*said as usize))
                {
                    *cell += 1;
                }
            }
            let correct = (0..names.len()).map(|class| confusion[class][class]).sum();
            Evaluation::Classes { correct, count, confusion }
        }
        Targets::Numbers(numbers) => {
            let squares = numbers.iter().zip(&predicted).map(|(number, said)| match said {
                Some(Target::Number(said)) => f64::from(number - said).powi(2),
                _ => f64::NAN,
            });
            Evaluation::Numbers { error: (squares.sum::<f64>() / count.max(1) as f64).sqrt(), count }
        }
    }
}
