use super::*;
use crate::noise::random::Key;

fn release(beta: f64, sigma: f64, failure: f64) -> SmoothCost {
    let (order, noise) = (Order::new(8.0).unwrap(), NoiseMultiplier::new(sigma).unwrap());
    SmoothCost::new(order, beta, noise, Delta::new(failure).unwrap(), Delta::new(1e-6).unwrap()).unwrap()
}

fn votes(counts: &[usize]) -> Votes {
    let ballots = counts.iter().enumerate().flat_map(|(candidate, &count)| std::iter::repeat_n(candidate, count));
    Votes::tally(counts.len(), ballots)
}

fn some_cost() -> VoteCost {
    let mut cost = VoteCost::new(Order::new(8.0).unwrap(), 100, Asked::InAdvance);
    for lead in 0..60 {
        let counts = votes(&[40 + lead, 60 - lead, 0]);
        cost.screened(&counts, 60, NoiseMultiplier::new(20.0).unwrap()).unwrap();
        cost.answered(&counts, NoiseMultiplier::new(10.0).unwrap()).unwrap();
    }
    cost
}

#[test]
fn noise_has_the_scale_of_the_smooth_sensitivity_and_the_bound_holds() {
    let (cost, release) = (some_cost(), release(0.04, 3.0, 0.05));
    let spent: f64 = cost.places.iter().map(Place::cost).sum();
    let smooth = smooth_sum(&cost.places, 0.04);
    assert!(spent < 0.8 * cost.independent && smooth < 0.2 * cost.independent, "{spent} {smooth} {}", cost.independent);
    let mut stream = Key::fresh().unwrap().stream(0);
    let draws = 4000;
    let values: Vec<f64> = (0..draws)
        .map(|_| {
            let (noisy, step) = release.draw(&cost, &mut stream).unwrap();
            noisy as f64 * step
        })
        .collect();
    let mean = values.iter().sum::<f64>() / f64::from(draws);
    let deviation = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / f64::from(draws)).sqrt();
    // A sample of 4000 has its deviation within 5.6 % and its mean within 8 % of a deviation, but once in a million.
    assert!((deviation / (3.0 * smooth) - 1.0).abs() < 0.06 + 0.02, "{deviation} for {}", 3.0 * smooth);
    let expected = spent + release.shift() * 3.0 * smooth;
    assert!((mean - expected).abs() < 0.12 * deviation, "{mean} for {expected}");
    // One in twenty is allowed to be below; the bound on the tail is generous.
    assert!(values.iter().filter(|value| **value < spent).count() <= 200);
}

/// Divergence of discrete Gaussian noise of scale k around a from that of scale l around zero.
fn discrete(k: f64, l: f64, a: f64, alpha: f64) -> f64 {
    let far = 40.0 * k.max(l);
    let sum = |weight: &dyn Fn(f64) -> f64| {
        let mut x = -far.ceil();
        let mut sum = 0.0;
        while x <= far {
            sum += weight(x);
            x += 1.0;
        }
        sum
    };
    let (own, other) = (|x: f64| -(x - a) * (x - a) / (2.0 * k * k), |x: f64| -x * x / (2.0 * l * l));
    let (own_total, other_total) = (sum(&|x| own(x).exp()), sum(&|x| other(x).exp()));
    let moment = sum(&|x| (alpha * own(x) - (alpha - 1.0) * other(x)).exp());
    (moment.ln() - alpha * own_total.ln() + (alpha - 1.0) * other_total.ln()) / (alpha - 1.0)
}

#[test]
fn divergence_of_the_release_is_the_worst_of_two_discrete_gaussians() {
    for (beta, sigma, failure, alpha) in
        [(0.04, 3.0, 1e-6, 8.0), (0.01, 5.0, 1e-3, 20.0), (0.2, 1.0, 0.5, 1.5), (0.05, 0.5, 0.1, 2.0)]
    {
        let release = release(0.04_f64.min(beta), sigma, failure);
        let release = SmoothCost { smoothness: beta, ..release };
        let bound = release.divergence(alpha);
        let mut worst = 0.0_f64;
        for i in -16..=16 {
            let (k, ratio) = (400.0_f64, (beta * f64::from(i) / 16.0).exp());
            let l = k * ratio;
            let apart = k.min(l) / sigma + release.shift() * (k - l).abs();
            let divergence = discrete(k, l, apart, alpha);
            assert!(divergence <= bound, "β {beta}, α {alpha}, ratio {ratio}: {divergence} above {bound}");
            worst = worst.max(divergence);
        }
        assert!(worst > 0.9 * bound, "β {beta}, α {alpha}: {bound} for {worst}");
    }
}

#[test]
fn settings_without_a_bound_are_refused() {
    let new = |order: f64, beta: f64, sigma: f64| {
        let (order, noise) = (Order::new(order).unwrap(), NoiseMultiplier::new(sigma).unwrap());
        SmoothCost::new(order, beta, noise, Delta::new(1e-6).unwrap(), Delta::new(1e-6).unwrap())
    };
    assert!(new(8.0, 0.04, 3.0).is_ok());
    // 1/(1 - e^-0.08) = 13.0
    assert!(new(12.9, 0.04, 3.0).is_ok() && new(13.1, 0.04, 3.0).is_err());
    assert!(new(8.0, 1e-4, 3.0).is_err() && new(8.0, f64::NAN, 3.0).is_err());
    assert!(new(8.0, 0.04, 0.01).is_err() && new(8.0, 0.04, 1e7).is_err());
}

#[test]
fn more_ballots_than_teachers_are_refused() {
    let mut cost = VoteCost::new(Order::new(8.0).unwrap(), 10, Asked::InAdvance);
    let noise = NoiseMultiplier::new(3.0).unwrap();
    assert!(cost.answered(&votes(&[6, 5]), noise).is_err() && cost.screened(&votes(&[11, 0]), 5, noise).is_err());
    assert!(cost.places.is_empty() && cost.independent == 0.0);
    assert!(cost.answered(&votes(&[6, 4]), noise).is_ok());
    assert_eq!(cost.asked, Asked::InAdvance);
    cost.screened(&votes(&[6, 4]), 5, noise).unwrap();
    assert_eq!(cost.asked, Asked::OnTheWay);
}

#[test]
fn a_delta_that_does_not_bear_the_failure_or_the_noise_has_no_epsilon() {
    let released = ReleasedCost {
        order: Order::new(8.0).unwrap(),
        divergence: 0.5,
        own: 0.25,
        failure: Delta::new(1e-6).unwrap(),
        asked: Asked::OnTheWay,
        distance: 1e-30,
    };
    let delta = |value: f64| Delta::new(value).unwrap();
    let epsilon = released.epsilon(delta(1e-5));
    assert!((epsilon - (0.75 - (0.999e-5_f64 - 1e-6).ln() / 7.0)).abs() < 1e-12);
    assert!(ReleasedCost { asked: Asked::InAdvance, ..released }.epsilon(delta(1e-5)) < epsilon);
    assert_eq!(released.epsilon(delta(1e-6)), f64::INFINITY);
    assert_eq!(ReleasedCost { distance: 1e-9, ..released }.epsilon(delta(1e-5)), f64::INFINITY);
}
