//! Averages against their sums written out.

use quell::{Error, learner::average::Average};

use super::{assert_close, numbers};

const DIMENSION: usize = 5;
const AVERAGES: [Average; 4] = [
    Average::Uniform { skip: 0 },
    Average::Uniform { skip: 7 },
    Average::Exponential { decay: 0.75 },
    Average::Linear,
];

/// Σ wₜxₜ / Σ wₜ.
fn weighted(iterates: &[Vec<f32>], weight: impl Fn(usize) -> f64) -> Vec<f64> {
    let total: f64 = (1..=iterates.len()).map(&weight).sum();
    let sum = |k: usize| iterates.iter().zip(1..).map(|(x, t)| weight(t) * f64::from(x[k])).sum::<f64>();
    (0..DIMENSION).map(|k| sum(k) / total).collect()
}

#[test]
fn an_average_is_its_weighted_sum() {
    let iterates: Vec<Vec<f32>> = (0..40).map(|t| numbers(t, DIMENSION)).collect();
    for average in AVERAGES {
        let mut mean = average.start(DIMENSION).unwrap();
        for last in 1..=iterates.len() {
            mean.add(&iterates[last - 1]).unwrap();
            let expected = weighted(&iterates[..last], |t| match average {
                // Until something is left in, the last iterate.
                Average::Uniform { skip } => {
                    f64::from(u8::from(t > skip as usize || (t == last && last <= skip as usize)))
                }
                Average::Exponential { decay } => decay.powi((last - t) as i32),
                Average::Linear => 2.0 * t as f64 / (last * (last + 1)) as f64,
                Average::None => unreachable!(),
            });
            for (found, expected) in mean.weights().unwrap().iter().zip(&expected) {
                assert_close(f64::from(*found), *expected, 1e-7);
            }
            for (found, expected) in mean.state().iter().zip(&expected) {
                assert_close(*found, *expected, 1e-14);
            }
        }
        assert_eq!(mean.count(), 40);
    }
}

#[test]
fn the_last_iterate_is_no_average() {
    let mut mean = Average::None.start(DIMENSION).unwrap();
    mean.add(&numbers(1, DIMENSION)).unwrap();
    assert_eq!((mean.weights(), mean.state()), (None, [].as_slice()));
    assert_eq!(Average::Linear.start(DIMENSION).unwrap().weights(), None);
    assert_eq!(Average::default(), Average::None);
}

#[test]
fn late_iterates_still_move_the_mean() {
    // In single precision a mean of 1 stops moving towards 0.999 after 2¹³ steps or so.
    let mut mean = Average::Uniform { skip: 0 }.start(1).unwrap();
    for t in 0..200_000 {
        mean.add(&[if t < 100_000 { 1.0 } else { 0.998 }]).unwrap();
    }
    assert_close(f64::from(mean.weights().unwrap()[0]), 0.999, 1e-7);
}

#[test]
fn long_vectors_are_averaged_like_short_ones() {
    let length = 150_001;
    for average in AVERAGES {
        let mut whole = average.start(length).unwrap();
        let mut parts =
            [average.start(50_000).unwrap(), average.start(50_000).unwrap(), average.start(50_001).unwrap()];
        for t in 0..3 {
            let x = numbers(t, length);
            whole.add(&x).unwrap();
            for (part, x) in parts.iter_mut().zip([&x[..50_000], &x[50_000..100_000], &x[100_000..]]) {
                part.add(x).unwrap();
            }
        }
        let parts: Vec<f64> = parts.iter().flat_map(|part| part.state().to_vec()).collect();
        assert!(whole.state() == parts);
    }
}

#[test]
fn a_restored_average_goes_on_as_if_nothing_had_happened() {
    for average in AVERAGES {
        let mut whole = average.start(DIMENSION).unwrap();
        (0..9).for_each(|t| whole.add(&numbers(t, DIMENSION)).unwrap());
        let mut resumed = average.start(DIMENSION).unwrap();
        resumed.restore(whole.count(), whole.state()).unwrap();
        for t in 9..20 {
            whole.add(&numbers(t, DIMENSION)).unwrap();
            resumed.add(&numbers(t, DIMENSION)).unwrap();
        }
        assert_eq!(whole, resumed);
    }
}

#[test]
fn wrong_lengths_states_and_settings_are_refused_and_change_nothing() {
    let mut mean = Average::Linear.start(2).unwrap();
    mean.add(&[1.0, 2.0]).unwrap();
    let before = mean.clone();
    assert_eq!(mean.add(&[1.0]), Err(Error::Length { what: "weights", found: 1, expected: 2 }));
    assert!(matches!(mean.restore(3, &[1.0]), Err(Error::Length { .. })));
    assert!(matches!(mean.restore(3, &[1.0, f64::NAN]), Err(Error::SavedState { .. })));
    assert_eq!(mean, before);
    for decay in [-0.5, 1.0, f64::NAN] {
        assert!(matches!(
            Average::Exponential { decay }.start(2),
            Err(Error::OutOfRange { what: "decay", .. })
        ));
    }
    assert!(serde_json::from_str::<Average>(r#"{"uniform": {"from": 3}}"#).is_err());
    assert_eq!(serde_json::from_str::<Average>(r#""linear""#).unwrap(), Average::Linear);
    Average::Linear.start(0).unwrap().add(&[]).unwrap();
}
