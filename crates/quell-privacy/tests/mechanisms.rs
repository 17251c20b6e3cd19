//! What mechanisms release: unbiased, with the noise that was charged for.
//!
//! No data stops a mechanism.
//!
//! Statistics are judged at a false-alarm rate of about 1e-6, and each has beside it a check that noise five
//! percent smaller would be seen. Noise comes from a seed, so that an outcome does not change from run to
//! run.

use crate::book::{Memory, without_cap};
use quell_privacy::{
    Error, Neighbors,
    ledger::{Ledger, Paid},
    mechanism::{
        Additive, Bounds, Clipper, Clipping, Contributions, Count, Descent, GaussianSparseVector,
        GroupedMean, GroupedSum, Histogram, IntegerNoise, Mean, Mechanism, Noise, NoisyMax, NoisyThreshold,
        Quantile, RandomizedResponse, Range, Rule, Sampling, Selection, Sensitive, SmoothMedian,
        SparseVector, StableHistogram, Step, Sum, Variance, Vectors, Votes, Within,
    },
    units::{
        BatchSize, ClipNorm, Delta, Epsilon, LearningRate, NoiseMultiplier, Probability, SamplingRate, Scale,
        Stability,
    },
};

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn times(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn laplace(scale: f64) -> IntegerNoise {
    IntegerNoise::new(Noise::Laplace, Scale::new(scale).unwrap())
}

fn seeded(neighbors: Neighbors) -> Ledger<Memory> {
    without_cap(neighbors).seeded(20_261_115)
}

/// Runs a mechanism many times.
fn many<M: Mechanism, T>(
    neighbors: Neighbors,
    mechanism: M,
    runs: u64,
    run: impl Fn(Paid<M>) -> T,
) -> Vec<T> {
    let mut ledger = seeded(neighbors);
    let lease = ledger.reserve(mechanism, runs).unwrap().in_blocks_of(runs);
    lease.map(|paid| run(paid.unwrap())).collect()
}

/// Whether values have this mean and variance, to 4.9 standard errors.
///
/// `kurtosis` is that of the distribution.
fn looks_like(values: &[f64], mean: f64, variance: f64, kurtosis: f64) -> bool {
    let n = values.len() as f64;
    let sample_mean = values.iter().sum::<f64>() / n;
    let sample_variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    let mean_fits = (sample_mean - mean).abs() <= 4.9 * (variance / n).sqrt();
    let variance_fits = (sample_variance / variance - 1.0).abs() <= 4.9 * ((kurtosis - 1.0) / n).sqrt();
    mean_fits && variance_fits
}

fn assert_looks_like(what: &str, values: &[f64], mean: f64, variance: f64, kurtosis: f64) {
    assert!(looks_like(values, mean, variance, kurtosis), "{what}");
    let smaller: Vec<f64> = values.iter().map(|v| mean + 0.95 * (v - mean)).collect();
    assert!(
        !looks_like(&smaller, mean, variance, kurtosis),
        "{what}: noise five percent smaller is not seen"
    );
    let reused = vec![values[0]; values.len()];
    assert!(!looks_like(&reused, mean, variance, kurtosis), "{what}: reused noise is not seen");
}

const RUNS: u64 = 100_000;

#[test]
fn counts_have_the_noise_that_is_charged() {
    let counts = many(Neighbors::AddRemove, Count { noise: laplace(10.0) }, RUNS, |paid| {
        paid.run(&Sensitive::new(1000)).unwrap().value
    });
    let variance = 1.0 / (1.0_f64 / 20.0).sinh().powi(2) / 2.0;
    assert_looks_like("discrete Laplace", &counts, 1000.0, variance, 6.0);
    assert!(counts.iter().all(|count| count.fract() == 0.0));
    let gaussian = IntegerNoise::new(Noise::Gaussian, Scale::new(7.0).unwrap());
    let counts = many(Neighbors::AddRemove, Count { noise: gaussian }, RUNS, |paid| {
        paid.run(&Sensitive::new(5)).unwrap().value
    });
    assert_looks_like("discrete Gaussian", &counts, 5.0, 49.0, 3.0);
    let threshold = NoisyThreshold { threshold: 1010, noise: laplace(10.0) };
    let reached = many(Neighbors::AddRemove, threshold, RUNS, |paid| {
        f64::from(u8::from(paid.run(&Sensitive::new(1000)).unwrap()))
    });
    // P[X ≥ 10] = e^-1/(1 + e^-0.1)
    let p = (-1.0_f64).exp() / (1.0 + (-0.1_f64).exp());
    let rate = reached.iter().sum::<f64>() / RUNS as f64;
    assert!((rate - p).abs() < 4.9 * (p * (1.0 - p) / RUNS as f64).sqrt(), "{rate} for {p}");
}

#[test]
fn sums_have_the_noise_that_is_charged_under_both_relations() {
    let values = Sensitive::new(vec![3.0, -1.0, f64::NAN, 250.0, 7.5, f64::INFINITY]);
    // Held to [0, 10]: 3 + 0 + 10 + 7.5 + 10.
    for (neighbors, contribution) in [(Neighbors::AddRemove, 10.0), (Neighbors::Replace, 5.0)] {
        for (noise, square, kurtosis) in [(Noise::Laplace, 2.0, 6.0), (Noise::Gaussian, 1.0, 3.0)] {
            let sum = Sum { bounds: Bounds::new(0.0, 10.0).unwrap(), noise, noise_multiplier: times(2.0) };
            let sums = many(neighbors, sum, RUNS, |paid| paid.run(&values).unwrap().value);
            let scale: f64 = 2.0 * contribution;
            assert_looks_like(
                &format!("{noise} {neighbors:?}"),
                &sums,
                30.5,
                square * scale * scale,
                kurtosis,
            );
        }
    }
}

#[test]
fn vectors_have_the_noise_that_is_charged() {
    for (noise, square, kurtosis) in [(Noise::Laplace, 2.0, 6.0), (Noise::Gaussian, 1.0, 3.0)] {
        let dimension = RUNS as usize;
        let contribution = ClipNorm::new(0.5).unwrap();
        let additive = Additive { noise, contribution, noise_multiplier: times(3.0), dimension };
        let mut vector = vec![1.25; dimension];
        let noisy = seeded(Neighbors::AddRemove)
            .charge(additive)
            .unwrap()
            .run(&Sensitive::new(vector.clone()))
            .unwrap();
        assert_looks_like(&noise.to_string(), &noisy, 1.25, square * 2.25, kurtosis);
        vector.pop();
        assert!(seeded(Neighbors::AddRemove).charge(additive).unwrap().run(&Sensitive::new(vector)).is_err());
    }
}

fn norm(value: f64) -> ClipNorm {
    ClipNorm::new(value).unwrap()
}

fn poisson(rate: f64) -> Sampling {
    Sampling::Poisson { rate: SamplingRate::new(rate).unwrap() }
}

fn step(sampling: Sampling, z: f64, dimension: usize) -> Descent {
    Descent { sampling, clipping: Clipping::Flat { norm: norm(2.0) }, noise_multiplier: times(z), dimension }
}

/// The only step of a run with one batch.
fn single(paid: Paid<Descent>, records: usize, contributions: &mut impl Contributions) -> Step {
    let mut batches = paid.start(records).unwrap();
    let step = batches.next(contributions).unwrap().unwrap();
    assert!(batches.next(contributions).is_none(), "a batch is released once");
    step
}

fn adaptive(start: f64, quantile: f64, count_noise: f64, batch: f64) -> Clipping {
    Clipping::Adaptive {
        norm: norm(start),
        quantile: Probability::new(quantile).unwrap(),
        learning_rate: LearningRate::new(0.2).unwrap(),
        count_noise: Scale::new(count_noise).unwrap(),
        expected_batch: BatchSize::new(batch).unwrap(),
    }
}

#[test]
fn a_step_samples_clips_and_adds_noise_at_the_charged_rates() {
    // Noise: an empty dataset.
    let noise = seeded(Neighbors::AddRemove).charge(step(poisson(0.5), 3.0, 100_000)).unwrap();
    let noise = single(noise, 0, &mut Vectors::new(100_000, vec![]));
    assert_eq!((noise.share_within, noise.next_norm), (None, None));
    let noise: Vec<f64> = noise.sum.into_iter().map(f64::from).collect();
    let inflation = step(poisson(0.5), 3.0, 100_000).inflation().unwrap();
    assert_looks_like("Gaussian", &noise, 0.0, (6.0 * inflation).powi(2), 3.0);
    assert!(inflation < 1.0016);
    // Clipping and sampling: 1000 records of length 10, clipped to 2, at rate 0.3 with hardly any noise.
    let sums = many(Neighbors::AddRemove, step(poisson(0.3), 1e-3, 2), 2000, |paid| {
        single(paid, 1000, &mut Vectors::new(2, [6.0, 8.0].repeat(1000))).sum
    });
    let counts: Vec<f64> = sums.iter().map(|sum| f64::from(sum[0]) / 1.2).collect();
    assert!(looks_like(&counts, 300.0, 210.0, 3.0));
    assert!(!looks_like(&counts, 300.0, 300.0, 3.0), "another law of the batch is not seen");
    assert!(sums.iter().all(|sum| (sum[1] / sum[0] - 8.0 / 6.0).abs() < 1e-3));
    // Records that are not finite add nothing.
    let mut bad = Vectors::new(2, vec![f32::NAN, 1.0, f32::INFINITY, 0.0, 1e37, -1e37]);
    let paid = seeded(Neighbors::AddRemove).charge(step(poisson(1.0), 1e-3, 2)).unwrap();
    let sum = single(paid, 3, &mut bad).sum;
    assert!((f64::from(sum[0]).hypot(f64::from(sum[1])) - 2.0).abs() < 0.02, "{sum:?}");
}

#[test]
fn batches_of_fixed_size_and_full_ones_hold_as_many_records_as_they_say() {
    let mut vectors = Vectors::new(2, [6.0, 8.0].repeat(1000));
    let fixed = Sampling::WithoutReplacement { size: 70, records: 1000 };
    for (sampling, records) in [(fixed, 70.0), (Sampling::Full, 1000.0)] {
        let sums = many(Neighbors::Replace, step(sampling, 1e-3, 2), 200, |paid| {
            single(paid, 1000, &mut Vectors::new(2, [6.0, 8.0].repeat(1000))).sum
        });
        assert!(sums.iter().all(|sum| (f64::from(sum[0]) / 1.2 - records).abs() < 0.05), "{sampling}");
    }
    // Another number of records than was paid for is no error, because an error would reveal it. A position
    // without a record adds nothing, and no further positions are drawn.
    let all = Sampling::WithoutReplacement { size: 1000, records: 1000 };
    for (records, added) in [(999, 999.0), (0, 0.0), (1005, 1000.0)] {
        let sum =
            single(seeded(Neighbors::Replace).charge(step(all, 1e-3, 2)).unwrap(), records, &mut vectors).sum;
        assert!((f64::from(sum[0]) / 1.2 - added).abs() < 0.05, "{records}: {sum:?}");
    }
    // Where the number of records is a secret, nothing is paid.
    let mut ledger = seeded(Neighbors::AddRemove);
    let error = ledger.charge(step(fixed, 1.0, 2)).err().unwrap();
    assert!(error.to_string().contains("number is not public; use Poisson sampling"), "{error}");
    assert!(ledger.state().unwrap().charges().is_empty());
    let too_many = Sampling::WithoutReplacement { size: 1001, records: 1000 };
    assert!(seeded(Neighbors::Replace).charge(step(too_many, 1.0, 2)).is_err());
}

#[test]
fn noise_is_relative_to_what_each_clipping_leaves_of_a_vector() {
    let parts = Clipping::PerPart { parts: vec![40_000, 60_000], norms: vec![norm(3.0), norm(4.0)] };
    let automatic = Clipping::Automatic { norm: norm(5.0), stability: Stability::new(0.01).unwrap() };
    // With noise of 2 on the sum and 2 on the count, of half a record each: 1/4 = 1/z² + 1/16.
    let adaptive = adaptive(5.0, 0.5, 2.0, 10.0);
    for (clipping, multiplier) in [(parts, 2.0), (automatic, 2.0), (adaptive, (16.0_f64 / 3.0).sqrt())] {
        let step =
            Descent { sampling: poisson(0.1), clipping, noise_multiplier: times(2.0), dimension: 100_000 };
        let paid = seeded(Neighbors::AddRemove).charge(step.clone()).unwrap();
        let noisy = single(paid, 0, &mut Vectors::new(100_000, vec![])).sum;
        let noise: Vec<f64> = noisy.into_iter().map(f64::from).collect();
        let deviation = multiplier * 5.0 * step.inflation().unwrap();
        assert_looks_like(&step.to_string(), &noise, 0.0, deviation.powi(2), 3.0);
        // Another norm, the same cost, and noise in proportion.
        let paid = seeded(Neighbors::AddRemove).charge(step.clone()).unwrap();
        let mut batches = paid.start(0).unwrap().with_clip_norm(norm(0.5));
        let noisy = batches.next(&mut Vectors::new(100_000, vec![])).unwrap().unwrap().sum;
        let noise: Vec<f64> = noisy.into_iter().map(f64::from).collect();
        assert_looks_like("another norm", &noise, 0.0, (deviation / 10.0).powi(2), 3.0);
    }
}

#[test]
fn parts_are_clipped_apart_and_automatic_clipping_normalises() {
    let run = |clipping, values: Vec<f32>| {
        let dimension = values.len();
        let step = Descent { sampling: Sampling::Full, clipping, noise_multiplier: times(1e-5), dimension };
        single(seeded(Neighbors::AddRemove).charge(step).unwrap(), 1, &mut Vectors::new(dimension, values))
            .sum
    };
    let close = |sum: &[f32], expected: &[f32]| sum.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3);
    let parts = Clipping::PerPart { parts: vec![2, 1], norms: vec![norm(1.0), norm(4.0)] };
    let sum = run(parts, vec![6.0, 8.0, 3.0]);
    assert!(close(&sum, &[0.6, 0.8, 3.0]), "{sum:?}");
    let automatic = Clipping::Automatic { norm: norm(2.0), stability: Stability::new(0.1).unwrap() };
    let sum = run(automatic.clone(), vec![6.0, 8.0]);
    assert!(close(&sum, &[12.0 / 10.1, 16.0 / 10.1]), "{sum:?}");
    // A short vector is made longer, and nothing is longer than the norm.
    let sum = run(automatic, vec![0.06, 0.08]);
    assert!(close(&sum, &[0.6, 0.8]), "{sum:?}");
}

