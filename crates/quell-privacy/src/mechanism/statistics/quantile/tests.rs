//! Quantiles: their price on hostile neighbours, their probabilities, and whether stated errors hold.

use super::*;
use crate::noise::tests::{agrees, one_in_twenty, stream};

fn quantile(q: f64, epsilon: f64, lower: f64, upper: f64) -> Quantile {
    Quantile {
        bounds: Bounds::new(lower, upper).unwrap(),
        quantile: Probability::new(q).unwrap(),
        epsilon: Epsilon::new(epsilon).unwrap(),
    }
}

/// ln T of every point of a small grid.
fn ln_weights(quantile: &Quantile, neighbors: Neighbors, values: &[f64]) -> Vec<f64> {
    let (grid, runs) = (Decimals::new(quantile.bounds), Quantile::runs(quantile.bounds, values));
    let ladder = quantile.ladder(neighbors);
    let records = runs.last().map_or(0, |run| run.1);
    let mut weights = Vec::new();
    for number in 0..=2 * runs.len() {
        let (from, to, below, up_to) = Quantile::points(grid, &runs, number);
        // Both ends of a run of points are enough: all of it has one distance.
        let weight = ladder.ln_weight(quantile.distance(records, below, up_to));
        weights.extend([from, to].into_iter().filter(|_| from <= to).map(|index| (index, weight)));
    }
    // The weight at each of a few public places, and next to them.
    let at = |index: i64| {
        weights
            .windows(2)
            .find(|pair| pair[0].0 <= index && index <= pair[1].0)
            .map(|pair| pair[usize::from(pair[0].0 < index)].1)
    };
    let (first, last) = grid.ends();
    let places =
        (0..=40).map(|i| first + (last - first) * i / 40).flat_map(|index| [index - 1, index, index + 1]);
    places.map(|index| at(index.clamp(first, last)).unwrap_or(weights[0].1)).collect()
}

/// The range of the changes of ln T between neighbours.
fn range(quantile: &Quantile, neighbors: Neighbors, here: &[f64], there: &[f64]) -> f64 {
    let (here, there) = (ln_weights(quantile, neighbors, here), ln_weights(quantile, neighbors, there));
    let changes: Vec<f64> = here.iter().zip(&there).map(|(a, b)| a - b).collect();
    changes.iter().copied().fold(f64::MIN, f64::max) - changes.iter().copied().fold(f64::MAX, f64::min)
}

/// Datasets of all shapes on a grid of quarters of ten.
fn datasets() -> Vec<Vec<f64>> {
    let mut datasets =
        vec![vec![], vec![5.0], vec![f64::NAN], vec![0.0; 3], vec![10.0; 4], vec![5.0; 7], vec![-3.0, 40.0]];
    datasets.push(vec![f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e308, -1e308, -0.0, 5e-324]);
    let mut state = 7_u64;
    for records in [1_usize, 2, 3, 5, 8, 13, 21, 200] {
        for steps in [2_u64, 7, 41] {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 33) % steps) as f64 * 10.0 / (steps - 1) as f64
            };
            datasets.push((0..records).map(|_| next()).collect());
        }
    }
    datasets
}

const HOSTILE: [f64; 12] =
    [0.0, 10.0, 5.0, 2.5, 7.25, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308, 5e-324, -0.0];

#[test]
fn the_range_of_changes_between_neighbours_is_at_most_what_is_charged_and_nearly_all_of_it() {
    for (q, tight) in
        [(0.0, true), (1e-9, false), (0.1, false), (0.5, true), (0.9, false), (0.999, false), (1.0, true)]
    {
        for epsilon in [1e-6, 0.01, 1.0, 20.0] {
            let quantile = quantile(q, epsilon, 0.0, 10.0);
            let (mut added, mut exchanged) = (0.0_f64, 0.0_f64);
            for here in datasets() {
                for value in HOSTILE {
                    let mut there = here.clone();
                    there.push(value);
                    added = added.max(range(&quantile, Neighbors::AddRemove, &here, &there));
                    for other in HOSTILE {
                        *there.last_mut().unwrap() = other;
                        let mut one = here.clone();
                        one.push(value);
                        exchanged = exchanged.max(range(&quantile, Neighbors::Replace, &one, &there));
                    }
                }
            }
            for (what, range) in [("added", added), ("exchanged", exchanged)] {
                assert!(range <= epsilon * (1.0 + 1e-12) + 1e-12, "{what}, q = {q}: {range} for {epsilon}");
            }
            assert!(
                !tight || (added > 0.99 * epsilon && exchanged > 0.99 * epsilon),
                "q = {q}: {added}, {exchanged}"
            );
        }
    }
}

