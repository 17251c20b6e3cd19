//! Every case of golden/pate.json, and all small histograms with all their neighbours.

use std::collections::BTreeSet;

use quell_privacy::{
    accounting::votes::{Confident, GaussianMax, LaplaceMax, Screen},
    units::{NoiseMultiplier, Order, Scale},
};
use serde_json::Value;

fn cases(kind: &str) -> Vec<Value> {
    let all: Vec<Value> = all_cases().into_iter().filter(|case| case["kind"] == kind).collect();
    assert!(!all.is_empty(), "no case of kind {kind}");
    all
}

fn all_cases() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../../../golden/pate.json")).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn counts(case: &Value) -> Vec<u64> {
    case["params"]["counts"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
}

fn param(case: &Value, name: &str) -> f64 {
    number(&case["params"][name])
}

/// What the source whose name ends like this says.
fn source<'a>(case: &'a Value, ending: &str) -> &'a Value {
    let sources = case["sources"].as_object().unwrap();
    sources.iter().find(|(name, _)| name.ends_with(ending)).unwrap_or_else(|| panic!("no {ending} in {}", case["id"])).1
}

fn gaussian_max(deviation: f64) -> GaussianMax {
    GaussianMax { deviation: NoiseMultiplier::new(deviation).unwrap() }
}

fn laplace_max(scale: f64) -> LaplaceMax {
    LaplaceMax { scale: Scale::new(scale).unwrap() }
}

fn screen(threshold: f64, deviation: f64) -> Screen {
    Screen { threshold: threshold as u64, deviation: NoiseMultiplier::new(deviation).unwrap() }
}

fn order(value: f64) -> Order {
    Order::new(value).unwrap()
}

/// Above the truth, which has 400 digits behind it, and next to it.
fn assert_just_above(case: &Value, what: &str, value: f64, truth: f64, tolerance: f64) {
    let id = &case["id"];
    assert!(value >= truth * (1.0 - 1e-15), "{id}, {what}: {value} is below {truth}");
    assert!(value <= truth * (1.0 + tolerance), "{id}, {what}: {value} is above {truth}");
}

#[test]
fn no_case_is_forgotten() {
    let run = BTreeSet::from(["pate_rdp_gnmax", "pate_rdp_threshold", "pate_rdp_lnmax", "pate_votes"]);
    let all = all_cases();
    assert_eq!(all.len(), 67);
    for case in all {
        assert!(run.contains(case["kind"].as_str().unwrap()), "{} has no test", case["kind"]);
    }
}

#[test]
fn gaussian_maximum_at_given_votes() {
    for case in cases("pate_rdp_gnmax") {
        let (max, counts) = (gaussian_max(param(&case, "sigma")), counts(&case));
        let ln_q = number(source(&case, "400digits:logq"));
        let error = max.ln_error(&counts);
        assert!(error >= ln_q * (1.0 + 1e-15) && error - ln_q <= 1e-14 * (4.0 - ln_q), "{}: {error} for {ln_q}", case["id"]);
        let truth = numbers(source(&case, "400digits:rdp"));
        let independent = numbers(source(&case, "rdp_data_independent"));
        for (i, alpha) in numbers(&case["params"]["orders"]).into_iter().enumerate() {
            // q itself is rounded up by a part in 10¹² at most, and with it what is nearly proportional to it.
            assert_just_above(&case, "divergence", max.divergence(&counts, order(alpha)), truth[i], 1e-10);
            assert_just_above(&case, "independent", max.independent(order(alpha)), independent[i], 1e-13);
        }
    }
}

#[test]
fn laplace_maximum_at_given_votes() {
    for case in cases("pate_rdp_lnmax") {
        let (max, counts) = (laplace_max(param(&case, "lam")), counts(&case));
        let ln_q = number(source(&case, "400digits:logq"));
        let error = max.ln_error(&counts);
        assert!(error >= ln_q * (1.0 + 1e-15) && error - ln_q <= 1e-14 * (4.0 - ln_q), "{}: {error} for {ln_q}", case["id"]);
        let truth = numbers(source(&case, "400digits:rdp"));
        for (i, alpha) in numbers(&case["params"]["orders"]).into_iter().enumerate() {
            assert_just_above(&case, "divergence", max.divergence(&counts, order(alpha)), truth[i], 1e-10);
        }
    }
}

