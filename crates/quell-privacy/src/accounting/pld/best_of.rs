//! The best of a random number of trials: a pair that dominates it, from the profiles of its trials.

use std::{cell::RefCell, sync::Arc};

use super::{
    Pld,
    atoms::Atoms,
    composite::{ROUNDING, pair_below, sort_and_keep_lowest, upper_profile},
    law::Law,
    privacy_loss::PrivacyLoss,
};

/// The best of trials, after each of which the search ends with probability `stop`.
///
/// `losses` are those of all kinds of trials, in all directions. `None` if no bound was found. The newest
/// result is cached, because several accountants ask for it. The cache changes no answer.
///
/// # Theorem
/// (THEORY, Best of several trials; in the manner of [KRW24]) Let δ(ε) be above the profiles of all trials in
/// both directions, γ the probability to stop, and h(δ) = δ/(γ + (1 - γ)δ). For every ε ≥ 0, the best trial is
/// (ε + c, h(δ(ε)))-DP with c = 2 ln max(1 + (1 - γ)δ'/γ, 1/(γ + (1 - γ)(1 - δ')e^-ε')) for any ε' ≥ 0 and
/// δ' = δ(ε'). It also is (0, h(δ(0)))-DP.
pub(super) fn best_of(stop: f64, losses: &[PrivacyLoss]) -> Option<Law> {
    thread_local! {
        static NEWEST: RefCell<Option<(Key, Option<Law>)>> = const { RefCell::new(None) };
    }
    let key: Key = (stop, losses.iter().map(|loss| loss.factors.clone()).collect());
    let known =
        NEWEST.with_borrow(|newest| newest.as_ref().filter(|(of, _)| *of == key).map(|(_, law)| law.clone()));
    known.unwrap_or_else(|| {
        let law = dominating(stop, losses);
        NEWEST.set(Some((key, law.clone())));
        law
    })
}

/// The shift depends on δ where it is about as large as the probability to stop.
const PRECISE: Pld = Pld { relative: 1e-3, absolute: 1e-5, longest: 1 << 18 };

/// The probability to stop, and the laws of each loss.
type Key = (f64, Vec<Vec<(Law, u64)>>);

fn dominating(stop: f64, losses: &[PrivacyLoss]) -> Option<Law> {
    let mut profiles: Vec<Vec<(f64, f64)>> = Vec::new();
    for (number, loss) in losses.iter().enumerate() {
        if losses[..number].iter().all(|known| known.factors != loss.factors) {
            profiles.push(upper_profile(&PRECISE, loss)?);
        }
    }
    let trial = upper_envelope(&profiles);
    let shift = trial.iter().map(|point| shift(stop, *point)).fold(f64::INFINITY, f64::min);
    let of_best = |delta: f64| (delta / (stop + (1.0 - stop) * delta) * (1.0 + ROUNDING)).min(1.0);
    let mut points: Vec<(f64, f64)> =
        trial.iter().map(|(epsilon, delta)| (epsilon + shift, of_best(*delta))).collect();
    points.push((0.0, of_best(trial.first()?.1)));
    points.retain(|(epsilon, _)| epsilon.is_finite());
    sort_and_keep_lowest(&mut points);
    let upper = Arc::new(pair_below(&points)?);
    // Nothing is claimed from below.
    Some(Law::Between { lower: Arc::new(Atoms::pure(0.0)), upper })
}

/// c for one (ε', δ'), rounded up.
fn shift(stop: f64, (epsilon, delta): (f64, f64)) -> f64 {
    let at_the_top = (1.0 - stop) * delta / stop;
    let below = stop + (1.0 - stop) * (1.0 - delta) * (-epsilon).exp();
    2.0 * at_the_top.ln_1p().max(-below.ln()) * (1.0 + 1e-12) + 1e-15
}

