use super::*;
use crate::{
    mechanism::Rows,
    units::{Probability, Threshold},
};

const BOTH: [Neighbors; 2] = [Neighbors::AddRemove, Neighbors::Replace];

fn threshold(x: f64) -> Threshold {
    Threshold::new(x).unwrap()
}

fn losses() -> [ConvexLoss; 4] {
    [
        ConvexLoss::Logistic,
        ConvexLoss::Huber { threshold: threshold(0.7) },
        ConvexLoss::Quantile { level: Probability::new(0.9).unwrap(), smoothing: threshold(0.05) },
        ConvexLoss::Poisson { most: threshold(20.0) },
    ]
}

/// Descent with the longest steps that are allowed.
fn longest(loss: ConvexLoss, penalty: Option<f64>, dimension: usize, most: u64) -> HiddenDescent {
    let mut mechanism = HiddenDescent {
        loss,
        regularization: penalty.map(|penalty| Regularization::new(penalty).unwrap()),
        dimension,
        radius: Radius::new(2.0).unwrap(),
        most_records: most,
        learning_rate: LearningRate::new(1e-3).unwrap(),
        steps: 10,
        noise_multiplier: NoiseMultiplier::new(3.0).unwrap(),
    };
    let rate = mechanism.largest_learning_rate(Neighbors::AddRemove);
    mechanism.learning_rate = LearningRate::new(rate).unwrap();
    mechanism
}

fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        2.0 * ((state >> 11) as f64 / (1_u64 << 53) as f64) - 1.0
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn one_more_record_moves_a_weighted_sum_by_one_record_at_most() {
    for most in (1..=40).chain([1 << 20]) {
        let mechanism = longest(ConvexLoss::Logistic, None, 1, most);
        let weight = |count: u64| mechanism.weight(Neighbors::AddRemove, count as usize);
        let counts =
            (0..5 * most.min(40)).chain([most - 1, most, 2 * most - 1, 2 * most, 2 * most + 1, 90 * most]);
        for count in counts {
            let (now, next) = (weight(count), weight(count + 1));
            // The record that is new, and what all others lose or gain.
            let moved = next + count as f64 * (now - next).abs();
            assert!(moved <= 1.0 + 1e-12, "{most} {count}: {moved}");
            assert!(next > 0.0 && next <= 1.0);
            assert!(
                (count + 1) as f64 * next <= mechanism.total_weight(Neighbors::AddRemove) * (1.0 + 1e-12)
            );
        }
        assert_eq!(weight(1), 1.0);
        assert_eq!(mechanism.weight(Neighbors::Replace, 3), 1.0);
    }
}