#[test]
fn screen_at_given_votes() {
    for case in cases("pate_rdp_threshold") {
        let (screen, counts) = (screen(param(&case, "threshold"), param(&case, "sigma")), counts(&case));
        let passes = number(source(&case, "logpr_answered"));
        assert!((screen.ln_passes(&counts) / passes - 1.0).abs() < 1e-12, "{}", case["id"]);
        let truth = numbers(source(&case, "400digits:rdp"));
        for (i, alpha) in numbers(&case["params"]["orders"]).into_iter().enumerate() {
            assert_just_above(&case, "theorem", screen.by_likely_outcome(&counts, order(alpha)), truth[i], 1e-10);
            // What is charged is exact, and so below the theorem.
            let exact = screen.divergence(&counts, order(alpha));
            assert!(exact > 0.0 && exact <= truth[i] * (1.0 + 1e-13), "{}: {exact} above {}", case["id"], truth[i]);
        }
    }
}

/// The votes of 250 teachers on 1000 questions.
fn reference_votes() -> Vec<Vec<u64>> {
    let text = include_str!("../../../golden/votes_reference.csv");
    let votes: Vec<Vec<u64>> = text.lines().map(|line| line.split(',').map(|count| count.parse().unwrap()).collect()).collect();
    assert!(votes.len() == 1000 && votes.iter().all(|counts| counts.iter().sum::<u64>() == 250));
    votes
}

/// ε of an expected or real divergence by either conversion, at one order, as the peers write it.
fn classic(alpha: f64, divergence: f64, delta: f64) -> f64 {
    divergence - delta.ln() / (alpha - 1.0)
}

fn improved(alpha: f64, divergence: f64, delta: f64) -> f64 {
    divergence + (-1.0 / alpha).ln_1p() - (delta.ln() + alpha.ln()) / (alpha - 1.0)
}

#[test]
fn votes_of_a_thousand_questions() {
    let votes = reference_votes();
    for case in cases("pate_votes") {
        type Cost = Box<dyn Fn(&[u64], Order) -> f64>;
        // What peers report, what is sound, and what holds for all votes.
        let (reported, sound, independent): (Cost, Cost, Cost) = match case["params"]["mech"].as_str().unwrap() {
            "gnmax" => {
                let max = gaussian_max(param(&case, "sigma"));
                let at = move |counts: &[u64], order| max.divergence(counts, order);
                (Box::new(at), Box::new(at), Box::new(move |_, order| max.independent(order)))
            }
            "lnmax" => {
                let max = laplace_max(param(&case, "lam"));
                let at = move |counts: &[u64], order| max.divergence(counts, order);
                (Box::new(at), Box::new(at), Box::new(move |_, order| max.independent(order)))
            }
            _ => {
                let screen = screen(param(&case, "threshold"), param(&case, "sigma1"));
                let both = Confident { screen, max: gaussian_max(param(&case, "sigma2")) };
                (
                    Box::new(move |counts: &[u64], order| both.expected(counts, order)),
                    Box::new(move |counts: &[u64], order| both.divergence(counts, order)),
                    Box::new(move |_, order| both.independent(order)),
                )
            }
        };
        let delta = param(&case, "delta");
        let total = |cost: &Cost, questions: usize, alpha: f64| -> f64 {
            votes[..questions].iter().map(|counts| cost(counts, order(alpha))).sum()
        };
        for (questions, peer) in source(&case, "cumulative_eps_after_n_queries").as_object().unwrap() {
            let questions: usize = questions.parse().unwrap();
            let (at_classic, at_improved) = (number(&peer["order_classic"]), number(&peer["order_improved"]));
            let ours = classic(at_classic, total(&reported, questions, at_classic), delta);
            assert!((ours / number(&peer["eps_classic"]) - 1.0).abs() < 1e-9, "{} {questions}: {ours}, {peer}", case["id"]);
            let ours = improved(at_improved, total(&reported, questions, at_improved), delta);
            let theirs = number(&peer["eps_improved_conversion"]);
            assert!((ours / theirs - 1.0).abs() < 1e-9, "{} {questions}: {ours}, {peer}", case["id"]);
            // The sound bound is not below the average of costs that stands for one, but for the screen, where it knows more.
            let (sound, most) = (total(&sound, questions, at_improved), total(&independent, questions, at_improved));
            assert!(sound <= most * (1.0 + 1e-12), "{} {questions}: {sound} for {most}", case["id"]);
        }
    }
}
