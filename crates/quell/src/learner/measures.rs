//! Measures of predictions: AUC, F1, log loss, calibration, R², and what a constant would reach.
//!
//! All of them are exact, not private: they are for public examples. A measure that does not exist is `None`,
//! and a note says why.

use serde::{Deserialize, Serialize};

use super::loss::{Loss, sigmoid};

/// Measures of a model that predicts classes, besides its accuracy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassMeasures {
    /// The share of the most frequent class: the accuracy of always predicting it.
    pub baseline: Option<f64>,
    /// The class that is most frequent, the first of several; counted from zero.
    pub most_frequent: Option<u32>,
    /// The mean F1 of the classes that have examples or are predicted.
    pub f1: Option<f64>,
    /// Area under the ROC curve of the second of two classes; for more, the mean of all classes.
    ///
    /// With more than two classes, each is compared with all others. Ties count half.
    pub auc: Option<f64>,
    /// The mean of -ln p, where p is the predicted probability of the class of an example.
    pub log_loss: Option<f64>,
    /// How well predicted probabilities fit.
    pub calibration: Option<Calibration>,
    /// The measures of each class, in the order of the classes.
    pub classes: Vec<ClassMeasure>,
    /// Why measures are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Measures of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassMeasure {
    /// Number of examples of the class.
    pub examples: u64,
    /// Number of examples for which the class is predicted.
    pub predicted: u64,
    /// The share of its predictions that are correct; none without predictions.
    pub precision: Option<f64>,
    /// The share of its examples that are predicted correctly; none without examples.
    pub recall: Option<f64>,
    /// The harmonic mean of precision and recall; none without examples and predictions.
    pub f1: Option<f64>,
    /// Area under the ROC curve of this class against all others.
    pub auc: Option<f64>,
}

/// Predicted probabilities compared with how often they come true.
///
/// For two classes, these are the probabilities of the second class. For more, these are the probabilities of
/// the predicted class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Expected calibration error: the mean distance between probability and share, over all examples.
    pub error: f64,
    /// The groups of examples with similar probabilities, without empty groups.
    pub bins: Vec<CalibrationBin>,
}

/// Examples with similar predicted probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// The probabilities of the group, from the first (excluded, except 0) to the second.
    pub range: [f64; 2],
    /// Number of examples.
    pub examples: u64,
    /// Mean predicted probability.
    pub probability: f64,
    /// The share of examples for which the prediction comes true.
    pub share: f64,
}

/// Number of groups of probabilities, of equal width.
const BINS: usize = 10;

impl ClassMeasures {
    /// Measures network outputs, one slice for each label.
    ///
    /// `confusion[true class][predicted class]` counts the examples. A label that is no class counts nowhere.
    ///
    /// ```
    /// use quell::learner::{ClassMeasures, loss::Loss};
    /// let outputs = [vec![-2.0], vec![0.5], vec![1.0]];
    /// let found = ClassMeasures::new(Loss::BinaryCrossEntropy, &outputs, &[0, 1, 1], &[vec![1, 0], vec![0, 2]]);
    /// assert_eq!((found.auc, found.f1), (Some(1.0), Some(1.0)));
    /// ```
    #[must_use]
    pub fn new(loss: Loss, outputs: &[Vec<f32>], labels: &[u32], confusion: &[Vec<u64>]) -> Self {
        let classes = confusion.len();
        let mut measures = Self { classes: per_class(confusion), ..Self::default() };
        let all: u64 = measures.classes.iter().map(|class| class.examples).sum();
        if all == 0 {
            measures.notes.push("there are no examples".into());
            return measures;
        }
        let most = measures.classes.iter().map(|class| class.examples).max().unwrap_or(0);
        let first = measures.classes.iter().position(|class| class.examples == most);
        measures.baseline = Some(most as f64 / all as f64);
        measures.most_frequent = first.map(|class| class as u32);
        measures.f1 = mean(measures.classes.iter().filter_map(|class| class.f1));
        let odd = outputs.iter().filter(|row| row.iter().any(|output| output.is_nan())).count();
        if odd > 0 {
            measures.notes.push(format!(
                "no AUC, log loss or calibration: the scores of {odd} of {} examples are not numbers",
                outputs.len()
            ));
            return measures;
        }
        measures.add_auc(loss, outputs, labels);
        let is_probability = matches!(loss, Loss::CrossEntropy { .. } | Loss::BinaryCrossEntropy);
        if !is_probability {
            measures.notes.push("no log loss or calibration: the model predicts no probabilities".into());
            return measures;
        }
        let rows = || outputs.iter().zip(labels).filter(|(_, label)| (**label as usize) < classes);
        measures.log_loss = mean(rows().map(|(row, label)| surprise(row, *label as usize)));
        measures.calibration = Calibration::new(rows().map(|(row, label)| {
            if classes == 2 {
                return (probability(row, 1), *label == 1);
            }
            let predicted = super::loss::arg_max(row).unwrap_or(0);
            (probability(row, predicted), predicted == *label as usize)
        }));
        measures
    }

