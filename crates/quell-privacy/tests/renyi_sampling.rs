//! Rényi bounds of sampled mechanisms against each other, and conversions against brute force.

use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Pld, Renyi},
    units::{Delta, Epsilon, NoiseMultiplier, Order, Rho, SamplingRate},
};

fn divergence(event: &Event, neighbors: Neighbors, order: f64) -> f64 {
    Renyi::new(event, neighbors).unwrap().divergence(Order::new(order).unwrap())
}

#[test]
fn general_bound_is_above_the_exact_one() {
    // A ρ-zCDP event has the curve of a Gaussian, but not its pair: only the general theorem is left.
    for (sigma, rate) in [(1.0, 0.01), (2.0, 0.1), (5.0, 0.001)] {
        let rate = SamplingRate::new(rate).unwrap();
        let gaussian = Event::gaussian(NoiseMultiplier::new(sigma).unwrap()).poisson_sampled(rate);
        let concentrated = Event::ZeroConcentrated { rho: Rho::new(0.5 / (sigma * sigma)).unwrap() }.poisson_sampled(rate);
        for order in [1.5, 2.0, 3.0, 8.0, 20.5, 64.0] {
            let (exact, general) =
                (divergence(&gaussian, Neighbors::AddRemove, order), divergence(&concentrated, Neighbors::AddRemove, order));
            assert!(exact <= general * (1.0 + 1e-9), "σ {sigma}, order {order}: {exact} above {general}");
            if order == 2.0 {
                assert!((exact / general - 1.0).abs() < 1e-6, "at order two the theorem is exact: {exact}, {general}");
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
            (order, Epsilon::new(divergence(&Event::Pure { epsilon }, Neighbors::AddRemove, order.get())).unwrap())
        })
        .collect();
    let given = Event::Renyi { curve }.poisson_sampled(rate);
    for order in [2.0, 4.0, 16.0, 50.0] {
        let (pair, general) = (divergence(&pure, Neighbors::AddRemove, order), divergence(&given, Neighbors::AddRemove, order));
        // At order two the theorem is exact, and the pair's grid adds a few parts in a billion.
        assert!(pair > 0.0 && pair <= general * (1.0 + 1e-6), "order {order}: {pair}, {general}");
        // Brute force over the two outcomes.
        let p = 1.0 / (1.0 + (-1.0_f64).exp());
        let (q, other) = (1.0 - p, p);
        let mixed = |a: f64, b: f64| 0.95 * b + 0.05 * a;
        let moment = other * (mixed(q, other) / other).powf(order) + q * (mixed(p, q) / q).powf(order);
        let truth = moment.ln() / (order - 1.0);
        assert!(pair >= truth * (1.0 - 1e-9) && pair <= truth * 1.01 + 1e-9, "order {order}: {pair}, brute force {truth}");
    }
}

#[test]
fn given_curves_are_interpolated_from_above() {
    let rho = 0.3;
    let curve = [2.0, 5.0, 20.0].map(|order: f64| (Order::new(order).unwrap(), Epsilon::new(rho * order).unwrap())).to_vec();
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
    assert!(matches!(&refused, Err(Error::Unsupported { event, .. }) if event == "zero_concentrated"), "{refused:?}");
    let leaky = Event::Approximate { epsilon: Epsilon::new(0.1).unwrap(), delta: at };
    let refused = Renyi::new(&leaky, Neighbors::AddRemove);
    assert!(matches!(&refused, Err(Error::Unsupported { event, .. }) if event == "approximate"), "{refused:?}");
    let sampled = Event::laplace(NoiseMultiplier::new(1.0).unwrap()).poisson_sampled(SamplingRate::new(0.1).unwrap());
    let refused = Pld::default().epsilon(&sampled, Neighbors::Replace, at);
    assert!(matches!(&refused, Err(Error::Unsupported { event, .. }) if event == "laplace"), "{refused:?}");
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("laplace") && message.contains("PLD"), "{message}");
}
