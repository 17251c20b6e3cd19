//! Edges of the theorems and of the number range.
//!
//! Each of them was, or could have been, a wrong claim.

use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Conversion, Method, Pld, Renyi, TradeOff, closed},
    units::{Delta, Epsilon, NoiseMultiplier, Order, Probability, SamplingRate},
};

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn gaussian(sigma: f64) -> Event {
    Event::gaussian(NoiseMultiplier::new(sigma).unwrap())
}

fn rate(value: f64) -> SamplingRate {
    SamplingRate::new(value).unwrap()
}

#[test]
fn a_leak_beside_a_gaussian_is_a_leak() {
    let event = Event::Composed(vec![gaussian(1.0), Event::NonPrivate]);
    let curve = TradeOff::new(&Pld::default(), &event, Neighbors::AddRemove).unwrap();
    assert_eq!(curve.power(Probability::new(0.01).unwrap()).lower, 1.0);
    assert_eq!(curve.gaussian(delta(1e-9)).unwrap().upper, f64::INFINITY);
}

#[test]
fn losses_beyond_the_range_of_exp_count() {
    // Half of P has a loss of about 1250: ε is about 1250 + 50·4.1.
    let bound = Pld::default()
        .epsilon(&gaussian(0.02).poisson_sampled(rate(0.5)), Neighbors::AddRemove, delta(1e-5))
        .unwrap();
    assert!(bound.upper > 1440.0 && bound.upper < 1470.0, "{bound:?}");
}

#[test]
fn many_draws_of_few_records_are_refused_or_counted() {
    let draws = |batch: u64, records: u64| {
        let event = Event::SampledWithReplacement { batch, records, event: Box::new(gaussian(1.0)) };
        Pld::default().epsilon(&event, Neighbors::Replace, delta(1e-5))
    };
    assert!(matches!(draws(8000, 10), Err(Error::Unsupported { .. })));
    // A record that is drawn about thirty times contributes about thirty times.
    let many = draws(300, 10).unwrap();
    assert!(many.upper > 500.0, "{many:?}");
    // From below: one draw, with the chance of at least one, and the full distance between two contributions.
    let once = gaussian(0.5).poisson_sampled(rate(1.0 - 0.9_f64.powi(5)));
    let once = Pld::default().epsilon(&once, Neighbors::AddRemove, delta(1e-5)).unwrap();
    let few = draws(5, 10).unwrap();
    assert!((few.lower / once.lower - 1.0).abs() < 1e-9 && few.upper > once.upper, "{few:?} {once:?}");
}

#[test]
fn mass_that_only_the_neighbour_has_is_not_lost_under_sampling() {
    // With chance 1/2 the inner release says everything. Sampled at 0.1 and composed with a Gaussian:
    // δ(1) = 0.05 + 0.45 E[(1 - e^(1-l'))₊] + 0.5 E[…], by direct integration 0.1624.
    let leaky = Event::Approximate { epsilon: epsilon(0.0), delta: delta(0.5) }.poisson_sampled(rate(0.1));
    let event = Event::Composed(vec![leaky, gaussian(1.0)]);
    for (at, truth) in [(1.0, 0.1624), (1.5, 0.0994), (2.0, 0.0679)] {
        let bound = Pld::default().delta(&event, Neighbors::AddRemove, at).unwrap();
        assert!(bound.lower <= truth + 1e-4 && truth - 1e-4 <= bound.upper, "ε {at}: {bound:?}, {truth}");
    }
}

#[test]
fn a_delta_that_never_vanishes_is_no_gaussian() {
    let event = Event::Approximate { epsilon: epsilon(1.0), delta: delta(0.01) }.repeated(2);
    let mu =
        TradeOff::new(&Pld::default(), &event, Neighbors::AddRemove).unwrap().gaussian(delta(1e-6)).unwrap();
    assert_eq!(mu.upper, f64::INFINITY);
}

#[test]
fn noise_beyond_its_range_is_unreachable_not_guessed() {
    assert!(matches!(closed::gaussian_sigma(epsilon(0.0), delta(1e-15)), Err(Error::Unreachable { .. })));
}

#[test]
fn large_orders_of_samples_of_fixed_size_are_above_an_attained_pair() {
    // The exchange of one contribution for another while all others equal it, at order 2000 and 3000, by quadrature.
    let event = Event::SampledWithoutReplacement { batch: 9, records: 10, event: Box::new(gaussian(200.0)) };
    let renyi = Renyi::new(&event, Neighbors::Replace).unwrap();
    for (order, truth) in [(2000.0, 0.08241), (3000.0, 0.1246)] {
        let value = renyi.divergence(Order::new(order).unwrap());
        assert!(value >= truth, "order {order}: {value} below {truth}");
    }
}

#[test]
fn small_guarantees_do_not_vanish_by_cancellation() {
    for small in [1e-3, 1e-6, 1e-8] {
        for order in [2.0, 30.0] {
            let at = |event: &Event| {
                Renyi::new(event, Neighbors::AddRemove).unwrap().divergence(Order::new(order).unwrap())
            };
            // To leading order αε²/8 and αε²/2.
            let selected =
                at(&Event::Exponential { epsilon: epsilon(small) }) / (order * small * small / 8.0);
            let laplace = at(&Event::laplace(NoiseMultiplier::new(1.0 / small).unwrap()))
                / (order * small * small / 2.0);
            assert!((1.0 - 1e-4..1.1).contains(&selected), "ε {small}, order {order}: {selected}");
            assert!(
                laplace > 1.0 - 2.0 * small * order && laplace < 20.0,
                "ε {small}, order {order}: {laplace}"
            );
        }
    }
}

