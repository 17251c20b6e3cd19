//! Events at the edges of double precision, compared with values computed to 50 digits.
#![allow(
    clippy::unreadable_literal,
    clippy::excessive_precision,
    reason = "settings and values as they were found"
)]

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Method, Pld, best},
    units::Delta,
};

fn event(json: &str) -> Event {
    serde_json::from_str(json).unwrap()
}

fn pld(json: &str, neighbors: Neighbors, delta: f64, relative: f64) -> Bound {
    let pld = Pld { relative, absolute: 0.1 * relative, ..Pld::default() };
    pld.epsilon(&event(json), neighbors, Delta::new(delta).unwrap()).unwrap()
}

/// The probability without the record is below 10⁻³²⁰, where two digits are left of it.
#[test]
fn probabilities_that_underflow_do_not_lower_an_upper_bound() {
    for (json, delta, truth) in [
        (
            r#"{"composed":[{"poisson_sampled":{"rate":1e-15,"event":{"pure":{"epsilon":744.03}}}},
                {"gaussian":{"noise_multiplier":5.0}}]}"#,
            1e-17,
            709.75445,
        ),
        (
            r#"{"composed":[{"poisson_sampled":{"rate":1.0017838915777103e-14,"event":{"pure":{"epsilon":741.8306130075399}}}},
                {"gaussian":{"noise_multiplier":1.7623047879979135}}]}"#,
            4.432688165223286e-17,
            710.87189,
        ),
        (
            r#"{"composed":[{"poisson_sampled":{"rate":1.3150494622159413e-8,"event":{"pure":{"epsilon":726.7276094863702}}}},
                {"laplace":{"noise_multiplier":6.717537900309694}}]}"#,
            1.0271866607677085e-8,
            707.061657446204,
        ),
    ] {
        let bound = pld(json, Neighbors::AddRemove, delta, 1e-3);
        assert!(
            bound.lower <= truth && truth <= bound.upper && bound.upper < truth + 1.0,
            "{bound:?} {truth}"
        );
        let delta = Delta::new(delta).unwrap();
        for method in Method::ALL {
            // An estimate claims nothing.
            if let Ok(answer) = method.epsilon(&event(json), Neighbors::AddRemove, delta)
                && answer.claimable
            {
                assert!(
                    answer.epsilon.upper >= truth,
                    "{} claims {:?} for {truth}",
                    method.name(),
                    answer.epsilon
                );
            }
        }
    }
}

#[test]
fn wide_cells_and_overflowing_ratios_do_not_raise_a_lower_bound() {
    for (json, neighbors, delta, relative, truth) in [
        (
            r#"{"composed":[{"sampled_without_replacement":{"batch":1,"records":3,
                "event":{"gaussian":{"noise_multiplier":0.08364651123937086}}}},{"pure":{"epsilon":92.23467427286573}}]}"#,
            Neighbors::Replace,
            2.321838524822683e-58,
            0.5,
            758.6516,
        ),
        (
            r#"{"composed":[{"gaussian":{"noise_multiplier":0.004643144616120734}},{"pure":{"epsilon":44.756961082164786}}]}"#,
            Neighbors::AddRemove,
            2.2903164799888988e-30,
            0.03,
            25689.7,
        ),
        (
            r#"{"composed":[{"sampled_without_replacement":{"batch":2,"records":10,"event":{"pure":{"epsilon":1.37}}}},
                {"repeated":{"count":2,"event":{"pure":{"epsilon":709.94}}}},{"gaussian":{"noise_multiplier":1.0170713808820624}}]}"#,
            Neighbors::Replace,
            0.5118573574495805,
            1e-3,
            1420.8580,
        ),
        (
            r#"{"composed":[{"repeated":{"count":2,"event":{"sampled_without_replacement":{"batch":1,"records":2,
                "event":{"pure":{"epsilon":4.0124797903946914e-07}}}}}},{"laplace":{"noise_multiplier":0.001370668634730468}}]}"#,
            Neighbors::Replace,
            2.3714167074400675e-06,
            1e-3,
            1459.1418690283,
        ),
    ] {
        let bound = pld(json, neighbors, delta, relative);
        assert!(
            bound.lower <= truth * (1.0 + 1e-6) && truth * (1.0 - 1e-6) <= bound.upper,
            "{bound:?}, expected {truth}"
        );
    }
}