#[test]
fn the_share_that_is_released_has_the_noise_of_the_count() {
    let step = Descent {
        sampling: Sampling::Full,
        clipping: adaptive(1.0, 0.5, 8.0, 50.0),
        noise_multiplier: times(4.0),
        dimension: 1,
    };
    // 100 of 160 are short: the count is 100 - 160/2 = 20, and 20/50 + 1/2.
    let values: Vec<f32> = (0..160).map(|i| if i < 100 { 0.1 } else { 10.0 }).collect();
    let shares = many(Neighbors::AddRemove, step, RUNS, |paid| {
        let step = single(paid, 160, &mut Vectors::new(1, values.clone()));
        let (share, next) = (step.share_within.unwrap(), step.next_norm.unwrap().get());
        assert!((next.ln() + 0.2 * (share - 0.5)).abs() < 1e-9);
        share
    });
    let deviation = 8.0 / 50.0 * 1.0005;
    assert_looks_like("share", &shares, 0.9, deviation * deviation, 3.0);
}

#[test]
fn adaptive_clipping_finds_the_quantile() {
    // Lengths 0.01, 0.02, …, 10: three quarters are below 7.5.
    let values: Vec<f32> = (1..=1000_u16).map(|i| f32::from(i) / 100.0).collect();
    for start in [0.01, 100.0] {
        let clipping = adaptive(start, 0.75, 10.0, 200.0);
        let step = Descent { sampling: poisson(0.2), clipping, noise_multiplier: times(1.0), dimension: 1 };
        let mut ledger = seeded(Neighbors::AddRemove);
        let (mut norm, mut tail) = (ClipNorm::new(start).unwrap(), Vec::new());
        for paid in ledger.reserve(step, 400).unwrap() {
            let mut batches = paid.unwrap().start(1000).unwrap().with_clip_norm(norm);
            let step = batches.next(&mut Vectors::new(1, values.clone())).unwrap().unwrap();
            norm = step.next_norm.unwrap();
            tail.push(norm.get());
        }
        let mean = tail[200..].iter().sum::<f64>() / 200.0;
        assert!((mean - 7.5).abs() < 0.3, "from {start} to {mean}");
    }
}

