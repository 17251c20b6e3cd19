use quell_privacy::{Neighbors, laws, ledger::Unit};

use super::*;
use crate::{
    data::{Examples, Targets},
    learner::{
        loss::Loss,
        prepared::columns::{Quantiles, Standard},
    },
    random::PublicRandom,
};

const WIDTH: usize = 4;

fn facts(noise: f64) -> Facts {
    Facts { width: WIDTH, numbers: vec![0, 2, 3], records: 400.0, noise }
}

/// Examples of 15 users, with hostile values and some usual ones.
fn examples(records: usize, chance: &mut PublicRandom) -> Examples {
    let hostile = [0.4, -1.0, 1.0, 0.0, 1e30, f32::MAX, 1e-40, -7.0];
    let values = (0..WIDTH * records).map(|_| hostile[chance.below(hostile.len())]).collect();
    let users: Vec<_> = (0..records).map(|_| Some([chance.below(15) as u8])).collect();
    let targets = Targets::Numbers(vec![0.0; records]);
    Examples::numbers(&[WIDTH], values, targets).unwrap().with_users(&users).unwrap()
}

/// The contract of contributions in every run, for examples and users, with hostile values.
#[test]
fn vectors_keep_the_contract_and_are_at_most_one_long() {
    let mut chance = PublicRandom::of(3, 1);
    let examples = examples(40, &mut chance);
    let facts = facts(1.0);
    for unit in [Unit::Example, Unit::User] {
        let task = Supervised::new(&examples, Loss::Squared, None);
        let task = task.protecting(unit, Neighbors::AddRemove, 40).unwrap();
        let all: Vec<usize> = (0..task.records()).collect();
        let (mut standard, mut quantiles) = (Standard::new(facts.clone()), Quantiles::new(facts.clone()));
        for _ in 0..Quantiles::RUNS {
            for stage in [standard.stage(), quantiles.stage()].into_iter().flatten() {
                let length = stage.length(facts.numbers.len());
                // A release may have more numbers than a run needs.
                for dimension in [length, length + 3] {
                    let mut vectors = Vectors::new(&task, &facts, stage, dimension);
                    assert_eq!(laws::check_contributions(&mut vectors, &all), Ok(()), "{unit:?} {stage:?}");
                }
                let vectors = Vectors::new(&task, &facts, stage, length);
                let mut vector = Sparse::default();
                vectors.write(&[f32::MAX, 5.0, -7.0, -1.0], 1.0, &mut vector);
                let squared: f64 = vector.entries().iter().map(|(_, x)| x * x).sum();
                assert!(squared <= 1.0 + 1e-6, "{stage:?} {squared}");
            }
            let mut release = |length: usize| -> Vec<f64> {
                (0..length).map(|_| 40.0 * f64::from(chance.between(-0.5, 1.0))).collect()
            };
            standard.apply(Some(&release(4)));
            quantiles.apply(Some(&release(3 * 32)));
        }
        assert!(standard.stage().is_none() && quantiles.stage().is_none());
    }
}

/// The exact sums of a run, without noise.
fn sums(stage: Stage<'_>, task: &Supervised<'_>, facts: &Facts) -> Vec<f64> {
    let vectors = Vectors::new(task, facts, stage, 0);
    let mut sums = vec![0.0; vectors.length];
    let (mut example, mut vector) = (vec![0.0; WIDTH], Sparse::default());
    for record in 0..task.records() {
        vectors.write_record(record, &mut vector, &mut example);
    }
    for (place, x) in vector.entries() {
        sums[*place] += x;
    }
    sums
}

/// Examples whose columns are normal, half zero and half a tail near the lower bound, and constant.
fn skewed(records: usize) -> Examples {
    let mut chance = PublicRandom::of(5, 2);
    let values = (0..records).flat_map(|_| {
        let tail = if chance.below(2) == 0 { -1.0 } else { -0.99 + 0.02 * chance.between(0.0, 1.0) };
        [0.3 + 0.05 * chance.normal(), 1.0, tail, 0.25]
    });
    Examples::numbers(&[WIDTH], values.collect(), Targets::Numbers(vec![0.0; records])).unwrap()
}

