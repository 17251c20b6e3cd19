use super::*;
use crate::{
    mechanism::{OutputPerturbation, Rows},
    units::{NoiseMultiplier, Probability, Threshold},
};

fn threshold(x: f64) -> Threshold {
    Threshold::new(x).unwrap()
}

fn losses() -> Vec<ConvexLoss> {
    vec![
        ConvexLoss::Logistic,
        ConvexLoss::Huber { threshold: threshold(0.7) },
        ConvexLoss::HuberHinge { smoothing: threshold(0.1) },
        ConvexLoss::Quantile { level: Probability::new(0.9).unwrap(), smoothing: threshold(0.05) },
        ConvexLoss::Poisson { most: threshold(20.0) },
    ]
}

fn objective(loss: ConvexLoss, penalty: f64, dimension: usize, most_records: u64) -> LinearObjective {
    LinearObjective {
        loss,
        regularization: Regularization::new(penalty).unwrap(),
        dimension,
        most_records,
        tolerance: Tolerance::new(1e-9).unwrap(),
    }
}

/// Random integers below `most`.
fn integers(seed: u64, most: i64) -> impl FnMut() -> i64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) as i64 % most
    }
}

fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut next = integers(seed, 1 << 40);
    move || next() as f64 / (1_u64 << 39) as f64 - 1.0
}

fn minimize(objective: &LinearObjective, rows: &Rows) -> Vec<f64> {
    let design = Design::new(rows, objective.most_records);
    objective.minimizer(&design, &vec![0.0; objective.dimension], objective.limits(0.0))
}

/// The number times 2^`power`, which is an integer.
fn scaled(number: Double, power: i32) -> i128 {
    let part = |x: f64| {
        // Powers of two round nothing.
        let big = x * 2_f64.powi(power - 60) * 2_f64.powi(60);
        let exact = big as i128;
        assert_eq!(exact as f64, big);
        exact
    };
    part(number.high) + part(number.low)
}

/// Huber's loss on numbers with few digits: the whole gradient is computed once more in integers.
#[test]
fn the_certificate_is_above_the_true_norm_of_the_gradient() {
    // Slopes are multiples of 2⁻⁹⁷, and features of 2⁻²¹.
    const UNIT: i32 = 97 + 21;
    let (dimension, records) = (5, 60);
    let mut next = integers(11, 1 << 19);
    let mut far = integers(12, 1 << 40);
    let dyadic = |x: i64, power: i32| x as f64 * 2_f64.powi(-power);
    let most = 100;
    let mut objective = objective(ConvexLoss::Huber { threshold: threshold(0.5) }, 0.5, dimension, most);
    objective.tolerance = Tolerance::new(1e-6).unwrap();
    let limits = objective.limits(10.0);
    let mut worst: f64 = 0.0;
    for _ in 0..200 {
        // Features are multiples of 2⁻²¹ and short, so they are kept as they are.
        let features: Vec<f64> = (0..dimension * records).map(|_| dyadic(next() - (1 << 18), 21)).collect();
        let targets: Vec<f64> = (0..records).map(|_| dyadic(next() - (1 << 18), 19)).collect();
        let rows = Rows { dimension, features: features.clone(), targets: targets.clone() };
        let design = Design::new(&rows, 100);
        // Weights are multiples of 2⁻⁷⁶ below two.
        let weight = |a: i64, b: i64| Double::sum(dyadic(a, 39), dyadic(b, 76 + 16));
        let weights: Vec<Double> =
            (0..dimension).map(|_| weight(far() - (1 << 39), (far() >> 3) << 16)).collect();
        let linear: Vec<f64> = (0..dimension).map(|_| dyadic(next(), 20)).collect();
        let mut exact: Vec<i128> =
            (0..dimension).map(|j| scaled(weights[j], UNIT - 1) + scaled(linear[j].into(), UNIT)).collect();
        for (row, target) in features.chunks(dimension).zip(&targets) {
            let product = |(x, w): (&f64, &Double)| scaled((*x).into(), 21) * scaled(*w, 76);
            let prediction: i128 = row.iter().zip(&weights).map(product).sum();
            let slope = (prediction - scaled((*target).into(), 97)).clamp(-(1 << 96), 1 << 96);
            for (sum, x) in exact.iter_mut().zip(row) {
                *sum += slope * scaled((*x).into(), 21);
            }
        }
        let point = objective.evaluate(&design, &linear, limits, weights);
        let error = norm(point.gradient.iter().zip(&exact).map(|(computed, exact)| {
            // The last bits of a low part may be finer than the unit.
            let low = computed.low * 2_f64.powi(UNIT - 60) * 2_f64.powi(60);
            (scaled(computed.high.into(), UNIT) + low as i128 - exact) as f64 * 2_f64.powi(-UNIT)
        }));
        assert!(error <= limits.error, "{error:e} {:e}", limits.error);
        worst = worst.max(error);
        let true_norm = norm(exact.iter().map(|x| *x as f64 * 2_f64.powi(-UNIT)));
        assert!(point.certificate >= true_norm && point.certificate <= true_norm * 1.01, "{true_norm}");
    }
    // The error is not zero, and its bound is not absurd.
    assert!(worst > 1e-32 && limits.error < 1e-24, "{worst:e} {:e}", limits.error);
}

