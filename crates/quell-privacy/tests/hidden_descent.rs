//! What descent with hidden steps releases, against closed forms, at a false-alarm rate of 1e-6.

use crate::book::without_cap;
use quell_privacy::{
    Event, Neighbors,
    accounting::Pld,
    mechanism::{ConvexLoss, HiddenDescent, LinearRecords, Mechanism, Rows},
    units::{Delta, LearningRate, NoiseMultiplier, Radius, Regularization, Threshold},
};

const RUNS: u64 = 4000;

/// Descent on the squared loss, which no residual in these tests leaves, far from the ends of the ball.
fn quadratic(noise_multiplier: f64) -> HiddenDescent {
    HiddenDescent {
        loss: ConvexLoss::Huber { threshold: Threshold::new(1e3).unwrap() },
        regularization: Some(Regularization::new(0.5).unwrap()),
        dimension: 1,
        radius: Radius::new(1e4).unwrap(),
        most_records: 20,
        learning_rate: LearningRate::new(0.05).unwrap(),
        steps: 12,
        noise_multiplier: NoiseMultiplier::new(noise_multiplier).unwrap(),
    }
}

fn released(mechanism: HiddenDescent, neighbors: Neighbors, records: &Rows, runs: u64) -> Vec<f64> {
    let mut ledger = without_cap(neighbors).seeded(20_240_612);
    let lease = ledger.reserve(mechanism, runs).unwrap().in_blocks_of(runs);
    lease.flat_map(|paid| paid.unwrap().run(records).unwrap()).collect()
}

fn rows(targets: &[f64]) -> Rows {
    Rows { dimension: 1, features: vec![0.5; targets.len()], targets: targets.to_vec() }
}

/// Mean and variance of the last iterate.
fn closed_form(mechanism: &HiddenDescent, neighbors: Neighbors, weight: f64, targets: &[f64]) -> (f64, f64) {
    let eta = mechanism.learning_rate.get();
    let curvature = weight * 0.25 * targets.len() as f64 + 0.5;
    let pull = weight * 0.5 * targets.iter().sum::<f64>();
    let noise = mechanism.deviation(neighbors).unwrap();
    // zηL, and a little for rounding.
    let ideal = mechanism.noise_multiplier.get() * eta * 1e3;
    assert!(noise >= ideal && noise < ideal * (1.0 + 1e-6), "{noise} {ideal}");
    let (mut mean, mut variance) = (0.0, 0.0);
    for _ in 0..mechanism.steps {
        (mean, variance) = (
            (1.0 - eta * curvature) * mean + eta * pull,
            (1.0 - eta * curvature).powi(2) * variance + noise * noise,
        );
    }
    (mean, variance)
}

/// Whether normal values have this mean and variance, to 4.9 standard errors.
fn looks_like(values: &[f64], (mean, variance): (f64, f64)) -> bool {
    let n = values.len() as f64;
    let sample_mean = values.iter().sum::<f64>() / n;
    let sample_variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (sample_mean - mean).abs() <= 4.9 * (variance / n).sqrt()
        && (sample_variance / variance - 1.0).abs() <= 4.9 * (2.0 / n).sqrt()
}

#[test]
fn the_last_iterate_of_a_quadratic_loss_has_its_closed_form() {
    let targets = [3.0, -1.0, 4.0, 0.5, 2.5, 6.0, 5.0];
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        // Seven records of at most twenty.
        let weight = if neighbors == Neighbors::AddRemove { 1.0 - 6.0 / 80.0 } else { 1.0 };
        let mechanism = quadratic(0.002);
        let values = released(mechanism, neighbors, &rows(&targets), RUNS);
        let form = closed_form(&mechanism, neighbors, weight, &targets);
        assert!(looks_like(&values, form), "{form:?}");
        // Half of the noise would be seen, and so would a weight that is a tenth smaller.
        let halved = released(quadratic(0.001), neighbors, &rows(&targets), RUNS);
        assert!(!looks_like(&halved, form));
        assert!(!looks_like(&values, closed_form(&mechanism, neighbors, 0.9 * weight, &targets)));
        // Noise is fresh in each step: the variance of a single step would be far too small.
        let one_step = closed_form(&HiddenDescent { steps: 1, ..mechanism }, neighbors, weight, &targets);
        assert!(!looks_like(&values, (form.0, one_step.1)));
    }
}