/// Every feature of all examples, transformed.
fn transformed(lines: &crate::learner::prepared::PiecewiseLinear, examples: &Examples) -> Vec<Vec<f32>> {
    let mut columns = vec![Vec::new(); WIDTH];
    let mut row = vec![0.0; WIDTH];
    for example in 0..examples.len() {
        examples.gather(example, &mut row);
        lines.apply(&mut row);
        columns.iter_mut().zip(&row).for_each(|(column, x)| column.push(*x));
    }
    columns
}

#[test]
fn standardized_columns_have_mean_zero_and_spread_one() {
    let examples = skewed(4000);
    let task = Supervised::new(&examples, Loss::Squared, None);
    // The public number of records is wrong by half, which does no harm.
    let facts = Facts { records: 6000.0, noise: 1e-3, ..facts(0.0) };
    let mut standard = Standard::new(facts.clone());
    while let Some(stage) = standard.stage() {
        let released = sums(stage, &task, &facts);
        standard.apply(Some(&released));
    }
    let columns = transformed(&standard.lines(), &examples);
    for column in [0, 2] {
        let mean = columns[column].iter().sum::<f32>() / 4000.0;
        let spread = (columns[column].iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 4000.0).sqrt();
        assert!(mean.abs() < 0.05 && (0.7..1.3).contains(&spread), "{column}: {mean} {spread}");
    }
    // Indicators stay as they are, and a constant column is zero.
    assert!(columns[1].iter().all(|x| *x == 1.0) && columns[3].iter().all(|x| x.abs() < 0.1));
}

#[test]
fn quantiles_become_even_even_where_most_records_are_alike() {
    let examples = skewed(4000);
    let task = Supervised::new(&examples, Loss::Squared, None);
    let facts = Facts { records: 6000.0, noise: 1e-3, ..facts(0.0) };
    let mut quantiles = Quantiles::new(facts.clone());
    while let Some(stage) = quantiles.stage() {
        let released = sums(stage, &task, &facts);
        quantiles.apply(Some(&released));
    }
    let columns = transformed(&quantiles.lines(), &examples);
    for share in [0.1, 0.25, 0.5, 0.75, 0.9] {
        let below = columns[0].iter().filter(|x| **x <= 2.0 * share - 1.0).count();
        assert!((below as f32 / 4000.0 - share).abs() < 0.03, "{share}: {below}");
    }
    // Half of the records are at the lower bound; the others are even between the middle and the upper end.
    let tail: Vec<f32> = columns[2].iter().copied().filter(|x| *x > -1.0).collect();
    assert!((1900..2100).contains(&tail.len()), "{}", tail.len());
    for share in [0.25, 0.5, 0.75] {
        let below = tail.iter().filter(|x| **x <= share).count() as f32 / tail.len() as f32;
        assert!((below - share).abs() < 0.05, "{share}: {below}");
    }
    assert!(columns[1].iter().all(|x| (x - 1.0).abs() < 1e-6), "indicators stay as they are");
}

/// With few records and much noise, estimates stay within their ranges.
#[test]
fn much_noise_yields_a_transform_of_finite_numbers() {
    let mut chance = PublicRandom::of(9, 9);
    for scale in [1.0, 1e6, 1e30].repeat(20) {
        let facts = Facts { records: 5.0, noise: scale, ..facts(0.0) };
        let (mut standard, mut quantiles) = (Standard::new(facts.clone()), Quantiles::new(facts));
        for run in 0..3 {
            for length in [4, 6] {
                let release: Vec<f64> = (0..length).map(|_| scale * f64::from(chance.normal())).collect();
                let release = (run != 1).then_some(&*release);
                if length == 4 { standard.apply(release) } else { quantiles.apply(release) }
            }
        }
        for lines in [standard.lines(), quantiles.lines()] {
            assert!(lines.inputs.iter().chain(&lines.outputs).all(|x| x.is_finite()), "{lines:?}");
            for knots in [&lines.inputs, &lines.outputs] {
                assert!(knots.chunks_exact(lines.knots).all(<[f32]>::is_sorted), "{lines:?}");
            }
        }
    }
}
