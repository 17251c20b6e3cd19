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

/// The length of the interval in which changes between two lists of ln weights lie.
fn range(here: &[f64], there: &[f64]) -> f64 {
    let changes = || here.iter().zip(there).map(|(a, b)| a - b);
    changes().fold(f64::MIN, f64::max) - changes().fold(f64::MAX, f64::min)
}

#[test]
fn the_range_of_changes_between_neighbours_is_at_most_what_is_charged_and_nearly_all_of_it() {
    let hostile = [-0.0, 5e-324, -40.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let datasets = [vec![], vec![3.0], (0..300).map(|i| f64::from(i % 91)).collect()];
    for epsilon in [1e-7, 0.03, 20.0] {
        let enclosure = enclosure(-10.0, 10.0, epsilon);
        let (mut added, mut exchanged) = (0.0_f64, 0.0_f64);
        for here in &datasets {
            let more = |value: f64| [&here[..], &[value]].concat();
            let fewer = ln_weights(&enclosure, Neighbors::AddRemove, here);
            for value in hostile {
                added = added.max(range(&fewer, &ln_weights(&enclosure, Neighbors::AddRemove, &more(value))));
            }
            let others = hostile.map(|value| ln_weights(&enclosure, Neighbors::Replace, &more(value)));
            for (one, two) in others.iter().flat_map(|one| others.iter().map(move |two| (one, two))) {
                exchanged = exchanged.max(range(one, two));
            }
        }
        for range in [added, exchanged] {
            // Logarithms of some hundreds err by 10⁻¹³.
            assert!(range <= epsilon + 2e-13 && range > 0.99 * epsilon, "{epsilon}: {added} {exchanged}");
        }
    }
    // What the weights of one relation would cost under the other is seen.
    let (here, there) = (vec![-40.0; 5], [vec![-40.0; 4], vec![90.0]].concat());
    let weights = |values: &[f64]| ln_weights(&enclosure(-10.0, 10.0, 1.0), Neighbors::AddRemove, values);
    assert!(range(&weights(&here), &weights(&there)) > 1.9);
}

#[test]
fn intervals_are_chosen_with_their_weights() {
    let enclosure = enclosure(0.0, 3.0, 0.03);
    let values = [vec![0.5; 30], vec![1.5; 30], vec![2.5; 600], vec![f64::NAN; 9]].concat();
    let weighed = enclosure.weigh(Neighbors::AddRemove, &enclosure.sorted(&values));
    let gamma = enclosure.gamma(Neighbors::AddRemove);
    // By the number of values outside.
    let outside = |[low, high]: [f64; 2]| values.iter().filter(|v| **v < low || **v > high).count();
    let mut weights = std::collections::BTreeMap::new();
    for interval in &weighed.intervals.list {
        let [low, high] = weighed.intervals.bounds(interval);
        let width = ((high - low) / 10_f64.powi(enclosure.units().start)).log2().max(0.0);
        // 660 of the values are numbers.
        let loss = outside([low, high]) as f64 + 0.66 * width;
        let weight = (-gamma * loss - Enclosure::slope(gamma) * width * 2_f64.ln()).exp();
        *weights.entry(outside([low, high])).or_insert(0.0) += interval.mass as f64 * weight;
    }
    let total: f64 = weights.values().sum();
    let classes: Vec<(usize, f64)> = weights
        .into_iter()
        .map(|(outside, weight)| (outside, weight / total))
        .filter(|c| c.1 > 1e-4)
        .collect();
    let mut counts = vec![0; classes.len()];
    let mut stream = stream(40);
    for _ in 0..2000 {
        let chosen = outside(weighed.choose(&mut stream).unwrap());
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

/// All possible enclosures of a column, with their probabilities.
struct Draws {
    /// The loss of each interval, and its number of values outside.
    ///
    /// The loss is that number, plus a thousandth of all records for each doubling of the width.
    outside: Vec<f64>,
    losses: Vec<f64>,
    widths: Vec<f64>,
    /// Weights added up.
    weights: Vec<f64>,
}

impl Draws {
    fn new(column: &[(f64, u64)], epsilon: f64) -> Self {
        let data = sorted(column);
        let Weighed { ladder, intervals, candidates } =
            enclosure(-1e9, 1e9, epsilon).weigh(Neighbors::AddRemove, &data);
        let up_to = |place: usize| if place == 0 { 0 } else { data[place - 1].1 };
        let (mut draws, mut sum) =
            (Self { outside: vec![], losses: vec![], widths: vec![], weights: vec![] }, 0.0);
        for (interval, candidate) in intervals.list.iter().zip(&candidates) {
            let [low, high] = intervals.bounds(interval);
            let inside = up_to(data.partition_point(|run| run.0 <= high))
                - up_to(data.partition_point(|run| run.0 < low));
            let (records, outside) = (up_to(data.len()) as f64, (up_to(data.len()) - inside) as f64);
            draws.outside.push(outside / records);
            draws.losses.push(outside + records * ((high - low) / 0.01).log2().max(0.0) / 1000.0);
            draws.widths.push(high - low);
            sum += candidate.mass as f64 * ladder.ln_weight(candidate.distance).exp();
            draws.weights.push(sum);
        }
        draws
    }

    /// The interval that loses least.
    fn best(&self) -> usize {
        (0..self.losses.len()).min_by(|one, two| self.losses[*one].total_cmp(&self.losses[*two])).unwrap()
    }

    /// Draws intervals, up to rounding.
    ///
    /// Other tests check that the mechanism draws exactly.
    fn draw(&self, number: u64) -> impl Iterator<Item = usize> {
        let mut stream = stream(number);
        (0..400).map(move |_| {
            let ticket = stream.below(1 << 53) as f64 / (1_u64 << 53) as f64 * self.weights.last().unwrap();
            self.weights.partition_point(|sum| *sum <= ticket).min(self.weights.len() - 1)
        })
    }
}

/// Most of 400 draws that may fail, if each fails in one case of twenty.
///
/// More have a probability of 10⁻⁶.
const TOO_MANY: usize = 43;

#[test]
fn bounds_of_ordinary_columns_hold_nearly_all_values_and_are_not_far_too_wide() {
    // A fifteenth of ε = 1, and what more buys: which share may be left out, and how many times too wide they may be.
    for (epsilon, share, times) in [(0.067, 0.005, 6.0), (0.33, 0.003, 2.5), (3.0, 0.0015, 1.25)] {
        for (name, column) in columns() {
            let draws = Draws::new(&column, epsilon);
            let width = draws.widths[draws.best()];
            let cut = draws.draw(41).filter(|one| draws.outside[*one] > share).count();
            let wide = draws.draw(42).filter(|one| draws.widths[*one] > times * width).count();
            assert!(
                cut <= TOO_MANY && wide <= TOO_MANY,
                "{name} at {epsilon}: {cut} cut, {wide} wide of 400"
            );
        }
    }
}

#[test]
fn what_is_lost_is_within_the_stated_error_of_the_least_in_nineteen_cases_of_twenty() {
    let mut seen = 0;
    for epsilon in [0.067, 0.4, 3.0] {
        for (name, column) in columns() {
            assert!(sorted(&column).last().unwrap().1 as f64 * epsilon > 1000.0, "{name}");
            let beyond = |drawn_with: f64| {
                let draws = Draws::new(&column, drawn_with);
                let most = draws.losses[draws.best()] + 8.0 / epsilon;
                draws.draw(43).filter(|one| draws.losses[*one] > most).count()
            };
            let count = beyond(epsilon);
            assert!(count <= TOO_MANY, "{name} at {epsilon}: {count}");
            // A sixth of what was paid for is seen.
            seen += usize::from(beyond(epsilon / 6.0) > TOO_MANY);
        }
    }
    assert!(seen >= 10, "{seen} of 30");
}

#[test]
fn bounds_get_sharper_with_epsilon() {
    for (name, column) in columns() {
        let lost = |epsilon: f64| {
            let draws = Draws::new(&column, epsilon);
            let least = draws.losses[draws.best()];
            draws.draw(44).map(|one| draws.losses[one] - least).sum::<f64>() / 400.0
        };
        let (little, much) = (lost(0.067), lost(67.0));
        // Round ends may be what is best already.
        assert!(much < 0.1 * little || much < 0.05, "{name}: {much} after {little}");
    }
}

#[test]
fn any_data_and_any_bounds_have_an_enclosure() {
    for (lower, upper) in [
        (-1e9, 1e9),
        (0.0, 1e-3),
        (-1e150, 1e150),
        (0.0, 1e-150),
        (5.0, 5.5),
        (-3.7, -3.6),
        (1e15, 1e15 + 2.0),
    ] {
        let enclosure = enclosure(lower, upper, 0.5);
        let intervals = enclosure.intervals();
        let mass: u64 = intervals.list.iter().map(|interval| interval.mass).sum();
        assert!(mass < 1 << 36 && intervals.list.len() < 1_000_000);
        // What any interval costs each record is at most what γ makes room for.
        let most = (1.0 - 1e-12) * 0.5 / enclosure.gamma(Neighbors::AddRemove) - 1.0;
        let toll = |interval: &Interval| {
            let [low, high] = intervals.bounds(interval);
            enclosure.toll(high - low) as f64 / RECORD as f64
        };
        let dearest = intervals.list.iter().map(toll).fold(0.0, f64::max);
        assert!(most < 0.06 && dearest <= most, "[{lower}, {upper}]: {dearest} of {most}");
        for values in [
            vec![],
            vec![f64::NAN],
            vec![f64::INFINITY; 100],
            vec![f64::NEG_INFINITY, 0.0, -0.0, 5e-324],
            vec![1e300],
        ] {
            let chosen = enclosure
                .weigh(Neighbors::Replace, &enclosure.sorted(&values))
                .choose(&mut stream(42))
                .unwrap();
            assert!(
                chosen[0] >= lower && chosen[1] <= upper && Bounds::new(chosen[0], chosen[1]).is_ok(),
                "{chosen:?}"
            );
        }
    }
    assert!(enclosure(0.0, 1.0, 1e-8).check(Neighbors::AddRemove).is_err());
}
