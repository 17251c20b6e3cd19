//! Schedules beyond what PyTorch computes: ends, and settings that make no sense.

use quell::{
    Error,
    learner::schedule::{Schedule, Shape},
};

const SHAPES: [Shape; 6] = [
    Shape::Constant,
    Shape::Linear { last: 0.125 },
    Shape::Cosine { last: 0.125 },
    Shape::Exponential { factor: 0.5 },
    Shape::Step { factor: 0.5, every: 2 },
    Shape::InverseSqrt,
];

#[test]
fn the_largest_rate_is_that_of_the_last_step_of_warming_up() {
    for shape in SHAPES {
        let schedule = Schedule { learning_rate: 0.5, warm_up: 5, shape };
        assert_eq!(schedule.learning_rate(0, 50), 0.1);
        assert_eq!(schedule.learning_rate(4, 50), 0.5);
        let rates: Vec<f64> = (4..60).map(|step| schedule.learning_rate(step, 50)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] <= pair[0] && pair[1] > 0.0), "{shape:?}: {rates:?}");
    }
}

#[test]
fn lines_and_waves_end_one_step_after_the_run_and_stay_there() {
    for shape in [Shape::Linear { last: 0.125 }, Shape::Cosine { last: 0.125 }] {
        let schedule = Schedule { learning_rate: 2.0, warm_up: 3, shape };
        assert!(schedule.learning_rate(9, 10) > 0.25);
        assert_eq!(schedule.learning_rate(10, 10), 0.25);
        assert_eq!(schedule.learning_rate(u64::MAX, 10), 0.25);
    }
}

#[test]
fn runs_of_no_step_or_shorter_than_their_warm_up_have_finite_rates() {
    for shape in SHAPES {
        for warm_up in [0, 1, 7, u64::MAX] {
            for (step, steps) in [(0, 0), (3, 0), (3, 5), (u64::MAX, u64::MAX), (u64::MAX, 1)] {
                let rate = Schedule { learning_rate: 1.0, warm_up, shape }.learning_rate(step, steps);
                assert!((0.0..=1.0).contains(&rate), "{shape:?} {warm_up} {step} {steps}: {rate}");
            }
        }
    }
    assert!(
        Schedule { shape: Shape::Step { factor: 0.5, every: 0 }, ..Schedule::constant(1.0) }
            .learning_rate(3, 9)
            .is_finite()
    );
}

#[test]
fn settings_out_of_range_and_misspelt_ones_are_refused() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            Schedule::constant(rate).check(),
            Err(Error::OutOfRange { what: "learning_rate", .. })
        ));
    }
    for shape in [
        Shape::Linear { last: -0.5 },
        Shape::Cosine { last: f64::NAN },
        Shape::Exponential { factor: 0.0 },
        Shape::Exponential { factor: 1.5 },
        Shape::Step { factor: 0.5, every: 0 },
    ] {
        assert!(Schedule { shape, ..Schedule::constant(1.0) }.check().is_err(), "{shape:?}");
    }
    for shape in SHAPES {
        Schedule { shape, ..Schedule::constant(1.0) }.check().unwrap();
    }
    for text in [
        r#"{"learning_rate": 1, "warmup": 3}"#,
        r#"{"warm_up": 3}"#,
        r#"{"learning_rate": 1, "shape": {"cosine": {"end": 0}}}"#,
        r#"{"learning_rate": 1, "shape": "cyclic"}"#,
    ] {
        assert!(serde_json::from_str::<Schedule>(text).is_err(), "{text}");
    }
}