/// Remembers who was summed together.
struct Watched(Vec<Vec<usize>>, f32);

impl Contributions for Watched {
    fn dimension(&self) -> usize {
        1
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let mut scale = [0.0];
        for record in blocks.concat() {
            clipper.scales(&[f64::from(self.1 * self.1)], &mut scale);
            sum[0] += f64::from(scale[0] * self.1);
            self.0.last_mut().unwrap().push(record);
        }
    }
}

#[test]
fn an_epoch_has_every_record_once_each_in_a_batch_of_its_own_chance() {
    let epoch = Descent {
        sampling: Sampling::Shuffled { batches: 5 },
        clipping: Clipping::Flat { norm: norm(2.0) },
        noise_multiplier: times(1e-3),
        dimension: 1,
    };
    let (mut ledger, mut counts) = (seeded(Neighbors::AddRemove), [0.0; 5]);
    for paid in ledger.reserve(epoch, 40).unwrap() {
        let mut batches = paid.unwrap().start(1000).unwrap();
        let mut watched = Watched(Vec::new(), 3.0);
        loop {
            watched.0.push(Vec::new());
            let Some(step) = batches.next(&mut watched) else { break };
            let size = watched.0.last().unwrap().len();
            assert!((f64::from(step.unwrap().sum[0]) - 2.0 * size as f64).abs() < 0.1);
        }
        assert_eq!(batches.position(), 5);
        assert!(batches.next(&mut watched).is_none());
        let mut everyone = watched.0.concat();
        everyone.sort_unstable();
        assert!(everyone.into_iter().eq(0..1000));
        // Where record 7 and its neighbour are.
        let of = |record| watched.0.iter().position(|batch| batch.contains(&record)).unwrap();
        for record in 0..1000 {
            counts[of(record)] += 1.0;
        }
        assert!((0..999).any(|record| of(record) != of(record + 1)));
    }
    // 40 000 coins of one in five, at 4.9 standard deviations; one in four would be seen.
    let spread = 4.9 * (40_000.0_f64 * 0.2 * 0.8).sqrt();
    assert!(
        counts
            .iter()
            .all(|count| (count - 8000.0_f64).abs() < spread && (count - 10_000.0_f64).abs() > spread),
        "{counts:?}"
    );
}

