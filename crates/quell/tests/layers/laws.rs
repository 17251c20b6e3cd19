//! What the network, and the mechanism behind it, may rely on.

use quell::layer::Spec;

use super::{
    cases::{Case, cases},
    ran::{Ran, bits, distance},
};

const EXAMPLES: usize = 5;

fn run(case: &Case) -> Ran<'_> {
    Ran::new(case.layer.as_ref(), &case.weights, &case.input, &case.output_gradient, &case.coins)
}

#[test]
fn an_example_is_the_same_to_the_last_bit_whatever_is_beside_it() {
    for case in cases(EXAMPLES) {
        let (mut batch, name) = (run(&case), case.name());
        for example in 0..EXAMPLES {
            let (input, gradient) = case.example(example);
            let coins = &case.coins[example..=example];
            let mut alone = Ran::new(case.layer.as_ref(), &case.weights, input, gradient, coins);
            let own = |numbers: &[f32]| {
                bits(&numbers[numbers.len() / EXAMPLES * example..][..numbers.len() / EXAMPLES])
            };
            assert_eq!(own(&batch.output), bits(&alone.output), "{name}: output");
            assert_eq!(own(&batch.input_gradient), bits(&alone.input_gradient), "{name}: input gradient");
            assert_eq!(batch.squared[example].to_bits(), alone.squared[0].to_bits(), "{name}: length");
            assert_eq!(bits(&batch.gradient(example)), bits(&alone.gradient(0)), "{name}: gradient");
        }
    }
}

#[test]
fn lengths_are_those_of_what_is_added() {
    for case in cases(EXAMPLES) {
        let mut batch = run(&case);
        for example in 0..EXAMPLES {
            let exact: f64 = batch.gradient(example).iter().map(|x| f64::from(*x).powi(2)).sum();
            let reported = batch.squared[example];
            assert!((reported - exact).abs() <= 1e-6 * exact, "{}: {reported} {exact}", case.name());
            // Leaves do not change if their thresholds change a little.
            let is_constant = matches!(case.recipe, Spec::Leaves { .. }) || case.layer.parameters() == 0;
            assert_eq!(exact > 0.0, !is_constant, "{}", case.name());
        }
    }
}

#[test]
fn sums_are_sums_of_scaled_gradients() {
    for case in cases(EXAMPLES) {
        let mut batch = run(&case);
        let scales = [0.5, 2.0, 0.0, -1.0, 0.125];
        let gradients: Vec<Vec<f32>> = (0..EXAMPLES).map(|example| batch.gradient(example)).collect();
        for (scales, sum) in [(scales, batch.sum(&scales)), ([1.0; 5], batch.add()), ([1.0; 5], batch.add())]
        {
            assert_eq!(sum.len(), case.layer.parameters());
            let terms = |place: usize| {
                gradients
                    .iter()
                    .zip(scales)
                    .map(move |(gradient, scale)| f64::from(gradient[place]) * f64::from(scale))
            };
            // Places of an example cancel, to nothing in the biases of keys: what is left is as uncertain as what it is made of, which is about as
            // large as the largest of all.
            let sizes = (0..sum.len()).map(|place| terms(place).map(f64::abs).sum::<f64>());
            let bound = 2e-6 * sizes.fold(0.0, f64::max);
            for (place, total) in sum.iter().enumerate() {
                let exact = terms(place).sum::<f64>();
                assert!(
                    (f64::from(*total) - exact).abs() <= bound,
                    "{}: {total} {exact} {bound}",
                    case.name()
                );
            }
        }
    }
}

#[test]
fn gradients_are_added_to_what_is_there() {
    for case in cases(EXAMPLES) {
        let mut batch = run(&case);
        for scales in [None, Some(&[1.0_f32; EXAMPLES][..])] {
            let mut sum = vec![3.0; case.layer.parameters()];
            batch.add_to(&mut sum, scales);
            let expected: Vec<f64> = batch.add().iter().map(|x| f64::from(*x) + 3.0).collect();
            let far = distance(&sum, &expected);
            assert!(far < 2e-6, "{}: off by {far}", case.name());
        }
    }
}

