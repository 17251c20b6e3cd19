//! Every case of golden/pate.json, and all small histograms with all their neighbours.

use std::collections::BTreeSet;

use quell_privacy::{
    Neighbors,
    accounting::votes::{Confident, GaussianMax, LaplaceMax, Screen},
    mechanism::{Asked, SmoothCost, VoteCost, Votes},
    units::{Delta, NoiseMultiplier, Order, Scale},
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
    sources
        .iter()
        .find(|(name, _)| name.ends_with(ending))
        .unwrap_or_else(|| panic!("no {ending} in {}", case["id"]))
        .1
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
        assert!(
            error >= ln_q * (1.0 + 1e-15) && error - ln_q <= 1e-14 * (4.0 - ln_q),
            "{}: {error} for {ln_q}",
            case["id"]
        );
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
        assert!(
            error >= ln_q * (1.0 + 1e-15) && error - ln_q <= 1e-14 * (4.0 - ln_q),
            "{}: {error} for {ln_q}",
            case["id"]
        );
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
            assert_just_above(
                &case,
                "theorem",
                screen.by_likely_outcome(&counts, order(alpha)),
                truth[i],
                1e-10,
            );
            // What is charged is exact, and so below the theorem.
            let exact = screen.divergence(&counts, order(alpha));
            assert!(
                exact > 0.0 && exact <= truth[i] * (1.0 + 1e-13),
                "{}: {exact} above {}",
                case["id"],
                truth[i]
            );
        }
    }
}

/// The votes of 250 teachers on 1000 questions.
fn reference_votes() -> Vec<Vec<u64>> {
    let text = include_str!("../../../golden/votes_reference.csv");
    let votes: Vec<Vec<u64>> =
        text.lines().map(|line| line.split(',').map(|count| count.parse().unwrap()).collect()).collect();
    assert!(votes.len() == 1000 && votes.iter().all(|counts| counts.iter().sum::<u64>() == 250));
    votes
}

/// ε of a divergence at one order by either conversion, as peers compute it.
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
        let (reported, sound, independent): (Cost, Cost, Cost) =
            match case["params"]["mech"].as_str().unwrap() {
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
            assert!(
                (ours / number(&peer["eps_classic"]) - 1.0).abs() < 1e-9,
                "{} {questions}: {ours}, {peer}",
                case["id"]
            );
            let ours = improved(at_improved, total(&reported, questions, at_improved), delta);
            let theirs = number(&peer["eps_improved_conversion"]);
            assert!((ours / theirs - 1.0).abs() < 1e-9, "{} {questions}: {ours}, {peer}", case["id"]);
            // The sound bound is not below the average of costs that stands for one, but for the screen, where it knows more.
            let (sound, most) =
                (total(&sound, questions, at_improved), total(&independent, questions, at_improved));
            assert!(sound <= most * (1.0 + 1e-12), "{} {questions}: {sound} for {most}", case["id"]);
        }
    }
}

/// All ways in which so many ballots fall on three candidates.
fn histograms(ballots: u64) -> Vec<[u64; 3]> {
    (0..=ballots).flat_map(|a| (0..=ballots - a).map(move |b| [a, b, ballots - a - b])).collect()
}

/// One ballot moves, goes or comes.
fn neighbours(counts: [u64; 3]) -> Vec<[u64; 3]> {
    let mut all = Vec::new();
    for from in 0..4 {
        for to in 0..4 {
            let mut there = counts;
            if from == to || there.get(from) == Some(&0) {
                continue;
            }
            if let Some(count) = there.get_mut(from) {
                *count -= 1;
            }
            if let Some(count) = there.get_mut(to) {
                *count += 1;
            }
            all.push(there);
        }
    }
    all
}

fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Probabilities of winning with noise of scale one, by quadrature.
///
/// The density may have kinks at multiples of `piece`.
fn winners(
    counts: [u64; 3],
    scale: f64,
    density: fn(f64) -> f64,
    below: fn(f64) -> f64,
    reach: f64,
    piece: f64,
) -> [f64; 3] {
    // Gauss-Legendre with five nodes.
    let (a, b): (f64, f64) = (
        (5.0 - 2.0 * (10.0_f64 / 7.0).sqrt()).sqrt() / 3.0,
        (5.0 + 2.0 * (10.0_f64 / 7.0).sqrt()).sqrt() / 3.0,
    );
    let (wa, wb) = ((322.0 + 13.0 * 70.0_f64.sqrt()) / 900.0, (322.0 - 13.0 * 70.0_f64.sqrt()) / 900.0);
    let nodes = [(0.0, 128.0 / 225.0), (a, wa), (-a, wa), (b, wb), (-b, wb)];
    let [first, last] = [(-reach * scale / piece).floor(), ((12.0 + reach * scale) / piece).ceil()];
    let mut wins = [0.0; 3];
    let mut cell = first;
    while cell < last {
        for (node, weight) in nodes {
            let x = piece * (cell + 0.5 + 0.5 * node);
            let z = counts.map(|count| (x - count as f64) / scale);
            for i in 0..3 {
                let others = (0..3).filter(|j| *j != i).map(|j| below(z[j])).product::<f64>();
                wins[i] += 0.5 * piece * weight * density(z[i]) / scale * others;
            }
        }
        cell += 1.0;
    }
    wins
}

