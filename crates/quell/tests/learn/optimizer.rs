//! Optimizers against their formulas in double precision, and what can be saved, restored and refused.

use quell::{
    Error,
    learner::optimizer::{Optimizer, Update},
};

use super::{assert_close, numbers};

const DIMENSION: usize = 6;

/// A scaled gradient, and the variance of its noise.
type Released = (Vec<f64>, f64);

/// A part of a saved state.
type Part<'a> = (&'a str, &'a [f32]);

fn read(text: &str) -> Optimizer {
    serde_json::from_str(text).unwrap()
}

fn all() -> Vec<Optimizer> {
    [
        r#"{"sgd": {"weight_decay": 0.25}}"#,
        r#"{"momentum": {"weight_decay": 0.25}}"#,
        r#"{"momentum": {"nesterov": true}}"#,
        r#"{"adam": {"weight_decay": 0.25}}"#,
        r#"{"adamw": {"weight_decay": 0.25}}"#,
        r#"{"adam_bc": {"weight_decay": 0.25}}"#,
        r#"{"adagrad": {"weight_decay": 0.25}}"#,
        r#"{"lamb": {"weight_decay": 0.25}}"#,
    ]
    .map(read)
    .to_vec()
}

fn doubles(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|x| f64::from(*x)).collect()
}