#[test]
fn without_privacy_nothing_has_to_be_measured_before_the_sum() {
    for case in cases(EXAMPLES) {
        let mut measured = run(&case);
        for wanted in [true, false] {
            let (layer, weights) = (case.layer.as_ref(), &case.weights);
            let mut back = Ran::back(layer, weights, &case.input, &case.output_gradient, &case.coins, wanted);
            assert_eq!(bits(&back.add()), bits(&measured.add()), "{}", case.name());
        }
    }
}

#[test]
fn gradients_do_not_depend_on_whether_that_of_the_input_is_wanted() {
    for case in cases(EXAMPLES) {
        let mut wanted = run(&case);
        let mut not = Ran::back(
            case.layer.as_ref(),
            &case.weights,
            &case.input,
            &case.output_gradient,
            &case.coins,
            false,
        );
        not.measure();
        assert_eq!(wanted.squared, not.squared, "{}", case.name());
        assert_eq!(bits(&wanted.sum(&[0.5; EXAMPLES])), bits(&not.sum(&[0.5; EXAMPLES])), "{}", case.name());
    }
}

#[test]
fn what_is_not_finite_reaches_no_other_example_and_a_scale_of_zero_adds_nothing_of_it() {
    for mut case in cases(EXAMPLES) {
        let (inputs, outputs) = (case.layer.inputs(), case.layer.outputs());
        let clean = {
            let mut clean = run(&case);
            let sum = clean.sum(&[1.0, 0.0, 0.5, 0.0, 0.25]);
            (clean.output.clone(), clean.input_gradient.clone(), clean.squared.clone(), sum)
        };
        case.input[inputs..2 * inputs].fill(f32::NAN);
        case.output_gradient[outputs] = f32::NAN;
        case.input[3 * inputs] = f32::INFINITY;
        case.input[4 * inputs - 1] = f32::NEG_INFINITY;
        case.output_gradient[3 * outputs..4 * outputs].fill(f32::NEG_INFINITY);
        let (mut dirty, name) = (run(&case), case.name());
        assert_eq!(bits(&dirty.sum(&[1.0, 0.0, 0.5, 0.0, 0.25])), bits(&clean.3), "{name}: sum");
        for example in [0, 2, 4] {
            let own = |numbers: &[f32], size: usize| bits(&numbers[example * size..][..size]);
            assert_eq!(own(&dirty.output, outputs), own(&clean.0, outputs), "{name}: output");
            assert_eq!(own(&dirty.input_gradient, inputs), own(&clean.1, inputs), "{name}: input gradient");
            assert_eq!(dirty.squared[example], clean.2[example], "{name}: length");
        }
    }
}

#[test]
fn a_length_is_never_finite_where_the_gradient_is_not() {
    // Else a mechanism would believe it.
    for mut case in cases(1) {
        for (place, value) in [(0, f32::NAN), (case.layer.outputs() - 1, f32::INFINITY)] {
            case.output_gradient[place] = value;
            let mut ran = run(&case);
            let finite = ran.gradient(0).iter().all(|x| x.is_finite());
            assert!(finite || !ran.squared[0].is_finite(), "{}", case.name());
        }
    }
}

#[test]
fn no_examples_are_a_batch() {
    for case in cases(0) {
        let mut ran = run(&case);
        assert!(ran.output.is_empty() && ran.squared.is_empty());
        assert!(ran.sum(&[]).iter().chain(&ran.add()).all(|x| *x == 0.0), "{}", case.name());
    }
}

#[test]
fn tensors_are_all_weights_and_every_one_has_a_first_value() {
    for case in cases(0) {
        let tensors = case.layer.tensors();
        let count: usize = tensors.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
        assert_eq!(count, case.layer.parameters(), "{}", case.name());
        let mut names: Vec<_> = tensors.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), tensors.len(), "{}", case.name());
        let mut weights = vec![f32::NAN; count];
        case.layer.initialize(&mut weights, &mut quell::random::PublicRandom::new(3));
        assert!(weights.iter().all(|x| x.is_finite() && x.abs() < 6.0), "{}", case.name());
    }
}
