//! Finite classes, thresholds and posterior samples: their bounds hold, and are nearly reached.
//!
//! Statistics are judged at a false-alarm rate of about 1e-6. Noise comes from a seed, so that an outcome does
//! not change from run to run.

use quell::{
    learner::bayes::{FiniteClass, FinitePosterior, LabelledPoint, Thresholds, Tree},
    ledger::InMemory,
    random::PublicRandom,
};
use quell_privacy::{
    Neighbors,
    ledger::{Budget, Composition, Ledger, Terms, Unit},
    mechanism::{Selection, Sensitive},
    units::{Delta, Epsilon, NoiseMultiplier, Probability},
};

const BOTH: [Neighbors; 2] = [Neighbors::AddRemove, Neighbors::Replace];

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn probability(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

fn ledger(neighbors: Neighbors, unit: Unit) -> Ledger<InMemory> {
    ledger_with(neighbors, unit, 20_261_117)
}

fn ledger_with(neighbors: Neighbors, unit: Unit, seed: u64) -> Ledger<InMemory> {
    let terms = Terms {
        dataset: "people".into(),
        unit,
        neighbors,
        budget: Budget { epsilon: None, delta: Delta::new(1e-6).unwrap() },
        composition: Composition::Combined,
    };
    Ledger::create(InMemory::new("people"), terms).unwrap().seeded(seed)
}

/// Runs a selection many times.
fn many(
    neighbors: Neighbors,
    selection: Selection,
    utilities: &Sensitive<Vec<f64>>,
    runs: u64,
) -> Vec<usize> {
    let mut ledger = ledger(neighbors, Unit::Example);
    let lease = ledger.reserve(selection, runs).unwrap().in_blocks_of(runs);
    lease.map(|paid| paid.unwrap().run(utilities).unwrap()).collect()
}

/// Each neighbour's exact probabilities are within e^ε, and for the worst data nearly as far apart.
#[test]
fn neighbours_choose_alike_as_charged_and_no_more() {
    for (neighbors, weight) in [(Neighbors::AddRemove, 1.0), (Neighbors::Replace, 0.5)] {
        // P ∝ e^(-w Σ loss), with w = ε/2Δ.
        let class = FiniteClass { hypotheses: 1_000, epsilon: epsilon(1.0) };
        let selection = class.mechanism(neighbors).unwrap();
        let factor = selection.epsilon.get() / (2.0 * selection.sensitivity.get());
        assert!((factor - weight).abs() < 1e-12);
        let probabilities = |errors: &[f64]| {
            let total: f64 = errors.iter().map(|e| (-factor * e).exp()).sum();
            errors.iter().map(|e| (-factor * e).exp() / total).collect::<Vec<f64>>()
        };
        // One hypothesis is right and all others are wrong, or the reverse.
        let (mut right, mut wrong) = (vec![1.0; 1_000], vec![0.0; 1_000]);
        (right[0], wrong[0]) = (0.0, 1.0);
        let nothing = vec![0.0; 1_000];
        let pairs = match neighbors {
            Neighbors::AddRemove => vec![(&right, &nothing), (&wrong, &nothing)],
            Neighbors::Replace => vec![(&right, &wrong)],
        };
        let mut widest: f64 = 0.0;
        for (a, b) in pairs {
            let ratios: Vec<f64> =
                probabilities(a).iter().zip(probabilities(b)).map(|(p, q)| (p / q).ln()).collect();
            let high = ratios.iter().copied().fold(f64::MIN, f64::max);
            let low = ratios.iter().copied().fold(f64::MAX, f64::min);
            assert!(high <= 1.0 + 1e-12 && low >= -1.0 - 1e-12 && high - low <= 1.0 + 1e-9);
            widest = widest.max(high.max(-low));
        }
        assert!(widest > 0.99, "{neighbors:?}: {widest}");
    }
}

#[test]
fn the_excess_is_within_its_bound_and_nearly_reaches_it() {
    let (hypotheses, beta, records) = (64, 0.05, 20);
    for neighbors in BOTH {
        // ε at which the bound is the number of records.
        let reference = FiniteClass { hypotheses, epsilon: epsilon(1.0) };
        let unit = reference.excess(neighbors, probability(beta));
        let class = FiniteClass { hypotheses, epsilon: epsilon(unit / f64::from(records)) };
        let bound = class.excess(neighbors, probability(beta));
        assert!((bound - 20.0).abs() < 1e-3, "{bound}");
        // Hypothesis 7 is right on all records, all others are wrong on all records.
        let utilities = class.utilities(20, |_, losses| {
            losses.fill(1.0);
            losses[7] = 0.0;
        });
        let runs = 200_000;
        let chosen = many(neighbors, class.mechanism(neighbors).unwrap(), &utilities, runs);
        let share = chosen.iter().filter(|chosen| **chosen != 7).count() as f64 / runs as f64;
        // P = 63/64 β/(1 + 63/64 β) = 0.0469, give or take 4.9 · 0.0005.
        assert!(share <= beta && share > 0.88 * beta, "{neighbors:?}: {share}");
        // With half the bound there would be many more failures.
        let half = class.utilities(10, |_, losses| {
            losses.fill(1.0);
            losses[7] = 0.0;
        });
        let chosen = many(neighbors, class.mechanism(neighbors).unwrap(), &half, 20_000);
        assert!(chosen.iter().filter(|chosen| **chosen != 7).count() > 5_000);
    }
}

#[test]
fn the_risk_is_within_its_bound() {
    let class = FiniteClass { hypotheses: 11, epsilon: epsilon(0.5) };
    let (records, beta) = (400, 0.1);
    let bound = class.risk_excess(Neighbors::AddRemove, records, probability(beta));
    // Squared losses of the guesses 0, 0.1, …, 1 for coins of bias 0.3: the risk is 0.21 + (guess - 0.3)².
    let mut random = PublicRandom::new(3);
    let mut failures = 0;
    for seed in 0..300 {
        let coins: Vec<f64> = (0..records).map(|_| if random.below(10) < 3 { 1.0 } else { 0.0 }).collect();
        let utilities = class.utilities(coins.len(), |coin, losses| {
            losses
                .iter_mut()
                .enumerate()
                .for_each(|(i, loss)| *loss = (coins[coin] - i as f64 / 10.0).powi(2));
        });
        let mechanism = class.mechanism(Neighbors::AddRemove).unwrap();
        let mut ledger = ledger_with(Neighbors::AddRemove, Unit::Example, seed);
        let chosen = ledger.charge(mechanism).unwrap().run(&utilities).unwrap();
        failures += usize::from((chosen as f64 / 10.0 - 0.3).powi(2) > bound);
    }
    assert!(failures < 30, "{failures} of 300, bound {bound}");
    assert!(bound < 0.3);
}

#[test]
fn odd_losses_and_no_records_stop_nothing() {
    let class = FiniteClass { hypotheses: 3, epsilon: epsilon(50.0) };
    let odd = [[f64::NAN, 0.0, f64::INFINITY], [f64::NEG_INFINITY, f64::NAN, 2.0]];
    // Clipped: one half, 0 and 1, then 0, one half and 1. The third hypothesis is the worst.
    let utilities = class.utilities(2, |record, losses| losses.copy_from_slice(&odd[record]));
    for neighbors in BOTH {
        let chosen = many(neighbors, class.mechanism(neighbors).unwrap(), &utilities, 2_000);
        let counts = [0, 1, 2].map(|which| chosen.iter().filter(|chosen| **chosen == which).count());
        assert!(counts[2] == 0 && counts[0].abs_diff(counts[1]) < 440, "{counts:?}");
        let nothing = class.utilities(0, |_, _| unreachable!());
        let chosen = many(neighbors, class.mechanism(neighbors).unwrap(), &nothing, 3_000);
        assert!((0..3).all(|which| chosen.iter().filter(|chosen| **chosen == which).count() > 850));
    }
    let one = FiniteClass { hypotheses: 1, epsilon: epsilon(1.0) };
    let mut usual = ledger(Neighbors::AddRemove, Unit::Example);
    assert_eq!(one.choose(&mut usual, 1, |_, losses| losses[0] = 1.0).unwrap(), 0);
    let none = FiniteClass { hypotheses: 0, epsilon: epsilon(1.0) };
    assert!(none.choose(&mut usual, 0, |_, _| {}).is_err());
    // A user may have many records.
    let mut users = ledger(Neighbors::AddRemove, Unit::User);
    assert!(one.choose(&mut users, 0, |_, _| {}).is_err());
}

/// The error of one sample over that of the best estimate is 1 + 1/ρ: with replacement, 1 + 4B/ε.
///
/// The square of 20,000 nearly normal errors has a relative error of 4.9 √(2/20000), five hundredths.
#[test]
fn one_posterior_sample_has_the_stated_efficiency() {
    let (points, records, runs, bias) = (1_201_u32, 4_000_u32, 20_000, 0.5);
    let biases: Vec<f64> = (0..points).map(|i| 0.2 + 0.6 * f64::from(i) / f64::from(points - 1)).collect();
    // |ln 0.2|
    let bound = 0.2_f64.ln().abs();
    for (neighbors, asked, efficiency) in [
        (Neighbors::Replace, 2.0, 1.0 + 4.0 * bound / 2.0),
        (Neighbors::AddRemove, 2.0, 1.0 + 2.0 * bound / 2.0),
        (Neighbors::Replace, 100.0, 2.0),
    ] {
        let posterior = FinitePosterior { prior: vec![1.0; biases.len()], bound, epsilon: epsilon(asked) };
        assert!((1.0 + 1.0 / posterior.power(neighbors) - efficiency).abs() < 1e-12);
        let mechanism = posterior.mechanism(neighbors).unwrap();
        assert!(mechanism.epsilon.get() <= asked);
        let mut random = PublicRandom::new(17);
        let mut ledger = ledger(neighbors, Unit::Example);
        let lease = ledger.reserve(mechanism, runs).unwrap().in_blocks_of(runs);
        let (mut squares, mut repeated) = (0.0, 0.0);
        for paid in lease {
            let heads: u32 = (0..=records / 64)
                .map(|word| {
                    let bits = random.bits();
                    let used = (records - word * 64).min(64);
                    if used == 64 { bits.count_ones() } else { (bits & ((1 << used) - 1)).count_ones() }
                })
                .sum();
            // Two kinds of records: all heads have the same log-likelihoods, and so have all tails.
            let sums = biases
                .iter()
                .map(|bias| f64::from(heads) * bias.ln() + f64::from(records - heads) * (1.0 - bias).ln());
            let drawn = paid.unwrap().run(&Sensitive::new(sums.collect())).unwrap();
            let mean = f64::from(heads) / f64::from(records);
            squares += (biases[drawn] - bias).powi(2) / runs as f64;
            repeated += (mean - bias).powi(2) / runs as f64;
        }
        let best = bias * (1.0 - bias) / f64::from(records);
        assert!((repeated / best - 1.0).abs() < 0.05, "{repeated} {best}");
        assert!(
            (squares / best / efficiency - 1.0).abs() < 0.05,
            "{neighbors:?}: {} {efficiency}",
            squares / best
        );
    }
}

#[test]
fn log_likelihoods_are_clipped_and_added_to_the_prior() {
    let posterior = FinitePosterior { prior: vec![1.0, 0.0, 3.0], bound: 2.0, epsilon: epsilon(1e3) };
    for neighbors in BOTH {
        // ρ = 1: the weights are those of the posterior itself.
        assert_eq!(posterior.power(neighbors), 1.0);
        let utilities = posterior.utilities(2, |record, logarithms| {
            logarithms.copy_from_slice(&[[-50.0, 9.0, f64::NAN], [1.0, 1.0, -0.5]][record]);
        });
        let chosen = many(neighbors, posterior.mechanism(neighbors).unwrap(), &utilities, 40_000);
        // e^(-2 + 1), 0 and 3 e^-0.5.
        let expected = (-1.0_f64).exp() / ((-1.0_f64).exp() + 3.0 * (-0.5_f64).exp());
        let share = chosen.iter().filter(|chosen| **chosen == 0).count() as f64 / 40_000.0;
        assert!((share - expected).abs() < 4.9 * (expected / 40_000.0).sqrt(), "{share} {expected}");
        assert!(!chosen.contains(&1));
    }
}

fn errors(threshold: u32, points: &[LabelledPoint], domain: u32) -> i64 {
    let wrong = |(x, label): &&LabelledPoint| ((*x).min(domain - 1) >= threshold) != *label;
    points.iter().filter(wrong).count() as i64
}

fn some_points(domain: u32, count: u64, seed: u64) -> Vec<LabelledPoint> {
    let mut random = PublicRandom::new(seed);
    let mut point = || {
        let x = random.below(domain as usize + 2) as u32;
        (x, (x > domain / 3) != (random.below(5) == 0))
    };
    (0..count).map(|_| point()).collect()
}

#[test]
fn with_little_noise_both_ways_find_the_best_threshold() {
    for domain in [1, 2, 3, 7, 8, 9, 100] {
        let points = some_points(domain, 300, u64::from(domain));
        let best = (0..=domain).map(|t| errors(t, &points, domain)).min().unwrap();
        let thresholds = Thresholds { domain };
        for neighbors in BOTH {
            let mut ledger = ledger(neighbors, Unit::Example);
            let chosen = thresholds.choose(&mut ledger, epsilon(200.0), &points).unwrap();
            assert_eq!(errors(chosen, &points, domain), best, "{domain}");
            let tree = Tree { thresholds, noise_multiplier: NoiseMultiplier::new(1e-6).unwrap() };
            assert_eq!(errors(tree.choose(&mut ledger, &points).unwrap(), &points, domain), best, "{domain}");
            let released = tree.release(&mut ledger, &points).unwrap();
            for (threshold, released) in (0..=domain).zip(released) {
                let exact = (errors(threshold, &points, domain) - errors(0, &points, domain)) as f64;
                assert!((released - exact).abs() < 0.01, "{domain} {threshold}: {released} {exact}");
            }
        }
    }
    let mut ledger = ledger(Neighbors::AddRemove, Unit::Example);
    assert!(Thresholds { domain: 0 }.choose(&mut ledger, epsilon(1.0), &[]).is_err());
    assert!(Thresholds { domain: 4 }.choose(&mut ledger, epsilon(1.0), &[]).unwrap() <= 4);
}

/// The packing of the theorem, at the least number of records: no mechanism can be better, and this one fails.
#[test]
fn thresholds_are_within_a_factor_of_the_lower_bound() {
    let (domain, beta) = (1_000, 0.05);
    let thresholds = Thresholds { domain };
    for neighbors in BOTH {
        let class = thresholds.class(epsilon(1.0));
        let (least, most) = (
            thresholds.least_excess(epsilon(1.0), neighbors, probability(beta)),
            class.excess(neighbors, probability(beta)),
        );
        assert!(least < most && most < 4.5 * least, "{neighbors:?}: {least} {most}");
        // k errors for every other threshold, with k just below the bound: then every mechanism fails more
        // often than β on some of these datasets. All of them are alike to the exponential mechanism.
        let count = (least - 1e-9).floor() as usize;
        let points = [vec![(499, false); count], vec![(500, true); count]].concat();
        let mut ledger = ledger(neighbors, Unit::Example);
        let runs = 400;
        let failures = (0..runs)
            .filter(|_| thresholds.choose(&mut ledger, epsilon(1.0), &points).unwrap() != 500)
            .count();
        assert!(failures as f64 > beta * f64::from(runs), "{failures}");
    }
}

#[test]
fn the_tree_errs_within_its_bound_and_nearly_reaches_it() {
    let thresholds = Thresholds { domain: 64 };
    let tree = Tree { thresholds, noise_multiplier: NoiseMultiplier::new(3.0).unwrap() };
    assert_eq!(tree.levels(), 6);
    // Half of the bound is on the error of one threshold.
    let bound = 0.5 * tree.excess(probability(0.05));
    // A ledger of its own for each release, because the cost of many is slow to compute.
    let fresh = |seed| ledger_with(Neighbors::AddRemove, Unit::Example, seed);
    let mut widest: f64 = 0.0;
    let mut failures = 0;
    for seed in 0..2_000 {
        let released = tree.release(&mut fresh(seed), &[]).unwrap();
        let error = released.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        widest = widest.max(error);
        failures += usize::from(error > bound);
    }
    // At most one in twenty, and the largest of 2,000 is beyond two thirds of the bound.
    assert!(failures < 100 && widest > 0.66 * bound, "{failures} {widest} {bound}");
    // The whole domain is the sum of two nodes.
    let small = Tree { thresholds: Thresholds { domain: 2 }, ..tree };
    assert_eq!(small.levels(), 1);
    let deviation = |place: usize| {
        let release = |seed| small.release(&mut fresh(seed), &[]).unwrap()[place];
        ((0..2_000).map(|seed| release(seed).powi(2)).sum::<f64>() / 2_000.0).sqrt()
    };
    assert!((deviation(1) / 3.0 - 1.0).abs() < 0.08);
    assert!((deviation(2) / (3.0 * 2.0_f64.sqrt()) - 1.0).abs() < 0.08);
}

#[test]
fn a_tree_for_epsilon_costs_at_most_epsilon() {
    let delta = Delta::new(1e-6).unwrap();
    for neighbors in BOTH {
        let tree = Tree::for_epsilon(Thresholds { domain: 1_000 }, epsilon(1.0), delta, neighbors).unwrap();
        let terms = Terms {
            dataset: "people".into(),
            unit: Unit::Example,
            neighbors,
            budget: Budget { epsilon: Some(epsilon(1.0)), delta },
            composition: Composition::Combined,
        };
        let mut capped = Ledger::create(InMemory::new("people"), terms).unwrap();
        tree.release(&mut capped, &[]).unwrap();
        assert!(tree.release(&mut capped, &[]).is_err());
        assert!(capped.state().unwrap().spent().epsilon > 0.98);
    }
}