#[test]
fn batches_of_an_epoch_have_fresh_noise_and_follow_the_norm_they_find() {
    let flat = Descent {
        sampling: Sampling::Shuffled { batches: 2 },
        clipping: Clipping::Flat { norm: norm(2.0) },
        noise_multiplier: times(3.0),
        dimension: 100_000,
    };
    let mut nobody = Vectors::new(100_000, vec![]);
    let inflation = flat.inflation().unwrap();
    let mut batches = seeded(Neighbors::AddRemove).charge(flat).unwrap().start(0).unwrap();
    let mut next =
        || batches.next(&mut nobody).unwrap().unwrap().sum.into_iter().map(f64::from).collect::<Vec<_>>();
    let (first, second) = (next(), next());
    assert_looks_like("first", &first, 0.0, (6.0 * inflation).powi(2), 3.0);
    assert_looks_like("second", &second, 0.0, (6.0 * inflation).powi(2), 3.0);
    let difference: Vec<f64> = first.iter().zip(&second).map(|(a, b)| a - b).collect();
    assert_looks_like("difference", &difference, 0.0, 2.0 * (6.0 * inflation).powi(2), 3.0);
    // 2000 records of length 3 in 40 batches of 50, clipped from 100 on to the length of half of them.
    let epoch = Descent {
        sampling: Sampling::Shuffled { batches: 40 },
        clipping: adaptive(100.0, 0.5, 5.0, 50.0),
        noise_multiplier: times(1.0),
        dimension: 1,
    };
    let mut batches = seeded(Neighbors::AddRemove).charge(epoch).unwrap().start(2000).unwrap();
    let mut last = 100.0;
    while let Some(step) = batches.next(&mut Vectors::new(1, vec![3.0; 2000])) {
        last = step.unwrap().next_norm.unwrap().get();
    }
    assert!((last - 3.0).abs() < 1.0, "{last}");
}

