//! Outputs and derivatives against PyTorch's, in double precision. `golden/layers/make.py` made the file.

use quell::layer::{Layer, Spec};
use serde::Deserialize;

use super::ran::{Ran, distance};

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    recipes: Vec<Spec>,
    shape: Vec<usize>,
    weights: Vec<f32>,
    examples: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    input: Vec<f32>,
    output: Vec<f64>,
    output_gradient: Vec<f32>,
    input_gradient: Vec<f64>,
    weight_gradient: Vec<f64>,
}

/// What comes out of layers one after the other, the derivative by what came in, and that by all weights, of one example.
fn run(layers: &[Box<dyn Layer>], weights: &[f32], input: &[f32], output_gradient: &[f32]) -> [Vec<f32>; 3] {
    let [first, rest @ ..] = layers else { return [input.to_vec(), output_gradient.to_vec(), Vec::new()] };
    let (own, others) = weights.split_at(first.parameters());
    let silent = vec![0.0; first.outputs()];
    let values = Ran::new(first.as_ref(), own, input, &silent, &[]).output;
    let [output, gradient, weight_gradient] = run(rest, others, &values, output_gradient);
    let mut ran = Ran::new(first.as_ref(), own, input, &gradient, &[]);
    [output, ran.input_gradient.clone(), [ran.gradient(0), weight_gradient].concat()]
}

#[test]
fn layers_agree_with_pytorch() {
    let golden: Golden = serde_json::from_str(include_str!("../../../../golden/layers/layers.json")).unwrap();
    assert_eq!(golden.cases.len(), 26);
    for case in golden.cases {
        let mut layers: Vec<Box<dyn Layer>> = Vec::new();
        for recipe in &case.recipes {
            let shape = layers.last().map_or(&case.shape, |layer| layer.output()).clone();
            layers.push(recipe.build(&shape).unwrap());
        }
        for example in &case.examples {
            let [output, input_gradient, weight_gradient] =
                run(&layers, &case.weights, &example.input, &example.output_gradient);
            for (what, found, expected) in [
                ("output", output, &example.output),
                ("input gradient", input_gradient, &example.input_gradient),
                ("weight gradient", weight_gradient, &example.weight_gradient),
            ] {
                let far = distance(&found, expected);
                assert!(far < 2e-6, "{}: {what} is off by {far}", case.name);
            }
        }
    }
}