#[test]
fn infinite_losses_that_exceed_delta_by_rounding_alone_have_no_finite_epsilon() {
    for (json, delta) in [
        (
            r#"{"repeated":{"count":10000001,"event":{"approximate":{"epsilon":1.0,"delta":1.1e-25}}}}"#,
            1.10000011e-18,
        ),
        (r#"{"repeated":{"count":5,"event":{"approximate":{"epsilon":1.0,"delta":1e-09}}}}"#, 4.99999999e-9),
        (
            r#"{"repeated":{"count":7,"event":{"approximate":{"epsilon":0.5,"delta":1e-3}}}}"#,
            0.006979034965020993,
        ),
    ] {
        let optimal =
            Method::Optimal.epsilon(&event(json), Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap();
        assert!(optimal.epsilon.upper.is_infinite(), "{:?}", optimal.epsilon);
    }
    // A guarantee at its own δ costs its own ε.
    let one = event(r#"{"approximate":{"epsilon":1.0,"delta":1e-9}}"#);
    let (_, answer) = best(&one, Neighbors::AddRemove, Delta::new(1e-9).unwrap()).unwrap();
    assert!(answer.epsilon.upper < 1.0 + 1e-9, "{:?}", answer.epsilon);
}

/// One loss for each integer within forty deviations.
///
/// One nested call for each loss would overflow the stack.
#[test]
fn laws_with_many_losses_are_listed_without_deep_recursion() {
    let json =
        r#"{"composed":[{"discrete_gaussian":{"deviation":5000,"sensitivity":1}},{"pure":{"epsilon":1.0}}]}"#;
    let bound = pld(json, Neighbors::AddRemove, 1e-6, 1e-3);
    assert!(bound.lower > 0.9 && bound.upper < 1.01, "{bound:?}");
}

#[test]
fn losses_that_are_as_good_as_infinite_count_as_infinite() {
    for (json, delta, truth) in [
        (
            r#"{"composed":[{"repeated":{"count":5,"event":{"poisson_sampled":{"rate":0.01,"event":{"gaussian":{"noise_multiplier":0.002}}}}}},
                {"pure":{"epsilon":0.2}}]}"#,
            0.1,
            0.0974,
        ),
        (
            r#"{"composed":[{"poisson_sampled":{"rate":0.010945019022389256,"event":{"gaussian":{"noise_multiplier":0.0017429899196771484}}}},
                {"pure":{"epsilon":0.2069776919264468}}]}"#,
            0.044616694648234576,
            0.13363,
        ),
    ] {
        let bound = pld(json, Neighbors::AddRemove, delta, 1e-3);
        assert!(
            bound.lower <= truth + 1e-5 && bound.upper < truth * 1.002 + 2e-4,
            "{bound:?}, expected {truth}"
        );
    }
}

/// A rate near one.
///
/// The largest loss without the record is the logarithm of a tiny difference.
#[test]
fn losses_of_nearly_certain_samples_keep_their_digits() {
    let sampled = |rate: f64, epsilon: f64| {
        format!(r#"{{"poisson_sampled":{{"rate":{rate:?},"event":{{"pure":{{"epsilon":{epsilon:?}}}}}}}}}"#)
    };
    let composed = |count: u64, rate: f64, epsilon: f64, last: &str| {
        let first = sampled(rate, epsilon);
        format!(r#"{{"composed":[{{"repeated":{{"count":{count},"event":{first}}}}},{last}]}}"#)
    };
    for (json, delta, truth) in [
        (composed(3, 0.9, 2.0, &sampled(0.9999999999999999, 34.832166463087724)), 0.6, 37.1070781),
        (composed(2, 0.7, 2.0, &sampled(0.999999, 12.074739348469498)), 0.45, 12.904614432678872),
        (
            composed(
                2,
                0.7,
                2.0,
                &(sampled(0.9999999999999992, 32.864037491922545)
                    + r#",{"gaussian":{"noise_multiplier":4.0}}"#),
            ),
            0.45,
            33.719607,
        ),
    ] {
        for relative in [1e-3, 1e-5] {
            let bound = pld(&json, Neighbors::AddRemove, delta, relative);
            assert!(
                bound.lower <= truth * (1.0 + 1e-8) && truth * (1.0 - 1e-8) <= bound.upper,
                "{json} at {relative}: {bound:?}, expected {truth}"
            );
        }
    }
    // A sample of rate one is no sample.
    let whole =
        format!(r#"{{"composed":[{},{{"gaussian":{{"noise_multiplier":4.0}}}}]}}"#, sampled(1.0, 800.0));
    let bound = pld(&whole, Neighbors::AddRemove, 1e-6, 1e-3);
    assert!(bound.lower <= 801.2 && bound.upper >= 800.9 && bound.upper < 802.0, "{bound:?}");
}

/// Each of 100,000 additions loses half a unit in the last place of the sum.
#[test]
fn sums_over_many_parts_keep_their_digits() {
    let many = |json: &str, count: usize| Event::Composed(vec![event(json); count]);
    let gaussians = many(r#"{"gaussian":{"noise_multiplier":326.0531728974296}}"#, 100_000);
    let bound = Pld::default().delta(&gaussians, Neighbors::AddRemove, 34.41561672797943).unwrap();
    assert!(bound.lower <= 3.0283935715953e-270 && 3.0283935715953e-270 <= bound.upper, "{bound:?}");
    let pure = many(r#"{"pure":{"epsilon":48.61339280582537}}"#, 100_000);
    let basic = Method::Basic.epsilon(&pure, Neighbors::AddRemove, Delta::new(1e-10).unwrap()).unwrap();
    assert!(basic.epsilon.upper >= 4861339.2805825369, "{:?}", basic.epsilon);
    let optimal =
        event(r#"{"repeated":{"count":672013499631,"event":{"pure":{"epsilon":261.58844295332267}}}}"#);
    let optimal =
        Method::Optimal.epsilon(&optimal, Neighbors::AddRemove, Delta::new(1e-165).unwrap()).unwrap();
    assert!(optimal.epsilon.upper >= 175790965012086.568231, "{:?}", optimal.epsilon);
}
