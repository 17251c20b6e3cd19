//! The numbers of the lectures, by name.

use quell_privacy::{
    Event, Neighbors,
    accounting::{Conversion, Method, Pld, Renyi, closed, closed::Guarantee},
    units::{Delta, Epsilon, NoiseMultiplier, Order, Rho, SamplingRate},
};

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

fn dp_sgd(rate: f64, sigma: f64, steps: u64) -> Event {
    Event::dp_sgd(NoiseMultiplier::new(sigma).unwrap(), SamplingRate::new(rate).unwrap(), steps)
}

/// Lecture 13 on deep learning: rate 0.01, σ 5, 1000 answers, δ 1e-6 print 0.27105623043762284.
#[test]
fn private_knn_of_the_lecture_and_the_tighter_truth() {
    let votes = dp_sgd(0.01, 5.0, 1000);
    let renyi =
        Renyi::new(&votes, Neighbors::AddRemove).unwrap().epsilon(delta(1e-6), Conversion::Tight).upper;
    // autodp searches its orders on a coarser grid: ours may be lower by as much as that, and not higher.
    assert!((renyi - 0.271_056_230_437_622_84).abs() < 1e-8, "{renyi}");
    let pld = Pld::default().epsilon(&votes, Neighbors::AddRemove, delta(1e-6)).unwrap();
    assert!(pld.lower <= 0.249_026_011 && 0.249_026_011 <= pld.upper, "{pld:?}");
    assert!(pld.upper < 0.2492, "{pld:?}");
}

/// Abadi et al.: MNIST in lots of 600, CIFAR in lots of 2000.
#[test]
fn abadi_settings() {
    for (rate, sigma, steps, classic, truth) in [
        (0.01, 8.0, 10_000, 0.611_846, 0.437_249),
        (0.01, 4.0, 10_000, 1.258_575, 0.946_867),
        (0.01, 2.0, 10_000, 2.734_477, 2.162_705),
        (0.04, 6.0, 5000, 2.402_945, 1.888_715),
    ] {
        let run = dp_sgd(rate, sigma, steps);
        let pld = Pld::default().epsilon(&run, Neighbors::AddRemove, delta(1e-5)).unwrap();
        assert!(pld.lower <= truth && truth <= pld.upper, "σ {sigma}: {pld:?}, {truth}");
        let moments = Method::Moments.epsilon(&run, Neighbors::AddRemove, delta(1e-5)).unwrap().epsilon.upper;
        let renyi = Renyi::new(&run, Neighbors::AddRemove).unwrap();
        let (ours, tight) = (
            renyi.epsilon(delta(1e-5), Conversion::Classic).upper,
            renyi.epsilon(delta(1e-5), Conversion::Tight).upper,
        );
        // The moments accountant is the classic conversion at orders 2 to 33; more orders help, a better conversion more.
        assert!((ours / classic - 1.0).abs() < 1e-3, "σ {sigma}: {ours}, {classic}");
        assert!(
            pld.upper < tight && tight < ours && ours <= moments && moments < 1.2 * classic,
            "σ {sigma}: {moments}"
        );
    }
}

/// "1000 steps of (0.005, 1e-5)-DP are about (0.15, 1e-5)-DP".
///
/// That depends on the mechanism behind the 0.005.
#[test]
fn thousand_steps_of_five_thousandths() {
    let one = Guarantee { epsilon: 0.005, delta: 1e-5 };
    // As numbers alone the δs already add up to 1e-2: nothing at all can be said at 1e-5.
    assert_eq!(one.basic(1000), Guarantee { epsilon: 5.0, delta: 1e-5 * 1000.0 });
    assert_eq!(one.optimal(1000, delta(1e-5)), f64::INFINITY);
    let spent = one.advanced(1000, delta(1e-5));
    assert!((spent.epsilon - 0.771_19).abs() < 1e-3 && spent.delta > 1e-2, "{spent:?}");
    // As Gaussian noise of the classical size it is 0.100, of the exact size 0.234: the lecture's 0.158 lies between.
    let (epsilon, each) = (Epsilon::new(0.005).unwrap(), delta(1e-5));
    let classic = Event::gaussian(closed::classic_gaussian_sigma(epsilon, each).unwrap()).repeated(1000);
    let exact = Event::gaussian(closed::gaussian_sigma(epsilon, each).unwrap()).repeated(1000);
    let at = |event: &Event| closed::epsilon(event, Neighbors::AddRemove, each).unwrap().upper;
    assert!((at(&classic) - 0.100_387_285_377).abs() < 1e-9);
    assert!((at(&exact) - 0.233_955_856_854).abs() < 1e-9);
    assert!(at(&classic) < 0.005 * 1000_f64.sqrt() && 0.005 * 1000_f64.sqrt() < at(&exact));
}

