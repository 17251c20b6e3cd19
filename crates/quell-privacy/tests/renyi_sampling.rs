//! Rényi bounds of sampled mechanisms against each other, and conversions against brute force.

use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Conversion, Method, Pld, Renyi, best},
    units::{Delta, Epsilon, NoiseMultiplier, Order, Rho, SamplingRate, Scale},
};

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

fn rate(value: f64) -> SamplingRate {
    SamplingRate::new(value).unwrap()
}

fn renyi(event: &Event, neighbors: Neighbors, at: f64) -> f64 {
    Method::Renyi.epsilon(event, neighbors, delta(at)).unwrap().epsilon.upper
}

fn divergence(event: &Event, neighbors: Neighbors, order: f64) -> f64 {
    Renyi::new(event, neighbors).unwrap().divergence(Order::new(order).unwrap())
}

#[test]
fn general_bound_is_above_the_exact_one() {
    // A ρ-zCDP event has the curve of a Gaussian, but not its pair: only the general theorem is left.
    for (sigma, rate) in [(1.0, 0.01), (2.0, 0.1), (5.0, 0.001)] {
        let rate = SamplingRate::new(rate).unwrap();
        let gaussian = Event::gaussian(NoiseMultiplier::new(sigma).unwrap()).poisson_sampled(rate);
        let concentrated =
            Event::ZeroConcentrated { rho: Rho::new(0.5 / (sigma * sigma)).unwrap() }.poisson_sampled(rate);
        for order in [1.5, 2.0, 3.0, 8.0, 20.5, 64.0] {
            let (exact, general) = (
                divergence(&gaussian, Neighbors::AddRemove, order),
                divergence(&concentrated, Neighbors::AddRemove, order),
            );
            assert!(exact <= general * (1.0 + 1e-9), "σ {sigma}, order {order}: {exact} above {general}");
            if order == 2.0 {
                assert!(
                    (exact / general - 1.0).abs() < 1e-6,
                    "at order two the theorem is exact: {exact}, {general}"
                );
            }
        }
    }
}

#[test]
fn sampled_pure_guarantee_by_its_pair_is_below_the_general_theorem() {
    let (epsilon, rate) = (Epsilon::new(1.0).unwrap(), SamplingRate::new(0.05).unwrap());
    let pure = Event::Pure { epsilon }.poisson_sampled(rate);
    // The same guarantee given as a curve.
    let curve: Vec<(Order, Epsilon)> = (2..=64)
        .map(|order| {
            let order = Order::new(f64::from(order)).unwrap();
            (
                order,
                Epsilon::new(divergence(&Event::Pure { epsilon }, Neighbors::AddRemove, order.get()))
                    .unwrap(),
            )
        })
        .collect();
    let given = Event::Renyi { curve }.poisson_sampled(rate);
    for order in [2.0, 4.0, 16.0, 50.0] {
        let (pair, general) =
            (divergence(&pure, Neighbors::AddRemove, order), divergence(&given, Neighbors::AddRemove, order));
        // At order two the theorem is exact, and the pair's grid adds a few parts in a billion.
        assert!(pair > 0.0 && pair <= general * (1.0 + 1e-6), "order {order}: {pair}, {general}");
        // Brute force over the two outcomes.
        let p = 1.0 / (1.0 + (-1.0_f64).exp());
        let (q, other) = (1.0 - p, p);
        let mixed = |a: f64, b: f64| 0.95 * b + 0.05 * a;
        let moment = other * (mixed(q, other) / other).powf(order) + q * (mixed(p, q) / q).powf(order);
        let truth = moment.ln() / (order - 1.0);
        assert!(
            pair >= truth * (1.0 - 1e-9) && pair <= truth * 1.01 + 1e-9,
            "order {order}: {pair}, brute force {truth}"
        );
    }
}

#[test]
fn given_curves_are_interpolated_from_above() {
    let rho = 0.3;
    let curve = [2.0, 5.0, 20.0]
        .map(|order: f64| (Order::new(order).unwrap(), Epsilon::new(rho * order).unwrap()))
        .to_vec();
    let event = Event::Renyi { curve };
    for order in [1.2, 2.0, 3.3, 5.0, 17.0, 20.0] {
        let value = divergence(&event, Neighbors::AddRemove, order);
        assert!(value >= rho * order * (1.0 - 1e-12), "order {order}: {value}");
    }
    assert_eq!(divergence(&event, Neighbors::AddRemove, 20.5), f64::INFINITY);
}