    /// Adds the areas under the ROC curves.
    fn add_auc(&mut self, loss: Loss, outputs: &[Vec<f32>], labels: &[u32]) {
        let count = self.classes.len();
        for class in 0..count {
            let scores: Vec<f64> = outputs.iter().map(|row| class_score(loss, row, class)).collect();
            self.classes[class].auc = area(&scores, labels, class as u32);
        }
        self.auc = match count {
            2 => self.classes[1].auc,
            _ => mean(self.classes.iter().filter_map(|class| class.auc)),
        };
        let missing = self.classes.iter().filter(|class| class.auc.is_none()).count();
        if missing == count {
            self.notes.push("no AUC: all examples are of one class".into());
        } else if missing > 0 {
            self.notes.push(format!("AUC is the mean of the {} classes that have examples", count - missing));
        }
    }
}

/// Precision, recall and F1 of each class.
fn per_class(confusion: &[Vec<u64>]) -> Vec<ClassMeasure> {
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    (0..confusion.len())
        .map(|class| {
            let correct = confusion[class].get(class).copied().unwrap_or(0);
            let examples = confusion[class].iter().sum();
            let predicted = confusion.iter().filter_map(|row| row.get(class)).sum();
            ClassMeasure {
                examples,
                predicted,
                precision: share(correct, predicted),
                recall: share(correct, examples),
                f1: share(2 * correct, examples + predicted),
                auc: None,
            }
        })
        .collect()
}

impl Calibration {
    /// Compares probabilities with what came true; `None` without examples.
    fn new(examples: impl Iterator<Item = (f64, bool)>) -> Option<Self> {
        let (mut counts, mut sums, mut hits) = ([0_u64; BINS], [0.0; BINS], [0_u64; BINS]);
        let edge = |bin: usize| bin as f64 / BINS as f64;
        for (probability, is_true) in examples {
            // A probability at an edge belongs to the lower group, as in scikit-learn.
            let bin = (1..BINS).filter(|bin| edge(*bin) < probability).count();
            counts[bin] += 1;
            sums[bin] += probability;
            hits[bin] += u64::from(is_true);
        }
        let all: u64 = counts.iter().sum();
        let bins: Vec<CalibrationBin> = (0..BINS)
            .filter(|bin| counts[*bin] > 0)
            .map(|bin| CalibrationBin {
                range: [edge(bin), edge(bin + 1)],
                examples: counts[bin],
                probability: sums[bin] / counts[bin] as f64,
                share: hits[bin] as f64 / counts[bin] as f64,
            })
            .collect();
        let distance = |bin: &CalibrationBin| bin.examples as f64 * (bin.probability - bin.share).abs();
        let error = bins.iter().map(distance).sum::<f64>() / all.max(1) as f64;
        (all > 0).then_some(Self { error, bins })
    }
}

/// Infinite outputs are clamped to this, so that differences stay numbers.
const FARTHEST: f64 = 1e300;

/// The output at a place.
fn output(row: &[f32], place: usize) -> f64 {
    row.get(place).map_or(0.0, |output| f64::from(*output).clamp(-FARTHEST, FARTHEST))
}

