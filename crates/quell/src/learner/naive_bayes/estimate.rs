//! The distributions of a model, from one noisy sum.
//!
//! Everything here is post-processing of a release. The noise is known, so every estimate is drawn towards a
//! simpler one by as much as the noise demands: classes of the same size, means and variances of all classes
//! together.

use super::{Plan, block::Part};

/// The smallest variance between the means of classes.
const LEAST_SPREAD: f64 = 0.01;
/// The range of the variance of a column, and the least variance within a class.
const VARIANCES: [f64; 2] = [0.005, 1.0];
const LEAST_MEAN_VARIANCE: f64 = 0.02;
const LEAST_VARIANCE: f64 = 0.03;
/// How far the variance of a class is from that of its column, relative to the latter.
const VARIANCE_SPREAD: f64 = 0.2;

/// Sums of blocks by class, with the noise on each number.
struct Sums {
    /// The released sum of each class, in the units of a block before it is shortened.
    classes: Vec<Vec<f64>>,
    /// ν: the standard deviation of the noise in these units.
    noise: f64,
    /// n: the public number of records.
    records: f64,
}

/// The weights of the linear layer of the model: rows for the classes, then the biases.
///
/// The inputs of that layer are the features and their squares.
pub(super) fn weights(plan: &Plan, released: &[f64]) -> Vec<f32> {
    let (block, length) = (&plan.block, plan.block.length());
    let classes = released.chunks_exact(block.len());
    // Noise beyond single precision leaves no number; then the sum is not known.
    let number = |x: &f64| if x.abs() < f64::from(f32::MAX) { x * length } else { 0.0 };
    let sums = Sums {
        classes: classes.map(|sum| sum.iter().map(number).collect()).collect(),
        noise: plan.sums.noise() * length,
        records: plan.sums.records as f64,
    };
    let counts = sums.counts(block.constant());
    let width = 2 * block.features;
    let mut rows = vec![vec![0.0; width]; plan.classes];
    let mut biases: Vec<f64> = counts.iter().map(|count| (count / sums.records).ln()).collect();
    let mut numbers = Vec::new();
    let mut place = 1;
    for part in &block.parts {
        match part {
            Part::Number(feature) => {
                numbers.push((*feature, place));
                place += 2;
            }
            Part::Categories(range) => {
                for (class, shares) in sums.shares(place..place + range.len()).into_iter().enumerate() {
                    let row = &mut rows[class][range.clone()];
                    row.iter_mut().zip(shares).for_each(|(weight, share)| *weight = share.ln());
                }
                place += range.len();
            }
        }
    }
    let places: Vec<usize> = numbers.iter().map(|(_, place)| *place).collect();
    for (class, normals) in sums.normals(&counts, &places).into_iter().enumerate() {
        for ((feature, _), [mean, variance]) in numbers.iter().zip(normals) {
            // ln N(x; m, v) = x m/v - x²/2v - m²/2v - ln(2πv)/2
            rows[class][*feature] = mean / variance;
            rows[class][block.features + feature] = -0.5 / variance;
            biases[class] -= 0.5 * (mean * mean / variance + (std::f64::consts::TAU * variance).ln());
        }
    }
    rows.concat().into_iter().chain(biases).map(|weight| weight as f32).collect()
}

impl Sums {
    /// The number of records of each class. They are positive, and their sum is n.
    fn counts(&self, constant: f64) -> Vec<f64> {
        let classes = self.classes.len() as f64;
        let (equal, tau) = (self.records / classes, (self.noise / constant).powi(2));
        let raw: Vec<f64> = self.classes.iter().map(|sum| sum[0] / constant - equal).collect();
        let spread = (raw.iter().map(|off| off * off).sum::<f64>() / classes - tau).max(0.0);
        let kept = if spread > 0.0 { spread / (spread + tau) } else { 0.0 };
        let counts: Vec<f64> = raw.iter().map(|off| (equal + off * kept).max(equal / 20.0)).collect();
        let total: f64 = counts.iter().sum();
        counts.into_iter().map(|count| count * self.records / total).collect()
    }

