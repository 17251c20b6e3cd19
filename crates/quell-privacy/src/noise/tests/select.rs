//! The exponential mechanism, and permute and flip.

use std::num::NonZero;

use super::{
    super::select::{Coefficient, exponential, permute_and_flip},
    agrees, stream,
};
use crate::units::Epsilon;

const CHOICES: usize = 300_000;
const UTILITIES: [i64; 5] = [-7, 3, 3, 5, 0];
const SENSITIVITY: u64 = 3;

fn coefficient(epsilon: f64, sensitivity: u64) -> Coefficient {
    Coefficient::new(Epsilon::new(epsilon).unwrap(), NonZero::new(sensitivity).unwrap())
}

fn counts(mut choose: impl FnMut() -> usize) -> Vec<u64> {
    let mut counts = vec![0; UTILITIES.len()];
    for _ in 0..CHOICES {
        counts[choose()] += 1;
    }
    counts
}

fn acceptance(epsilon: f64, utility: i64) -> f64 {
    (epsilon * (utility - 5) as f64 / (2 * SENSITIVITY) as f64).exp()
}

fn exponential_probabilities(epsilon: f64) -> Vec<f64> {
    let weights: Vec<f64> = UTILITIES.iter().map(|&u| acceptance(epsilon, u)).collect();
    weights.iter().map(|w| w / weights.iter().sum::<f64>()).collect()
}

/// The probabilities of permute and flip, by recursion over all orders of the candidates.
fn permute_and_flip_probabilities(epsilon: f64) -> Vec<f64> {
    fn visit(left: &[usize], reached: f64, epsilon: f64, chosen: &mut [f64]) {
        for (position, &candidate) in left.iter().enumerate() {
            let (reached, p) = (reached / left.len() as f64, acceptance(epsilon, UTILITIES[candidate]));
            chosen[candidate] += reached * p;
            let rest = [&left[..position], &left[position + 1..]].concat();
            visit(&rest, reached * (1.0 - p), epsilon, chosen);
        }
    }
    let mut chosen = vec![0.0; UTILITIES.len()];
    visit(&[0, 1, 2, 3, 4], 1.0, epsilon, &mut chosen);
    assert!((chosen.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    chosen
}

#[test]
fn exponential_mechanism_chooses_with_its_probabilities() {
    let mut stream = stream(20);
    let counts = counts(|| exponential(&UTILITIES, coefficient(1.5, SENSITIVITY), &mut stream).unwrap());
    assert!(agrees(&counts, &exponential_probabilities(1.5)), "{counts:?}");
    assert!(!agrees(&counts, &exponential_probabilities(1.5 * 0.95)));
    assert!(!agrees(&counts, &permute_and_flip_probabilities(1.5)));
    assert!(!agrees(&counts, &[0.2; 5]));
}

#[test]
fn permute_and_flip_chooses_with_its_probabilities() {
    let mut stream = stream(21);
    let counts = counts(|| permute_and_flip(&UTILITIES, coefficient(1.5, SENSITIVITY), &mut stream).unwrap());
    assert!(agrees(&counts, &permute_and_flip_probabilities(1.5)), "{counts:?}");
    assert!(!agrees(&counts, &permute_and_flip_probabilities(1.5 * 0.95)));
    assert!(!agrees(&counts, &exponential_probabilities(1.5)));
}

#[test]
fn edges_of_choosing() {
    let mut stream = stream(22);
    for choose in [exponential, permute_and_flip] {
        assert_eq!(choose(&[], coefficient(1.0, 1), &mut stream), None);
        assert_eq!(choose(&[i64::MIN], coefficient(1.0, 1), &mut stream), Some(0));
        assert_eq!(choose(&[i64::MIN, i64::MAX], coefficient(1.0, 1), &mut stream), Some(1));
        assert_eq!(choose(&[0, 1], coefficient(1e300, 1), &mut stream), Some(1));
        // ε = 0 and huge sensitivities: all candidates are equally likely, and nothing overflows.
        let mut chosen = [0; 2];
        for _ in 0..10_000 {
            chosen[choose(&[i64::MIN, i64::MAX], coefficient(0.0, u64::MAX), &mut stream).unwrap()] += 1;
        }
        assert!(agrees(&chosen, &[0.5; 2]), "{chosen:?}");
    }
}
