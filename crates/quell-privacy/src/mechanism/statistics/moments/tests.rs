//! Whether the errors that are stated hold, for means, variances, sums, counts and histograms.

use super::*;
use crate::{
    mechanism::Sum,
    noise::tests::{one_in_twenty, stream},
    units::Scale,
};

/// P[|Σ aᵢXᵢ| > t] of independent Laplace numbers Xᵢ with different scales aᵢ.
fn laplace_beyond(scales: &[f64], t: f64) -> f64 {
    let factor = |i: usize| {
        let others = (0..scales.len())
            .filter(|j| *j != i)
            .map(|j| scales[i].powi(2) / (scales[i].powi(2) - scales[j].powi(2)));
        others.product::<f64>()
    };
    (0..scales.len()).map(|i| factor(i) * (-t / scales[i]).exp()).sum()
}

#[test]
fn noises_together_exceed_the_root_of_their_squared_errors_no_more_often_than_one() {
    for one_in in [20.0_f64, 25.0, 100.0] {
        for i in 0..=40 {
            for j in 0..=40 {
                // Scales that are never equal, so that the partial fractions exist.
                let scales = [1.0, 0.0251 * f64::from(i) + 0.0003, 0.0249 * f64::from(j) + 0.000_17];
                for scales in [&scales[..], &scales[..2]] {
                    if scales
                        .iter()
                        .enumerate()
                        .any(|(i, a)| scales[..i].iter().any(|b| (a - b).abs() < 1e-4))
                    {
                        continue;
                    }
                    let t = one_in.ln() * scales.iter().map(|a| a * a).sum::<f64>().sqrt();
                    let beyond = laplace_beyond(scales, t);
                    assert!(beyond <= 1.0 / one_in * (1.0 + 1e-6), "{scales:?}: {beyond}");
                    assert!(laplace_beyond(scales, 0.8 * t) > 1.0 / one_in, "{scales:?}");
                }
            }
        }
    }
}

/// P[|aX + bY| > t] for Laplace X and normal Y, by the trapezoidal rule.
#[test]
fn laplace_and_gaussian_noise_together_do_not_either() {
    for one_in in [20.0_f64, 25.0, 100.0] {
        for i in 0..=50 {
            let (a, b) = (1.0, 0.1 * f64::from(i) + 0.01);
            let t = (a * one_in.ln()).hypot(b * crate::mechanism::normal_beyond(one_in));
            let beyond = |x: f64| {
                let (up, down) = (t - b * x, t + b * x);
                let tail = |t: f64| if t > 0.0 { 0.5 * (-t / a).exp() } else { 1.0 - 0.5 * (t / a).exp() };
                tail(up) + tail(down)
            };
            let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
            let total: f64 =
                (-9000..=9000).map(|i| f64::from(i) / 1000.0).map(|x| 0.001 * density(x) * beyond(x)).sum();
            assert!(total <= 1.0 / one_in + 1e-6, "{one_in} {b}: {total}");
        }
    }
}

/// Values of a column, each with its number of records.
type Column = Vec<(f64, u64)>;

fn columns() -> Vec<(&'static str, Column)> {
    let spread = |low: f64, step: f64, each: u64| {
        (0..100).map(|i| (low + step * f64::from(i), each)).collect::<Column>()
    };
    vec![
        ("nobody", vec![]),
        ("nobody with a number", vec![(f64::NAN, 7)]),
        ("one", vec![(80.0, 1)]),
        ("few at the end", vec![(100.0, 30)]),
        ("a hundred", spread(0.0, 1.0, 1)),
        ("a hundred ties", vec![(90.0, 100)]),
        ("two atoms", vec![(0.0, 500), (100.0, 500)]),
        ("ten thousand", spread(0.0, 0.4, 100)),
        ("skew and outliers", [spread(0.0, 0.01, 90), vec![(1e300, 50), (f64::INFINITY, 50)]].concat()),
        ("all outside", vec![(1e9, 4000), (-1e9, 1000)]),
        ("ten million", spread(3.0, 0.9, 100_000)),
        ("ten million ties", vec![(7.123_456_789, 10_000_000)]),
        ("small numbers", vec![(5e-324, 600), (-0.0, 500), (1e-300, 3)]),
    ]
}

/// Number, sum, mean and variance of the values clamped to [0, 100].
///
/// Without values, mean and variance may be anything.
fn truths(column: &Column) -> (u64, f64, Option<f64>, Option<f64>) {
    let held: Vec<(f64, f64)> =
        column.iter().filter(|(v, _)| !v.is_nan()).map(|(v, n)| (v.clamp(0.0, 100.0), *n as f64)).collect();
    let (n, sum) = (held.iter().map(|(_, n)| n).sum::<f64>(), held.iter().map(|(v, n)| v * n).sum::<f64>());
    if n == 0.0 {
        return (0, 0.0, None, None);
    }
    let mean = sum / n;
    (n as u64, sum, Some(mean), Some(held.iter().map(|(v, n)| n * (v - mean).powi(2)).sum::<f64>() / n))
}