    /// The mean and the variance of numbers, for each class and each column.
    fn normals(&self, counts: &[f64], places: &[usize]) -> Vec<Vec<[f64; 2]>> {
        let (n, columns) = (self.records, places.len() as f64);
        let of_all = |place: usize| self.classes.iter().map(|sum| sum[place]).sum::<f64>() / n;
        let errors: Vec<f64> = counts.iter().map(|count| (self.noise / count).powi(2)).collect();
        let centres: Vec<f64> = places.iter().map(|place| of_all(*place).clamp(-1.0, 1.0)).collect();
        // The variance between classes is the same for all columns.
        let mut between = 0.0;
        for (place, centre) in places.iter().zip(&centres) {
            for ((sum, count), error) in self.classes.iter().zip(counts).zip(&errors) {
                between += count / n * ((sum[*place] / count - centre).powi(2) - error) / columns;
            }
        }
        let between = between.max(LEAST_SPREAD);
        let mean = |class: usize, column: usize| {
            let kept = between / (between + errors[class]);
            let off = self.classes[class][places[column]] / counts[class] - centres[column];
            (centres[column] + kept * off).clamp(-1.0, 1.0)
        };
        let pooled: Vec<f64> = (0..places.len())
            .map(|column| {
                let squares = (0..counts.len()).map(|class| counts[class] / n * mean(class, column).powi(2));
                1.0 - of_all(places[column] + 1) - squares.sum::<f64>()
            })
            .collect();
        let usual = (pooled.iter().sum::<f64>() / columns).clamp(LEAST_MEAN_VARIANCE, 1.0);
        let error = counts.len() as f64 * (self.noise / n).powi(2);
        let pooled: Vec<f64> = pooled
            .into_iter()
            .map(|variance| {
                let drawn = (variance * usual * usual + usual * error) / (usual * usual + error);
                drawn.clamp(VARIANCES[0], VARIANCES[1])
            })
            .collect();
        let normal = |class: usize, column: usize| {
            let (mean, pooled, error) = (mean(class, column), pooled[column], errors[class]);
            let own = 1.0 - self.classes[class][places[column] + 1] / counts[class] - mean * mean;
            let prior = (VARIANCE_SPREAD * pooled).powi(2);
            let drawn = pooled + prior / (prior + error) * (own - pooled);
            let variance = drawn.clamp(0.1 * pooled, 1.0).max(LEAST_VARIANCE);
            // The mean is uncertain, too.
            [mean, variance + between / (between + error) * error]
        };
        (0..counts.len())
            .map(|class| (0..places.len()).map(|column| normal(class, column)).collect())
            .collect()
    }

    /// The probability of each category, for each class.
    fn shares(&self, places: std::ops::Range<usize>) -> Vec<Vec<f64>> {
        let normalized = |weights: Vec<f64>| {
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect::<Vec<f64>>()
        };
        let all = places.clone().map(|place| {
            let total: f64 = self.classes.iter().map(|sum| sum[place]).sum();
            total.max(0.0) + 1.0
        });
        let (all, prior) = (normalized(all.collect()), 4.0 * (self.noise + 1.0));
        let of_class = |sum: &Vec<f64>| {
            let own = sum[places.clone()].iter().zip(&all);
            normalized(own.map(|(count, share)| count.max(0.0) + prior * share).collect())
        };
        self.classes.iter().map(of_class).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::Schema,
        learner::{PublicFacts, Subject, naive_bayes::Recipe},
        random::PublicRandom,
    };

    const NUMBERS: &str =
        "[[column]]\nname = 'a'\nbounds = [0, 1]\n[[column]]\nname = 'b'\nbounds = [0, 1]\n";
    const CATEGORIES: &str = "[[column]]\nname = 'c'\ncategories = ['x', 'y', 'z']\nunknown = true\n";

    fn plan(classes: usize, records: u64, columns: &str, noise_multiplier: f64) -> Plan {
        let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
        let schema = format!("[label]\ncolumn = 'y'\nclasses = {names:?}\n{columns}");
        let schema = Schema::parse(&schema).unwrap();
        let mut recipe = Recipe { records: Some(records), ..Recipe::default() };
        recipe.privacy.noise_multiplier = Some(noise_multiplier);
        let facts = PublicFacts { records: None, classes: Some(classes) };
        let shape = [schema.features().len()];
        let subject = Subject { shape: &shape, are_features: false, facts, schema: Some(&schema) };
        Plan::new(&recipe, &subject).unwrap()
    }

