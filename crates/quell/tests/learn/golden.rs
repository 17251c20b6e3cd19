//! Every case of golden/learn, at the accuracy of single precision.

use quell::learner::{
    loss::{Loss, Target},
    optimizer::{Optimizer, Update},
    schedule::Schedule,
};
use serde_json::Value;

use super::assert_close;

fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap();
    let cases = file["cases"].as_array().unwrap().clone();
    assert!(cases.len() >= 12);
    cases
}

fn doubles(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn singles(value: &Value) -> Vec<f32> {
    doubles(value).into_iter().map(|x| x as f32).collect()
}

fn recipe<T: serde::de::DeserializeOwned>(case: &Value) -> T {
    serde_json::from_value(case["recipe"].clone()).unwrap()
}

#[test]
fn losses_and_gradients_are_those_of_pytorch() {
    for case in cases(include_str!("../../../../golden/learn/losses.json")) {
        let loss: Loss = recipe(&case);
        loss.check().unwrap();
        let target = match case["target"]["class"].as_u64() {
            Some(class) => Target::Class(class as u32),
            None => Target::Number(case["target"]["number"].as_f64().unwrap() as f32),
        };
        let outputs = singles(&case["outputs"]);
        let mut gradient = vec![f32::NAN; outputs.len()];
        let value = loss.loss_and_gradient(&outputs, target, &mut gradient);
        // PyTorch's own 1 - p and ln(1 + p) have no more than sixteen digits behind the point.
        let close =
            |found: f32, expected: f64| (f64::from(found) - expected).abs() <= 1e-7 * expected.abs() + 2e-16;
        assert!(close(value, case["loss"].as_f64().unwrap()), "{case}: {value}");
        assert!(
            gradient.iter().zip(doubles(&case["gradient"])).all(|(g, expected)| close(*g, expected)),
            "{case}: {gradient:?}"
        );
    }
}

#[test]
fn optimizers_go_where_those_of_pytorch_go() {
    for case in cases(include_str!("../../../../golden/learn/optimizers.json")) {
        let optimizer: Optimizer = recipe(&case);
        let mut weights = singles(&case["start"]);
        let mut stepper = optimizer.start(&[weights.len()]).unwrap();
        let step = Update { learning_rate: case["learning_rate"].as_f64().unwrap(), ..Update::default() };
        let iterates = case["iterates"].as_array().unwrap();
        assert_eq!(iterates.len(), 20);
        for (gradient, iterate) in case["gradients"].as_array().unwrap().iter().zip(iterates) {
            stepper.step(&mut weights, &singles(gradient), step).unwrap();
            for (found, expected) in weights.iter().zip(doubles(iterate)) {
                assert_close(f64::from(*found), expected, 1e-6);
            }
        }
        assert_eq!(stepper.steps(), 20);
    }
}

#[test]
fn schedules_are_those_of_pytorch() {
    for case in cases(include_str!("../../../../golden/learn/schedules.json")) {
        let schedule: Schedule = recipe(&case);
        schedule.check().unwrap();
        let steps = case["steps"].as_u64().unwrap();
        for (step, expected) in (0..).zip(doubles(&case["learning_rates"])) {
            let found = schedule.learning_rate(step, steps);
            assert!((found - expected).abs() <= 1e-14, "{case}: {found} at step {step}");
        }
    }
}
