use super::*;
use crate::noise::random::Key;

fn release(beta: f64, scale_noise: f64, noise: f64, failure: f64) -> SmoothCost {
    let noises = [scale_noise, noise].map(|noise| NoiseMultiplier::new(noise).unwrap());
    SmoothCost::new(Order::new(8.0).unwrap(), beta, noises[0], noises[1], Delta::new(failure).unwrap())
        .unwrap()
}

fn votes(counts: &[usize]) -> Votes {
    let ballots =
        counts.iter().enumerate().flat_map(|(candidate, &count)| std::iter::repeat_n(candidate, count));
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
    let cost = some_cost();
    let spent: f64 = cost.places.iter().map(Place::cost).sum();
    let smooth = smooth_sum(&cost.places, 0.04);
    // So little noise on the scale, and so little smoothness, that Ŝ is S e^(0.004 t), and the second noise is seen.
    let release = release(0.04, 0.1, 0.3, 0.15);
    let (margin, inflated) = (release.margin(), smooth * (0.004 * release.margin()).exp());
    assert!(spent + 3.0 * smooth < 0.9 * cost.independent, "{spent} {smooth} {}", cost.independent);
    let mut stream = Key::fresh().unwrap().stream(0);
    let draws = 4000;
    let values: Vec<f64> = (0..draws).map(|_| release.draw(&cost, &mut stream).unwrap()).collect();
    let mean = values.iter().sum::<f64>() / f64::from(draws);
    let deviation = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / f64::from(draws)).sqrt();
    // A sample of 4000 has its deviation within 5.6 % and its mean within 8 % of a deviation, but once in a million.
    assert!((deviation / (0.3 * inflated) - 1.0).abs() < 0.06, "{deviation} for {}", 0.3 * inflated);
    let expected = spent + inflated * (1.0 + 0.3 * margin);
    assert!((mean - expected).abs() < 0.1 * deviation, "{mean} for {expected}");
    // Not below the cost of any neighbour, but for one in twenty.
    assert!(values.iter().filter(|value| **value < spent + smooth).count() < 300);
}

#[test]
fn noise_on_the_logarithm_has_its_scale_and_its_margin() {
    let release = release(0.04, 2.0, 3.0, 0.15);
    let mut stream = Key::fresh().unwrap().stream(0);
    let draws = 20_000;
    let values: Vec<f64> = (0..draws)
        .map(|_| release.above(1e6, release.scale_noise, STEPS, &mut stream).unwrap() - 1e6)
        .collect();
    let deviation = (values.iter().map(|v| v - 1.6449 * 2.0 * STEPS).map(|v| v * v).sum::<f64>()
        / f64::from(draws))
    .sqrt();
    assert!((deviation / (2.0 * STEPS) - 1.0).abs() < 0.03, "{deviation}");
    // One in twenty, with a deviation of 31.
    let below = values.iter().filter(|value| **value < 0.0).count();
    assert!((850..=1150).contains(&below), "{below}");
}

#[test]
fn a_release_costs_what_its_two_noises_cost_and_has_the_failure_for_slack() {
    let event = release(0.04, 2.0, 4.0, 1e-6).event(Neighbors::Replace);
    let text = serde_json::to_string(&event).unwrap();
    // 1/8 + 1/32
    assert!(text.starts_with(r#"{"composed":[{"zero_concentrated":{"rho":0.15625"#), "{text}");
    assert!(text.ends_with(r#"{"approximate":{"epsilon":0.0,"delta":1e-6}}]}"#), "{text}");
}

#[test]
fn settings_out_of_range_are_refused() {
    let new = |beta: f64, first: f64, second: f64| {
        let noises = [first, second].map(|noise| NoiseMultiplier::new(noise).unwrap());
        SmoothCost::new(Order::new(8.0).unwrap(), beta, noises[0], noises[1], Delta::new(1e-6).unwrap())
    };
    assert!(new(0.04, 3.0, 3.0).is_ok());
    assert!(new(1e-4, 3.0, 3.0).is_err() && new(f64::NAN, 3.0, 3.0).is_err());
    assert!(new(0.04, 0.01, 3.0).is_err() && new(0.04, 3.0, 1e7).is_err());
}

#[test]
fn more_ballots_than_teachers_are_refused() {
    let mut cost = VoteCost::new(Order::new(8.0).unwrap(), 10, Asked::InAdvance);
    let noise = NoiseMultiplier::new(3.0).unwrap();
    assert!(
        cost.answered(&votes(&[6, 5]), noise).is_err() && cost.screened(&votes(&[11, 0]), 5, noise).is_err()
    );
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
