//! Losses: finite differences, and everything that is no number.

use proptest::prelude::*;
use quell::{
    Error,
    learner::loss::{Loss, Target, arg_max},
};

const ENTROPY: Loss = Loss::CrossEntropy { label_smoothing: 0.0 };
const SMOOTH: Loss = Loss::CrossEntropy { label_smoothing: 0.125 };

fn of(loss: Loss, outputs: &[f32], target: Target) -> (f32, Vec<f32>) {
    let mut gradient = vec![7.0; outputs.len()];
    let value = loss.loss_and_gradient(outputs, target, &mut gradient);
    (value, gradient)
}

#[track_caller]
fn assert_no_answer(loss: Loss, outputs: &[f32], target: Target) {
    let (value, gradient) = of(loss, outputs, target);
    assert!(
        value.is_nan() && gradient.iter().all(|g| g.is_nan()),
        "{loss:?} {outputs:?} {target:?}: {value} {gradient:?}"
    );
}

fn losses() -> impl Strategy<Value = (Loss, Vec<f32>, Target)> {
    let number = || (-4.0f32..4.0).prop_map(Target::Number);
    let entropy = (prop::collection::vec(-6.0f32..6.0, 1..8), any::<prop::sample::Index>(), 0.0f32..0.9)
        .prop_map(|(z, class, s)| {
            let class = Target::Class(class.index(z.len()) as u32);
            (Loss::CrossEntropy { label_smoothing: s }, z, class)
        });
    let one = |loss| (Just(loss), prop::collection::vec(-6.0f32..6.0, 1));
    let binary = (one(Loss::BinaryCrossEntropy), (0.0f32..=1.0).prop_map(Target::Number))
        .prop_map(|((l, z), y)| (l, z, y));
    let squared = (one(Loss::Squared), number()).prop_map(|((l, z), y)| (l, z, y));
    let huber = (0.1f32..5.0, prop::collection::vec(-6.0f32..6.0, 1), number())
        .prop_map(|(delta, z, y)| (Loss::Huber { delta }, z, y));
    prop_oneof![entropy, binary, squared, huber]
}

proptest! {
    #[test]
    fn the_gradient_is_what_differences_tend_to((loss, outputs, target) in losses()) {
        let (_, gradient) = of(loss, &outputs, target);
        for k in 0..outputs.len() {
            let at = |shift: f32| {
                let mut outputs = outputs.clone();
                outputs[k] += shift;
                (f64::from(of(loss, &outputs, target).0), f64::from(outputs[k]))
            };
            let ((high, above), (low, below)) = (at(0.01), at(-0.01));
            let difference = (high - low) / (above - below);
            // A Huber loss bends within the difference: half its width of 0.02 is the most that the slope changes.
            prop_assert!((difference - f64::from(gradient[k])).abs() < 1e-2, "{} {}", difference, gradient[k]);
        }
    }

    #[test]
    fn what_is_an_example_has_a_finite_gradient((loss, outputs, target) in losses(), scale in prop::sample::select(vec![1e30f32, -1e30, 1e38, 1e-38])) {
        let outputs: Vec<f32> = outputs.iter().map(|z| (z * scale).clamp(f32::MIN, f32::MAX)).collect();
        let (value, gradient) = of(loss, &outputs, target);
        prop_assert!(!value.is_nan() && value >= 0.0, "{}", value);
        prop_assert!(gradient.iter().all(|g| g.is_finite()), "{:?}", gradient);
    }

    #[test]
    fn cross_entropy_moves_no_weight_from_all_classes_alike((loss, outputs, target) in losses()) {
        if matches!(loss, Loss::CrossEntropy { .. }) {
            prop_assert!(of(loss, &outputs, target).1.iter().sum::<f32>().abs() < 1e-6);
        }
    }

    #[test]
    fn no_bits_panic_and_nan_stays_nan(
        outputs in prop::collection::vec(prop_oneof![any::<u32>().prop_map(f32::from_bits), Just(f32::NAN), Just(f32::INFINITY), Just(0.0)], 0..5),
        class in any::<u32>(), number in any::<u32>(),
    ) {
        for loss in [ENTROPY, SMOOTH, Loss::BinaryCrossEntropy, Loss::Squared, Loss::Huber { delta: 1.0 }, Loss::Pinball { quantile: 0.5, smoothing: 0.0 }] {
            for target in [Target::Class(class), Target::Class(class % 3), Target::Number(f32::from_bits(number))] {
                let (value, gradient) = of(loss, &outputs, target);
                if outputs.iter().any(|z| z.is_nan()) {
                    prop_assert!(value.is_nan() && gradient.iter().all(|g| g.is_nan()));
                }
                let _ = loss.predict(&outputs);
            }
        }
    }
}

