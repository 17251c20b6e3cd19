//! The exponential mechanism on a ladder.

use super::{
    super::{
        fixed::multiply_high,
        ladder::{Candidates, Ladder, RECORD},
    },
    agrees, stream,
};

/// A lower bound of e^x: the first terms of Σ xᵏ/k!.
///
/// x is numerator/denominator, and the sum is over denominatorᵏ k!.
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
fn rungs_never_fall_by_more_than_their_factor() {
    // γ times a stride, and enough terms of its exponential that the missing rest is less than a rung's
    // rounding.
    for (gamma, (numerator, denominator), terms) in [
        (1.0, (1, 16), 14),
        (0.5, (1, 16), 14),
        (1024.0, (1, 16), 14),
        (1.0 / 1_048_576.0, (1, 16), 14),
        (0.75, (3, 64), 14),
        (3.0, (3, 64), 14),
    ] {
        let (sum, scale) = below_exp(numerator, denominator, terms);
        let ladder = Ladder::new(gamma);
        for (step, pair) in ladder.rungs().windows(2).enumerate() {
            let (upper, lower) = (pair[0], pair[1]);
            assert!(0 < lower && lower < upper);
            // upper/lower ≤ sum/scale ≤ e^γs in integers, and not for a ladder that is a millionth steeper.
            assert!(wide(upper, scale) <= wide(lower, sum), "{gamma}: step {step}");
            assert!(wide(upper, scale) > wide(lower - (lower >> 18), sum), "{gamma}: step {step}");
        }
        assert!((500..1200).contains(&ladder.rungs().len()), "{gamma}: {}", ladder.rungs().len());
    }
}

#[test]
fn weights_fall_at_every_distance_and_never_by_more_than_is_paid_for() {
    for gamma in [1e-12, 1e-9, 3e-5, 0.013, 0.5, 1.7, 30.0, 1e4, 1e6, 1e9] {
        let ladder = Ladder::new(gamma);
        assert!(
            ladder.gamma() <= gamma && (ladder.gamma() > gamma * 0.999_998 || gamma > 1e6),
            "{gamma}: {}",
            ladder.gamma()
        );
        for records in [0.0, 0.3, 0.999, 1.0, 17.25, 1e3, 83.0 / gamma, 1e5, 1e7, 1e9] {
            for more in [0.25, 0.5, 0.9, 1.0] {
                let parts = |records: f64| (records * RECORD as f64) as u128;
                let (near, far) = (parts(records), parts(records) + parts(more));
                let (fall, paid) = (ladder.ln_weight(near) - ladder.ln_weight(far), more * ladder.gamma());
                // The error of a logarithm as large as γ · distance is a part in 2⁵².
                let error = 1e-15 * (1.0 + ladder.gamma() * (records + more));
                assert!(
                    fall <= paid + error && fall >= paid * 0.999 - error,
                    "γ = {gamma}, {records} + {more}: {fall} for {paid}"
                );
            }
        }
    }
    for gamma in [0.0, 1e-300, -1.0, f64::NAN] {
        let ladder = Ladder::new(gamma);
        assert_eq!((ladder.gamma(), ladder.rungs().len()), (0.0, 1), "{gamma}");
    }
}

#[test]
fn candidates_are_chosen_with_their_weights() {
    let mut stream = stream(23);
    for gamma in [0.5, 0.02, 0.003] {
        let quarters = [(4, 12), (0, 8), (5, 5), (1, 0), (2, 3), (30, 1 << 40)];
        let scale = (0.5 / gamma) as u128;
        let candidates =
            quarters.map(|(mass, quarters)| Candidates { mass, distance: quarters * scale * (RECORD / 4) });
        let ladder = Ladder::new(gamma);
        let weight =
            |some: &Candidates| some.mass as f64 * (-gamma * some.distance as f64 / RECORD as f64).exp();
        let weights: Vec<f64> = candidates.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        let (mut counts, mut places) = (vec![0; 6], vec![0; 5]);
        for _ in 0..300_000 {
            let (number, place) = ladder.choose(&candidates.iter().copied(), &mut stream).unwrap();
            assert!(place < candidates[number].mass);
            counts[number] += 1;
            if number == 2 {
                places[place as usize] += 1;
            }
        }
        // A group without mass is never chosen, and a group that is so far away is never chosen in practice.
        assert_eq!((counts.remove(1), counts.pop()), (0, Some(0)));
        let expected: Vec<f64> = [0, 2, 3, 4].map(|i| weights[i] / total).to_vec();
        assert!(agrees(&counts, &expected), "{gamma}: {counts:?} {expected:?}");
        assert!(agrees(&places, &[0.2; 5]), "{places:?}");
        assert!(!agrees(&counts, &[0.25; 4]));
    }
}

#[test]
fn one_that_is_right_is_found_among_billions_that_are_far_away() {
    let mut stream = stream(24);
    for (gamma, records) in [(1e-5, 1e7), (0.001, 50_000.0), (0.5, 200.0), (1.0, 1e7), (1e6, 1.0)] {
        let distance = (records * RECORD as f64) as u128;
        let candidates = [(1 << 34, distance), (1, 0), (1 << 34, distance + 1)];
        let candidates = candidates.map(|(mass, distance)| Candidates { mass, distance });
        for _ in 0..200 {
            assert_eq!(
                Ladder::new(gamma).choose(&candidates.into_iter(), &mut stream),
                Some((1, 0)),
                "{gamma} {records}"
            );
        }
    }
}

#[test]
fn edges_of_ladders() {
    let (mut stream, ladder) = (stream(25), Ladder::new(1.0));
    let many = Candidates { mass: 1 << 35, distance: 0 };
    assert!(ladder.choose(&[many, many].into_iter(), &mut stream).is_some());
    assert_eq!(ladder.choose(&[many, many, many].into_iter(), &mut stream), None);
    assert_eq!(ladder.choose(&[].into_iter(), &mut stream), None);
    // γ = 0: all candidates are equally likely.
    let far = Candidates { mass: 1, distance: 1 << 100 };
    let mut counts = [0; 2];
    for _ in 0..10_000 {
        counts[Ladder::new(0.0)
            .choose(&[Candidates { mass: 1, distance: 0 }, far].into_iter(), &mut stream)
            .unwrap()
            .0] += 1;
    }
    assert!(agrees(&counts, &[0.5; 2]), "{counts:?}");
}