/// Points above all profiles, at the nodes of any of them.
///
/// A profile is convex in e^ε, so a chord between two points above it is above it, too.
fn upper_envelope(profiles: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let mut nodes: Vec<f64> = profiles.iter().flatten().map(|(epsilon, _)| *epsilon).collect();
    nodes.sort_by(f64::total_cmp);
    nodes.dedup();
    let largest_at = |epsilon: f64| profiles.iter().map(|profile| at(profile, epsilon)).fold(0.0, f64::max);
    nodes.into_iter().map(|epsilon| (epsilon, largest_at(epsilon))).collect()
}

/// A bound on the profile at any ε ≥ 0: the chord between the points next to ε.
fn at(profile: &[(f64, f64)], epsilon: f64) -> f64 {
    let after = profile.partition_point(|(node, _)| *node <= epsilon);
    let Some(&(left, high)) = after.checked_sub(1).and_then(|before| profile.get(before)) else { return 1.0 };
    let Some(&(right, low)) = profile.get(after).filter(|_| left < epsilon) else { return high };
    // Linear in e^ε. A profile decreases, so the left point is a bound, too.
    let share = (epsilon - left).exp_m1() / (right - left).exp_m1();
    if share.is_finite() { (high + share * (low - high)).min(high).max(low) } else { high }
}

#[cfg(test)]
mod tests {
    use crate::{
        Event, Neighbors,
        accounting::Pld,
        special::normal_below,
        units::{Delta, Epsilon, NoiseMultiplier, SamplingRate},
    };