#[test]
fn what_has_no_theorem_is_refused_with_its_name() {
    let at = Delta::new(1e-5).unwrap();
    let concentrated = Event::ZeroConcentrated { rho: Rho::new(0.1).unwrap() };
    let refused = Pld::default().epsilon(&Event::Composed(vec![concentrated]), Neighbors::AddRemove, at);
    assert!(
        matches!(&refused, Err(Error::Unsupported { event, .. }) if event == "zero_concentrated"),
        "{refused:?}"
    );
    let leaky = Event::Approximate { epsilon: Epsilon::new(0.1).unwrap(), delta: at };
    let refused = Renyi::new(&leaky, Neighbors::AddRemove);
    assert!(
        matches!(&refused, Err(Error::Unsupported { event, .. }) if event == "approximate"),
        "{refused:?}"
    );
    let sampled =
        Event::Pure { epsilon: Epsilon::new(1.0).unwrap() }.poisson_sampled(SamplingRate::new(0.1).unwrap());
    let refused = Pld::default().epsilon(&sampled, Neighbors::Replace, at);
    assert!(matches!(&refused, Err(Error::Unsupported { event, .. }) if event == "pure"), "{refused:?}");
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("pure") && message.contains("PLD"), "{message}");
}

#[test]
fn a_moment_that_underflows_is_not_a_free_release() {
    // The last node of the grid has no mass, and every other term vanishes beside it.
    let pure = |q: f64| Event::Pure { epsilon: Epsilon::new(1.0).unwrap() }.poisson_sampled(rate(q));
    let integers =
        Event::DiscreteLaplace { scale: Scale::new(1.0).unwrap(), sensitivity: 1 }.poisson_sampled(rate(0.5));
    for (event, at) in [
        (pure(0.5).repeated(10), 1e-9),
        (pure(0.6), 1e-9),
        (integers.repeated(10), 1e-9),
        (pure(0.5).repeated(10), 1e-100),
    ] {
        let renyi = Renyi::new(&event, Neighbors::AddRemove).unwrap();
        let truth = Pld::default().epsilon(&event, Neighbors::AddRemove, delta(10.0 * at)).unwrap();
        for conversion in [Conversion::Tight, Conversion::Classic] {
            let upper = renyi.epsilon(delta(at), conversion).upper;
            assert!(upper >= truth.lower && upper > 0.1, "{event:?}: {upper}, {truth:?}");
        }
        for order in [1e3, 1e5, 1e7, 1e9] {
            let value = renyi.divergence(Order::new(order).unwrap());
            assert!(value > 0.2, "{event:?} at order {order}: {value}");
        }
    }
}

#[test]
fn sampled_discrete_gaussian_is_above_its_own_moments() {
    for (deviation, sensitivity, q) in [(24.43, 2, 0.01), (1.3, 1, 0.2), (3.0, 4, 0.5)] {
        let event = Event::DiscreteGaussian { deviation: Scale::new(deviation).unwrap(), sensitivity }
            .poisson_sampled(rate(q));
        let (k, variance) = (f64::from(sensitivity), deviation * deviation);
        for order in [2.0, 7.0, 40.5, 300.0, 1500.0] {
            // ln Σ Q(n) (1 - q + q P(n)/Q(n))^α over all n that matter, from the definition; and the other direction.
            let reach = (order * k + 14.0 * deviation).ceil() as i64;
            let weight = |n: i64| -(n * n) as f64 / (2.0 * variance);
            let loss = |n: i64| k * (2.0 * n as f64 - k) / (2.0 * variance);
            let mixed = |n: i64| {
                let l = loss(n);
                if l > 600.0 { q.ln() + l } else { (q * l.exp_m1()).ln_1p() }
            };
            let ln_sum = |terms: Vec<f64>| {
                let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                top + terms.iter().map(|t| (t - top).exp()).sum::<f64>().ln()
            };
            let total = ln_sum((-reach..=reach).map(weight).collect());
            let moment =
                |power: f64| ln_sum((-reach..=reach).map(|n| weight(n) + power * mixed(n)).collect()) - total;
            let truth = moment(order).max(moment(1.0 - order)) / (order - 1.0);
            let value = divergence(&event, Neighbors::AddRemove, order);
            assert!(value >= truth * (1.0 - 1e-9), "σ {deviation}, order {order}: {value} below {truth}");
            // Whole orders are exact where the shift times the order is whole.
            assert!(
                order.fract() != 0.0 || value <= truth * (1.0 + 1e-6) + 1e-12,
                "σ {deviation}, order {order}: {value} far above {truth}"
            );
        }
    }
    let event = Event::DiscreteGaussian { deviation: Scale::new(24.43).unwrap(), sensitivity: 2 }
        .poisson_sampled(rate(0.01))
        .repeated(2);
    let truth = Pld::default().epsilon(&event, Neighbors::AddRemove, delta(1e-12)).unwrap();
    let upper = renyi(&event, Neighbors::AddRemove, 1e-12);
    assert!(upper >= truth.lower && truth.lower > 0.0078, "{upper}, {truth:?}");
}