#[test]
fn descent_alone_reaches_the_least_tolerance() {
    let mut next = uniform(5);
    for loss in losses() {
        for (penalty, records, dimension) in [(1.0, 0, 2), (20.0, 1, 3), (30.0, 12, 2)] {
            let mut objective = objective(loss, penalty, dimension, 12);
            let features = (0..records * dimension).map(|_| next()).collect();
            let rows = Rows { dimension, features, targets: (0..records).map(|_| 3.0 * next()).collect() };
            objective.tolerance = Tolerance::new(objective.least_tolerance().max(1e-15)).unwrap();
            let (design, none) = (Design::new(&rows, 12), vec![0.0; dimension]);
            let limits = objective.limits(0.0);
            let mut point = objective.evaluate(&design, &none, limits, vec![Double::default(); dimension]);
            let mut steps = 0;
            // One step divides the distance by 1 - 1/κ.
            while point.certificate > limits.least_tolerance() {
                point = objective.descent_step(&design, &none, limits, &point);
                steps += 1;
                assert!(f64::from(steps) < 100.0 * limits.condition, "{loss:?}: {:e}", point.certificate);
            }
            assert!(records == 0 || steps > 3);
        }
    }
}

#[test]
fn newtons_method_ends_within_a_few_steps() {
    let mut next = uniform(8);
    for loss in losses() {
        let (dimension, records) = (10, 3000);
        let mut objective = objective(loss, 0.1, dimension, 10_000);
        objective.tolerance = Tolerance::new(1e-8).unwrap();
        assert!(objective.check(0.0).is_ok());
        let rows = Rows {
            dimension,
            features: (0..records * dimension).map(|_| next()).collect(),
            targets: (0..records).map(|_| 2.0 * next()).collect(),
        };
        let (design, none, limits) =
            (Design::new(&rows, 10_000), vec![0.0; dimension], objective.limits(0.0));
        let mut point = objective.evaluate(&design, &none, limits, vec![Double::default(); dimension]);
        let mut steps = 0;
        while point.certificate > 1e-8 {
            point = objective.newton_step(&design, &none, limits, &point).unwrap();
            steps += 1;
        }
        assert!(steps < 30, "{loss:?}: {steps} steps");
    }
}