#[test]
fn a_distance_without_credit_for_both_neighbours_would_be_seen() {
    // What a median weighed with γ = ε under Replace would cost: the check above refuses it.
    let quantile = quantile(0.5, 1.0, 0.0, 10.0);
    let (here, there) = ([0.0, 2.5, 5.0, 5.0, 7.0, 10.0], [0.0, 9.0, 5.0, 5.0, 7.0, 10.0]);
    let paid = range(&quantile, Neighbors::AddRemove, &here, &there);
    assert!(paid > 1.9 && range(&quantile, Neighbors::Replace, &here, &there) <= 1.0, "{paid}");
}

/// The probability of each point: the multiples of a step in [0, 4·10⁹].
fn probabilities(quantile: &Quantile, neighbors: Neighbors, values: &[f64], ends: &[i64]) -> Vec<f64> {
    let (grid, runs) = (Decimals::new(quantile.bounds), Quantile::runs(quantile.bounds, values));
    let (ladder, records) = (quantile.ladder(neighbors), runs.last().map_or(0, |run| run.1));
    let mut weights = vec![0.0; ends.len()];
    for number in 0..=2 * runs.len() {
        let (from, to, below, up_to) = Quantile::points(grid, &runs, number);
        let weight = ladder.ln_weight(quantile.distance(records, below, up_to)).exp();
        let mut start = grid.ends().0;
        for (end, sum) in ends.iter().zip(&mut weights) {
            let (low, high) = (from.max(start), to.min(*end));
            if low <= high {
                *sum += weight * grid.mass(low, high) as f64;
            }
            start = end + 1;
        }
    }
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

#[test]
fn neighbours_give_every_answer_nearly_as_often_and_as_often_as_computed() {
    let (epsilon, runs) = (1.0, 40_000);
    let base = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 7.0, 8.0];
    let add = |values: &[f64]| [&base[..], values].concat();
    for (neighbors, here, there) in [
        (Neighbors::AddRemove, add(&[]), add(&[0.0])),
        (Neighbors::AddRemove, add(&[]), add(&[3.0])),
        (Neighbors::AddRemove, add(&[]), add(&[f64::INFINITY])),
        (Neighbors::Replace, add(&[0.0]), add(&[10.0])),
        (Neighbors::Replace, add(&[f64::NAN]), add(&[2.0])),
    ] {
        for q in [0.5, 0.2, 1.0] {
            let quantile = quantile(q, epsilon, 0.0, 10.0);
            let grid = Decimals::new(quantile.bounds);
            // Between and at the values.
            let at = |value: f64| grid.place(value).unwrap();
            let ends: Vec<i64> = [1.0, 2.0, 3.0, 7.0, 8.0]
                .into_iter()
                .flat_map(|v| [at(v) - 1, at(v)])
                .chain([grid.ends().1])
                .collect();
            let computed = [&here, &there].map(|values| probabilities(&quantile, neighbors, values, &ends));
            let mut stream = stream(31);
            let drawn = [&here, &there].map(|values| {
                let runs_of = Quantile::runs(quantile.bounds, values);
                let mut counts = vec![0_u64; ends.len()];
                for _ in 0..runs {
                    let answer = at(quantile.choose(neighbors, &runs_of, 20.0, &mut stream).value);
                    counts[ends.iter().position(|end| answer <= *end).unwrap()] += 1;
                }
                counts
            });
            for side in 0..2 {
                assert!(
                    agrees(&drawn[side], &computed[side]),
                    "{neighbors:?} {q}: {:?} {:?}",
                    drawn[side],
                    computed[side]
                );
            }
            // Power: the distribution of the neighbour is told from that of the dataset.
            let apart = computed[0].iter().zip(&computed[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart < 0.04 || !agrees(&drawn[0], &computed[1]), "{neighbors:?} {q}");
            for (one, other) in drawn[0].iter().zip(&drawn[1]) {
                // ln(a/b) of two counts has a deviation of √(1/a + 1/b).
                let (one, other) = (*one as f64, *other as f64);
                let error = 4.9 * (1.0 / one.max(1.0) + 1.0 / other.max(1.0)).sqrt();
                assert!(
                    one.min(other) < 50.0 || (one / other).ln().abs() <= epsilon + error,
                    "{neighbors:?} {q}: {one} {other}"
                );
            }
        }
    }
}

/// How far an answer is from the wanted rank, in records.
fn off(quantile: &Quantile, runs: &Runs, answer: f64) -> f64 {
    let place = Decimals::new(quantile.bounds).place(answer).unwrap();
    let up_to =
        |index: i64| runs.iter().take_while(|run| run.0 <= index).last().map_or(0, |run| run.1) as f64;
    let wanted = quantile.quantile.get() * runs.last().map_or(0, |run| run.1) as f64;
    (up_to(place - 1) - wanted).max(wanted - up_to(place)).max(0.0)
}

/// Values with how many records have each, as runs of so many records in all.
fn shaped(bounds: Bounds, records: u64, shape: &[(f64, f64)]) -> Vec<(i64, u64)> {
    let (grid, total): (_, f64) = (Decimals::new(bounds), shape.iter().map(|(_, share)| share).sum());
    let mut sorted: Vec<(i64, f64)> =
        shape.iter().map(|(value, share)| (grid.place(*value).unwrap(), *share)).collect();
    sorted.sort_by_key(|(place, _)| *place);
    let (mut runs, mut up_to): (Vec<(i64, u64)>, f64) = (Vec::new(), 0.0);
    for (place, share) in sorted {
        up_to += share / total * records as f64;
        let up_to = up_to.round() as u64;
        match runs.last_mut() {
            Some(last) if last.0 == place => last.1 = up_to,
            Some(last) if last.1 == up_to => {}
            None if up_to == 0 => {}
            _ => runs.push((place, up_to)),
        }
    }
    if let Some(last) = runs.last_mut() {
        last.1 = records;
    }
    runs
}

/// Shapes that real columns have, as values in [0, 100] and their shares.
fn shapes() -> Vec<(&'static str, Vec<(f64, f64)>)> {
    let every = |step: f64, count: u32| (0..count).map(move |i| f64::from(i) * step);
    vec![
        ("one value", vec![(40.123_456_7, 1.0)]),
        ("an integer", vec![(40.0, 1.0)]),
        (
            "hours",
            every(1.0, 100)
                .map(|v| (v, if v == 40.0 { 90.0 } else { 1.0 / (1.0 + (v - 40.0).abs()) }))
                .collect(),
        ),
        ("ages", every(1.0, 91).map(|v| (v, 1.0)).collect()),
        ("two values", vec![(0.0, 1.0), (100.0, 1.0)]),
        ("mostly zero", [(0.0, 920.0)].into_iter().chain(every(0.37, 270).map(|v| (v, 0.3))).collect()),
        ("gaps", every(0.01, 100).flat_map(|v| [(10.0 + v, 1.0), (90.0 + v, 1.0)]).collect()),
        ("skew", every(0.21, 300).map(|v| (0.001 * (0.04 * v * 4.7).exp(), 1.0)).collect()),
        (
            "outliers",
            every(0.000_1, 200).map(|v| (33.0 + v, 1.0)).chain([(1e9, 0.01), (-1e9, 0.01)]).collect(),
        ),
        ("narrow", every(0.000_000_1, 100).map(|v| (77.0 + v, 1.0)).collect()),
    ]
}

#[test]
fn stated_errors_of_quantiles_hold_in_nineteen_cases_of_twenty() {
    let (runs, mut checked) = (300, 0);
    for (name, shape) in shapes() {
        for records in [1_u64, 100, 10_000, 10_000_000] {
            for (q, epsilon) in [(0.5, 1.0), (0.9, 0.1), (0.01, 10.0), (1.0, 0.5), (0.0, 0.003)] {
                for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
                    let (quantile, mut stream) = (quantile(q, epsilon, 0.0, 100.0), stream(checked));
                    let data = shaped(quantile.bounds, records, &shape);
                    let failures = (0..runs).filter(|_| {
                        let release = quantile.choose(neighbors, &data, 20.0, &mut stream);
                        let Within::Rank(stated) = release.within else { panic!("{release:?}") };
                        assert!(stated < 60.0 / epsilon + 1.0, "{stated}");
                        off(&quantile, &data, release.value) > stated
                    });
                    assert!(
                        one_in_twenty(failures.count(), runs),
                        "{name}, {records} records, q = {q}, ε = {epsilon}"
                    );
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, 400);
}

#[test]
fn the_stated_error_is_needed_where_all_values_are_equal_and_a_shorter_one_is_refused() {
    // A value that is not round, and so many records that nothing else is within the stated error, or within nine tenths of it.
    let (quantile, runs) = (quantile(0.5, 0.05, 0.0, 100.0), 3000);
    let Within::Rank(stated) = quantile.choose(Neighbors::AddRemove, &[], 20.0, &mut stream(1)).within else {
        panic!()
    };
    let failures = |records: f64| {
        let data = [(401_234_567, records as u64)];
        let mut stream = stream(2);
        (0..runs)
            .filter(|_| {
                off(&quantile, &data, quantile.choose(Neighbors::AddRemove, &data, 20.0, &mut stream).value)
                    > 0.0
            })
            .count()
    };
    let (at, nearer) = (failures(2.0 * stated + 2.0), failures(1.8 * stated + 2.0));
    assert!(one_in_twenty(at, runs) && at * 40 > runs, "{at} of {runs}");
    assert!(!one_in_twenty(nearer, runs), "{nearer} of {runs}");
}

#[test]
fn stated_errors_of_ranges_hold_for_both_ends_at_once() {
    let runs = 300;
    for (number, (name, shape)) in shapes().into_iter().enumerate() {
        for records in [2_u64, 100, 10_000_000] {
            for (inside, epsilon) in [(0.9, 1.0), (1.0, 0.1), (0.0, 0.5)] {
                let zero = quantile(0.5, epsilon, 0.0, 100.0);
                let range = Range {
                    bounds: zero.bounds,
                    inside: Probability::new(inside).unwrap(),
                    epsilon: zero.epsilon,
                };
                let data = shaped(zero.bounds, records, &shape);
                let mut stream = stream(number as u64);
                let failures = (0..runs).filter(|_| {
                    let ends = range.choose(Neighbors::AddRemove, &data, &mut stream);
                    assert!(ends[0].value <= ends[1].value);
                    ends.iter().zip(range.ends()).any(|(end, quantile)| {
                        let Within::Rank(stated) = end.within else { panic!("{end:?}") };
                        off(&quantile, &data, end.value) > stated
                    })
                });
                assert!(
                    one_in_twenty(failures.count(), runs),
                    "{name}, {records} records, {inside}, ε = {epsilon}"
                );
            }
        }
    }
}

#[test]
fn integers_with_ties_are_found_exactly() {
    let hours = shapes().into_iter().find(|(name, _)| *name == "hours").unwrap().1;
    let ages: Vec<(f64, f64)> = (0..91).map(|age| (f64::from(age), 1.0)).collect();
    for (records, shape, q, epsilon, truth) in [
        (4000, &hours, 0.5, 1.0, 40.0),
        (4000, &hours, 0.5, 0.1, 40.0),
        (50_000, &ages, 0.9, 1.0, 81.0),
        (10_000_000, &ages, 0.9, 0.01, 81.0),
        (10_000_000, &ages, 0.0, 1e-4, 0.0),
    ] {
        let quantile = quantile(q, epsilon, 0.0, 100.0);
        let data = shaped(quantile.bounds, records, shape);
        for seed in 0..200 {
            let release = quantile.choose(Neighbors::AddRemove, &data, 20.0, &mut stream(seed));
            assert_eq!(release.value, truth, "{records} records, q = {q}, seed {seed}");
        }
    }
}

#[test]
fn there_is_an_answer_whatever_the_data_is() {
    for values in datasets() {
        for q in [0.0, 0.3, 1.0] {
            let quantile = quantile(q, 0.7, 0.0, 10.0);
            let runs = Quantile::runs(quantile.bounds, &values);
            let value = quantile.choose(Neighbors::Replace, &runs, 20.0, &mut stream(3)).value;
            assert!((0.0..=10.0).contains(&value) && value.is_sign_positive(), "{values:?}: {value}");
        }
    }
    // All values are outside the bounds: the answer is at the end at which they are.
    let quantile = quantile(0.5, 1.0, 0.0, 10.0);
    for (value, truth) in [(1e300, 10.0), (f64::INFINITY, 10.0), (-7.0, 0.0)] {
        let runs = Quantile::runs(quantile.bounds, &vec![value; 100]);
        assert_eq!(quantile.choose(Neighbors::AddRemove, &runs, 20.0, &mut stream(4)).value, truth);
    }
    assert!(check(Epsilon::new(0.0).unwrap()).is_err() && check(Epsilon::new(1e-11).unwrap()).is_ok());
}