#[test]
fn a_guarantee_with_delta_beside_a_concentrated_one_has_a_bound() {
    let concentrated = || Event::ZeroConcentrated { rho: Rho::new(0.1).unwrap() };
    // What it may be, so that what comes out is at least this.
    let gaussian = || Event::gaussian(NoiseMultiplier::new(1.0 / 0.2_f64.sqrt()).unwrap());
    let leaky = || Event::Approximate { epsilon: Epsilon::new(0.5).unwrap(), delta: delta(1e-8) };
    let (claimed, shown) =
        (Event::Composed(vec![concentrated(), leaky()]), Event::Composed(vec![gaussian(), leaky()]));
    let upper = renyi(&claimed, Neighbors::AddRemove, 1e-5);
    let truth = Pld::default().epsilon(&shown, Neighbors::AddRemove, delta(1e-5)).unwrap();
    assert!(upper >= truth.lower && upper < 1.25 * truth.upper, "{upper}, {truth:?}");
    // A δ that is used up is no bound.
    assert_eq!(renyi(&claimed.clone().repeated(1001), Neighbors::AddRemove, 1e-5), f64::INFINITY);
    assert_eq!(
        Renyi::for_delta(&claimed, Neighbors::AddRemove, delta(1e-5))
            .unwrap()
            .divergence(Order::new(2.0).unwrap()),
        f64::INFINITY
    );

    // Gaussian noise is one contribution of reach two under replacement, a guarantee is as it stands.
    let steps =
        || Event::gaussian(NoiseMultiplier::new(2.0).unwrap()).poisson_sampled(rate(0.01)).repeated(100);
    let shown =
        Event::Composed(vec![Event::gaussian(NoiseMultiplier::new(2.0 / 0.2_f64.sqrt()).unwrap()), steps()]);
    let upper = renyi(&Event::Composed(vec![concentrated(), steps()]), Neighbors::Replace, 1e-5);
    let truth = Pld::default().epsilon(&shown, Neighbors::Replace, delta(1e-5)).unwrap();
    assert!(upper >= truth.lower && upper < 1.25 * truth.upper, "{upper}, {truth:?}");
}

#[test]
fn sampled_laplace_noise_under_replacement_lies_between_its_neighbours() {
    let laplace =
        |z: f64| Event::laplace(NoiseMultiplier::new(z).unwrap()).poisson_sampled(rate(0.02)).repeated(50);
    let upper = |event: &Event, neighbors| best(event, neighbors, delta(1e-6)).unwrap().1.epsilon.upper;
    // Removing a record is less than replacing it, and that less than removing one with twice the contribution, twice.
    let (removed, replaced) =
        (upper(&laplace(2.0), Neighbors::AddRemove), upper(&laplace(2.0), Neighbors::Replace));
    let twice = upper(&Event::Composed(vec![laplace(1.0), laplace(1.0)]), Neighbors::AddRemove);
    assert!(removed < replaced && replaced < twice, "{removed} {replaced} {twice}");
}

#[test]
fn releases_on_the_same_sample_cost_more_than_each_and_less_than_unsampled() {
    let laplace = || Event::laplace(NoiseMultiplier::new(2.0).unwrap());
    let gaussian = || Event::gaussian(NoiseMultiplier::new(2.0).unwrap());
    let upper =
        |event: Event| best(&event.repeated(20), Neighbors::AddRemove, delta(1e-6)).unwrap().1.epsilon.upper;
    let together = upper(Event::Composed(vec![laplace(), gaussian()]).poisson_sampled(rate(0.05)));
    let alone = upper(gaussian().poisson_sampled(rate(0.05)));
    let unsampled = upper(Event::Composed(vec![laplace(), gaussian()]));
    assert!(alone < together && together < unsampled, "{alone} {together} {unsampled}");
    // A sample of a sample is a sample.
    let (twice, once) = (
        upper(gaussian().poisson_sampled(rate(0.5)).poisson_sampled(rate(0.1))),
        upper(gaussian().poisson_sampled(rate(0.05))),
    );
    assert!(twice >= once * (1.0 - 2e-3), "{twice} {once}");
}
