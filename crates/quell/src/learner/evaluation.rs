//! Predictions of a model, and its accuracy on public examples.

use std::sync::Mutex;

use quell_privacy::number::format_brief;
use serde::{Deserialize, Serialize};

use super::{
    measures::{ClassMeasures, NumberMeasures},
    supervised::gather,
};
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
        /// Further measures. Earlier versions wrote none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        measures: Option<Box<ClassMeasures>>,
    },
    /// For a model that predicts numbers.
    Numbers {
        /// Root mean square error; not a number if a prediction is none. JSON has null for it.
        #[serde(deserialize_with = "number_or_null")]
        error: f64,
        /// Number of examples.
        count: u64,
        /// Further measures. Earlier versions wrote none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        measures: Option<NumberMeasures>,
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

/// Reads null as a number that is not a number.
fn number_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// A number with a few digits, or the word none.
fn brief_or_none(number: f64) -> String {
    if number.is_finite() { format_brief(rounded(number)) } else { "none".into() }
}

/// A number with five digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.4e}").parse().unwrap_or(number)
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
            Self::Numbers { error, count, .. } => {
                format!("root mean square error: {} (over {count} {whose})", brief_or_none(*error))
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

    /// The further measures in words, one line each; with notes on those that are missing.
    #[must_use]
    pub fn describe_measures(&self) -> Vec<String> {
        let (parts, notes) = match self {
            Self::Classes { measures: Some(measures), .. } => {
                let ClassMeasures { baseline, f1, auc, log_loss, calibration, notes, .. } = &**measures;
                let percent = |share: f64| format!("{:.1} %", 100.0 * share);
                let calibration = calibration.as_ref().map(|calibration| calibration.error);
                let parts = [
                    baseline.map(|share| format!("most frequent class {}", percent(share))),
                    auc.map(|auc| format!("AUC {auc:.3}")),
                    f1.map(|f1| format!("mean F1 {f1:.3}")),
                    log_loss.map(|loss| format!("log loss {loss:.3}")),
                    calibration.map(|error| format!("calibration error {}", percent(error))),
                ];
                (parts.to_vec(), notes)
            }
            Self::Numbers { measures: Some(measures), .. } => {
                let NumberMeasures { mean_absolute_error, r_squared, baseline, notes } = measures;
                let parts = [
                    mean_absolute_error.map(|error| format!("mean absolute error {}", brief_or_none(error))),
                    r_squared.map(|share| format!("R² {share:.3}")),
                    baseline.map(|error| format!("error of the mean {}", brief_or_none(error))),
                ];
                (parts.to_vec(), notes)
            }
            _ => return Vec::new(),
        };
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let line = (!parts.is_empty()).then(|| format!("measures: {}", parts.join(", ")));
        line.into_iter().chain(notes.iter().map(|note| format!("note: {note}"))).collect()
    }

    /// The same evaluation, with the error in the units of the target.
    ///
    /// Targets with declared bounds are scaled to [-1, 1] for training.
    #[must_use]
    pub fn in_units(&self, bounds: Option<[f64; 2]>) -> Self {
        match (self, bounds) {
            (Self::Numbers { error, count, measures }, Some([low, high])) => {
                let factor = 0.5 * (high - low);
                let measures = measures.as_ref().map(|measures| measures.scaled(factor));
                Self::Numbers { error: factor * error, count: *count, measures }
            }
            _ => self.clone(),
        }
    }

    /// The name and the value of the first measure.
    pub(crate) fn first_measure(&self) -> (&'static str, f64) {
        match self {
            Self::Classes { .. } => ("accuracy", self.accuracy().unwrap_or(f64::NAN)),
            Self::Numbers { error, .. } | Self::Ratings { error, .. } => ("root mean square error", *error),
            Self::Clusters { inertia, .. } => ("mean squared distance to the centres", *inertia),
            Self::Components { explained, .. } => ("explained variance", *explained),
            Self::Pairs { distance, .. } => ("mean distance between pairs of columns", *distance),
        }
    }

    /// Whether a higher value of the first measure is better.
    pub(crate) fn higher_is_better(&self) -> bool {
        matches!(self, Self::Classes { .. } | Self::Components { .. })
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

    /// The root mean square error of predicted numbers; `None` if it is not a number, or for other models.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        match self {
            Self::Numbers { error, .. } => Some(*error).filter(|error| error.is_finite()),
            _ => None,
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
    evaluate_outputs(&outputs(network, weights, examples), examples, loss)
}

/// Evaluates outputs like [`evaluate`].
pub(super) fn evaluate_outputs(outputs: &[Vec<f32>], examples: &Examples, loss: Loss) -> Evaluation {
    match compare(outputs, examples, loss) {
        Evaluation::Classes { correct, count, confusion, .. } => {
            let labels = match examples.targets() {
                Targets::Classes { labels, .. } => labels.as_slice(),
                Targets::Numbers(_) => &[],
            };
            let measures = Some(Box::new(ClassMeasures::new(loss, outputs, labels, &confusion)));
            Evaluation::Classes { correct, count, confusion, measures }
        }
        Evaluation::Numbers { error, count, .. } => {
            let measures = Some(NumberMeasures::new(&pairs(outputs, examples, loss)));
            Evaluation::Numbers { error, count, measures }
        }
        other => other,
    }
}

/// Accuracy or error of the outputs, without further measures: it is faster.
pub(super) fn compare(outputs: &[Vec<f32>], examples: &Examples, loss: Loss) -> Evaluation {
    let count = outputs.len() as u64;
    match examples.targets() {
        Targets::Classes { labels, names } => {
            let mut confusion = vec![vec![0; names.len()]; names.len()];
            for (label, outputs) in labels.iter().zip(outputs) {
                if let Some(Target::Class(prediction)) = loss.predict(outputs)
                    && let Some(cell) =
                        confusion.get_mut(*label as usize).and_then(|row| row.get_mut(prediction as usize))
                {
                    *cell += 1;
                }
            }
            let correct = (0..names.len()).map(|class| confusion[class][class]).sum();
            Evaluation::Classes { correct, count, confusion, measures: None }
        }
        Targets::Numbers(_) => {
            let squares =
                pairs(outputs, examples, loss).into_iter().map(|[y, predicted]| (y - predicted).powi(2));
            let error = (squares.sum::<f64>() / count.max(1) as f64).sqrt();
            Evaluation::Numbers { error, count, measures: None }
        }
    }
}

/// The target and the prediction of each example, where they are numbers.
fn pairs(outputs: &[Vec<f32>], examples: &Examples, loss: Loss) -> Vec<[f64; 2]> {
    let Targets::Numbers(numbers) = examples.targets() else { return Vec::new() };
    let pair = |(number, outputs): (&f32, &Vec<f32>)| match loss.predict(outputs) {
        Some(Target::Number(prediction)) => [f64::from(*number), f64::from(prediction)],
        _ => [f64::from(*number), f64::NAN],
    };
    numbers.iter().zip(outputs).map(pair).collect()
}

/// At most `most` pairs of a target and a predicted number, evenly chosen in the order of the examples.
pub(super) fn some_pairs(
    outputs: &[Vec<f32>],
    examples: &Examples,
    loss: Loss,
    most: usize,
) -> Vec<[f64; 2]> {
    let all = pairs(outputs, examples, loss);
    let every = all.len().div_ceil(most.max(1)).max(1);
    all.into_iter().step_by(every).filter(|pair| pair.iter().all(|number| number.is_finite())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_is_not_a_number_survives_a_file() {
        let diverged = Evaluation::Numbers { error: f64::NAN, count: 3, measures: None };
        let text = serde_json::to_string(&diverged).unwrap();
        let Evaluation::Numbers { error, count, .. } = serde_json::from_str(&text).unwrap() else { panic!() };
        assert!(error.is_nan() && count == 3, "{text}");
        assert_eq!((diverged.error(), diverged.describe("records").contains("none")), (None, true));
    }

    #[test]
    fn measures_are_in_the_units_of_the_target() {
        let measures = NumberMeasures {
            mean_absolute_error: Some(0.1),
            r_squared: Some(0.5),
            baseline: Some(0.4),
            notes: Vec::new(),
        };
        let scaled = Evaluation::Numbers { error: 0.2, count: 9, measures: Some(measures) };
        let Evaluation::Numbers { error, measures: Some(found), .. } = scaled.in_units(Some([0.0, 100.0]))
        else {
            panic!()
        };
        assert_eq!((error, found.mean_absolute_error), (10.0, Some(5.0)));
        assert_eq!((found.r_squared, found.baseline), (Some(0.5), Some(20.0)));
    }
}