/// The log-odds of a class: ln p/(1 - p). They grow with p, and do not saturate.
fn log_odds(row: &[f32], class: usize) -> f64 {
    if row.len() == 1 {
        return if class == 1 { output(row, 0) } else { -output(row, 0) };
    }
    // Differences and their order make equal odds equal numbers, so that ties stay ties.
    let own = output(row, class);
    let others = (0..row.len()).filter(|place| *place != class).map(|place| output(row, place) - own);
    let mut others: Vec<f64> = others.collect();
    others.sort_by(|a, b| b.total_cmp(a));
    let largest = others.first().copied().unwrap_or(f64::NEG_INFINITY);
    -(largest + others.iter().map(|other| (other - largest).exp()).sum::<f64>().ln())
}

/// The predicted probability of a class.
fn probability(row: &[f32], class: usize) -> f64 {
    sigmoid(log_odds(row, class))
}

/// -ln p of a class.
fn surprise(row: &[f32], class: usize) -> f64 {
    let odds = log_odds(row, class);
    // ln(1 + e^-z), without overflow at either end.
    (-odds).max(0.0) + (-odds.abs()).exp().ln_1p()
}

/// The score by which examples are ordered for a class.
fn class_score(loss: Loss, row: &[f32], class: usize) -> f64 {
    match loss {
        Loss::CrossEntropy { .. } => log_odds(row, class),
        _ if row.len() == 1 => log_odds(row, class),
        _ => output(row, class),
    }
}

