//! Features that nobody learned: against other people's libraries, and as laws.

use quell::{
    Error,
    data::{Examples, Targets, digits},
    features::{Features, Pca},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    pca: Components,
}

#[derive(Deserialize)]
struct Case {
    features: Features,
    shape: Vec<usize>,
    picture: Vec<f32>,
    output_shape: Vec<usize>,
    output: Vec<f64>,
}

#[derive(Deserialize)]
struct Components {
    rows: Vec<f32>,
    width: usize,
    mean: Vec<f64>,
    variances: Vec<f64>,
    components: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../../golden/features/features.json")).unwrap()
}

fn examples(shape: &[usize], values: Vec<f32>) -> Examples {
    let records = values.len() / shape.iter().product::<usize>();
    Examples::numbers(shape, values, Targets::Numbers(vec![0.0; records])).unwrap()
}

fn rows(examples: &Examples) -> Vec<Vec<f32>> {
    let row = |record| {
        let mut row = vec![0.0; examples.width()];
        examples.gather(record, &mut row);
        row
    };
    (0..examples.len()).map(row).collect()
}

/// The largest difference over the largest number.
fn distance(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(1e-3, |largest: f64, x| largest.max(x.abs()));
    found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max) / largest
}

#[test]
fn pictures_become_what_kymatio_and_scikit_image_make_of_them() {
    let golden = golden();
    assert_eq!(golden.cases.len(), 16);
    for case in golden.cases {
        let made = case.features.apply(&examples(&case.shape, case.picture)).unwrap();
        assert_eq!((made.shape(), case.features.output_shape(&case.shape).unwrap().as_slice()), (&*case.output_shape, &*case.output_shape));
        let far = distance(&rows(&made)[0], &case.output);
        assert!(far < 1e-5, "{:?} of {:?} is off by {far}", case.features, case.shape);
    }
}

