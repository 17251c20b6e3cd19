//! How far one record moves sums and counts of groups, with hostile numbers and keys; what is stated of them.

use super::*;
use crate::{
    mechanism::{IntegerNoise, Within},
    noise::{
        random::Stream,
        rounded::GRID,
        tests::{one_in_twenty, stream},
    },
    units::{NoiseMultiplier, Scale},
};

const KEYS: [&str; 4] = ["a", "b", "", "a, b"];

fn keys() -> Vec<String> {
    KEYS.map(str::to_owned).to_vec()
}

fn below(stream: &mut Stream, end: usize) -> usize {
    stream.below(end as u128) as usize
}

/// A record, from ordinary to hostile. Ends of the bounds are frequent: they move sums farthest.
fn record(stream: &mut Stream, bounds: Bounds) -> KeyedNumber {
    let number = match below(stream, 12) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => 1e300,
        4 => -0.0,
        5 => 5e-324,
        6..9 => bounds.lower(),
        9..11 => bounds.upper(),
        _ => {
            bounds.lower() + (bounds.upper() - bounds.lower()) * (stream.next_u64() as f64 / u64::MAX as f64)
        }
    };
    let key = match below(stream, 10) {
        0 => None,
        1 => Some("a key that was not declared".to_owned()),
        place => Some(KEYS[place % 4].to_owned()),
    };
    (key, number)
}

/// Datasets and their neighbours under a relation.
fn pairs(neighbors: Neighbors, bounds: Bounds) -> Vec<[Vec<KeyedNumber>; 2]> {
    let mut stream = stream(17);
    let pair = |_| {
        let base: Vec<KeyedNumber> = (0..5).map(|_| record(&mut stream, bounds)).collect();
        let mut other = base.clone();
        let place = below(&mut stream, 5);
        match neighbors {
            Neighbors::AddRemove => drop(other.remove(place)),
            Neighbors::Replace => other[place] = record(&mut stream, bounds),
        }
        [base, other]
    };
    (0..2000).map(pair).collect()
}

/// The distance of two vectors in the norm that noise is measured in.
fn distance(noise: Noise, one: &[i128], other: &[i128]) -> f64 {
    let apart = one.iter().zip(other).map(|(a, b)| (a - b) as f64);
    match noise {
        Noise::Laplace => apart.map(f64::abs).sum(),
        Noise::Gaussian => apart.map(|x| x * x).sum::<f64>().sqrt(),
    }
}

/// Every noise, relation, multiplier and kind of bounds.
fn settings() -> Vec<(Noise, Neighbors, NoiseMultiplier, Bounds)> {
    let mut all = Vec::new();
    for noise in [Noise::Laplace, Noise::Gaussian] {
        for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
            for multiplier in [1e-3, 0.7, 5.0, 1e4, 1e7] {
                for (lower, upper) in [(0.0, 100.0), (-3.0, 3.0), (-1.0, 9.0), (5.0, 7.0), (-1e140, -1e139)] {
                    let multiplier = NoiseMultiplier::new(multiplier).unwrap();
                    all.push((noise, neighbors, multiplier, Bounds::new(lower, upper).unwrap()));
                }
            }
        }
    }
    all
}

#[test]
fn no_record_moves_the_sums_of_groups_by_more_than_is_charged_and_some_by_nearly_as_much() {
    for (noise, neighbors, noise_multiplier, bounds) in settings() {
        let mechanism = GroupedSum { keys: keys(), sum: Sum { bounds, noise, noise_multiplier } };
        let grid = Grid::new(mechanism.scale(neighbors)).unwrap();
        let totals = |records: &[KeyedNumber]| -> Vec<i128> {
            let groups = groups(&mechanism.keys, records);
            groups.values().map(|of| mechanism.sum.total(grid, of.iter().map(|v| (*v, 1)))).collect()
        };
        // The event says: moved by reach/z scales of the noise, and a scale has 2³⁰ steps.
        let allowed = neighbors.reach() / noise_multiplier.get() * GRID as f64;
        let mut most = 0.0_f64;
        for [base, other] in pairs(neighbors, bounds) {
            most = most.max(distance(noise, &totals(&base), &totals(&other)) / allowed);
        }
        // One part in 2⁵⁰ is shaved off; a step is left over where the grid is coarse.
        let coarse = noise_multiplier.get() / GRID as f64;
        assert!(most <= 1.0 + 1e-14 && most > 0.999 - 2.0 * coarse, "{mechanism}, {neighbors:?}: {most}");
    }
}

#[test]
fn no_record_moves_the_means_of_groups_by_more_than_is_charged_and_some_by_nearly_as_much() {
    for (noise, neighbors, noise_multiplier, bounds) in settings() {
        let count = IntegerNoise::new(noise, Scale::new(2.0).unwrap());
        let mechanism = GroupedMean { keys: keys(), mean: Mean { bounds, noise, noise_multiplier, count } };
        let grid = Grid::new(noise_multiplier.get() * bounds.radius()).unwrap();
        let totals = |records: &[KeyedNumber]| -> (Vec<i128>, Vec<i128>) {
            let groups = groups(&mechanism.keys, records);
            groups.values().map(|of| mechanism.mean.totals(grid, of.iter().map(|v| (*v, 1)))).unzip()
        };
        let allowed = neighbors.reach() / noise_multiplier.get() * GRID as f64;
        let (mut most, mut counts) = (0.0_f64, 0.0_f64);
        for [base, other] in pairs(neighbors, bounds) {
            let ((sums, numbers), (other_sums, other_numbers)) = (totals(&base), totals(&other));
            most = most.max(distance(noise, &sums, &other_sums) / allowed);
            counts = counts.max(distance(Noise::Laplace, &numbers, &other_numbers));
        }
        let coarse = noise_multiplier.get() / GRID as f64;
        assert!(most <= 1.0 + 1e-14 && most > 0.999 - 2.0 * coarse, "{mechanism}, {neighbors:?}: {most}");
        assert_eq!(counts, neighbors.reach(), "one count or two move by one each");
    }
}

