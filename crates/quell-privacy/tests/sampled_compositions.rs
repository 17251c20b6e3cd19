//! Compositions inside a sample.
//!
//! Bounds are finite where the truth is, near it, and zero where nothing is released.

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Method, Pld, best, closed, closed::Guarantee},
    units::{Delta, Epsilon, NoiseMultiplier, SamplingRate},
};

fn pure(epsilon: f64) -> Event {
    Event::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
}

fn approximate(epsilon: f64, delta: f64) -> Event {
    Event::Approximate { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::new(delta).unwrap() }
}

fn gaussian(sigma: f64) -> Event {
    Event::gaussian(NoiseMultiplier::new(sigma).unwrap())
}

fn laplace(scale: f64) -> Event {
    Event::laplace(NoiseMultiplier::new(scale).unwrap())
}

fn rate(rate: f64) -> SamplingRate {
    SamplingRate::new(rate).unwrap()
}

fn by_pld(parts: &[Event], q: f64, delta: f64) -> Bound {
    let event = Event::Composed(parts.to_vec()).poisson_sampled(rate(q));
    Pld::default().epsilon(&event, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap()
}

/// ln(1 + q(e^ε - 1)), also where e^ε is out of range.
fn sampled(q: f64, epsilon: f64) -> f64 {
    if epsilon > 600.0 { epsilon + q.ln() } else { (q * epsilon.exp_m1()).ln_1p() }
}

/// Checks a composition whose largest losses add up to `top`.
///
/// With the record, that sum has probability `mass`. All δs together are far below δ. From below: the
/// outcomes with the largest loss alone give δ(ε) ≥ q mass (1 - e^(ε - top')), top' = ln(1 + q(e^top - 1)).
/// From above: basic composition and [BBG18, Theorem 8].
fn assert_is_largest_loss(parts: &[Event], q: f64, delta: f64, top: f64, mass: f64) {
    let found = by_pld(parts, q, delta);
    let most = sampled(q, top);
    let least = most + (-delta / (q * mass)).ln_1p();
    assert!(found.upper >= least * (1.0 - 1e-12), "{found:?} claims less than {least}");
    assert!(found.upper <= most * (1.0 + 1e-9), "{found:?} is above {most}");
    assert!(found.lower <= most, "{found:?} shows more than {most}");
}

#[test]
fn tiny_deltas_of_parts_leave_the_largest_finite_loss() {
    for (own, delta) in [
        (1e-16, 1e-14),
        (1e-20, 1e-18),
        (1e-23, 1e-19),
        (1e-26, 1e-20),
        (1e-50, 1e-40),
        (1e-150, 1e-30),
        (1e-300, 1e-90),
    ] {
        assert_is_largest_loss(&[approximate(0.5, own), pure(0.7)], 0.1, delta, 1.2, 0.4);
        assert_is_largest_loss(&[approximate(0.25, own), laplace(4.0)], 0.1, delta, 0.5, 0.25);
        assert_is_largest_loss(&[approximate(0.25, own).repeated(3), laplace(4.0)], 0.02, delta, 1.0, 0.0625);
        assert_is_largest_loss(&[approximate(3.0, own), approximate(0.1, own)], 1e-3, delta, 3.1, 0.4);
    }
}

#[test]
fn huge_losses_on_a_sample_are_finite() {
    for delta in [1e-3, 1e-9, 1e-20] {
        assert_is_largest_loss(&[pure(400.0), laplace(1.0 / 300.0)], 0.01, delta, 700.0, 0.49);
        assert_is_largest_loss(&[pure(800.0), pure(2.0)], 0.01, delta, 802.0, 0.85);
        assert_is_largest_loss(&[pure(1e4), laplace(1.0)], 0.3, delta, 1e4 + 1.0, 0.49);
        assert_is_largest_loss(&[approximate(700.0, 1e-30), laplace(1.0)], 0.01, delta, 701.0, 0.49);
        assert_is_largest_loss(&[pure(500.0).repeated(20), laplace(1.0)], 0.01, delta, 10_001.0, 0.49);
    }
}

#[test]
fn gaussian_noise_beside_tiny_deltas_or_huge_losses_is_finite() {
    // Noise, the δ of the guarantee beside it, its ε, δ.
    let cases = [
        (2.0, 1e-16, 0.3, 1e-14),
        (2.0, 1e-20, 0.3, 1e-18),
        (1.0, 1e-50, 0.3, 1e-20),
        (4.0, 1e-150, 1.0, 1e-30),
        (0.03, 1e-20, 1.0, 1e-9),
        (0.02, 1e-50, 700.0, 1e-12),
        (0.5, 1e-40, 800.0, 1e-6),
    ];
    for (sigma, own, epsilon, delta) in cases {
        let q = 0.1;
        let found = by_pld(&[gaussian(sigma), approximate(epsilon, own)], q, delta);
        // All of δ/q but what the guarantee takes, for the Gaussian; then basic composition on a sample.
        let left = Delta::new((delta / q - own) * (1.0 - 1e-9)).unwrap();
        let alone = closed::epsilon(&gaussian(sigma), Neighbors::AddRemove, left).unwrap().upper;
        let most = sampled(q, alone + epsilon);
        assert!(found.upper <= most * 1.002 + 2e-4, "{sigma} {own}: {found:?} is above {most}");
        let fewer = gaussian(sigma).poisson_sampled(rate(q));
        let least = closed::epsilon(&fewer, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap().lower;
        assert!(found.upper >= least && found.lower <= most, "{sigma} {own}: {found:?} is below {least}");
    }
}

#[test]
fn the_default_claims_no_more_than_basic_composition_on_a_sample() {
    for own in [1e-17, 1e-22, 1e-30] {
        for (q, delta) in [(0.3, 1e-15), (0.01, 1e-10)] {
            let event =
                Event::Composed(vec![approximate(1.0, own), approximate(0.5, own)]).poisson_sampled(rate(q));
            let claimed = best(&event, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap().1.epsilon;
            let basic = Guarantee { epsilon: 1.5, delta: 2.0 * own }.sampled(rate(q));
            assert!(
                basic.delta < delta && claimed.upper <= basic.epsilon * (1.0 + 1e-9),
                "{own} {q}: {claimed:?} {basic:?}"
            );
        }
    }
}

#[test]
fn nothing_on_a_sample_costs_nothing() {
    let inside = [
        r#"{"composed":[]}"#,
        r#"{"repeated":{"count":0,"event":{"gaussian":{"noise_multiplier":1.0}}}}"#,
        r#"{"repeated":{"count":7,"event":{"composed":[]}}}"#,
        r#"{"composed":[{"composed":[]},{"repeated":{"count":3,"event":{"composed":[]}}}]}"#,
        r#"{"repeated":{"count":0,"event":"non_private"}}"#,
        r#"{"repeated":{"count":3,"event":{"pure":{"epsilon":0.0}}}}"#,
        r#"{"composed":[{"pure":{"epsilon":0.0}},{"exponential":{"epsilon":0.0}}]}"#,
        r#"{"poisson_sampled":{"rate":0.5,"event":{"composed":[]}}}"#,
    ];
    let around = [
        (r#"{"poisson_sampled":{"rate":0.1,"event":INSIDE}}"#, Neighbors::AddRemove),
        (r#"{"poisson_sampled":{"rate":0.1,"event":INSIDE}}"#, Neighbors::Replace),
        (r#"{"sampled_without_replacement":{"batch":3,"records":10,"event":INSIDE}}"#, Neighbors::Replace),
        (r#"{"sampled_with_replacement":{"batch":3,"records":10,"event":INSIDE}}"#, Neighbors::Replace),
        (
            r#"{"repeated":{"count":9,"event":{"poisson_sampled":{"rate":0.1,"event":INSIDE}}}}"#,
            Neighbors::AddRemove,
        ),
    ];
    for inside in inside {
        for (around, neighbors) in around {
            let text = around.replace("INSIDE", inside);
            let event: Event = serde_json::from_str(&text).unwrap();
            for delta in [1e-300, 1e-9, 0.1] {
                let delta = Delta::new(delta).unwrap();
                let claimed = best(&event, neighbors, delta).unwrap().1.epsilon;
                assert_eq!(claimed, Bound { lower: 0.0, upper: 0.0 }, "{text}");
                for method in [
                    Method::Pld,
                    Method::Renyi,
                    Method::RenyiClassic,
                    Method::Moments,
                    Method::Fourier,
                    Method::Closed,
                    Method::Basic,
                ] {
                    let answer = method.epsilon(&event, neighbors, delta);
                    let free = Bound { lower: 0.0, upper: 0.0 };
                    assert_eq!(answer.unwrap().epsilon, free, "{} {text}", method.name());
                }
            }
        }
        let beside: Event = serde_json::from_str(&format!(
            r#"{{"composed":[{{"poisson_sampled":{{"rate":0.1,"event":{inside}}}}},{{"laplace":{{"noise_multiplier":2.0}}}}]}}"#
        ))
        .unwrap();
        let delta = Delta::new(1e-6).unwrap();
        let alone = Pld::default().epsilon(&laplace(2.0), Neighbors::AddRemove, delta).unwrap();
        assert_eq!(Pld::default().epsilon(&beside, Neighbors::AddRemove, delta).unwrap(), alone);
    }
}

/// δ(ε) of `count` ε-DP releases on a Poisson sample.
///
/// It is the sum over all outcomes when a record is removed.
fn exact_delta(count: u32, each: f64, q: f64, epsilon: f64) -> f64 {
    let (yes, no) = (1.0 / (1.0 + (-each).exp()), 1.0 / (1.0 + each.exp()));
    let mut binomial = 1.0;
    let mut delta = 0.0;
    for k in 0..=count {
        let p = binomial * yes.powi(k as i32) * no.powi((count - k) as i32);
        let without = binomial * no.powi(k as i32) * yes.powi((count - k) as i32);
        delta += (q * p + (1.0 - q) * without - epsilon.exp() * without).max(0.0);
        binomial *= f64::from(count - k) / f64::from(k + 1);
    }
    delta
}

#[test]
fn few_huge_losses_on_a_sample_cost_no_less_than_they_do() {
    for (count, each, q) in [
        (2_u32, 13.0, 0.5),
        (2, 14.0, 0.5),
        (2, 15.0, 0.5),
        (2, 20.0, 0.5),
        (2, 48.0, 0.5),
        (3, 17.0, 0.9),
        (4, 25.0, 0.01),
        (2, 100.0, 2e-3),
    ] {
        let event = pure(each).repeated(u64::from(count)).poisson_sampled(rate(q));
        for delta in [1e-3, 1e-6, 1e-12] {
            let (mut low, mut high) = (0.0, each * f64::from(count));
            for _ in 0..200 {
                let middle = 0.5 * (low + high);
                if exact_delta(count, each, q, middle) > delta { low = middle } else { high = middle }
            }
            let said =
                Pld::default().epsilon(&event, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap();
            assert!(
                said.lower <= high * (1.0 + 1e-9) && said.upper >= low * (1.0 - 1e-9),
                "{count} × {each} at rate {q}, δ = {delta}: {said:?} for {low}"
            );
            assert!(
                said.upper <= low * 1.002 + 2e-4,
                "{count} × {each} at rate {q}, δ = {delta}: {said:?} for {low}"
            );
            let (_, claimed) = best(&event, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap();
            assert!(claimed.epsilon.upper >= low * (1.0 - 1e-9), "{claimed:?} for {low}");
        }
        // δ at an ε next to the largest loss, where all of it still counts.
        let top = each * f64::from(count) + q.ln();
        for epsilon in [0.999 * top, top - 0.01, top - 0.001] {
            let truth = exact_delta(count, each, q, epsilon);
            let said = Pld::default().delta(&event, Neighbors::AddRemove, epsilon).unwrap();
            assert!(
                said.upper >= truth * (1.0 - 1e-6) && said.lower <= truth * (1.0 + 1e-6) + 1e-300,
                "{count} × {each} at rate {q}, ε = {epsilon}: {said:?} for {truth}"
            );
        }
    }
}

#[test]
fn a_coarse_answer_about_huge_losses_is_above_a_fine_one() {
    // Discrete Laplace noise so small that nearly every loss is the largest.
    let parts = (0..6).map(|i| {
        let scale = quell_privacy::units::Scale::new(0.03 + 0.001 * f64::from(i)).unwrap();
        Event::DiscreteLaplace { scale, sensitivity: 1 }.repeated(40)
    });
    let event = Event::Composed(parts.collect());
    let at = |relative: f64| {
        let pld = Pld { relative, ..Pld::default() };
        pld.epsilon(&event, Neighbors::AddRemove, Delta::new(1e-6).unwrap()).unwrap()
    };
    let fine = at(1e-5);
    for relative in [1e-3, 0.1, 0.3] {
        let coarse = at(relative);
        assert!(
            coarse.upper >= fine.lower * (1.0 - 1e-9) && coarse.lower <= fine.upper * (1.0 + 1e-9),
            "{relative}: {coarse:?} against {fine:?}"
        );
    }
    assert!(fine.upper >= 7405.1047, "{fine:?}");
}
