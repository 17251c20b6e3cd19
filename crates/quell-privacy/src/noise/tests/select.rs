//! Choices.

use std::num::NonZero;

use super::{
    super::{
        fixed::multiply_high,
        select::{Coefficient, Interval, Ladder, exponential, permute_and_flip},
    },
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

fn coin(epsilon: f64, utility: i64) -> f64 {
    (epsilon * (utility - 5) as f64 / (2 * SENSITIVITY) as f64).exp()
}

fn exponential_probabilities(epsilon: f64) -> Vec<f64> {
    let weights: Vec<f64> = UTILITIES.iter().map(|&u| coin(epsilon, u)).collect();
    weights.iter().map(|w| w / weights.iter().sum::<f64>()).collect()
}

/// Over all orders of the candidates.
fn permute_and_flip_probabilities(epsilon: f64) -> Vec<f64> {
    fn visit(left: &[usize], reached: f64, epsilon: f64, chosen: &mut [f64]) {
        for (position, &candidate) in left.iter().enumerate() {
            let (reached, p) = (reached / left.len() as f64, coin(epsilon, UTILITIES[candidate]));
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
        // ε = 0 and huge sensitivities: anything goes, and nothing overflows.
        let mut chosen = [0; 2];
        for _ in 0..10_000 {
            chosen[choose(&[i64::MIN, i64::MAX], coefficient(0.0, u64::MAX), &mut stream).unwrap()] += 1;
        }
        assert!(agrees(&chosen, &[0.5; 2]), "{chosen:?}");
    }
}

/// Σ xᵏ/k! up to so many terms of x = numerator/denominator, as a fraction over denominatorᵏ k!: below e^x.
fn below_exp(numerator: u128, denominator: u128, terms: u32) -> (u128, u128) {
    let (mut sum, mut power, mut scale) = (1, 1, 1);
    for k in 1..=u128::from(terms) {
        power *= numerator;
        scale *= denominator * k;
        sum = sum * denominator * k + power;
    }
    (sum, scale)
}

/// The product in two words, high and low.
fn wide(a: u128, b: u128) -> (u128, u128) {
    (multiply_high(a, b), a.wrapping_mul(b))
}

#[test]
fn ladder_never_falls_by_more_than_its_factor() {
    // γ = ε/2 as a fraction, and so many terms of e^γ that what is missing is less than what the ladder rounds up.
    for (epsilon, (numerator, denominator), terms) in
        [(1.0, (1, 2), 24), (0.01, (1, 200), 5), (3.0, (3, 2), 27), (1e-4, (1, 20_000), 4), (0.25, (1, 8), 18)]
    {
        let (sum, scale) = below_exp(numerator, denominator, terms);
        let ladder = Ladder::new(coefficient(epsilon, 1), 1 << 20);
        let mut steps = 0;
        for k in 0.. {
            let (upper, lower) = (ladder.weight(k), ladder.weight(k + 1));
            if upper == lower {
                break;
            }
            assert!(0 < lower && lower < upper);
            // upper/lower ≤ sum/scale ≤ e^γ in integers, and not for a ladder that is a millionth steeper.
            assert!(wide(upper, scale) <= wide(lower, sum), "{epsilon}: step {k}");
            assert!(wide(upper, scale) > wide(lower - (lower >> 18), sum), "{epsilon}: step {k}");
            steps += 1;
        }
        let fall = (ladder.weight(0) as f64 / ladder.weight(u64::MAX) as f64).log2();
        assert!(fall > 58.0 && steps > 10, "{epsilon}: {steps} steps fall by 2^{fall}");
    }
    assert_eq!(Ladder::new(coefficient(0.0, 1), 100).weight(50), Ladder::new(coefficient(0.0, 1), 100).weight(0));
    let short = Ladder::new(coefficient(0.1, 1), 3);
    assert!(short.weight(2) > short.weight(3) && short.weight(3) == short.weight(4));
}

#[test]
fn quantiles_are_chosen_with_their_weights() {
    let mut stream = stream(23);
    let intervals = [(4, 3), (0, 2), (5, 1), (1, 0), (2, 1), (30, 200)].map(|(points, distance)| Interval { points, distance });
    let ladder = Ladder::new(coefficient(1.0, 1), 1000);
    let weights: Vec<f64> = intervals.iter().map(|i| i.points as f64 * (-(i.distance as f64) / 2.0).exp()).collect();
    let total: f64 = weights.iter().sum();
    let (mut counts, mut offsets) = (vec![0; 6], vec![0; 5]);
    for _ in 0..CHOICES {
        let (number, offset) = ladder.choose(&intervals, &mut stream).unwrap();
        assert!(offset < intervals[number].points);
        counts[number] += 1;
        if number == 2 {
            offsets[offset as usize] += 1;
        }
    }
    // An empty interval is never chosen, and one 200 ranks away not within the age of the universe.
    assert_eq!((counts.remove(1), counts.pop()), (0, Some(0)));
    let expected: Vec<f64> = [0, 2, 3, 4].map(|i| weights[i] / total).to_vec();
    assert!(agrees(&counts, &expected), "{counts:?} {expected:?}");
    assert!(agrees(&offsets, &[0.2; 5]), "{offsets:?}");
    assert!(!agrees(&counts, &[0.25; 4]));
    let many = [Interval { points: 1 << 46, distance: 0 }, Interval { points: 1 << 46, distance: 9 }];
    assert!(ladder.choose(&many, &mut stream).is_some());
    assert_eq!(ladder.choose(&[many[0], many[1], many[1]], &mut stream), None);
    assert_eq!(ladder.choose(&[], &mut stream), None);
}
