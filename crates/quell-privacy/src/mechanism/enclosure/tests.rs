//! Enclosures: their price on hostile neighbours, and whether a person would accept them.

use super::*;
use crate::noise::tests::{agrees, stream};

fn enclosure(lower: f64, upper: f64, epsilon: f64) -> Enclosure {
    Enclosure { within: Bounds::new(lower, upper).unwrap(), epsilon: Epsilon::new(epsilon).unwrap() }
}

/// ln of the weight of every interval, but for a constant.
fn ln_weights(enclosure: &Enclosure, neighbors: Neighbors, values: &[f64]) -> Vec<f64> {
    let Weighed { ladder, candidates, .. } = enclosure.weigh(neighbors, &enclosure.sorted(values));
    candidates.iter().map(|some| ladder.ln_weight(some.distance)).collect()
}

fn range(enclosure: &Enclosure, neighbors: Neighbors, here: &[f64], there: &[f64]) -> f64 {
    let (here, there) = (ln_weights(enclosure, neighbors, here), ln_weights(enclosure, neighbors, there));
    let changes: Vec<f64> = here.iter().zip(&there).map(|(a, b)| a - b).collect();
    changes.iter().copied().fold(f64::MIN, f64::max) - changes.iter().copied().fold(f64::MAX, f64::min)
}