#[test]
fn an_infinite_logit_is_a_certain_class() {
    let infinite = f32::INFINITY;
    assert_eq!(of(ENTROPY, &[0.0, infinite], Target::Class(1)), (0.0, vec![0.0, 0.0]));
    assert_eq!(of(ENTROPY, &[0.0, infinite], Target::Class(0)), (infinite, vec![-1.0, 1.0]));
    assert_eq!(of(ENTROPY, &[-infinite, 3.0], Target::Class(1)), (0.0, vec![0.0, 0.0]));
    assert_eq!(of(SMOOTH, &[-infinite, 3.0], Target::Class(1)), (infinite, vec![-0.0625, 0.0625]));
    assert_eq!(of(ENTROPY, &[infinite, infinite], Target::Class(0)), (2f32.ln(), vec![-0.5, 0.5]));
    assert_eq!(of(Loss::BinaryCrossEntropy, &[infinite], Target::Class(1)), (0.0, vec![0.0]));
    assert_eq!(of(Loss::BinaryCrossEntropy, &[infinite], Target::Class(0)), (infinite, vec![1.0]));
    assert_eq!(of(Loss::BinaryCrossEntropy, &[-infinite], Target::Number(0.25)), (infinite, vec![-0.25]));
}

#[test]
fn what_is_no_example_has_no_gradient() {
    let nan = f32::NAN;
    for class in [0, 1] {
        assert_no_answer(ENTROPY, &[nan, 1.0], Target::Class(class));
        assert_no_answer(SMOOTH, &[nan, 1.0], Target::Class(class));
        assert_no_answer(Loss::BinaryCrossEntropy, &[nan], Target::Class(class));
    }
    for loss in [Loss::Squared, Loss::Huber { delta: 1.0 }, Loss::Pinball { quantile: 0.5, smoothing: 0.0 }] {
        assert_no_answer(loss, &[nan], Target::Number(0.0));
        assert_no_answer(loss, &[0.0], Target::Number(nan));
        assert_no_answer(loss, &[f32::INFINITY], Target::Number(f32::INFINITY));
        assert_no_answer(loss, &[0.0], Target::Class(0));
        assert_no_answer(loss, &[0.0, 1.0], Target::Number(0.0));
        assert_no_answer(loss, &[], Target::Number(0.0));
    }
    assert_no_answer(ENTROPY, &[0.0, 1.0], Target::Class(2));
    assert_no_answer(ENTROPY, &[0.0, 1.0], Target::Number(1.0));
    assert_no_answer(ENTROPY, &[], Target::Class(0));
    assert_no_answer(Loss::BinaryCrossEntropy, &[0.0], Target::Class(2));
    assert_no_answer(Loss::BinaryCrossEntropy, &[0.0], Target::Number(1.5));
    let mut short = [1.0];
    assert!(
        ENTROPY.loss_and_gradient(&[0.0, 1.0], Target::Class(0), &mut short).is_nan() && short[0].is_nan()
    );
}

#[test]
fn the_slope_of_a_pinball_is_the_quantile_or_the_rest_to_one() {
    let loss = Loss::Pinball { quantile: 0.25, smoothing: 0.0 };
    assert_eq!(of(loss, &[1.0], Target::Number(3.0)), (0.5, vec![-0.25]));
    assert_eq!(of(loss, &[3.0], Target::Number(1.0)), (1.5, vec![0.75]));
    assert_eq!(of(loss, &[3.0], Target::Number(3.0)), (0.0, vec![0.0]));
}

#[test]
fn certain_predictions_keep_their_small_losses() {
    // e⁻⁶⁰, where 1 - σ(60) would be zero.
    let small = 8.756_511e-27;
    assert_eq!(of(Loss::BinaryCrossEntropy, &[60.0], Target::Class(1)), (small, vec![-small]));
    assert_eq!(of(Loss::BinaryCrossEntropy, &[-60.0], Target::Class(0)), (small, vec![small]));
}

#[test]
fn a_pinball_is_least_at_its_quantile() {
    let sample: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let total = |quantile, at| -> f32 {
        sample
            .iter()
            .map(|y| of(Loss::Pinball { quantile, smoothing: 0.0 }, &[at], Target::Number(*y)).0)
            .sum()
    };
    for quantile in [0.1, 0.5, 0.9] {
        let best = (0..100)
            .map(|i| i as f32 + 0.5)
            .min_by(|a, b| total(quantile, *a).total_cmp(&total(quantile, *b)))
            .unwrap();
        assert!((best - 100.0 * quantile).abs() <= 1.0, "{best} for {quantile}");
    }
}

