//! Several quantiles: their order, and whether stated errors hold for all of them at once.

use super::*;
use crate::noise::tests::{one_in_twenty, stream};

fn quantiles(list: &[f64], epsilon: f64) -> Quantiles {
    let list = list.iter().map(|q| Probability::new(*q).unwrap()).collect();
    let bounds = Bounds::new(0.0, 100.0).unwrap();
    Quantiles::for_epsilon(bounds, list, Epsilon::new(epsilon).unwrap()).unwrap()
}

/// How far an answer is from the wanted rank, in records.
fn off(values: &[f64], quantile: f64, answer: f64) -> f64 {
    let below = values.iter().filter(|value| **value < answer).count() as f64;
    let up_to = values.iter().filter(|value| **value <= answer).count() as f64;
    let wanted = quantile * values.len() as f64;
    (below - wanted).max(wanted - up_to).max(0.0)
}

/// Columns with and without ties, in [0, 100].
fn columns() -> Vec<(&'static str, Vec<f64>)> {
    let all = |records: u32, value: &dyn Fn(u32) -> f64| (0..records).map(value).collect::<Vec<f64>>();
    vec![
        // 0.618… times an integer never repeats; eight digits are on the grid.
        ("untied", all(400, &|i| ((f64::from(i) * 0.618_033_988_749_895).fract() * 1e10).round() / 1e8)),
        ("tied to integers", all(2000, &|i| f64::from(i % 91))),
        ("hours", all(2000, &|i| if i % 10 < 9 { 40.0 } else { f64::from(i % 97) })),
        ("one value", all(2000, &|_| 40.123_456)),
        ("two values", all(2000, &|i| f64::from(i % 2) * 100.0)),
        ("few records", all(3, &|i| f64::from(i) * 31.0)),
    ]
}

#[test]
fn all_quantiles_are_within_their_stated_errors_in_95_percent_of_1000_runs() {
    let runs = 1000;
    for (seed, (name, values)) in columns().into_iter().enumerate() {
        for list in [&[0.5][..], &[0.25, 0.5, 0.75], &[0.9, 0.1, 0.5, 0.99, 0.0, 1.0, 0.2]] {
            for epsilon in [0.3, 3.0] {
                for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
                    let (quantiles, mut stream) = (quantiles(list, epsilon), stream(seed as u64));
                    let data = Quantile::runs(quantiles.bounds, &values);
                    let failures = (0..runs).filter(|_| {
                        let answers = quantiles.choose(neighbors, &data, &mut stream);
                        answers.iter().zip(list).any(|(answer, q)| {
                            let Within::Rank(stated) = answer.within else { panic!("{answer:?}") };
                            off(&values, *q, answer.value) > stated
                        })
                    });
                    let failures = failures.count();
                    assert!(one_in_twenty(failures, runs), "{name}, {list:?}, ε = {epsilon}: {failures}");
                }
            }
        }
    }
}

#[test]
fn a_larger_quantile_is_never_a_smaller_number_and_answers_keep_the_order_of_the_question() {
    let list = [0.9, 0.1, 0.5, 0.5];
    for (name, values) in columns() {
        // So little ε that answers are out of order before they are sorted.
        for epsilon in [1e-3, 1.0] {
            let quantiles = quantiles(&list, epsilon);
            let data = Quantile::runs(quantiles.bounds, &values);
            for seed in 0..50 {
                let answers = quantiles.choose(Neighbors::AddRemove, &data, &mut stream(seed));
                let [high, low, middle, same] = [0, 1, 2, 3].map(|place: usize| answers[place].value);
                assert!(low <= middle && low <= same && middle <= high && same <= high, "{name} {answers:?}");
            }
        }
    }
}

#[test]
fn quantiles_cost_what_they_cost_one_by_one() {
    let three = quantiles(&[0.25, 0.5, 0.75], 0.6);
    let one = Quantile { bounds: three.bounds, quantile: three.quantiles[0], epsilon: three.epsilon };
    assert!((one.epsilon.get() - 0.2).abs() < 1e-15);
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        assert_eq!(three.event(neighbors), Event::Composed(vec![one.event(neighbors); 3]));
    }
    assert!(quantiles(&[], 1.0).check(Neighbors::AddRemove).is_err());
    assert!(quantiles(&[0.5], 1e-12).check(Neighbors::AddRemove).is_err());
}