#[test]
fn the_range_of_changes_between_neighbours_is_at_most_what_is_charged_and_nearly_all_of_it() {
    let hostile = [-0.0, 5e-324, -40.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let datasets = [vec![], vec![3.0], (0..300).map(|i| f64::from(i % 91)).collect()];
    for epsilon in [1e-7, 0.03, 20.0] {
        let enclosure = enclosure(-10.0, 10.0, epsilon);
        let (mut added, mut exchanged) = (0.0_f64, 0.0_f64);
        for here in &datasets {
            for value in hostile {
                let one = [&here[..], &[value]].concat();
                added = added.max(range(&enclosure, Neighbors::AddRemove, here, &one));
                for other in hostile {
                    let there = [&here[..], &[other]].concat();
                    exchanged = exchanged.max(range(&enclosure, Neighbors::Replace, &one, &there));
                }
            }
        }
        for range in [added, exchanged] {
            // Logarithms of some hundreds err by 10⁻¹³.
            assert!(range <= epsilon + 2e-13 && range > 0.99 * epsilon, "{epsilon}: {added} {exchanged}");
        }
    }
    // What the weights of one relation would cost under the other is seen.
    let (here, there) = (vec![-40.0; 5], [vec![-40.0; 4], vec![90.0]].concat());
    assert!(range(&enclosure(-10.0, 10.0, 1.0), Neighbors::AddRemove, &here, &there) > 1.9);
}

#[test]
fn intervals_are_chosen_with_their_weights() {
    let enclosure = enclosure(0.0, 3.0, 0.03);
    let values = [vec![0.5; 30], vec![1.5; 30], vec![2.5; 600], vec![f64::NAN; 9]].concat();
    let weighed = enclosure.weigh(Neighbors::AddRemove, &enclosure.sorted(&values));
    let gamma = enclosure.gamma(Neighbors::AddRemove);
    // By the number of values outside.
    let outside = |interval: &Interval| values.iter().filter(|v| **v < interval.low || **v > interval.high).count();
    let mut weights = std::collections::BTreeMap::new();
    for interval in &weighed.intervals {
        let width = ((interval.high - interval.low) / 10_f64.powi(enclosure.units().start)).ln().max(0.0);
        let weight = (-gamma * outside(interval) as f64 - Enclosure::slope(gamma) * width).exp();
        *weights.entry(outside(interval)).or_insert(0.0) += interval.mass as f64 * weight;
    }
    let total: f64 = weights.values().sum();
    let classes: Vec<(usize, f64)> =
        weights.into_iter().map(|(outside, weight)| (outside, weight / total)).filter(|c| c.1 > 1e-4).collect();
    let mut counts = vec![0; classes.len()];
    let mut stream = stream(40);
    for _ in 0..5000 {
        let chosen = outside(&weighed.choose(&mut stream).unwrap());
        counts[classes.iter().position(|(outside, _)| *outside == chosen).unwrap()] += 1;
    }
    let expected: Vec<f64> = classes.iter().map(|(_, share)| *share).collect();
    assert!(classes.len() > 2 && agrees(&counts, &expected), "{classes:?} {counts:?}");
    let mut turned = expected.clone();
    turned.rotate_left(1);
    assert!(!agrees(&counts, &turned), "{classes:?} {counts:?}");
}

/// Values of a column as they are in tables, each with its number of records.
fn columns() -> Vec<(&'static str, Vec<(f64, u64)>)> {
    let bell = |low: f64, step: f64, count: u32| {
        let weight = move |i: u32| {
            let x = 5.0 * f64::from(i) / f64::from(count) - 2.0;
            (1.0 + 1200.0 * (-x * x).exp()) as u64
        };
        (0..count).map(move |i| (low + step * f64::from(i), weight(i))).collect::<Vec<_>>()
    };
    vec![
        ("ages", bell(17.0, 1.0, 74)),
        ("campaign", (1..=63_u32).map(|i| (f64::from(i), 18_000 / u64::from(i * i) + 1)).collect()),
        ("hours", [vec![(40.0, 15_000)], bell(1.0, 1.0, 99)].concat()),
        ("gains", [vec![(0.0, 30_000), (99_999.0, 160)], bell(100.0, 400.0, 100)].concat()),
        ("weights", bell(12_285.0, 15_000.0, 98)),
        ("longitudes", bell(-124.35, 0.1, 100)),
        ("flags", vec![(0.0, 20_000), (1.0, 12_000)]),
        ("shares", bell(0.05, 0.004, 100)),
        ("years", bell(1900.0, 1.0, 120)),
        ("balances", [bell(-8019.0, 1100.0, 100), vec![(0.0, 3000)]].concat()),
    ]
}

/// As runs, in order.
fn sorted(column: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let mut column = column.to_vec();
    column.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut up_to = 0;
    for (_, records) in &mut column {
        up_to += *records;
        *records = up_to;
    }
    column
}

#[test]
fn bounds_of_ordinary_columns_hold_nearly_all_values_and_are_not_far_too_wide() {
    // A fifteenth of ε = 1, and what much more buys.
    for (epsilon, times) in [(0.067, 20.0), (3.0, 5.0)] {
        for (name, column) in columns() {
            let (data, enclosure) = (sorted(&column), enclosure(-1e9, 1e9, epsilon));
            let records = data.last().unwrap().1;
            let (least, most) = (data[0].0, data[data.len() - 1].0);
            let size = (most - least).max(least.abs()).max(most.abs());
            let (mut stream, weighed) = (stream(41), enclosure.weigh(Neighbors::AddRemove, &data));
            let (mut cut, mut wide) = (0, 0);
            for _ in 0..200 {
                let chosen = weighed.choose(&mut stream).unwrap();
                let outside: u64 = column.iter().filter(|(v, _)| *v < chosen.low || *v > chosen.high).map(|(_, n)| n).sum();
                cut += usize::from(outside * 50 > records);
                wide += usize::from(chosen.high - chosen.low > times * size);
            }
            // One in twenty at most of 200 would be 10; more than that are no chance.
            assert!(cut <= 2 && wide <= 12, "{name} at {epsilon}: {cut} cut, {wide} wide of 200");
        }
    }
}

#[test]
fn any_data_and_any_bounds_have_an_enclosure() {
    for (lower, upper) in [(-1e9, 1e9), (0.0, 1e-3), (-1e150, 1e150), (0.0, 1e-150), (5.0, 5.5), (-3.7, -3.6), (1e15, 1e15 + 2.0)]
    {
        let enclosure = enclosure(lower, upper, 0.5);
        let mass: u64 = enclosure.intervals().iter().map(|interval| interval.mass).sum();
        assert!(mass < 1 << 36 && enclosure.intervals().len() < 40_000);
        for values in [vec![], vec![f64::NAN], vec![f64::INFINITY; 100], vec![f64::NEG_INFINITY, 0.0, -0.0, 5e-324], vec![1e300]]
        {
            let chosen = enclosure.weigh(Neighbors::Replace, &enclosure.sorted(&values)).choose(&mut stream(42)).unwrap();
            assert!(chosen.low >= lower && chosen.high <= upper && Bounds::new(chosen.low, chosen.high).is_ok(), "{chosen:?}");
        }
    }
    assert!(enclosure(0.0, 1.0, 1e-8).check(Neighbors::AddRemove).is_err());
}