/// Divergence of order α, precise where all outcomes but one are rare.
fn divergence(p: &[f64], q: &[f64], alpha: f64) -> f64 {
    let likely = (0..p.len()).max_by(|i, j| p[*i].total_cmp(&p[*j])).unwrap();
    let others = |law: &[f64]| (0..law.len()).filter(|i| *i != likely).map(|i| law[i]).sum::<f64>();
    let first = (alpha * (-others(p)).ln_1p() - (alpha - 1.0) * (-others(q)).ln_1p()).exp_m1();
    let rest: Vec<f64> = (0..p.len())
        .filter(|i| *i != likely && p[*i] > 0.0)
        .map(|i| alpha * p[i].ln() - (alpha - 1.0) * q[i].ln())
        .collect();
    let top = rest.iter().copied().fold(0.0, f64::max);
    if top > 600.0 {
        // Too large for a number, and far from cancelling.
        return (top + rest.iter().map(|t| (t - top).exp()).sum::<f64>().ln()) / (alpha - 1.0);
    }
    (first + rest.iter().map(|t| t.exp()).sum::<f64>()).ln_1p() / (alpha - 1.0)
}

const ORDERS: [f64; 5] = [1.25, 2.0, 4.0, 10.0, 30.0];

/// Compares with all votes of twelve teachers, and some of eleven and thirteen.
///
/// Returns in how many comparisons the bound is below the independent one, and how close it comes.
fn compare(
    law: impl Fn([u64; 3]) -> [f64; 3],
    bound: impl Fn(&[u64], Order) -> f64,
    independent: impl Fn(Order) -> f64,
) -> (usize, f64) {
    let (mut better, mut closest) = (0, 0.0_f64);
    for counts in histograms(12).into_iter().filter(|counts| counts.is_sorted()) {
        let p = law(counts);
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{counts:?} {p:?}");
        for there in neighbours(counts) {
            let q = law(there);
            for alpha in ORDERS {
                let (truth, bound) = (divergence(&p, &q, alpha), bound(&counts, order(alpha)));
                // Quadrature is good to ten digits of each probability.
                let slack = 1e-9 * (p[0] + p[1] + q[0] + q[1]) * alpha / (alpha - 1.0);
                assert!(truth <= bound + slack, "{counts:?} {there:?} α {alpha}: {truth} above {bound}");
                if bound < 0.999 * independent(order(alpha)) {
                    better += 1;
                    closest = closest.max((truth - slack) / bound);
                }
            }
        }
    }
    (better, closest)
}

#[test]
fn gaussian_bound_holds_for_all_votes_of_twelve_teachers_and_their_neighbours() {
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    for deviation in [0.6, 1.0, 1.5, 2.5] {
        let max = gaussian_max(deviation);
        let law = |counts| winners(counts, deviation, density, normal_below, 12.0, 0.1 * deviation);
        let (better, closest) =
            compare(law, |counts, order| max.divergence(counts, order), |order| max.independent(order));
        assert!(better > 50 && closest > 0.02, "σ {deviation}: {better} {closest}");
    }
}

#[test]
fn laplace_bound_holds_for_all_votes_of_twelve_teachers_and_their_neighbours() {
    let density = |x: f64| 0.5 * (-x.abs()).exp();
    let below = |x: f64| if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() };
    for scale in [0.5, 1.0, 2.0, 4.0] {
        let max = laplace_max(scale);
        let law = |counts| winners(counts, scale, density, below, 40.0, 1.0 / 16.0);
        let (better, closest) =
            compare(law, |counts, order| max.divergence(counts, order), |order| max.independent(order));
        assert!(better > 50 && closest > 0.02, "scale {scale}: {better} {closest}");
    }
}

#[test]
fn screen_costs_exactly_the_divergence_of_a_coin() {
    for (threshold, deviation) in [(5.0, 1.0), (8.0, 3.0), (12.0, 0.7)] {
        let screen = screen(threshold, deviation);
        for most in 6..=12_u64 {
            let law = |most: f64| {
                [normal_below((most - threshold) / deviation), normal_below((threshold - most) / deviation)]
            };
            for alpha in ORDERS {
                let ways =
                    [-1.0, 1.0].map(|moved| divergence(&law(most as f64), &law(most as f64 + moved), alpha));
                let truth = ways[0].max(ways[1]);
                let cost = screen.divergence(&[most, 12 - most], order(alpha));
                assert!((cost / truth - 1.0).abs() < 1e-9, "{most} of 12, α {alpha}: {cost} for {truth}");
                assert!(cost <= screen.by_likely_outcome(&[most, 12 - most], order(alpha)) * (1.0 + 1e-12));
            }
        }
    }
}