#[test]
fn tails_that_underflow_are_not_zero_from_below() {
    let laplace = Event::laplace(NoiseMultiplier::new(1e-3).unwrap());
    let bound = closed::epsilon(&laplace, Neighbors::AddRemove, delta(0.1)).unwrap();
    assert!(bound.lower <= 1000.0 + 2.0 * 0.9_f64.ln() && bound.upper >= 999.789, "{bound:?}");
    let pure = closed::delta(&Event::Pure { epsilon: epsilon(800.0) }, Neighbors::AddRemove, epsilon(799.0))
        .unwrap();
    assert!(pure.lower <= 0.632_121 && pure.upper >= 0.632_120, "{pure:?}");
    let wide = Event::Exponential { epsilon: epsilon(2000.0) };
    let bound = closed::epsilon(&wide, Neighbors::AddRemove, delta(0.01)).unwrap();
    assert!(bound.upper > 1999.0 && bound.upper <= 2000.0 * (1.0 + 1e-9), "{bound:?}");
}

#[test]
fn no_false_positives_no_power() {
    let event = Event::Composed(vec![gaussian(0.02), Event::Pure { epsilon: epsilon(1.0) }]);
    let power = TradeOff::new(&Pld::default(), &event, Neighbors::AddRemove)
        .unwrap()
        .power(Probability::new(0.0).unwrap());
    assert!(power.lower <= 1e-9, "{power:?}");
}

#[test]
fn profile_of_weak_and_of_strong_gaussians_keeps_its_digits() {
    // erf(μ/2√2) at ε = 0, in 30 digits.
    for (sigma, truth) in [
        (1e6, 3.989_422_804_014_160_6e-7),
        (1e8, 3.989_422_804_014_327e-9),
        (1e12, 3.989_422_804_014_327e-13),
    ] {
        let bound = closed::delta(&gaussian(sigma), Neighbors::AddRemove, epsilon(0.0)).unwrap();
        assert!(
            bound.lower <= truth && truth <= bound.upper && bound.upper - bound.lower < 1e-9 * truth,
            "σ {sigma}: {bound:?}"
        );
    }
    // At ε = μ²/2 and μ = 100: Φ(0) - φ(0)R(100).
    let bound = closed::delta(&gaussian(0.01), Neighbors::AddRemove, epsilon(5000.0)).unwrap();
    assert!(bound.lower <= 0.496_010_976 && 0.496_010_975 <= bound.upper, "{bound:?}");
}

#[test]
fn conversions_of_nothing_are_nothing_and_of_everything_infinite() {
    let nothing = Renyi::new(&Event::Composed(vec![]), Neighbors::AddRemove).unwrap();
    assert_eq!(nothing.epsilon(delta(1e-5), Conversion::Tight).upper, 0.0);
    let zero = Renyi::new(&gaussian(1.0).repeated(0), Neighbors::AddRemove).unwrap();
    assert_eq!(zero.epsilon(delta(1e-5), Conversion::Classic).upper, 0.0);
}

#[test]
fn optimal_composition_of_very_many_runs_ends_and_agrees_with_the_sum() {
    use quell_privacy::accounting::closed::Guarantee;
    // Up to ten million runs are summed, more are composed.
    for (epsilon, own) in [(0.001, 0.0), (0.0003, 1e-15)] {
        let one = Guarantee { epsilon, delta: own };
        let at = Delta::new(1e-6).unwrap();
        let (summed, composed) = (one.optimal(10_000_000, at), one.optimal(10_000_001, at));
        assert!(composed >= summed && composed <= summed * 1.004, "{summed} {composed}");
        assert!(one.optimal(1 << 53, at) > 1e6);
    }
}

/// Every accountant refuses such an event, or claims enough.
///
/// Basic composition of the largest losses is enough.
#[test]
fn repetitions_beyond_all_counting_are_not_counted_as_fewer() {
    let pure = |value: f64| Event::Pure { epsilon: epsilon(value) };
    let nested = pure(1e-12).repeated(1 << 40).repeated(1 << 40);
    let leak =
        Event::Approximate { epsilon: epsilon(0.0), delta: delta(1e-20) }.repeated(1 << 40).repeated(1 << 40);
    let many = Event::Composed(vec![pure(100.0).repeated(1 << 53); 2049]);
    let wide = Event::Composed((0..1500).map(|i| pure(100.0 + f64::from(i)).repeated(1 << 53)).collect());
    // 2^80 releases of 10⁻¹² are a Gaussian with μ = 1.0995 in the limit; what leaks with certainty has no ε.
    for (event, truth) in
        [(nested, 5.44), (leak, f64::INFINITY), (many, 2049.0 * 2_f64.powi(53) * 99.9), (wide, 1e21)]
    {
        for method in Method::ALL {
            match method.epsilon(&event, Neighbors::AddRemove, delta(1e-6)) {
                Ok(answer) if !answer.claimable => {}
                Ok(answer) => assert!(
                    answer.epsilon.upper >= truth,
                    "{}: {:?} < {truth}",
                    method.name(),
                    answer.epsilon
                ),
                Err(Error::Malformed { .. } | Error::Unsupported { .. }) => {}
                Err(other) => panic!("{}: {other}", method.name()),
            }
        }
    }
}