#[test]
fn nan_is_less_than_any_number() {
    let nan = f32::NAN;
    assert_eq!(arg_max(&[]), None);
    assert_eq!(arg_max(&[nan, nan]), Some(0));
    assert_eq!(arg_max(&[nan, f32::NEG_INFINITY, nan]), Some(1));
    assert_eq!(arg_max(&[1.0, nan, 2.0, nan, 2.0, -3.0]), Some(2));
}

#[test]
fn predictions_are_classes_or_numbers() {
    assert_eq!(ENTROPY.predict(&[0.0, 2.0, 1.0]), Some(Target::Class(1)));
    assert_eq!(Loss::BinaryCrossEntropy.predict(&[0.5]), Some(Target::Class(1)));
    assert_eq!(Loss::BinaryCrossEntropy.predict(&[-0.5]), Some(Target::Class(0)));
    assert_eq!(Loss::BinaryCrossEntropy.predict(&[f32::NAN]), Some(Target::Class(0)));
    assert_eq!(Loss::Squared.predict(&[-0.5]), Some(Target::Number(-0.5)));
    assert_eq!(Loss::Squared.predict(&[-0.5, 1.0]), None);
    assert_eq!(ENTROPY.predict(&[f32::NAN, 0.0]), Some(Target::Class(1)));
    assert_eq!(ENTROPY.predict(&[5.0, 5.0]), Some(Target::Class(0)));
    assert_eq!(
        (ENTROPY.outputs(10), Loss::BinaryCrossEntropy.outputs(2), Loss::Squared.outputs(0)),
        (10, 1, 1)
    );
    assert!(ENTROPY.classifies() && Loss::BinaryCrossEntropy.classifies() && !Loss::Squared.classifies());
}

#[test]
fn settings_out_of_range_and_misspelt_ones_are_refused() {
    for loss in [
        Loss::CrossEntropy { label_smoothing: 1.0 },
        Loss::CrossEntropy { label_smoothing: f32::NAN },
        Loss::Huber { delta: 0.0 },
        Loss::Pinball { quantile: 1.0, smoothing: 0.0 },
    ] {
        assert!(matches!(loss.check(), Err(Error::OutOfRange { .. })), "{loss:?}");
    }
    let error = Loss::Pinball { quantile: 1.5, smoothing: 0.0 }.check().unwrap_err();
    assert_eq!(error.to_string(), "quantile is 1.5, expected a number in (0, 1)");
    for text in [
        r#"{"cross_entropy": {"smoothing": 0.1}}"#,
        r#"{"pinball": {}}"#,
        r#""absolute""#,
        r#"{"huber": {"delta": 1, "d": 2}}"#,
    ] {
        assert!(serde_json::from_str::<Loss>(text).is_err(), "{text}");
    }
    let read: Loss = toml::from_str::<toml::Table>("huber.delta = 2.0").unwrap().try_into().unwrap();
    assert_eq!(read, Loss::Huber { delta: 2.0 });
}

#[test]
fn scores_are_probabilities_of_which_the_prediction_has_the_largest() {
    let scores = ENTROPY.scores(&[1000.0, 1000.0 + 3f32.ln(), f32::NEG_INFINITY]);
    assert!(
        (scores[0] - 0.25).abs() < 1e-4 && (scores[1] - 0.75).abs() < 1e-4 && scores[2] == 0.0,
        "{scores:?}"
    );
    let [no, yes] = Loss::BinaryCrossEntropy.scores(&[3f32.ln()])[..] else { panic!("two classes") };
    assert!((no - 0.25).abs() < 1e-6 && (yes - 0.75).abs() < 1e-6, "{no} {yes}");
    assert_eq!(Loss::BinaryCrossEntropy.scores(&[1000.0]), [0.0, 1.0]);
    assert_eq!(Loss::Squared.scores(&[0.5]), [0.5]);
}

#[test]
fn a_support_vector_machine_has_a_score_for_each_of_two_classes() {
    let loss = Loss::Hinge { smoothing: 0.5 };
    assert_eq!(loss.scores(&[0.7]), [-0.7, 0.7]);
    assert_eq!(loss.scores(&[0.1, 0.2, 0.3]), [0.1, 0.2, 0.3]);
}