/// The paper's programs report an average of costs for Confident-GNMax.
///
/// It is no bound: here are votes at which the truth is above it.
#[test]
fn confident_bound_holds_where_the_average_of_costs_does_not() {
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let mut above_average = 0;
    for (threshold, first, second) in [(8.0, 1.0, 1.0), (10.0, 2.0, 0.7), (11.0, 0.8, 0.8)] {
        let both = Confident { screen: screen(threshold, first), max: gaussian_max(second) };
        let law = |counts: [u64; 3]| {
            let passes = normal_below((*counts.iter().max().unwrap() as f64 - threshold) / first);
            let fails = normal_below((threshold - *counts.iter().max().unwrap() as f64) / first);
            let winner = winners(counts, second, density, normal_below, 12.0, 0.1 * second);
            [passes * winner[0], passes * winner[1], passes * winner[2], fails]
        };
        for counts in histograms(12).into_iter().filter(|counts| counts.is_sorted()) {
            let p = law(counts);
            for there in neighbours(counts) {
                let q = law(there);
                for alpha in ORDERS {
                    let truth = divergence(&p, &q, alpha);
                    let bound = both.divergence(&counts, order(alpha));
                    let slack = 1e-9 * alpha / (alpha - 1.0);
                    assert!(truth <= bound + slack, "{counts:?} {there:?} α {alpha}: {truth} above {bound}");
                    above_average += usize::from(truth > 1.01 * both.expected(&counts, order(alpha)) + slack);
                }
            }
        }
    }
    assert!(above_average > 0);
}

/// Votes with these counts.
fn votes(counts: &[u64]) -> Votes {
    let ballots = counts
        .iter()
        .enumerate()
        .flat_map(|(candidate, &count)| std::iter::repeat_n(candidate, count as usize));
    Votes::tally(counts.len(), ballots)
}

#[test]
fn a_released_cost_is_below_the_independent_one_and_not_below_the_truth() {
    let (noise, delta) = (NoiseMultiplier::new(20.0).unwrap(), Delta::new(1e-5).unwrap());
    let order = order(6.0);
    let mut cost = VoteCost::new(order, 250, Asked::InAdvance);
    let (mut truth, max) = (0.0, gaussian_max(20.0));
    for counts in reference_votes() {
        cost.answered(&votes(&counts), noise).unwrap();
        truth += max.divergence(&counts, order);
    }
    let [first, second] = [2.5, 2.5].map(|noise| NoiseMultiplier::new(noise).unwrap());
    let release = SmoothCost::new(order, 0.08, first, second, Delta::new(2e-6).unwrap()).unwrap();
    // The best that can be said whatever the votes.
    let without =
        (4..80).map(|i| 1.0 + f64::from(i) / 4.0).map(|alpha| improved(alpha, alpha / 400.0 * 1000.0, 1e-5));
    let without = without.fold(f64::INFINITY, f64::min);
    let mut ledger = crate::book::without_cap(Neighbors::Replace);
    for _ in 0..5 {
        let released = ledger.charge(release).unwrap().run(&cost).unwrap();
        println!("{released:?} ε {} for {without}; truth {truth}", released.epsilon(delta));
        assert!(released.divergence >= truth, "{released:?} for {truth}");
        assert!(released.epsilon(delta) < 0.8 * without, "{released:?} for {without}");
    }
}

#[test]
fn a_cost_is_released_at_the_order_that_was_paid_for_or_not_at_all() {
    let noise = NoiseMultiplier::new(8.0).unwrap();
    let release = SmoothCost::new(order(14.0), 0.03, noise, noise, Delta::new(1e-6).unwrap()).unwrap();
    let mut ledger = crate::book::without_cap(Neighbors::AddRemove);
    let mut other = VoteCost::new(order(12.0), 10, Asked::InAdvance);
    other.answered(&votes(&[6, 4]), noise).unwrap();
    let refusal = ledger.charge(release).unwrap().run(&other).unwrap_err().to_string();
    assert_eq!(refusal, "order is 12, expected a number in what was paid for");
    let nothing = VoteCost::new(order(14.0), 10, Asked::InAdvance);
    let refusal = ledger.charge(release).unwrap().run(&nothing).unwrap_err().to_string();
    assert_eq!(refusal, "number of releases is 0, expected a number in [1, 1e6]");
}
