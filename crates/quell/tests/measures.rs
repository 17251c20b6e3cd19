//! Measures of predictions, compared with scikit-learn.

use quell::learner::{ClassMeasures, NumberMeasures, loss::Loss};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    classes: Vec<Classes>,
    numbers: Vec<Numbers>,
}

#[derive(Deserialize)]
#[allow(clippy::struct_field_names, reason = "the names of the file")]
struct Classes {
    name: String,
    loss: Loss,
    classes: usize,
    labels: Vec<u32>,
    outputs: Vec<Vec<f32>>,
    accuracy: f64,
    baseline: f64,
    f1: f64,
    auc: f64,
    log_loss: f64,
    precision: Vec<Option<f64>>,
    recall: Vec<Option<f64>>,
    f1_of_classes: Vec<Option<f64>>,
    examples: Vec<u64>,
    auc_of_classes: Vec<f64>,
    calibration: Curve,
}

#[derive(Deserialize)]
struct Curve {
    probability: Vec<f64>,
    share: Vec<f64>,
}

#[derive(Deserialize)]
struct Numbers {
    name: String,
    targets: Vec<f64>,
    predictions: Vec<f64>,
    error: f64,
    mean_absolute_error: f64,
    r_squared: f64,
    baseline: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../../golden/measures/measures.json")).unwrap()
}

/// Fails unless two numbers agree to twelve digits.
#[track_caller]
fn agree(what: &str, found: Option<f64>, expected: Option<f64>) {
    let close = match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
        (found, expected) => found == expected,
    };
    assert!(close, "{what}: {found:?}, expected {expected:?}");
}

#[test]
fn measures_of_classes_are_those_of_scikit_learn() {
    let cases = golden().classes;
    assert_eq!(cases.len(), 5);
    for case in cases {
        let mut confusion = vec![vec![0; case.classes]; case.classes];
        for (label, outputs) in case.labels.iter().zip(&case.outputs) {
            let Some(quell::learner::loss::Target::Class(class)) = case.loss.predict(outputs) else {
                panic!()
            };
            confusion[*label as usize][class as usize] += 1;
        }
        let found = ClassMeasures::new(case.loss, &case.outputs, &case.labels, &confusion);
        let name = case.name.as_str();
        let correct: u64 = (0..case.classes).map(|class| confusion[class][class]).sum();
        agree(name, Some(correct as f64 / case.labels.len() as f64), Some(case.accuracy));
        agree(name, found.baseline, Some(case.baseline));
        agree(name, found.f1, Some(case.f1));
        agree(name, found.auc, Some(case.auc));
        agree(name, found.log_loss, Some(case.log_loss));
        for (class, own) in found.classes.iter().enumerate() {
            assert_eq!(own.examples, case.examples[class], "{name}");
            agree(name, own.precision, case.precision[class]);
            agree(name, own.recall, case.recall[class]);
            agree(name, own.f1, case.f1_of_classes[class]);
            agree(name, own.auc, Some(case.auc_of_classes[class]));
        }
        let bins = found.calibration.unwrap().bins;
        assert_eq!(bins.len(), case.calibration.share.len(), "{name}");
        for (bin, (probability, share)) in
            bins.iter().zip(case.calibration.probability.iter().zip(&case.calibration.share))
        {
            agree(name, Some(bin.probability), Some(*probability));
            agree(name, Some(bin.share), Some(*share));
        }
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}

#[test]
fn measures_of_numbers_are_those_of_scikit_learn() {
    let cases = golden().numbers;
    assert_eq!(cases.len(), 2);
    for case in cases {
        let pairs: Vec<[f64; 2]> =
            case.targets.iter().zip(&case.predictions).map(|(target, found)| [*target, *found]).collect();
        let found = NumberMeasures::new(&pairs);
        let name = case.name.as_str();
        agree(name, found.mean_absolute_error, Some(case.mean_absolute_error));
        agree(name, found.r_squared, Some(case.r_squared));
        agree(name, found.baseline, Some(case.baseline));
        // The error follows from R² and the baseline.
        let error = found.baseline.zip(found.r_squared).map(|(all, share)| all * (1.0 - share).sqrt());
        agree(name, error, Some(case.error));
    }
}