#[test]
fn records_beyond_the_limit_are_ignored_or_weigh_less() {
    let mechanism = HiddenDescent { most_records: 3, ..quadratic(0.002) };
    let targets = [1.0, 2.0, 3.0, 400.0, -500.0];
    // Replaced: positions beyond the third are not read.
    let (all, first) = (rows(&targets), rows(&targets[..3]));
    assert_eq!(
        released(mechanism, Neighbors::Replace, &all, 3),
        released(mechanism, Neighbors::Replace, &first, 3)
    );
    // Added or removed: beyond twice the limit, the weights of all records together are the limit and a half.
    let many: Vec<f64> = (0..50).map(|i| f64::from(i % 5)).collect();
    let values = released(mechanism, Neighbors::AddRemove, &rows(&many), RUNS);
    assert!(looks_like(&values, closed_form(&mechanism, Neighbors::AddRemove, 3.5 / 50.0, &many)));
}

#[test]
fn no_record_stops_the_release_and_none_is_a_release_of_noise() {
    let mechanism = quadratic(0.002);
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let nothing = rows(&[]);
        let noise = released(mechanism, neighbors, &nothing, RUNS);
        assert!(looks_like(&noise, closed_form(&mechanism, neighbors, 1.0, &[])));
        let mut bad = rows(&[f64::NAN, f64::INFINITY, 1.0, 1.0, 1.0]);
        bad.features = vec![0.5, 0.5, f64::NAN, f64::NEG_INFINITY, 0.0];
        assert_eq!(released(mechanism, neighbors, &bad, 5), released(mechanism, neighbors, &nothing, 5));
        // Huge numbers are scaled and clipped.
        let mut huge = rows(&[1e308, -1e308]);
        huge.features = vec![1e308, -1e-308];
        assert!(released(mechanism, neighbors, &huge, 5).iter().all(|weight| weight.is_finite()));
    }
    let wrong = Rows { dimension: 2, ..Rows::default() };
    let paid = without_cap(Neighbors::AddRemove).reserve(mechanism, 1).unwrap().next().unwrap().unwrap();
    assert!(paid.run(&wrong).is_err() && wrong.records() == 0);
}

#[test]
fn every_release_is_in_the_ball() {
    let mechanism = HiddenDescent { dimension: 3, radius: Radius::new(0.5).unwrap(), ..quadratic(1.0) };
    let records = Rows { dimension: 3, features: vec![1.0; 30], targets: vec![100.0; 10] };
    let values = released(mechanism, Neighbors::AddRemove, &records, 200);
    let norms: Vec<f64> = values.chunks(3).map(|w| w.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
    assert!(norms.iter().all(|norm| *norm <= 0.5 * (1.0 + 1e-15)));
    assert!(norms.iter().any(|norm| *norm > 0.499));
}

#[test]
fn more_steps_cost_no_more_from_some_step_on() {
    let delta = Delta::new(1e-6).unwrap();
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let cost = |steps| {
            let event = HiddenDescent { steps, ..quadratic(40.0) }.event(neighbors);
            assert!(matches!(event, Event::HiddenState { .. }));
            Pld::default().epsilon(&event, neighbors, delta).unwrap().upper
        };
        let (few, late, later) = (cost(10), cost(100_000), cost(1_000_000));
        assert!(few < 0.6 * late && (later - late).abs() < 1e-9, "{few} {late} {later}");
    }
    // The ledger is charged for the last iterate, and for the distance of all noise that was drawn.
    let mechanism = quadratic(40.0);
    assert_eq!(mechanism.distance(), 12.0 / f64::powi(2.0, 115));
}