    /// The sum that examples of classes release, without noise.
    fn released(plan: &Plan, examples: &[(usize, Vec<f32>)]) -> Vec<f64> {
        let width = plan.block.len();
        let (mut sum, mut one) = (vec![0.0; plan.sums.descent.dimension], vec![0.0; width]);
        for (class, example) in examples {
            plan.block.write(example, &mut one);
            let place = &mut sum[class * width..][..width];
            place.iter_mut().zip(&one).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        sum
    }

    /// The score of each class, as the network computes it.
    fn scores(plan: &Plan, weights: &[f32], example: &[f32]) -> Vec<f64> {
        let inputs: Vec<f64> =
            example.iter().copied().chain(example.iter().map(|x| x * x)).map(f64::from).collect();
        let (rows, biases) = weights.split_at(plan.classes * inputs.len());
        let dot = |row: &[f32]| row.iter().zip(&inputs).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
        rows.chunks_exact(inputs.len()).zip(biases).map(|(row, bias)| dot(row) + f64::from(*bias)).collect()
    }

    #[test]
    fn with_little_noise_scores_are_the_logarithms_of_the_densities() {
        let plan = plan(2, 4000, &[NUMBERS, CATEGORIES].concat(), 1e-3);
        let mut chance = PublicRandom::new(4);
        let examples: Vec<(usize, Vec<f32>)> = (0..4000)
            .map(|number| {
                let class = usize::from(number % 4 == 0);
                let (centre, spread) = ([-0.3, 0.4][class], [0.2, 0.35][class]);
                let mut example: Vec<f32> =
                    (0..2).map(|_| (centre + spread * chance.normal()).clamp(-1.0, 1.0)).collect();
                let category = if chance.below(4) == 0 { 2 - class } else { class };
                example.extend((0..4).map(|place| f32::from(u8::from(place == category))));
                (class, example)
            })
            .collect();
        let weights = weights(&plan, &released(&plan, &examples));
        let of_class = |class: usize| examples.iter().filter(move |(of, _)| *of == class).map(|(_, x)| x);
        for (_, example) in &examples[..50] {
            for (class, score) in scores(&plan, &weights, example).into_iter().enumerate() {
                let count = of_class(class).count() as f64;
                let mut expected = (count / 4000.0).ln();
                for place in 0..2 {
                    let column = || of_class(class).map(|x| f64::from(x[place]));
                    let mean = column().sum::<f64>() / count;
                    let variance = column().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                    let off = f64::from(example[place]) - mean;
                    expected -= 0.5 * (off * off / variance + (std::f64::consts::TAU * variance).ln());
                }
                let category = (2..6).find(|place| example[*place] == 1.0).unwrap();
                let with = of_class(class).filter(|x| x[category] == 1.0).count() as f64;
                let all = examples.iter().filter(|(_, x)| x[category] == 1.0).count() as f64;
                let share = (all + 1.0) / 4004.0;
                expected += ((with + 4.0 * share) / (count + 4.0)).ln();
                assert!((score - expected).abs() < 0.05, "{score} {expected}");
            }
        }
    }

    #[test]
    fn any_release_gives_finite_weights_for_any_columns_classes_and_number_of_records() {
        let mut chance = PublicRandom::new(8);
        for columns in [NUMBERS, CATEGORIES, &[CATEGORIES, NUMBERS].concat()] {
            for (classes, records) in [(1, 1), (1, 100), (2, 1), (3, 100), (7, 1_000_000)] {
                for noise in [1e-3, 1.0, 1e4] {
                    let plan = plan(classes, records, columns, noise);
                    for size in [0.0, 1.0, 1e3, 1e12] {
                        let mut sum: Vec<f64> = (0..plan.sums.descent.dimension)
                            .map(|_| size * f64::from(chance.normal()))
                            .collect();
                        if size == 1e3 {
                            (sum[0], sum[1], sum[2]) = (f64::NAN, f64::INFINITY, f64::NEG_INFINITY);
                        }
                        let weights = weights(&plan, &sum);
                        assert_eq!(weights.len(), classes * (2 * plan.block.features + 1));
                        assert!(
                            weights.iter().all(|weight| weight.is_finite()),
                            "{columns} {classes} {size}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_constant_column_has_the_least_variance_in_all_classes_and_decides_nothing() {
        let plan = plan(2, 1000, NUMBERS, 0.01);
        let examples: Vec<(usize, Vec<f32>)> =
            (0..1000).map(|number| (number % 2, vec![0.25, [-0.5, 0.5][number % 2]])).collect();
        let weights = weights(&plan, &released(&plan, &examples));
        for x in [-1.0, 0.25, 1.0] {
            let scores = scores(&plan, &weights, &[x, 0.5]);
            assert!(scores[1] > scores[0] + 5.0, "{x}: {scores:?}");
        }
    }
}
