use super::*;
use crate::{
    accounting::Pld,
    mechanism::{ConvexLoss, Rows},
    noise::tests::stream,
    units::{Delta, Regularization, Threshold, Tolerance},
};

const HUBER: f64 = 0.5;

fn settings(loss: ConvexLoss, dimension: usize, regularization: f64, power: f64) -> LogConcaveSample {
    let objective = LinearObjective {
        loss,
        regularization: Regularization::new(regularization).unwrap(),
        dimension,
        most_records: 2_000,
        tolerance: Tolerance::new(1e-6).unwrap(),
    };
    LogConcaveSample { objective, power: Power::new(power).unwrap() }
}

fn huber() -> ConvexLoss {
    ConvexLoss::Huber { threshold: Threshold::new(HUBER).unwrap() }
}

fn design(dimension: usize, features: &[f64], targets: &[f64]) -> Design {
    Design::new(&Rows { dimension, features: features.to_vec(), targets: targets.to_vec() }, 2_000)
}

/// The losses by their textbook formulas.
fn loss(loss: ConvexLoss, z: f64, y: f64) -> f64 {
    match loss {
        ConvexLoss::Logistic => (-y.signum() * z).exp().ln_1p(),
        _ if (z - y).abs() <= HUBER => 0.5 * (z - y).powi(2),
        _ => HUBER * (z - y).abs() - 0.5 * HUBER * HUBER,
    }
}

/// Values of a density at midpoints of [-end, end], with sum one.
fn density(end: f64, potential: impl Fn(f64) -> f64) -> Vec<f64> {
    let places = (0..PLACES).map(|k| end * ((2.0 * f64::from(k) + 1.0) / f64::from(PLACES) - 1.0));
    let values: Vec<f64> = places.map(potential).collect();
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    let mut density: Vec<f64> = values.iter().map(|value| (least - value).exp()).collect();
    let total: f64 = density.iter().sum();
    for x in &mut *density {
        *x /= total;
    }
    density
}

const PLACES: u32 = 40_000;

/// Whether draws have this density, at a false-alarm rate of 10⁻⁶ [Mas90].
fn fits(draws: &[f64], end: f64, density: &[f64]) -> bool {
    let mut counts = vec![0.0; density.len()];
    for draw in draws {
        counts[(f64::midpoint(draw / end, 1.0) * f64::from(PLACES)) as usize] += 1.0 / draws.len() as f64;
    }
    let bound = (2e6_f64.ln() / (2.0 * draws.len() as f64)).sqrt();
    let mut difference = 0.0_f64;
    counts.iter().zip(density).all(|(count, p)| {
        difference += count - p;
        difference.abs() <= bound
    })
}

#[test]
fn values_are_integrals_of_slopes() {
    for loss in [ConvexLoss::Logistic, huber()] {
        for target in [-1.0, 0.3, 1.0] {
            for k in -4_500..4_500_i32 {
                let z = f64::from(k) / 100.0 + 0.000_37;
                let width = 1.0 / 1024.0 / 1024.0;
                let (low, high) = (loss.value(z.into(), target), loss.value((z + width).into(), target));
                let rate = high.add(low.signed(-1.0)).high / width;
                let (left, right) = (loss.slope_at(z, target), loss.slope_at(z + width, target));
                let slack = 1e-11;
                assert!((left - slack..=right + slack).contains(&rate), "{loss} {z}: {left} {rate} {right}");
            }
        }
    }
    let rise = |z: f64| ConvexLoss::Logistic.value(z.into(), 1.0).high;
    for z in [-30.0, -2.0, -0.3, 0.7, 5.0] {
        let expected = loss(ConvexLoss::Logistic, z, 1.0) - 2_f64.ln();
        assert!((rise(z) - rise(0.0) - expected).abs() < 1e-6);
    }
}