/// DP-GD: λ ≥ 2CT√(2 ln(2T/δ))/(εn) suffices, and is far more than needed.
#[test]
fn dp_gd_noise_formula_is_safe_and_loose() {
    let (epsilon, at) = (Epsilon::new(1.0).unwrap(), delta(1e-6));
    for (steps, factor) in [(1, 1.2), (10, 3.5), (100, 12.0), (1000, 40.0)] {
        // The formula's noise is over the sensitivity to replacement, 2C/n: twice the contribution.
        let formula = closed::dp_gd_sigma(epsilon, at, steps).unwrap().get();
        let run = Event::gaussian(NoiseMultiplier::new(2.0 * formula).unwrap()).repeated(steps);
        let spent = closed::epsilon(&run, Neighbors::Replace, at).unwrap();
        assert!(spent.upper <= 1.0, "{steps} steps cost {spent:?}");
        // The least noise for T steps is √T times that for one.
        let least = closed::gaussian_sigma(epsilon, at).unwrap().get() * (steps as f64).sqrt();
        assert!(formula > factor * least, "{steps} steps: {formula} against {least}");
    }
    assert!(closed::dp_gd_sigma(Epsilon::new(1.5).unwrap(), at, 10).is_err());
}

/// 13αγ²ρ, where it holds, bounds the sampled Gaussian; and what it costs.
#[test]
fn truncated_concentrated_bound_holds_where_it_says() {
    for (sigma, rate) in [(3.0, 1e-2), (5.0, 1e-3), (10.0, 0.05)] {
        let (rho, rate) = (Rho::new(0.5 / (sigma * sigma)).unwrap(), SamplingRate::new(rate).unwrap());
        let renyi = Renyi::new(&dp_sgd(rate.get(), sigma, 1), Neighbors::AddRemove).unwrap();
        let limit = -rate.get().ln() / (4.0 * rho.get());
        for share in [0.1, 0.5, 0.99] {
            let order = Order::new(1.0 + share * (limit - 1.0)).unwrap();
            let bound = closed::truncated_cdp(order, rate, rho).unwrap();
            let truth = renyi.divergence(order);
            assert!(truth <= bound, "σ {sigma}, order {order:?}: {truth} above {bound}");
        }
        assert!(closed::truncated_cdp(Order::new(limit + 1.0).unwrap(), rate, rho).is_err());
    }
    assert!(
        closed::truncated_cdp(
            Order::new(2.0).unwrap(),
            SamplingRate::new(0.5).unwrap(),
            Rho::new(0.01).unwrap()
        )
        .is_err()
    );
}

/// Lecture on PATE: group privacy for (ε, δ), and subsampling.
#[test]
fn group_privacy_and_subsampling_lemma() {
    let one = Guarantee { epsilon: 0.1, delta: 1e-6 };
    let five = one.group(5);
    assert!((five.epsilon - 0.5).abs() < 1e-15);
    assert!(five.delta <= 5.0 * (0.4_f64).exp() * 1e-6 && five.delta > 5e-6, "{five:?}");
    let sampled = Guarantee { epsilon: 1.0, delta: 1e-5 }.sampled(SamplingRate::new(0.01).unwrap());
    assert!((sampled.epsilon - (0.01_f64 * 1.0_f64.exp_m1()).ln_1p()).abs() < 1e-15);
    assert!((sampled.delta - 1e-7).abs() < 1e-20);
}