/// The hypothesis of the theorem, on hostile records: ‖ψ(y) - ψ'(y')‖ ≤ c·min(‖y - y'‖, D) + s.
#[test]
fn steps_of_neighbours_are_as_close_as_the_event_says() {
    let mut next = uniform(5);
    let mut closest: f64 = 0.0;
    let mut contracted: f64 = 0.0;
    for case in 0..4000_usize {
        let loss = losses()[case % 4];
        let dimension = 1 + case / 4 % 3;
        let penalty = [None, Some(0.5), Some(30.0)][case / 12 % 3];
        let most = 1 + (case / 36 % 5) as u64;
        let mechanism = longest(loss, penalty, dimension, most);
        let neighbors = BOTH[case % 2];
        let Constants { contraction, grid, .. } = mechanism.constants(neighbors).unwrap();
        let contribution = mechanism.deviation(neighbors).unwrap() / 3.0;
        let count = (next().abs() * 3.0 * most as f64 + 0.5) as usize;
        // All records alike, or all different; targets far away saturate the slope.
        let alike = next() < 0.0;
        let target = 10_f64.powf(2.0 * next());
        let mut row = || {
            let features: Vec<f64> = (0..dimension)
                .map(|i| if alike { f64::from(u8::from(i == 0)) } else { 3.0 * next() })
                .collect();
            (features, if alike { target } else { target * next() })
        };
        let mut rows: Vec<(Vec<f64>, f64)> = (0..count).map(|_| row()).collect();
        let rows_of = |rows: &[(Vec<f64>, f64)]| Rows {
            dimension,
            features: rows.iter().flat_map(|(features, _)| features.clone()).collect(),
            targets: rows.iter().map(|(_, target)| *target).collect(),
        };
        let one = rows_of(&rows);
        let mut changed = row();
        changed.1 = -changed.1;
        match neighbors {
            Neighbors::AddRemove => rows.insert(count / 2, changed),
            Neighbors::Replace if count > 0 => rows[count / 2] = changed,
            Neighbors::Replace => {}
        }
        let two = rows_of(&rows);
        let iterate = |next: &mut dyn FnMut() -> f64, size: f64| -> Vec<i64> {
            (0..dimension).map(|_| grid.nearest(size * next())).collect()
        };
        let y = iterate(&mut next, 4.0);
        let far = [0.0, 1e-3, 1.0, 1e3][case / 2 % 4];
        let other: Vec<i64> = iterate(&mut next, far).iter().zip(&y).map(|(a, b)| a + b).collect();
        let step = |rows: &Rows, iterate: &[i64]| -> Vec<f64> {
            let used = if neighbors == Neighbors::Replace { most } else { u64::MAX };
            let design = Design::new(rows, used);
            let weight = mechanism.weight(neighbors, design.rows().count());
            let moved = mechanism.step(&design, weight, grid, iterate);
            moved.into_iter().map(|index| grid.value(i128::from(index))).collect()
        };
        let real =
            |iterate: &[i64]| -> Vec<f64> { iterate.iter().map(|i| grid.value(i128::from(*i))).collect() };
        let apart = distance(&real(&y), &real(&other)).min(2.0 * mechanism.radius.get());
        let found = distance(&step(&one, &y), &step(&two, &other));
        let allowed = contraction.get() * apart + neighbors.reach() * contribution;
        assert!(found <= allowed * (1.0 + 1e-12), "{mechanism} {neighbors} {count}: {found} > {allowed}");
        if far == 0.0 {
            closest = closest.max(found / allowed);
        }
        // The same records: contraction alone.
        let found = distance(&step(&one, &y), &step(&one, &other));
        assert!(found <= contraction.get() * apart + 0.01 * contribution, "{mechanism}: {found} {apart}");
        if far == 1.0 {
            contracted = contracted.max(found / apart);
        }
    }
    assert!(closest > 0.999 && contracted > 0.99, "{closest} {contracted}");
}

/// The same step in numbers of 106 bits, from the nearest point of the ball.
fn precise_step(
    mechanism: &HiddenDescent,
    design: &Design,
    count: usize,
    neighbors: Neighbors,
    y: &[f64],
) -> Vec<f64> {
    let square = y.iter().fold(Double::default(), |sum, x| sum.add(Double::from(*x).times(*x)));
    let guess = square.high.sqrt();
    // One step of Newton's method doubles the digits.
    let norm = Double::from(guess).plus(square.add(Double::from(guess).times(-guess)).high / (2.0 * guess));
    let r = mechanism.radius.get();
    let weights: Vec<Double> = y
        .iter()
        .map(|x| {
            if norm.high <= r {
                return Double::from(*x);
            }
            // x·r/norm, by one correction of the quotient.
            let product = Double::from(*x).times(r);
            let quotient = product.high / norm.high;
            Double::from(quotient).plus(product.add(norm.times(-quotient)).high / norm.high)
        })
        .collect();
    let mut sum = vec![Double::default(); y.len()];
    for (features, target) in design.rows() {
        let mut prediction = Double::default();
        for (weight, x) in weights.iter().zip(features) {
            prediction = prediction.add(weight.times(f64::from(*x)));
        }
        let (slope, _) = mechanism.loss.derivatives(prediction, target);
        for (sum, x) in sum.iter_mut().zip(features) {
            *sum = sum.add(slope.times(f64::from(*x)));
        }
    }
    let (eta, penalty, most) =
        (mechanism.learning_rate.get(), mechanism.penalty(), mechanism.most_records as f64);
    let count = count as f64;
    weights
        .iter()
        .zip(&sum)
        .map(|(weight, sum)| {
            let scaled = match neighbors {
                Neighbors::Replace => *sum,
                // a·sum = sum - (n - 1)/4N·sum, for n ≤ 2N.
                Neighbors::AddRemove => {
                    let lost = sum.times(count - 1.0);
                    let part = lost.high / (4.0 * most);
                    let rest = lost.add(Double::from(part).times(-4.0 * most)).high / (4.0 * most);
                    sum.add(Double::from(-part)).plus(-rest)
                }
            };
            let shrunk = weight.add(weight.times(penalty).times(-eta));
            shrunk.add(scaled.times(-eta)).high
        })
        .collect()
}