    fn epsilon(expected: u32, trials: Vec<Event>, delta: f64) -> f64 {
        let event = Event::BestOf { expected, trials };
        Pld::default().epsilon(&event, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap().upper
    }

    fn gaussian(noise: f64) -> Event {
        Event::gaussian(NoiseMultiplier::new(noise).unwrap())
    }

    /// A second, negligible release, so that the profile is computed on a grid.
    #[test]
    fn a_composition_costs_what_an_equal_gaussian_costs() {
        for (expected, delta) in [(10, 1e-6), (100, 1e-8)] {
            let composed = Event::Composed(vec![
                gaussian(6.0),
                Event::Laplace { noise_multiplier: NoiseMultiplier::new(1e6).unwrap() },
            ]);
            let (found, truth) =
                (epsilon(expected, vec![composed], delta), epsilon(expected, vec![gaussian(6.0)], delta));
            assert!(found >= truth * (1.0 - 1e-4) && found <= truth * 1.003, "{found} {truth}");
        }
    }

    fn training(noise: f64) -> Event {
        Event::dp_sgd(NoiseMultiplier::new(noise).unwrap(), SamplingRate::new(0.01).unwrap(), 500)
    }

    #[test]
    fn one_trial_costs_what_it_costs_alone() {
        for trial in [gaussian(4.0), training(1.2)] {
            let alone = Pld::default().epsilon(&trial, Neighbors::AddRemove, Delta::new(1e-6).unwrap());
            let (alone, found) = (alone.unwrap(), epsilon(1, vec![trial], 1e-6));
            assert!(found >= alone.lower && found <= alone.upper * 1.003, "{found} {alone:?}");
        }
    }

    #[test]
    fn pure_trials_cost_at_most_three_of_them() {
        for expected in [2, 10, 1000] {
            let pure = Event::Pure { epsilon: Epsilon::new(0.3).unwrap() };
            let found = epsilon(expected, vec![pure], 1e-30);
            assert!(found <= 0.9 * (1.0 + 1e-6) && found > 0.3, "{expected}: {found}");
        }
        let rare = Event::Pure { epsilon: Epsilon::new(0.3).unwrap() };
        assert!(epsilon(1_000_000, vec![rare], 1e-30) > 0.89);
    }

    #[test]
    fn the_worst_kind_of_trial_decides() {
        let worst = epsilon(10, vec![training(1.2)], 1e-6);
        let both = epsilon(10, vec![training(2.0), training(1.2), gaussian(9.0)], 1e-6);
        // The least shift is found among more points if there are more kinds.
        assert!((both / worst - 1.0).abs() < 1e-3, "{both} {worst}");
    }

    /// The mechanism whose best trial is released with its order: N(0, 1) or N(μ, 1), the largest is best.
    ///
    /// The best trial has the density q f'(F), f' being the derivative of the generating function.
    fn exact_delta(mu: f64, stop: f64, epsilon: f64, largest_is_best: bool, added: bool) -> f64 {
        let (from, to, cells) = (-12.0, 12.0 + mu, 40_000);
        let width = (to - from) / f64::from(cells);
        let density = |y: f64, mean: f64| {
            let above = normal_below(if largest_is_best { mean - y } else { y - mean });
            let weight = stop / (stop + (1.0 - stop) * above).powi(2);
            weight * (-0.5 * (y - mean).powi(2)).exp() / (2.0 * std::f64::consts::PI).sqrt()
        };
        let (one, two) = if added { (0.0, mu) } else { (mu, 0.0) };
        let excess = |cell: i32| {
            let y = from + (f64::from(cell) + 0.5) * width;
            (density(y, one) - epsilon.exp() * density(y, two)).max(0.0) * width
        };
        (0..cells).map(excess).sum()
    }

    #[test]
    fn no_mechanism_exceeds_its_bound_and_the_bound_is_not_far() {
        for (noise, expected) in [(4.0, 10), (2.0, 50), (1.0, 3), (5.0, 1)] {
            let event = Event::BestOf { expected, trials: vec![gaussian(noise)] };
            let stop = f64::from(expected).recip();
            let losses = crate::accounting::pld::privacy_losses(&event, Neighbors::AddRemove).unwrap();
            let law = losses[0].single().unwrap();
            for target in [0.0, 0.2, 0.5, 1.0, 2.0] {
                let bound = crate::accounting::pld::exact_delta(law, target).upper;
                let truths = [(true, true), (true, false), (false, true), (false, false)]
                    .map(|(largest, added)| exact_delta(1.0 / noise, stop, target, largest, added));
                let truth = truths.into_iter().fold(0.0, f64::max);
                assert!(truth <= bound * (1.0 + 1e-6), "{noise} {stop} {target}: {truth} {bound}");
            }
            // ε at which the worst of these mechanisms has δ = 1e-5, against the bound there.
            let at = |epsilon: f64| exact_delta(1.0 / noise, stop, epsilon, true, false);
            let truth = (1..2000).map(|step| f64::from(step) * 0.01).find(|x| at(*x) < 1e-5).unwrap();
            let bound = epsilon(expected, vec![gaussian(noise)], 1e-5);
            assert!(bound < 1.8 * truth, "{noise} {stop}: {truth} {bound}");
        }
    }

    /// Values of the theorem at the exact trade-off curve of a Gaussian, computed with SciPy.
    #[test]
    fn the_bound_is_that_of_the_exact_curve() {
        for (noise, expected, delta, truth) in [
            (4.0, 10, 1e-6, 1.631_306),
            (2.0, 50, 1e-5, 3.891_368),
            (1.0, 4, 1e-8, 7.073_035),
            (20.0, 100, 1e-6, 0.410_638),
        ] {
            let found = epsilon(expected, vec![gaussian(noise)], delta);
            assert!(found >= truth * (1.0 - 1e-6) && found <= truth * 1.005, "{found} {truth}");
        }
    }

    #[test]
    fn more_trials_cost_more_and_a_trial_without_a_guarantee_costs_everything() {
        let costs = [1, 2, 10, 100].map(|expected| epsilon(expected, vec![gaussian(4.0)], 1e-6));
        assert!(costs.windows(2).all(|pair| pair[0] < pair[1]), "{costs:?}");
        assert_eq!(epsilon(10, vec![gaussian(4.0), Event::NonPrivate], 1e-6), f64::INFINITY);
    }
}