#[test]
fn settings_are_read_as_they_were_written_and_misspelt_ones_refused() {
    let parts = Clipping::PerPart { parts: vec![2, 3], norms: vec![norm(1.0), norm(0.5)] };
    let automatic = Clipping::Automatic { norm: norm(1.0), stability: Stability::new(0.01).unwrap() };
    for clipping in [Clipping::Flat { norm: norm(0.1) }, parts, automatic, adaptive(1.0, 0.5, 5.0, 100.0)] {
        let text = serde_json::to_string(&clipping).unwrap();
        assert_eq!(serde_json::from_str::<Clipping>(&text).unwrap(), clipping);
        assert!(serde_json::from_str::<Clipping>(&text.replace("}}", ",\"nrom\":1}}")).is_err(), "{text}");
    }
    for sampling in [poisson(0.1), Sampling::Full, Sampling::WithoutReplacement { size: 1, records: 2 }] {
        let text = serde_json::to_string(&sampling).unwrap();
        assert_eq!(serde_json::from_str::<Sampling>(&text).unwrap(), sampling);
    }
    assert!(serde_json::from_str::<Sampling>(r#"{"poisson":{"rate":0.1,"size":3}}"#).is_err());
    assert!(serde_json::from_str::<Sampling>(r#"{"poisson":{"rate":1.1}}"#).is_err());
    // Parts that do not make up the vector are refused before anything is paid.
    let mut ledger = seeded(Neighbors::AddRemove);
    for (parts, norms) in [
        (vec![2, 2], vec![norm(1.0); 2]),
        (vec![5], vec![norm(1.0); 2]),
        (vec![], vec![]),
        (vec![usize::MAX, 6], vec![norm(1.0); 2]),
    ] {
        let step = Descent { clipping: Clipping::PerPart { parts, norms }, ..step(poisson(0.1), 1.0, 5) };
        assert!(matches!(ledger.charge(step).err(), Some(Error::OutOfRange { .. })));
    }
    assert!(ledger.state().unwrap().charges().is_empty());
}

#[test]
fn means_and_variances_are_close_and_within_their_stated_errors() {
    let values: Vec<f64> = (0..2000).map(|i| f64::from(i % 100)).chain([f64::NAN, 1e308, -1e308]).collect();
    let bounds = Bounds::new(0.0, 100.0).unwrap();
    let held: Vec<f64> = values.iter().filter(|v| !v.is_nan()).map(|v| v.clamp(0.0, 100.0)).collect();
    let mean = held.iter().sum::<f64>() / held.len() as f64;
    let variance = held.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / held.len() as f64;
    let values = Sensitive::new(values);
    let within = |releases: &[quell_privacy::mechanism::Release], truth: f64| {
        let good = |r: &&quell_privacy::mechanism::Release| matches!(r.within, Within::Value(error) if (r.value - truth).abs() <= error);
        releases.iter().filter(good).count() as f64 / releases.len() as f64
    };
    let m = Mean { bounds, noise: Noise::Laplace, noise_multiplier: times(4.0), count: laplace(4.0) };
    let means = many(Neighbors::AddRemove, m, 4000, |paid| paid.run(&values).unwrap());
    assert!(within(&means, mean) > 0.94, "{}", within(&means, mean));
    assert!(within(&means, mean + 1.0) < 0.1);
    let v = Variance { bounds, noise: Noise::Gaussian, noise_multiplier: times(3.0), count: laplace(4.0) };
    let variances = many(Neighbors::AddRemove, v, 4000, |paid| paid.run(&values).unwrap());
    assert!(within(&variances, variance) > 0.94, "{}", within(&variances, variance));
    assert!(within(&variances, variance + 30.0) < 0.2);
    // Nobody there: answers all the same.
    let empty = Sensitive::new(vec![]);
    assert!(seeded(Neighbors::Replace).charge(m).unwrap().run(&empty).unwrap().value.is_finite());
    assert!(seeded(Neighbors::Replace).charge(v).unwrap().run(&empty).unwrap().value.is_finite());
}

#[test]
fn sums_of_groups_have_independent_noise_of_the_charged_scale() {
    let keys = ["b", "nobody", "a"].map(str::to_owned).to_vec();
    let record = |key: &str, number: f64| (Some(key.to_owned()), number);
    let records = Sensitive::new(vec![
        record("a", 30.0),
        record("a", f64::NAN),
        record("b", 1e300),
        record("b", f64::NEG_INFINITY),
        record("c", 50.0),
        (None, 50.0),
    ]);
    let bounds = Bounds::new(-10.0, 80.0).unwrap();
    // A replacement moves two sums by 80 each, or one by 90.
    let root = 2.0_f64.sqrt();
    for (noise, neighbors, moved, kurtosis) in [
        (Noise::Laplace, Neighbors::AddRemove, 80.0, 6.0),
        (Noise::Laplace, Neighbors::Replace, 80.0, 6.0),
        (Noise::Gaussian, Neighbors::AddRemove, 80.0, 3.0),
        (Noise::Gaussian, Neighbors::Replace, 80.0 * root / 2.0, 3.0),
    ] {
        let sum = Sum { bounds, noise, noise_multiplier: times(2.0) };
        let released =
            many(neighbors, GroupedSum { keys: keys.clone(), sum }, RUNS, |paid| paid.run(&records).unwrap());
        let factor = if noise == Noise::Laplace { 2.0 } else { 1.0 };
        let variance = factor * (2.0 * moved) * (2.0 * moved);
        let of = |place: usize| released.iter().map(|bins| bins[place].1.value).collect::<Vec<f64>>();
        for (place, truth) in [(0, 70.0), (1, 0.0), (2, 30.0)] {
            assert!(released.iter().all(|bins| bins[place].0 == keys[place]));
            assert_looks_like(&format!("{noise} {neighbors:?}"), &of(place), truth, variance, kurtosis);
        }
        // Shared noise would make the difference of two sums constant.
        let apart: Vec<f64> = of(0).iter().zip(of(2)).map(|(b, a)| b - a).collect();
        assert!(
            looks_like(&apart, 40.0, 2.0 * variance, f64::midpoint(kurtosis, 3.0)),
            "{noise} {neighbors:?}"
        );
    }
}

#[test]
fn means_of_groups_are_within_their_error_and_of_nobody_anything() {
    let keys = ["many", "nobody", "many"].map(str::to_owned).to_vec();
    let records: Vec<(Option<String>, f64)> =
        (0..2000).map(|i| (Some("many".to_owned()), f64::from(i % 5))).chain([(None, 9.0)]).collect();
    let records = Sensitive::new(records);
    let mean = Mean {
        bounds: Bounds::new(0.0, 10.0).unwrap(),
        noise: Noise::Laplace,
        noise_multiplier: times(5.0),
        count: laplace(5.0),
    };
    let runs = 4000;
    let released =
        many(Neighbors::Replace, GroupedMean { keys, mean }, runs, |paid| paid.run(&records).unwrap());
    let off = released.iter().filter(|bins| {
        let Within::Value(error) = bins[0].1.within else { panic!("{bins:?}") };
        (bins[0].1.value - 2.0).abs() > error
    });
    // More than one in twenty by chance in one case of a million.
    let allowed = runs as f64 * 0.05 + 4.9 * (runs as f64 * 0.05 * 0.95).sqrt();
    assert!((off.count() as f64) < allowed);
    assert!(released.iter().all(|bins| bins[0] == bins[2] && (0.0..=10.0).contains(&bins[1].1.value)));
    let empty = Sensitive::new(vec![]);
    let keys = vec!["a".to_owned()];
    assert_eq!(
        seeded(Neighbors::Replace).charge(GroupedMean { keys, mean }).unwrap().run(&empty).unwrap().len(),
        1
    );
}

#[test]
fn histograms_show_known_keys_and_hide_rare_ones() {
    let key = |k: &str| Some(k.to_owned());
    let keys: Vec<Option<String>> =
        [vec![key("a"); 300], vec![key("b"); 40], vec![key("only here")], vec![None; 5]].concat();
    let keys = Sensitive::new(keys);
    let known = Histogram { keys: ["b", "a", "c"].map(str::to_owned).to_vec(), noise: laplace(2.0) };
    let shown = many(Neighbors::AddRemove, known, 20_000, |paid| paid.run(&keys).unwrap());
    assert!(shown.iter().all(|bins| bins.iter().map(|(key, _)| key.as_str()).eq(["b", "a", "c"])));
    for (bin, truth) in [40.0, 300.0, 0.0].into_iter().enumerate() {
        let counts: Vec<f64> = shown.iter().map(|bins| bins[bin].1.value).collect();
        assert!(looks_like(&counts, truth, 1.0 / (0.25_f64).sinh().powi(2) / 2.0, 6.0), "bin {bin}");
    }
    let stable = StableHistogram::new(epsilon(0.5), Delta::new(1e-3).unwrap()).unwrap();
    let shown = many(Neighbors::AddRemove, stable, 100_000, |paid| paid.run(&keys).unwrap());
    let rate = |key: &str| {
        shown.iter().filter(|bins| bins.iter().any(|(k, _)| k == key)).count() as f64 / shown.len() as f64
    };
    assert_eq!(rate("a"), 1.0);
    // δ is met, and nearly used: the threshold is an integer, so up to a factor e^(1/2) is left.
    let spread = 4.9 * (1e-3_f64 / 100_000.0).sqrt();
    assert!(
        rate("only here") <= 1e-3 + spread && rate("only here") >= 1e-3 * (-0.5_f64).exp() - spread,
        "{}",
        rate("only here")
    );
}

#[test]
fn stated_errors_of_histograms_hold_for_each_key_shown_or_not() {
    let counts = [("none", 0), ("one", 1), ("few", 12), ("near the threshold", 24), ("many", 400)];
    let keys: Vec<Option<String>> =
        counts.iter().flat_map(|(key, count)| vec![Some((*key).to_owned()); *count]).collect();
    let keys = Sensitive::new(keys);
    let runs = 20_000;
    // More than one in twenty, and not by chance.
    let too_often =
        |failures: usize| failures as f64 / runs as f64 > 0.05 + 4.9 * (0.05 * 0.95 / runs as f64).sqrt();
    let off = |bins: &[(String, quell_privacy::mechanism::Release)], key: &str, truth: usize, part: f64| {
        bins.iter().any(|(shown, release)| {
            matches!(release.within, Within::Value(error) if shown == key && (release.value - truth as f64).abs() > part * error)
        })
    };
    for noise in [laplace(2.0), laplace(0.2), IntegerNoise::new(Noise::Gaussian, Scale::new(5.0).unwrap())] {
        let known = Histogram { keys: counts.iter().map(|(key, _)| (*key).to_owned()).collect(), noise };
        let shown = many(Neighbors::AddRemove, known, runs, |paid| paid.run(&keys).unwrap());
        for (key, truth) in counts {
            let failures = |part: f64| shown.iter().filter(|bins| off(bins, key, truth, part)).count();
            assert!(!too_often(failures(1.0)), "{key} with {noise}");
            assert!(
                noise.scale() < 1.0 || too_often(failures(0.7)),
                "{key} with {noise}: an error of seven tenths is not seen"
            );
        }
    }
    let stable = StableHistogram::new(epsilon(0.5), Delta::new(1e-5).unwrap()).unwrap();
    let shown = many(Neighbors::AddRemove, stable, runs, |paid| paid.run(&keys).unwrap());
    for (key, truth) in counts {
        assert!(!too_often(shown.iter().filter(|bins| off(bins, key, truth, 1.0)).count()), "{key}");
    }
}

#[test]
fn quantiles_have_the_weights_of_the_exponential_mechanism() {
    let bounds = Bounds::new(0.0, 8.0).unwrap();
    let values = Sensitive::new(vec![1.0, 2.0, 4.0, f64::NAN]);
    let median = Quantile { bounds, quantile: Probability::new(0.5).unwrap(), epsilon: epsilon(1.0) };
    let drawn = many(Neighbors::AddRemove, median, RUNS, |paid| paid.run(&values).unwrap().value);
    // Half of three records is wanted. Up to 1, 2 and 4, and at each of them, the distances are 3/2, 1/2, 1/2, 0, 1/2, 1/2 and 3/2. On a grid of 10⁻⁸ a point counts
    // 1 + 10 + … for its final zeros: an integer nine ones, and what lies between two integers eight times 10⁸ less eight ones.
    let (integer, between) = (111_111_111.0, 8e8 - 11_111_111.0);
    let gap = |units: f64| units * between + (units - 1.0) * integer;
    let near = (-0.5_f64).exp();
    let weights = [
        (integer + gap(1.0)) * (-1.5_f64).exp(),
        (integer + gap(1.0)) * near,
        integer,
        (gap(2.0) + integer) * near,
        (gap(4.0) + integer) * (-1.5_f64).exp(),
    ];
    let total: f64 = weights.iter().sum();
    let inside = |value: f64| {
        [value < 1.0, (1.0..2.0).contains(&value), value == 2.0, value > 2.0 && value <= 4.0, value > 4.0]
    };
    for (place, weight) in weights.into_iter().enumerate() {
        let share = drawn.iter().filter(|value| inside(**value)[place]).count() as f64 / RUNS as f64;
        let p = weight / total;
        assert!((share - p).abs() < 4.9 * (p * (1.0 - p) / RUNS as f64).sqrt(), "{place}: {share} for {p}");
        let wrong = 1.1 * p;
        assert!(
            (share - wrong).abs() > 4.9 * (p * (1.0 - p) / RUNS as f64).sqrt(),
            "a tenth more is not seen"
        );
    }
    let many_values = Sensitive::new((0..10_000).map(f64::from).collect());
    let range = Range {
        bounds: Bounds::new(-1e6, 1e6).unwrap(),
        inside: Probability::new(0.9).unwrap(),
        epsilon: epsilon(1.0),
    };
    let [low, high] = seeded(Neighbors::AddRemove).charge(range).unwrap().run(&many_values).unwrap();
    assert!((low.value - 500.0).abs() < 100.0 && (high.value - 9500.0).abs() < 100.0, "{low:?} {high:?}");
    let nobody =
        seeded(Neighbors::AddRemove).charge(median).unwrap().run(&Sensitive::new(vec![])).unwrap().value;
    assert!((0.0..=8.0).contains(&nobody));
    let hopeless = Quantile { epsilon: epsilon(1e-12), ..median };
    assert!(matches!(seeded(Neighbors::AddRemove).charge(hopeless).err(), Some(Error::OutOfRange { .. })));
}

#[test]
fn choices_have_their_probabilities() {
    let utilities = Sensitive::new(vec![0.0, 2.0, f64::NAN]);
    for permute_and_flip in [false, true] {
        let selection = Selection {
            candidates: 3,
            sensitivity: ClipNorm::new(2.0).unwrap(),
            epsilon: epsilon(2.0),
            permute_and_flip,
        };
        let drawn = many(Neighbors::AddRemove, selection, RUNS, |paid| paid.run(&utilities).unwrap());
        assert!(
            drawn.iter().all(|candidate| *candidate < 2),
            "a utility that is no number is the worst there is"
        );
        let best = drawn.iter().filter(|candidate| **candidate == 1).count() as f64 / RUNS as f64;
        let odds = (-1.0_f64).exp();
        // Permute and flip: the worse one wins if it comes first and its coin shows one. The third, at weight 0, only delays.
        let p = if permute_and_flip { 1.0 - 0.5 * odds } else { 1.0 / (1.0 + odds) };
        assert!(
            (best - p).abs() < 4.9 * (p * (1.0 - p) / RUNS as f64).sqrt() + 1e-5,
            "{permute_and_flip}: {best} for {p}"
        );
    }
    let votes = Votes::tally(3, [0, 0, 0, 1, 1, 7]);
    let laplace_rule = Rule::Laplace(Scale::new(1.0).unwrap());
    for (rule, least) in [
        (laplace_rule, 0.4),
        (Rule::Gaussian(times(1.0)), 0.6),
        (Rule::Exponential(epsilon(1.0)), 0.5),
        (Rule::PermuteAndFlip(epsilon(1.0)), 0.5),
    ] {
        let winners = many(Neighbors::AddRemove, NoisyMax { candidates: 3, rule }, 20_000, |paid| {
            paid.run(&votes).unwrap()
        });
        let share = |candidate| winners.iter().filter(|w| **w == candidate).count() as f64 / 20_000.0;
        assert!(share(0) > least && share(0) > share(1) && share(1) > share(2) && share(2) > 0.0, "{rule:?}");
    }
    // Gaussian: P[3 + X > 2 + Y, 3 + X > Z] with unit noise, by an independent integral: 0.7447.
    let gaussian = NoisyMax { candidates: 3, rule: Rule::Gaussian(times(1.0)) };
    let winners = many(Neighbors::AddRemove, gaussian, RUNS, |paid| paid.run(&votes).unwrap());
    let share = winners.iter().filter(|w| **w == 0).count() as f64 / RUNS as f64;
    let p = noisy_max_probability();
    assert!((share - p).abs() < 4.9 * (p * (1.0 - p) / RUNS as f64).sqrt(), "{share} for {p}");
}

/// P[3 + X > 2 + Y, 3 + X > Z] for standard normals, by quadrature.
fn noisy_max_probability() -> f64 {
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let below = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    (-800..=800)
        .map(|i| f64::from(i) / 100.0)
        .map(|x| density(x) * below(x + 1.0) * below(x + 3.0) / 100.0)
        .sum()
}

#[test]
fn sparse_vectors_answer_until_they_have_been_positive_as_often_as_paid_for() {
    let low = Sensitive::new(0);
    let high = Sensitive::new(2000);
    let mut sparse = seeded(Neighbors::AddRemove)
        .charge(SparseVector::new(1000, 2, epsilon(1.0)).unwrap())
        .unwrap()
        .run()
        .unwrap();
    assert!((0..50).all(|_| sparse.ask(&low) == Some(false)));
    assert_eq!(
        (sparse.ask(&high), sparse.ask(&low), sparse.ask(&high), sparse.ask(&high)),
        (Some(true), Some(false), Some(true), None)
    );
    let scale = |x| Scale::new(x).unwrap();
    let gaussian = GaussianSparseVector {
        threshold: 1000,
        positives: 2,
        questions: 3,
        on_threshold: scale(20.0),
        on_counts: scale(40.0),
    };
    let mut sparse = seeded(Neighbors::AddRemove).charge(gaussian).unwrap().run().unwrap();
    assert_eq!([&low, &low, &high].map(|count| sparse.ask(count)), [Some(false), Some(false), Some(true)]);
    assert_eq!(
        [&low, &low, &low, &high].map(|count| sparse.ask(count)),
        [Some(false), Some(false), Some(false), None]
    );
    // At the threshold itself the coin is fair, up to the tie.
    let fair = SparseVector::new(1000, 1, epsilon(0.5)).unwrap();
    let answers = many(Neighbors::AddRemove, fair, RUNS, |paid| {
        paid.run().unwrap().ask(&Sensitive::new(1000)).unwrap()
    });
    let share = answers.iter().filter(|yes| **yes).count() as f64 / RUNS as f64;
    assert!((share - 0.5).abs() < 0.03, "{share}");
}

#[test]
fn randomized_responses_are_random_as_often_as_charged() {
    let response = RandomizedResponse::new(4, Probability::new(0.4).unwrap()).unwrap();
    let answers = Sensitive::new([vec![2; 100_000], vec![9; 1000]].concat());
    let said = seeded(Neighbors::Replace).charge(response).unwrap().run(&answers).unwrap();
    let share = said[..100_000].iter().filter(|a| **a == 2).count() as f64 / 1e5;
    let p = 0.6 + 0.1;
    let spread = 4.9 * (p * (1.0 - p) / 1e5_f64).sqrt();
    assert!((share - p).abs() < spread && (share - 0.72).abs() > spread, "{share}");
    assert!(said.iter().all(|a| *a < 4));
    assert!(RandomizedResponse::new(1, Probability::new(0.4).unwrap()).is_err());
    assert!(RandomizedResponse::new(4, Probability::new(0.0).unwrap()).is_err());
}

#[test]
fn a_smooth_median_is_close_where_the_data_is_dense() {
    let bounds = Bounds::new(0.0, 1000.0).unwrap();
    let median = SmoothMedian::new(bounds, epsilon(1.0), Delta::new(1e-6).unwrap()).unwrap();
    let dense = Sensitive::new((0..4001).map(|i| 400.0 + f64::from(i) * 0.05).collect());
    let medians = many(Neighbors::AddRemove, median, 2000, |paid| paid.run(&dense).unwrap().value);
    let off: Vec<f64> = medians.iter().map(|m| (m - 500.0).abs()).collect();
    let mean = off.iter().sum::<f64>() / 2000.0;
    // S ≈ max e^(-βk) 0.05(k + 1) with β = 1/2 ln(2e6) = 0.0345 is 0.54; noise of scale 1.1.
    assert!(mean > 0.8 && mean < 1.4, "{mean}");
    // The precision of the noise takes from δ, and more for a large ε: 1.2e-13 (1 + e^12) = 2e-8.
    assert!(SmoothMedian::new(bounds, epsilon(12.0), Delta::new(1e-8).unwrap()).is_err());
    assert!(SmoothMedian::new(bounds, epsilon(12.0), Delta::new(1e-7).unwrap()).is_ok());
    for few in [vec![], vec![5.0], vec![f64::NAN, 7.0]] {
        let value =
            seeded(Neighbors::AddRemove).charge(median).unwrap().run(&Sensitive::new(few)).unwrap().value;
        assert!((0.0..=1000.0).contains(&value), "{value}");
    }
}

#[test]
fn bounds_that_are_none_are_refused() {
    for (lower, upper) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-1e308, 1e308)] {
        assert!(Bounds::new(lower, upper).is_err(), "[{lower}, {upper}]");
    }
}

#[test]
fn noise_is_there_whatever_the_data_is() {
    let step = |dimension| step(Sampling::Full, 1.0, dimension);
    // No entropy of a test: the operating system's, so that two runs have nothing in common.
    let run = |dimension: usize, records: usize, value: f32| {
        let paid = without_cap(Neighbors::AddRemove).charge(step(dimension)).unwrap();
        single(paid, records, &mut Vectors::new(dimension, vec![value; records * dimension])).sum
    };
    for value in
        [0.0, 1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45, -1e30]
    {
        for (dimension, records) in [(1, 0), (1, 1), (1, 200), (3, 0), (3, 1), (50, 130)] {
            // Single precision repeats a number once in some millions of runs, and not twice in a row.
            let [one, two, three] = [0; 3].map(|_| run(dimension, records, value));
            assert!(one.iter().all(|x| x.is_finite() && x.abs() < 1000.0), "{value} {one:?}");
            assert!(
                (0..dimension).all(|i| one[i] != two[i] || two[i] != three[i]),
                "{value}: {one:?} three times"
            );
        }
    }
    assert_eq!(run(0, 5, 1.0), Vec::<f32>::new());
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308, 5e-324, 0.0] {
        let sum = Sum {
            bounds: Bounds::new(-1.0, 1.0).unwrap(),
            noise: Noise::Laplace,
            noise_multiplier: times(1.0),
        };
        let run = |values: Vec<f64>| {
            without_cap(Neighbors::AddRemove).charge(sum).unwrap().run(&Sensitive::new(values)).unwrap().value
        };
        let (one, other) = (run(vec![value]), run(vec![value]));
        assert!(one.is_finite() && one != other && one.abs() < 100.0, "{value}: {one} and {other}");
    }
}