#[test]
fn rounding_moves_a_step_by_no_more_than_the_noise_is_made_for() {
    let mut next = uniform(11);
    let mut worst: f64 = 0.0;
    for case in 0..61_usize {
        // In the last case, rounding errors of 300 000 equal terms would add up without blocks.
        let equal = case == 60;
        let (dimension, count) =
            if equal { (1, 300_000) } else { [(1, 40), (30, 200), (300, 1000)][case % 3] };
        let loss = if equal { losses()[1] } else { losses()[case % 4] };
        let mut mechanism = longest(loss, Some(1.0), dimension, count as u64);
        mechanism.radius = Radius::new(if equal { 1e-3 } else { [1e-3, 1.0, 1e5][case / 3 % 3] }).unwrap();
        let neighbors = BOTH[case % 2];
        // A finer grid, on which the rounding of the step is seen. No iterate reaches its end at 2⁶⁰ steps.
        let pull = mechanism.learning_rate.get() * count as f64 * mechanism.loss.slope();
        let step = (2.0 * mechanism.radius.get() + pull) / (1_u64 << 57) as f64;
        let grid = Grid::new(step * (1_u64 << 30) as f64).unwrap();
        let rows = Rows {
            dimension,
            features: (0..dimension * count).map(|_| if equal { 0.1 } else { next() }).collect(),
            targets: (0..count).map(|_| if equal { 1e9 } else { next() }).collect(),
        };
        let design = Design::new(&rows, u64::MAX);
        let size = mechanism.radius.get() * 2.0 / (dimension as f64).sqrt();
        let y: Vec<i64> = (0..dimension).map(|_| grid.nearest(size * next())).collect();
        let real =
            |iterate: &[i64]| -> Vec<f64> { iterate.iter().map(|i| grid.value(i128::from(*i))).collect() };
        let found = real(&mechanism.step(&design, mechanism.weight(neighbors, count), grid, &y));
        let expected = precise_step(&mechanism, &design, count, neighbors, &real(&y));
        let rounding = mechanism.rounding(neighbors);
        let on_grid = (dimension as f64).sqrt() * step;
        // The expected numbers are rounded to double precision once.
        let last = ROUNDOFF * expected.iter().map(|x| x * x).sum::<f64>().sqrt();
        let error = distance(&found, &expected);
        assert!(error <= rounding + on_grid + last, "{mechanism}: {error} {rounding}");
        worst = worst.max(error / rounding);
    }
    // The bound is for the worst signs of all errors.
    assert!(worst > 1e-3, "{worst}");
}

#[test]
fn settings_for_which_the_theorem_does_not_hold_are_refused() {
    let good = longest(ConvexLoss::Logistic, Some(2.0), 3, 100);
    for neighbors in BOTH {
        assert!(good.check(neighbors).is_ok());
        let rate = |factor: f64| LearningRate::new(factor * good.largest_learning_rate(neighbors)).unwrap();
        for wrong in [
            HiddenDescent { learning_rate: rate(1.0 + 1e-12), ..good },
            HiddenDescent { learning_rate: rate(1.5), ..good },
            HiddenDescent { dimension: 0, ..good },
            HiddenDescent { dimension: (1 << 28) + 1, ..good },
            HiddenDescent { steps: 0, ..good },
            HiddenDescent { steps: u64::MAX, ..good },
            HiddenDescent { most_records: 0, ..good },
            HiddenDescent { most_records: u64::MAX, ..good },
            // A grid that is too coarse, and a domain on which double precision is not enough.
            HiddenDescent { noise_multiplier: NoiseMultiplier::new(1e9).unwrap(), ..good },
            HiddenDescent {
                radius: Radius::new(1e9).unwrap(),
                learning_rate: LearningRate::new(1e-12).unwrap(),
                ..good
            },
        ] {
            assert!(wrong.check(neighbors).is_err(), "{wrong}");
            assert_eq!(wrong.event(neighbors), Event::NonPrivate);
        }
    }
    // Under replacement half a record less is allowed for.
    assert!(
        good.largest_learning_rate(Neighbors::Replace) > good.largest_learning_rate(Neighbors::AddRemove)
    );
    let Event::HiddenState { contraction, diameter, .. } = good.event(Neighbors::AddRemove) else { panic!() };
    let eta = good.learning_rate.get();
    assert!(contraction.get() >= 1.0 - 2.0 * eta && contraction.get() < 1.0 - 2.0 * eta + 1e-15);
    // The diameter is 4, and one record moves a step by η.
    assert!((diameter.unwrap().get() * eta / 4.0 - 1.0).abs() < 1e-6);
}
