//! Outputs and derivatives against the naive layers: differences in double precision are right to nine digits, so that what is measured is the layer's own rounding.

use quell::layer::Spec;

use super::{
    cases::cases,
    ran::{Ran, distance},
    reference::forward,
};

/// Central differences of Σ gradient · output.
pub(crate) fn differences(
    numbers: &[f64],
    output: impl Fn(&[f64]) -> Vec<f64>,
    gradient: &[f32],
) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let loss =
        |numbers: &[f64]| output(numbers).iter().zip(gradient).map(|(y, g)| y * f64::from(*g)).sum::<f64>();
    let mut moved = numbers.to_vec();
    let mut one = |place: usize| {
        moved[place] = numbers[place] + STEP;
        let above = loss(&moved);
        moved[place] = numbers[place] - STEP;
        let below = loss(&moved);
        moved[place] = numbers[place];
        (above - below) / (2.0 * STEP)
    };
    (0..numbers.len()).map(&mut one).collect()
}

pub(crate) fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|x| f64::from(*x)).collect()
}

/// How many layers round, one after the other: attention is two products with weights, one for the shares and one with them.
pub(crate) fn roundings(recipe: &Spec) -> f64 {
    match recipe {
        Spec::Residual { layers, projection } => layers.iter().chain(projection).map(roundings).sum(),
        Spec::SelfAttention { .. } => 4.0,
        _ => 1.0,
    }
}

#[test]
fn outputs_and_derivatives_are_those_of_the_definition() {
    const EXAMPLES: usize = 2;
    for case in cases(EXAMPLES) {
        let (name, bound) = (case.name(), 2e-6 * roundings(&case.recipe));
        // Nobody is left out: the definition knows no lots.
        let mut ran = Ran::new(case.layer.as_ref(), &case.weights, &case.input, &case.output_gradient, &[]);
        for example in 0..EXAMPLES {
            let (input, gradient) = case.example(example);
            let (input, weights) = (wide(input), wide(&case.weights));
            let value = |weights: &[f64], input: &[f64]| {
                let mut rest = weights;
                let (shape, output) = forward(&case.recipe, &case.shape, &mut rest, input);
                assert!(rest.is_empty() && shape == *case.layer.output(), "{name}: {shape:?}");
                output
            };
            let own = |numbers: &[f32]| {
                numbers[numbers.len() / EXAMPLES * example..][..numbers.len() / EXAMPLES].to_vec()
            };
            let far = distance(&own(&ran.output), &value(&weights, &input));
            assert!(far < bound, "{name}: output is off by {far}");
            // A word cannot move a little.
            let expected = if matches!(case.recipe, Spec::Embedding { .. }) {
                vec![0.0; input.len()]
            } else {
                differences(&input, |input| value(&weights, input), gradient)
            };
            let far = distance(&own(&ran.input_gradient), &expected);
            assert!(far < bound, "{name}: input gradient is off by {far}");
            let expected = differences(&weights, |weights| value(weights, &input), gradient);
            let far = distance(&ran.gradient(example), &expected);
            assert!(far < bound, "{name}: weight gradient is off by {far}");
        }
    }
}