#[test]
fn samples_have_their_density_on_a_line() {
    for (case, (convex, regularization, power, x, y, count)) in [
        (ConvexLoss::Logistic, 2.0, 1.0, 1.0, 1.0, 30),
        (ConvexLoss::Logistic, 10.0, 0.1, 0.5, -1.0, 90),
        (huber(), 1.0, 2.0, 0.8, 5.0, 20),
        (huber(), 1.0, 3.0, 1.0, 0.2, 100),
        (huber(), 4.0, 1.0, 1.0, 0.0, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let settings = settings(convex, 1, regularization, power);
        assert_eq!(settings.check(Neighbors::AddRemove), Ok(()));
        let design = design(1, &vec![x; count], &vec![y; count]);
        let end = 30.0;
        let truth =
            density(end, |w| power * (count as f64 * loss(convex, x * w, y) + 0.5 * regularization * w * w));
        let mut stream = stream(20 + case as u64);
        let draws: Vec<f64> = (0..10_000).map(|_| settings.sample(&design, &mut stream).0[0]).collect();
        assert!(fits(&draws, end, &truth), "case {case}");
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let narrow: Vec<f64> = draws.iter().map(|w| mean + 0.8 * (w - mean)).collect();
        assert!(!fits(&narrow, end, &truth), "case {case}: narrower samples pass");
    }
}

/// Records on the axes make independent weights.
#[test]
fn samples_have_their_density_in_the_plane() {
    let settings = settings(ConvexLoss::Logistic, 2, 3.0, 0.5);
    let features: Vec<f64> = (0..60).flat_map(|i| if i < 40 { [1.0, 0.0] } else { [0.0, 0.7] }).collect();
    let targets: Vec<f64> = (0..60).map(|i| if i % 4 == 0 { -1.0 } else { 1.0 }).collect();
    let design = design(2, &features, &targets);
    let mut stream = stream(41);
    let draws: Vec<Vec<f64>> = (0..10_000).map(|_| settings.sample(&design, &mut stream).0).collect();
    for (axis, (x, ones, others)) in [(1.0, 30.0, 10.0), (0.7, 15.0, 5.0)].into_iter().enumerate() {
        let truth = density(30.0, |w| {
            let losses = ones * loss(ConvexLoss::Logistic, x * w, 1.0)
                + others * loss(ConvexLoss::Logistic, x * w, -1.0);
            0.5 * (losses + 1.5 * w * w)
        });
        let own: Vec<f64> = draws.iter().map(|w| w[axis]).collect();
        assert!(fits(&own, 30.0, &truth), "axis {axis}");
        let other: Vec<f64> = draws.iter().map(|w| w[1 - axis]).collect();
        assert!(!fits(&other, 30.0, &truth), "axis {axis}");
    }
}

/// δ(ε) of two densities.
fn profile(p: &[f64], q: &[f64], epsilon: f64) -> f64 {
    p.iter().zip(q).map(|(p, q)| (p - epsilon.exp() * q).max(0.0)).sum()
}

/// The cost of Gaussian noise bounds neighbours' densities, and a loss with constant slope reaches it.
#[test]
fn neighbours_are_as_close_as_is_charged_and_sometimes_no_closer() {
    let mut nearest = [0.0_f64; 2];
    for (convex, regularization, power, count, x, y) in [
        (ConvexLoss::Logistic, 0.5, 0.3, 0.0, 1.0, 1.0),
        (ConvexLoss::Logistic, 0.02, 0.02, 3.0, 1.0, -1.0),
        (huber(), 0.2, 0.5, 0.0, 1.0, 1e3),
        (huber(), 1.0, 2.0, 5.0, 0.9, 0.4),
    ] {
        let settings = settings(convex, 1, regularization, power);
        let line = |own: f64, target: f64| {
            let end = 20.0 / (power * regularization).sqrt() + 10.0 / regularization;
            density(end, move |w| {
                let losses = count * loss(convex, x * w, y) + own * loss(convex, w, target);
                power * (losses + 0.5 * regularization * w * w)
            })
        };
        let target = if y > 10.0 { y } else { 1.0 };
        let (without, with, other) = (line(0.0, 1.0), line(1.0, target), line(1.0, -target));
        for (which, (neighbors, pair)) in
            [(Neighbors::AddRemove, [&without, &with]), (Neighbors::Replace, [&with, &other])]
                .into_iter()
                .enumerate()
        {
            let event = settings.event(neighbors);
            for epsilon in [0.0, 0.2, 0.5, 1.0, 2.0] {
                let bound = Pld::default().delta(&event, neighbors, epsilon).unwrap().upper;
                for (p, q) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                    let truth = profile(p, q, epsilon);
                    assert!(
                        truth <= bound * (1.0 + 1e-4) + 1e-9,
                        "{settings} {neighbors:?}: {truth} {bound}"
                    );
                    if truth > 1e-3 {
                        nearest[which] = nearest[which].max(truth / bound);
                    }
                }
            }
        }
    }
    assert!(nearest.iter().all(|share| *share > 0.99), "{nearest:?}");
}