/// Every certificate claims that a point is close to the true minimiser, so two ways to find it must agree.
#[test]
fn minimisers_are_found_without_records_with_one_and_with_more_features_than_records() {
    let mut next = uniform(21);
    for loss in losses() {
        for (records, dimension) in [(0, 3), (1, 1), (1, 40), (7, 20), (200, 3)] {
            let objective = objective(loss, 0.5, dimension, 1000);
            // Numbers as large as there are stop nothing.
            let (size, far) = if records == 7 { (1e300, 5e307) } else { (1.0, 1.0) };
            let rows = Rows {
                dimension,
                features: (0..records * dimension).map(|_| size * next()).collect(),
                targets: (0..records).map(|_| 3.0 * far * next()).collect(),
            };
            let weights = minimize(&objective, &rows);
            assert!(weights.iter().all(|w| w.is_finite()));
            assert!(records > 0 || weights.iter().all(|w| *w == 0.0));
            // The gradient in double precision, from features scaled here.
            let mut gradient: Vec<f64> = weights.iter().map(|w| 0.5 * w).collect();
            for (row, target) in rows.features.chunks(dimension).zip(&rows.targets) {
                let row: Vec<f64> = row.iter().map(|x| x / size).collect();
                let scale = (1.0 / norm(row.iter().copied())).min(size);
                let z: f64 = row.iter().zip(&weights).map(|(x, w)| scale * x * w).sum();
                // Targets are clamped when they are read.
                for (gradient, x) in gradient.iter_mut().zip(&row) {
                    *gradient += loss.slope_at(z, target.clamp(-1e100, 1e100)) * scale * x;
                }
            }
            let length = norm(gradient.into_iter());
            let curvature = records as f64 * loss.curvature() + 1.0;
            assert!(length < 1e-5 * curvature, "{loss:?} {records} {dimension}: {length}");
        }
    }
}

fn output(objective: LinearObjective) -> OutputPerturbation {
    OutputPerturbation { objective, noise_multiplier: NoiseMultiplier::new(1.0).unwrap() }
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    norm(a.iter().zip(b).map(|(a, b)| a - b))
}

#[test]
fn no_record_moves_the_minimiser_by_more_than_its_contribution_and_some_by_nearly_as_much() {
    let mut next = uniform(31);
    for loss in losses() {
        let mut nearest: f64 = 0.0;
        for (penalty, dimension) in [(0.2, 1), (2.0, 1), (50.0, 1), (1.0, 4)] {
            let objective = objective(loss, penalty, dimension, 100);
            let contribution = output(objective).contribution();
            for records in [0, 1, 5, 30] {
                for size in [0.01, 1.0, 100.0] {
                    let features = (0..records * dimension).map(|_| size * next()).collect();
                    let mut rows =
                        Rows { dimension, features, targets: (0..records).map(|_| 30.0 * next()).collect() };
                    let without = minimize(&objective, &rows);
                    // A record that opposes the model, with a target that is out of reach.
                    let opposed: Vec<f64> = if records == 0 { vec![1.0; dimension] } else { without.clone() };
                    for (sign, target) in
                        [(1.0, -1e9), (1.0, 1e9), (-1.0, -1e9), (-1.0, 1e9), (f64::NAN, 0.0)]
                    {
                        rows.features.extend(opposed.iter().map(|x| 1e9 * sign * x));
                        rows.targets.push(target);
                        let with = minimize(&objective, &rows);
                        let moved = apart(&with, &without);
                        assert!(moved <= contribution, "{loss:?} {penalty}: {moved} {contribution}");
                        assert!(!sign.is_nan() || moved <= 2e-9 / penalty, "{moved}");
                        nearest = nearest.max(moved / contribution);
                        // Replaced by its opposite.
                        let last = rows.features.len() - dimension;
                        rows.features[last..].iter_mut().for_each(|x| *x = -*x);
                        let replaced = minimize(&objective, &rows);
                        assert!(apart(&with, &replaced) <= 2.0 * contribution);
                        rows.features.truncate(last);
                        rows.targets.pop();
                    }
                }
            }
        }
        // These slopes are steepest only far from zero.
        let is_far = matches!(loss, ConvexLoss::Logistic | ConvexLoss::Poisson { .. });
        assert!(is_far || nearest > 0.98, "{loss:?}: {nearest}");
    }
}