fn norm(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn dp_adam_bc_takes_the_variance_of_the_noise_out() {
    let step = Update { learning_rate: 0.5, scale: 0.25, noise_variance: 3.0 };
    // Of the first step v̂ = g²: 4 - 3 = 1, and 1 - 3 is under the floor.
    let mut weights = [0.0, 0.0];
    let mut stepper = read(r#"{"adam_bc": {"floor": 0.0625}}"#).start(&[2]).unwrap();
    stepper.step(&mut weights, &[8.0, 4.0], step).unwrap();
    assert_close(weights[0].into(), -0.5 * 2.0 / 1.0, 1e-6);
    assert_close(weights[1].into(), -0.5 * 1.0 / 0.25, 1e-6);
}

#[test]
fn dp_adam_bc_follows_its_formula() {
    let (beta1, beta2, floor, rate, decay) = (0.8f64, 0.95f64, 0.01f64, 0.125, 0.25);
    let optimizer = Optimizer::AdamBc { beta1, beta2, floor, weight_decay: decay };
    let mut stepper = optimizer.start(&[DIMENSION]).unwrap();
    let mut weights = numbers(99, DIMENSION);
    let mut expected = doubles(&weights);
    let mut history: Vec<Released> = Vec::new();
    let (mut floored, mut steps) = (0, 0);
    for t in 0..20 {
        let gradient = numbers(t, DIMENSION);
        // As clip norms adapt, so does the noise.
        let noise_variance = 0.05 + 0.01 * (t % 7) as f64;
        stepper
            .step(&mut weights, &gradient, Update { learning_rate: rate, scale: 0.5, noise_variance })
            .unwrap();
        history.push((gradient.iter().map(|g| 0.5 * f64::from(*g)).collect(), noise_variance));
        let mean = |beta: f64, of: &dyn Fn(&Released) -> f64| {
            let weights = (0..history.len()).rev().map(|age| beta.powi(age as i32));
            history.iter().zip(weights.clone()).map(|(h, weight)| weight * of(h)).sum::<f64>()
                / weights.sum::<f64>()
        };
        let noise = mean(beta2, &|(_, noise)| *noise);
        for (k, w) in expected.iter_mut().enumerate() {
            let (m, v) = (mean(beta1, &|(g, _)| g[k]), mean(beta2, &|(g, _)| g[k] * g[k]));
            *w = *w * (1.0 - rate * decay) - rate * m / (v - noise).max(floor).sqrt();
            floored += usize::from(v - noise < floor);
            steps += 1;
        }
        for (found, expected) in weights.iter().zip(&expected) {
            assert_close(f64::from(*found), *expected, 3e-6);
        }
    }
    assert!(floored > 10 && steps - floored > 10, "both sides of the floor are tried: {floored} of {steps}");
}

#[test]
fn without_noise_dp_adam_bc_is_adam_and_with_noise_it_undoes_what_noise_does() {
    // A weight whose gradient is 0.1 and noise that is ten times as large: Adam's steps shrink, DP-AdamBC's do not.
    let steps = 4000;
    let moved = |text: &str, deviation: f32, variance: f64| {
        let mut stepper = read(text).start(&[1]).unwrap();
        let mut weights = [0.0];
        for t in 0..steps {
            let sign = if numbers(t, 1)[0] < 0.0 { -1.0 } else { 1.0 };
            let step = Update { learning_rate: 0.001, noise_variance: variance, ..Update::default() };
            stepper.step(&mut weights, &[0.1 + sign * deviation], step).unwrap();
        }
        f64::from(-weights[0]) / (0.001 * steps as f64)
    };
    assert_close(moved(r#"{"adam": {}}"#, 0.0, 0.0), 1.0, 1e-3);
    assert_close(moved(r#"{"adam_bc": {}}"#, 0.0, 0.0), 1.0, 1e-3);
    let adam = moved(r#"{"adam": {}}"#, 1.0, 1.0);
    assert!(adam < 0.2, "{adam}");
    let corrected = moved(r#"{"adam_bc": {"floor": 0.005}}"#, 1.0, 1.0);
    assert!(corrected > 3.0 * adam, "{corrected} {adam}");
}

#[test]
fn lamb_follows_its_formula_layer_by_layer() {
    let (beta1, beta2, epsilon, rate, decay) = (0.8f64, 0.95f64, 1e-3, 0.125, 0.25);
    let layers = [1, 0, 3, 2];
    let mut stepper = Optimizer::Lamb { beta1, beta2, epsilon, weight_decay: decay }.start(&layers).unwrap();
    let mut weights = numbers(99, DIMENSION);
    let mut expected = doubles(&weights);
    let (mut m, mut v) = ([0.0; DIMENSION], [0.0; DIMENSION]);
    for t in 1..=20 {
        let gradient = numbers(t, DIMENSION);
        stepper
            .step(&mut weights, &gradient, Update { learning_rate: rate, scale: 0.5, noise_variance: 9.0 })
            .unwrap();
        let mut direction = [0.0; DIMENSION];
        for k in 0..DIMENSION {
            let g = 0.5 * f64::from(gradient[k]);
            m[k] = beta1 * m[k] + (1.0 - beta1) * g;
            v[k] = beta2 * v[k] + (1.0 - beta2) * g * g;
            let (m, v) = (m[k] / (1.0 - beta1.powi(t as i32)), v[k] / (1.0 - beta2.powi(t as i32)));
            direction[k] = m / (v.sqrt() + epsilon) + decay * expected[k];
        }
        let mut end = 0;
        for length in layers {
            let layer = end..end + length;
            end += length;
            let trust = norm(&expected[layer.clone()]) / norm(&direction[layer.clone()]);
            for k in layer {
                expected[k] -= rate * trust * direction[k];
            }
        }
        for (found, expected) in weights.iter().zip(&expected) {
            assert_close(f64::from(*found), *expected, 3e-6);
        }
    }
}

#[test]
fn lamb_trusts_a_layer_of_zeros_with_the_plain_step() {
    let mut weights = [0.0, 0.0, 3.0, 4.0];
    let mut stepper = read(r#"{"lamb": {}}"#).start(&[2, 2]).unwrap();
    stepper
        .step(&mut weights, &[1.0, -1.0, 0.0, 0.0], Update { learning_rate: 0.5, ..Update::default() })
        .unwrap();
    assert_close(weights[0].into(), -0.5, 1e-5);
    assert_close(weights[1].into(), 0.5, 1e-5);
    assert_eq!(weights[2..], [3.0, 4.0]);
}

#[test]
fn a_sum_and_its_scale_are_the_gradient() {
    for optimizer in all() {
        let (mut of_sum, mut of_mean) = (numbers(99, DIMENSION), numbers(99, DIMENSION));
        let [mut first, mut second] = [(); 2].map(|()| optimizer.start(&[DIMENSION]).unwrap());
        for t in 0..5 {
            let sum: Vec<f32> = numbers(t, DIMENSION);
            let mean: Vec<f32> = sum.iter().map(|x| x / 64.0).collect();
            let step = Update { learning_rate: 0.125, scale: 1.0 / 64.0, noise_variance: 1e-3 };
            first.step(&mut of_sum, &sum, step).unwrap();
            second.step(&mut of_mean, &mean, Update { scale: 1.0, ..step }).unwrap();
        }
        assert_eq!(of_sum, of_mean, "{optimizer:?}");
    }
}

#[test]
fn long_vectors_are_stepped_like_short_ones() {
    let lengths = [60_000, 59_999, 40_003];
    let total: usize = lengths.iter().sum();
    for optimizer in all() {
        let mut whole = numbers(99, total);
        let mut parts: Vec<Vec<f32>> =
            [0..60_000, 60_000..119_999, 119_999..total].map(|part| whole[part].to_vec()).to_vec();
        let mut stepper = optimizer.start(&lengths).unwrap();
        let mut steppers = lengths.map(|length| optimizer.start(&[length]).unwrap());
        for t in 0..2 {
            let gradient = numbers(t, total);
            let step = Update { learning_rate: 0.125, scale: 0.5, noise_variance: 1e-3 };
            stepper.step(&mut whole, &gradient, step).unwrap();
            let mut start = 0;
            for (stepper, part) in steppers.iter_mut().zip(&mut parts) {
                let length = part.len();
                stepper.step(part, &gradient[start..start + length], step).unwrap();
                start += length;
            }
        }
        assert!(whole == parts.concat(), "{optimizer:?}");
    }
}

#[test]
fn a_restored_state_goes_on_as_if_nothing_had_happened() {
    for optimizer in all() {
        let mut whole = optimizer.start(&[4, 2]).unwrap();
        let mut weights = numbers(99, DIMENSION);
        let step = |t: u64| Update { learning_rate: 0.125, scale: 1.0, noise_variance: 0.1 / (t + 3) as f64 };
        (0..9).for_each(|t| whole.step(&mut weights, &numbers(t, DIMENSION), step(t)).unwrap());
        let mut resumed = optimizer.start(&[4, 2]).unwrap();
        let saved: Vec<(String, Vec<f32>)> =
            whole.state().iter().map(|(name, part)| ((*name).to_owned(), part.to_vec())).collect();
        // In any order, as a file may have it.
        let saved: Vec<Part> =
            saved.iter().rev().map(|(name, part)| (name.as_str(), part.as_slice())).collect();
        resumed.restore(whole.steps(), &saved).unwrap();
        let mut copy = weights.clone();
        for t in 9..20 {
            whole.step(&mut weights, &numbers(t, DIMENSION), step(t)).unwrap();
            resumed.step(&mut copy, &numbers(t, DIMENSION), step(t)).unwrap();
        }
        assert_eq!((weights, whole), (copy, resumed), "{optimizer:?}");
    }
}

#[test]
fn the_mean_of_a_constant_variance_is_that_variance() {
    let mut stepper = read(r#"{"adam_bc": {}}"#).start(&[1]).unwrap();
    for _ in 0..50_000 {
        stepper.step(&mut [0.0], &[0.0], Update { noise_variance: 0.1, ..Update::default() }).unwrap();
    }
    let state = stepper.state();
    let (_, parts) = state.iter().find(|(name, _)| *name == "noise_variance").unwrap();
    assert_close(doubles(parts).iter().sum(), 0.1, 1e-10);
}

#[test]
fn a_state_of_another_run_is_refused_and_changes_nothing() {
    let mut stepper = read(r#"{"adam": {}}"#).start(&[2]).unwrap();
    stepper.step(&mut [1.0, 2.0], &[0.5, 0.5], Update::default()).unwrap();
    let before = stepper.clone();
    let (first, second): (Part, Part) = (("first_moment", &[1.0, 2.0]), ("second_moment", &[1.0, 2.0]));
    let cases: [(&[Part], &str); 7] = [
        (&[first], "\"second_moment\" of the saved state is absent, expected present"),
        (&[], "\"first_moment\" of the saved state is absent, expected present"),
        (
            &[first, second, ("momentum", &[0.0, 0.0])],
            "\"momentum\" of the saved state is present, expected absent: these settings have no such part",
        ),
        (
            &[first, second, first],
            "\"first_moment\" of the saved state is present twice, expected present once",
        ),
        (&[first, ("second_moment", &[1.0])], "the length of second_moment is 1, expected 2"),
        (
            &[first, ("second_moment", &[1.0, -1.0])],
            "\"second_moment\" of the saved state is negative, expected a mean or sum of squares",
        ),
        (
            &[second, ("first_moment", &[1.0, f32::NAN])],
            "\"first_moment\" of the saved state is not finite, expected finite numbers",
        ),
    ];
    for (state, message) in cases {
        let error = stepper.restore(5, state).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(stepper, before);
    }
    stepper.restore(5, &[first, second]).unwrap();
    assert_eq!(stepper.steps(), 5);
}

#[test]
fn lengths_and_numbers_that_make_no_sense_are_refused_and_nothing_moves() {
    for optimizer in all() {
        let mut stepper = optimizer.start(&[2, 1]).unwrap();
        let before = stepper.clone();
        let mut weights = [1.0, 2.0, 3.0];
        let good = Update { learning_rate: 0.5, ..Update::default() };
        assert_eq!(
            stepper.step(&mut weights, &[1.0], good),
            Err(Error::Length { what: "gradient", found: 1, expected: 3 })
        );
        assert!(matches!(
            stepper.step(&mut weights[..2], &[1.0; 3], good),
            Err(Error::Length { what: "weights", .. })
        ));
        for step in [
            Update { learning_rate: f64::NAN, ..good },
            Update { learning_rate: -0.5, ..good },
            Update { scale: f64::INFINITY, ..good },
            Update { noise_variance: -1.0, ..good },
        ] {
            assert!(matches!(stepper.step(&mut weights, &[1.0; 3], step), Err(Error::OutOfRange { .. })));
        }
        assert_eq!((stepper, weights), (before, [1.0, 2.0, 3.0]));
        optimizer.start(&[]).unwrap().step(&mut [], &[], good).unwrap();
    }
}

#[test]
fn settings_out_of_range_and_misspelt_ones_are_refused() {
    for text in [
        r#"{"sgd": {"weight_decay": -0.1}}"#,
        r#"{"momentum": {"momentum": 1.0}}"#,
        r#"{"adam": {"beta1": -0.5}}"#,
        // One in single precision: nothing would ever be forgotten.
        r#"{"adam": {"beta2": 0.99999999}}"#,
        r#"{"adamw": {"epsilon": 0.0}}"#,
        // Zero in single precision: a weight without gradient would be divided by it.
        r#"{"adam": {"epsilon": 1e-60}}"#,
        r#"{"adam_bc": {"floor": 0.0}}"#,
        r#"{"adagrad": {"initial": -1.0}}"#,
        r#"{"lamb": {"beta2": 1.0}}"#,
    ] {
        assert!(matches!(read(text).start(&[2]), Err(Error::OutOfRange { .. })), "{text}");
    }
    for text in [r#"{"adam": {"beta": 0.9}}"#, r#"{"sgd": {"momentum": 0.9}}"#, r#"{"adadelta": {}}"#] {
        assert!(serde_json::from_str::<Optimizer>(text).is_err(), "{text}");
    }
    for optimizer in all() {
        optimizer.check().unwrap();
        assert_eq!(read(&serde_json::to_string(&optimizer).unwrap()), optimizer);
        assert_eq!(optimizer.start(&[3]).unwrap().optimizer(), optimizer);
    }
}

#[test]
fn a_weight_without_gradient_stays_where_it_is() {
    for name in ["sgd", "momentum", "adam", "adam_bc", "adagrad", "lamb"] {
        let mut weights = [0.5];
        let mut stepper = read(&format!(r#"{{"{name}": {{}}}}"#)).start(&[1]).unwrap();
        (0..3).for_each(|_| {
            stepper.step(&mut weights, &[0.0], Update { learning_rate: 0.5, ..Update::default() }).unwrap();
        });
        assert_eq!(weights, [0.5], "{name}");
    }
    for optimizer in all() {
        let mut weights = [0.0];
        let mut stepper = optimizer.start(&[1]).unwrap();
        (0..3).for_each(|_| {
            stepper.step(&mut weights, &[0.0], Update { learning_rate: 0.5, ..Update::default() }).unwrap();
        });
        assert_eq!(weights, [0.0], "{optimizer:?}");
    }
}