/// The tail bound of lecture 9: the privacy loss is μ²/2 in the mean, and subgaussian with deviation μ.
///
/// Both follow from the logarithmic Sobolev inequality. [MASN16]
#[test]
fn older_bounds_are_never_smaller() {
    for power in [1e-4, 1e-2, 0.1, 1.0] {
        let settings = settings(ConvexLoss::Logistic, 1, 1.0, power);
        for (neighbors, lipschitz) in [(Neighbors::AddRemove, 1.0), (Neighbors::Replace, 2.0)] {
            let mu = lipschitz * power.sqrt();
            for delta in [1e-3, 1e-6, 1e-9] {
                let older = 0.5 * mu * mu + mu * (2.0 * (1.0_f64 / delta).ln()).sqrt();
                let delta = Delta::new(delta).unwrap();
                let bound = Pld::default().epsilon(&settings.event(neighbors), neighbors, delta).unwrap();
                assert!(bound.upper <= older, "{power} {neighbors:?}: {bound:?} {older}");
            }
        }
    }
}

#[test]
fn plans_that_cannot_be_sampled_exactly_are_refused() {
    let usual = settings(ConvexLoss::Logistic, 2, 10.0, 1.0);
    assert_eq!(usual.check(Neighbors::Replace), Ok(()));
    assert!(usual.distance() < 1e-12, "{}", usual.distance());
    let with = |change: fn(&mut LinearObjective)| {
        let mut objective = usual.objective;
        change(&mut objective);
        LogConcaveSample { objective, ..usual }
    };
    for refused in [
        with(|objective| objective.dimension = 12),
        with(|objective| objective.dimension = 0),
        with(|objective| objective.most_records = 1 << 38),
        with(|objective| objective.loss = ConvexLoss::Poisson { most: Threshold::new(3.0).unwrap() }),
        with(|objective| objective.tolerance = Tolerance::new(10.0).unwrap()),
    ] {
        assert!(refused.check(Neighbors::AddRemove).is_err(), "{refused}");
        assert_eq!(refused.event(Neighbors::AddRemove), Event::NonPrivate);
    }
}

#[test]
fn proposals_are_as_few_as_the_bound_says() {
    let mut settings = settings(ConvexLoss::Logistic, 2, 5.0, 1.0);
    settings.objective.most_records = 100;
    let features: Vec<f64> = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { -0.2 }).collect();
    let targets: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { -1.0 } else { 1.0 }).collect();
    let design = design(2, &features, &targets);
    let mut stream = stream(9);
    let proposals: u64 = (0..2_000).map(|_| settings.sample(&design, &mut stream).1).sum();
    let mean = proposals as f64 / 2_000.0;
    assert!(mean < settings.most_proposals() && mean > 1.0, "{mean} {}", settings.most_proposals());
    // Records without a number are ignored.
    let nothing = self::design(2, &[f64::NAN, 1.0, 1.0, 1.0], &[1.0, f64::INFINITY]);
    assert_eq!(settings.sample(&nothing, &mut stream).0.len(), 2);
}