/// Many weak records move the weight to 8, and one strong record opposes them there.
#[test]
fn a_record_far_from_its_class_moves_the_minimiser_by_nearly_its_contribution() {
    let (weak, weight) = (0.002, 8.0);
    for (loss, penalty, target, opposed) in [
        (ConvexLoss::Logistic, 5.0, 1.0, -1.0),
        (ConvexLoss::Poisson { most: threshold(20.0) }, 100.0, 20.0, 0.0),
    ] {
        let force = -loss.slope_at(0.0, target) * weak;
        let records = (penalty * weight / force) as usize;
        let objective = objective(loss, penalty, 1, 50_000);
        let mut rows = Rows { dimension: 1, features: vec![weak; records], targets: vec![target; records] };
        let without = minimize(&objective, &rows);
        rows.features.push(1.0);
        rows.targets.push(opposed);
        let (moved, contribution) =
            (apart(&minimize(&objective, &rows), &without), output(objective).contribution());
        assert!(moved <= contribution && moved > 0.98 * contribution, "{loss:?}: {moved} {contribution}");
    }
}

#[test]
fn settings_whose_proof_fails_are_refused() {
    let fine = objective(ConvexLoss::Logistic, 10.0, 100, 1_000_000);
    let fits = |objective: LinearObjective| objective.check(0.0).is_ok();
    assert!(fits(fine));
    assert!(!fits(LinearObjective { dimension: 0, ..fine }));
    assert!(!fits(LinearObjective { dimension: (1 << 28) + 1, ..fine }));
    assert!(!fits(LinearObjective { most_records: 0, ..fine }));
    assert!(!fits(LinearObjective { most_records: 1 << 36, ..fine }));
    assert!(!fits(LinearObjective { regularization: Regularization::new(1e-4).unwrap(), ..fine }));
    let least = fine.least_tolerance();
    assert!(least > 1e-15);
    assert!(!fits(LinearObjective { tolerance: Tolerance::new(least * 0.999).unwrap(), ..fine }));
    assert!(fits(LinearObjective { tolerance: Tolerance::new(least * 1.001).unwrap(), ..fine }));
    // A linear term makes the objective steeper.
    let exact = LinearObjective { tolerance: Tolerance::new(least).unwrap(), ..fine };
    assert!(exact.check(0.0).is_ok() && exact.check(1e6).is_err() && exact.check(f64::NAN).is_err());
}
#[test]
fn steep_corners_do_not_stop_newtons_method() {
    let half = Probability::new(0.5).unwrap();
    for loss in [
        ConvexLoss::Logistic,
        ConvexLoss::Huber { threshold: threshold(0.01) },
        ConvexLoss::HuberHinge { smoothing: threshold(1e-3) },
        ConvexLoss::Quantile { level: half, smoothing: threshold(1e-3) },
        ConvexLoss::Poisson { most: threshold(1000.0) },
    ] {
        for (penalty, dimension, records) in [(0.01, 30, 1000), (1.0, 3, 3000), (0.1, 60, 50)] {
            let mut next = uniform(100);
            let mut objective = objective(loss, penalty, dimension, 10_000);
            objective.tolerance = Tolerance::new(objective.least_tolerance().max(1e-8)).unwrap();
            // Features that are nearly the same, and targets that a linear model nearly fits.
            let row = |next: &mut dyn FnMut() -> f64| {
                let common = next();
                (0..dimension).map(|_| 0.3 * next() + common).collect::<Vec<f64>>()
            };
            let features: Vec<f64> = (0..records).flat_map(|_| row(&mut next)).collect();
            let targets = features.chunks(dimension).map(|row| 3.0 * row[0]).collect();
            let design = Design::new(&Rows { dimension, features, targets }, 10_000);
            let (none, limits) = (vec![0.0; dimension], objective.limits(0.0));
            let found = objective.likely_minimizer(&design, &none, limits).certificate;
            assert!(found <= objective.tolerance.get(), "{loss:?} {penalty} {dimension}: {found:e}");
        }
    }
}