fn is_off(release: &Release, truth: f64) -> bool {
    let Within::Value(error) = release.within else { panic!("{release:?}") };
    assert!(release.value.is_finite() && error > 0.0 && error.is_finite(), "{release:?}");
    (release.value - truth).abs() > error
}

#[test]
fn stated_errors_of_sums_means_and_variances_hold_in_nineteen_cases_of_twenty() {
    let (runs, bounds) = (1000, Bounds::new(0.0, 100.0).unwrap());
    for (seed, (name, column)) in columns().into_iter().enumerate() {
        let (_, total, mean, variance) = truths(&column);
        for (noise, multiplier) in
            [(Noise::Laplace, 0.05), (Noise::Laplace, 3.0), (Noise::Laplace, 60.0), (Noise::Gaussian, 20.0)]
        {
            let noise_multiplier = NoiseMultiplier::new(multiplier).unwrap();
            let count = IntegerNoise::new(noise, Scale::new(multiplier).unwrap());
            let mut stream = stream(seed as u64);
            let (mut off, mut seen) = ([0; 3], 0.0_f64);
            for _ in 0..runs {
                let values = || column.iter().copied();
                let sum = Sum { bounds, noise, noise_multiplier }
                    .release(Neighbors::AddRemove, values(), &mut stream)
                    .unwrap();
                off[0] += usize::from(is_off(&sum, total));
                let m =
                    Mean { bounds, noise, noise_multiplier, count }.release(values(), &mut stream).unwrap();
                off[1] += usize::from(mean.is_some_and(|truth| is_off(&m, truth)));
                let v = Variance { bounds, noise, noise_multiplier, count }
                    .release(values(), &mut stream)
                    .unwrap();
                off[2] += usize::from(variance.is_some_and(|truth| is_off(&v, truth)));
                let Within::Value(error) = m.within else { panic!() };
                seen += error / f64::from(runs);
            }
            for (what, off) in ["sum", "mean", "variance"].into_iter().zip(off) {
                assert!(
                    one_in_twenty(off, runs as usize),
                    "{what} of {name}, {noise} {multiplier}: {off} of {runs}"
                );
            }
            // Of many records a mean is known well, and says so.
            let records: u64 = column.iter().map(|(_, n)| n).sum();
            assert!(
                records < 10_000 || seen < 20.0 * multiplier * 100.0 / records as f64 + 1e-6,
                "{name}: {seen}"
            );
        }
    }
}

#[test]
fn an_error_of_two_thirds_would_be_refused() {
    let (runs, bounds) = (1000, Bounds::new(0.0, 100.0).unwrap());
    let (column, noise_multiplier) = (vec![(80.0, 100_000)], NoiseMultiplier::new(3.0).unwrap());
    let count = IntegerNoise::new(Noise::Laplace, Scale::new(3.0).unwrap());
    let mut stream = stream(5);
    let shortened = |release: Release| {
        let Within::Value(error) = release.within else { panic!() };
        Release { within: Within::Value(error * 2.0 / 3.0), ..release }
    };
    let mean = Mean { bounds, noise: Noise::Laplace, noise_multiplier, count };
    let off = (0..runs)
        .filter(|_| is_off(&shortened(mean.release(column.iter().copied(), &mut stream).unwrap()), 80.0))
        .count();
    assert!(!one_in_twenty(off, runs), "{off} of {runs}");
}

#[test]
fn stated_errors_of_counts_hold_in_nineteen_cases_of_twenty() {
    let runs = 20_000;
    for noise in [Noise::Laplace, Noise::Gaussian] {
        for scale in [0.05, 0.3, 1.0, 7.3, 1e4, 1e9] {
            let noise = IntegerNoise::new(noise, Scale::new(scale).unwrap());
            let mut stream = stream(6);
            let off =
                (0..runs).filter(|_| noise.draw(&mut stream).unsigned_abs() as f64 > noise.error()).count();
            assert!(one_in_twenty(off, runs), "{noise}: {off} of {runs}");
            let shorter = (0.75 * noise.error()).floor();
            let off = (0..runs).filter(|_| noise.draw(&mut stream).unsigned_abs() as f64 > shorter).count();
            assert!(
                scale < 5.0 || !one_in_twenty(off, runs),
                "{noise}: three quarters of the error would do, {off} of {runs}"
            );
        }
    }
}