#[test]
fn groups_cost_what_one_sum_or_a_sum_and_a_histogram_cost() {
    let (bounds, epsilon) = (Bounds::new(-2.0, 5.0).unwrap(), crate::units::Epsilon::new(0.5).unwrap());
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let price = Price::laplace(epsilon).under(neighbors);
        let (sum, one) = (
            GroupedSum::for_epsilon(keys(), bounds, price).unwrap(),
            Sum::for_epsilon(bounds, price).unwrap(),
        );
        assert_eq!(sum.event(neighbors), one.event(neighbors));
        let mean = GroupedMean::for_epsilon(keys(), bounds, price).unwrap();
        let counts = super::super::Histogram::for_epsilon(keys(), price.divided_by(2).unwrap()).unwrap();
        let Event::Composed(parts) = mean.event(neighbors) else { panic!("a sum and counts") };
        assert_eq!(parts[1], counts.event(neighbors));
        assert_eq!((sum.distance(), mean.distance()), (4.0 * DISTANCE, 4.0 * DISTANCE));
    }
    // Noise that is coarser than the bounds has no guarantee.
    let noise_multiplier = NoiseMultiplier::new(4.0 * GRID as f64).unwrap();
    let coarse = GroupedSum { keys: keys(), sum: Sum { bounds, noise: Noise::Laplace, noise_multiplier } };
    assert_eq!(coarse.event(Neighbors::Replace), Event::NonPrivate);
}

fn is_off(release: &Release, truth: f64, share: f64) -> bool {
    let Within::Value(error) = release.within else { panic!("{release:?}") };
    (release.value - truth).abs() > share * error
}

#[test]
fn stated_errors_hold_for_each_group_in_nineteen_cases_of_twenty() {
    let (runs, bounds) = (2000, Bounds::new(0.0, 100.0).unwrap());
    let records: Vec<KeyedNumber> = [
        vec![(Some("a".to_owned()), 80.0); 3000],
        vec![(Some("b".to_owned()), 1e9); 40],
        vec![(None, 50.0); 70],
    ]
    .concat();
    for noise in [Noise::Laplace, Noise::Gaussian] {
        let noise_multiplier = NoiseMultiplier::new(3.0).unwrap();
        let (sum, count) =
            (Sum { bounds, noise, noise_multiplier }, IntegerNoise::new(noise, Scale::new(3.0).unwrap()));
        let (sums, mean) =
            (GroupedSum { keys: keys(), sum }, Mean { bounds, noise, noise_multiplier, count });
        let scale = sums.scale(Neighbors::AddRemove);
        let (grid, mut stream) = (Grid::new(scale).unwrap(), stream(9));
        let mut off = [[0; 2]; 4];
        for _ in 0..runs {
            let released = release_each(&keys(), &records, |of| {
                let total = sum.total(grid, of.iter().map(|v| (*v, 1)));
                Ok(sum.release_total(grid, total, scale, &mut stream))
            });
            let means =
                release_each(&keys(), &records, |of| mean.release(of.iter().map(|v| (*v, 1)), &mut stream));
            let (released, means) = (released.unwrap(), means.unwrap());
            for (place, truth) in [(0, 240_000.0), (1, 4000.0), (2, 0.0)] {
                off[place][0] += usize::from(is_off(&released[place].1, truth, 1.0));
                off[place][1] += usize::from(is_off(&released[place].1, truth, 2.0 / 3.0));
            }
            off[3][0] += usize::from(is_off(&means[0].1, 80.0, 1.0) || is_off(&means[1].1, 100.0, 1e9));
            off[3][1] += usize::from(is_off(&means[0].1, 80.0, 2.0 / 3.0));
        }
        for [failures, shortened] in off {
            assert!(one_in_twenty(failures, runs), "{noise}: {off:?}");
            assert!(!one_in_twenty(shortened, runs), "{noise}: two thirds of the error would do, {off:?}");
        }
    }
}

#[test]
fn a_key_that_is_given_twice_gets_one_answer_and_a_key_without_records_gets_one_too() {
    let keys: Vec<String> = ["a", "b", "a"].map(str::to_owned).to_vec();
    let mut calls = 0;
    let released = release_each(&keys, &[(Some("a".to_owned()), 7.0)], |of| {
        calls += 1;
        Ok(Release { value: of.iter().sum::<f64>() + f64::from(calls), within: Within::Secret })
    });
    let shown: Vec<(String, f64)> =
        released.unwrap().into_iter().map(|(key, release)| (key, release.value)).collect();
    assert_eq!(shown, [("a".to_owned(), 8.0), ("b".to_owned(), 2.0), ("a".to_owned(), 8.0)]);
}