/// The probability that an example of the class has a larger score than another one.
///
/// Ties count half. `None` if all examples, or none, are of the class.
fn area(scores: &[f64], labels: &[u32], class: u32) -> Option<f64> {
    let mut order: Vec<(f64, bool)> =
        scores.iter().zip(labels).map(|(score, label)| (*score, *label == class)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the number of pairs in which the example of the class wins, so that half a pair is a whole number.
    let (mut wins, mut others_below, mut positives) = (0_u128, 0_u128, 0_u128);
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        let own = tied.iter().filter(|(_, is_own)| *is_own).count() as u128;
        let others = tied.len() as u128 - own;
        wins += own * (2 * others_below + others);
        others_below += others;
        positives += own;
    }
    let pairs = positives * others_below;
    (pairs > 0).then(|| wins as f64 / (2 * pairs) as f64)
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_u64), |(sum, count), x| (sum + x, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Measures of a model that predicts numbers, besides its root mean square error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NumberMeasures {
    /// Mean absolute error.
    pub mean_absolute_error: Option<f64>,
    /// R²: the share of the variance of the targets that the model explains. It may be negative.
    pub r_squared: Option<f64>,
    /// The root mean square error of always predicting the mean of these targets.
    pub baseline: Option<f64>,
    /// Why measures are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl NumberMeasures {
    /// Measures pairs of a target and a prediction.
    ///
    /// ```
    /// use quell::learner::NumberMeasures;
    /// let found = NumberMeasures::new(&[[1.0, 1.5], [3.0, 2.5]]);
    /// assert_eq!((found.mean_absolute_error, found.r_squared), (Some(0.5), Some(0.75)));
    /// ```
    #[must_use]
    pub fn new(pairs: &[[f64; 2]]) -> Self {
        let odd = pairs.iter().filter(|pair| pair.iter().any(|number| !number.is_finite())).count();
        let note = |text: String| Self { notes: vec![text], ..Self::default() };
        if pairs.is_empty() {
            return note("there are no examples".into());
        }
        if odd > 0 {
            return note(format!("{odd} of {} targets or predictions are not numbers", pairs.len()));
        }
        let average =
            |number: &dyn Fn(&[f64; 2]) -> f64| pairs.iter().map(number).sum::<f64>() / pairs.len() as f64;
        let center = average(&|pair| pair[0]);
        let variance = average(&|pair| (pair[0] - center).powi(2));
        let remaining = average(&|pair| (pair[0] - pair[1]).powi(2));
        let is_constant = pairs.iter().all(|pair| pair[0] == pairs[0][0]);
        Self {
            mean_absolute_error: Some(average(&|pair| (pair[0] - pair[1]).abs())),
            r_squared: (!is_constant).then(|| 1.0 - remaining / variance),
            baseline: Some(if is_constant { 0.0 } else { variance.sqrt() }),
            notes: if is_constant { vec!["no R²: all targets are equal".into()] } else { Vec::new() },
        }
    }

    /// The same measures of targets that are `factor` times as large.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let scaled = |measure: Option<f64>| measure.map(|measure| factor * measure);
        Self {
            mean_absolute_error: scaled(self.mean_absolute_error),
            baseline: scaled(self.baseline),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_count_half_and_one_class_alone_has_no_area() {
        assert_eq!(area(&[1.0, 1.0], &[0, 1], 1), Some(0.5));
        assert_eq!(area(&[2.0, 1.0], &[0, 1], 1), Some(0.0));
        assert_eq!(area(&[1.0, 2.0, 2.0], &[0, 0, 1], 1), Some(0.75));
        assert_eq!(area(&[1.0, 2.0], &[1, 1], 1), None);
        assert_eq!(area(&[], &[], 1), None);
        // Zero has two signs in floating point, and one value.
        assert_eq!(area(&[0.0, -0.0, 0.0, -0.0], &[0, 1, 1, 0], 1), Some(0.5));
    }

    #[test]
    fn extreme_outputs_have_a_finite_log_loss() {
        for row in [vec![f32::INFINITY, f32::NEG_INFINITY], vec![1e30, -1e30], vec![-1e30], vec![900.0]] {
            for class in [0, 1] {
                assert!(surprise(&row, class).is_finite(), "{row:?}");
                assert!((0.0..=1.0).contains(&probability(&row, class)), "{row:?}");
            }
        }
        // A probability of e⁻⁹⁰⁰ is zero in floating point. Its logarithm is not.
        assert_eq!(surprise(&[900.0], 0), 900.0);
    }

    #[test]
    fn missing_measures_are_explained() {
        let binary = Loss::BinaryCrossEntropy;
        let empty = ClassMeasures::new(binary, &[], &[], &[vec![0, 0], vec![0, 0]]);
        assert_eq!((empty.baseline, empty.auc, empty.notes.len()), (None, None, 1));
        let one = ClassMeasures::new(binary, &[vec![1.0]], &[1], &[vec![0, 0], vec![0, 1]]);
        assert_eq!((one.baseline, one.auc, one.f1), (Some(1.0), None, Some(1.0)));
        assert!(one.notes[0].contains("one class") && one.log_loss.is_some(), "{:?}", one.notes);
        let odd = ClassMeasures::new(binary, &[vec![f32::NAN]], &[1], &[vec![0, 0], vec![1, 0]]);
        assert_eq!((odd.log_loss, odd.calibration.clone(), odd.f1), (None, None, Some(0.0)));
        assert!(odd.notes[0].contains("1 of 1"), "{:?}", odd.notes);
        let hinge = Loss::Hinge { smoothing: 0.5 };
        let machine = ClassMeasures::new(hinge, &[vec![1.0], vec![-1.0]], &[1, 0], &[vec![1, 0], vec![0, 1]]);
        assert_eq!((machine.auc, machine.log_loss), (Some(1.0), None));
        assert!(machine.notes[0].contains("no probabilities"), "{:?}", machine.notes);
        let third = [vec![0.0, 1.0, 2.0], vec![3.0, 1.0, 0.0]];
        let confusion = [vec![1, 0, 0], vec![0, 0, 0], vec![0, 0, 1]];
        let some =
            ClassMeasures::new(Loss::CrossEntropy { label_smoothing: 0.0 }, &third, &[2, 0], &confusion);
        assert_eq!((some.auc, some.classes[1].auc, some.classes[1].f1), (Some(1.0), None, None));
        assert!(some.notes[0].contains("2 classes"), "{:?}", some.notes);
    }

    #[test]
    fn numbers_without_variance_or_without_values_have_no_r_squared() {
        let constant = NumberMeasures::new(&[[0.1, 0.2], [0.1, 0.3], [0.1, 0.1]]);
        assert_eq!((constant.r_squared, constant.baseline), (None, Some(0.0)));
        assert!(constant.notes[0].contains("equal"), "{:?}", constant.notes);
        let diverged = NumberMeasures::new(&[[1.0, f64::INFINITY], [1.0, 2.0]]);
        assert_eq!((diverged.mean_absolute_error, diverged.baseline), (None, None));
        assert!(diverged.notes[0].starts_with("1 of 2"), "{:?}", diverged.notes);
        assert_eq!(NumberMeasures::new(&[]).notes.len(), 1);
    }
}
