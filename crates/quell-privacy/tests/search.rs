//! Searches: the best of a random number of trials.

use crate::book::{Memory, ledger, terms, without_cap};
use quell_privacy::{
    Error, Event, Neighbors,
    ledger::{Composition, Ledger, Trial},
    mechanism::{
        AllTrials, Best, BestOf, Clipping, Count, Descent, IntegerNoise, Mechanism, Sampling, Sensitive,
        StagedDescent, TrialPlan,
    },
    units::{ClipNorm, Epsilon, NoiseMultiplier},
};

fn count(epsilon: f64) -> Count {
    Count { noise: IntegerNoise::for_epsilon(Epsilon::new(epsilon).unwrap(), 1).unwrap() }
}

fn plan(epsilon: f64) -> TrialPlan {
    TrialPlan::default().then(&count(epsilon), 1, Neighbors::AddRemove)
}

fn search(expected: u32, epsilons: &[f64]) -> BestOf {
    let trials = epsilons.iter().map(|epsilon| plan(*epsilon)).collect();
    BestOf::new(expected.try_into().unwrap(), trials, Neighbors::AddRemove)
}

/// A trial that finds a noisy count.
fn counted(trial: &mut Trial) -> Result<Option<(f64, f64)>, Error> {
    let epsilon = [0.1, 0.2, 0.3][trial.kind()];
    let paid = trial.lease(count(epsilon), 1)?.next().unwrap()?;
    let found = paid.run(&Sensitive::new(100))?.value;
    Ok(Some((found, found)))
}

#[allow(clippy::unnecessary_wraps, reason = "a search can fail to keep a trial")]
fn ignore<T>(_: &Best<T>, _: bool) -> Result<(), Error> {
    Ok(())
}

#[test]
fn kinds_are_drawn_uniformly_and_the_number_of_trials_is_geometric() {
    let (searches, expected) = (4000, 5);
    let mut ledger = without_cap(Neighbors::AddRemove).seeded(7);
    let (mut kinds, mut lengths) = ([0_u32; 3], Vec::new());
    for _ in 0..searches {
        let paid = ledger.charge(search(expected, &[0.1, 0.2, 0.3]));
        let mut trials = 0_u32;
        let run = |trial: &mut Trial| {
            kinds[trial.kind()] += 1;
            trials += 1;
            Ok::<_, Error>(Some((0.0, ())))
        };
        paid.unwrap().search(None, run, ignore).unwrap().unwrap();
        lengths.push(f64::from(trials));
    }
    let all = f64::from(kinds.iter().sum::<u32>());
    // Five deviations each: false alarms in fewer than one of a million runs.
    for kind in kinds {
        assert!((f64::from(kind) - all / 3.0).abs() < 5.0 * (all * 2.0 / 9.0).sqrt(), "{kinds:?}");
    }
    let count = f64::from(searches);
    let (mean, deviation) = (all / count, (f64::from(expected) * f64::from(expected - 1)).sqrt());
    assert!((mean - f64::from(expected)).abs() < 5.0 * deviation / count.sqrt(), "{mean}");
    let ones = lengths.iter().filter(|length| **length == 1.0).count() as f64;
    let share = 1.0 / f64::from(expected);
    assert!((ones - count * share).abs() < 5.0 * (count * share * (1.0 - share)).sqrt(), "{ones}");
}

#[test]
fn a_trial_hands_out_its_plan_and_nothing_else() {
    let mut ledger = without_cap(Neighbors::AddRemove).seeded(7);
    let mut tried = 0;
    let run = |trial: &mut Trial| {
        tried += 1;
        // Less noise, more runs, or another mechanism than was paid for.
        assert!(trial.lease(count(0.2), 1).is_err() && trial.lease(count(0.1), 2).is_err());
        let mut lease = trial.lease(count(0.1), 1)?;
        assert!(lease.next().unwrap().is_ok() && lease.next().is_none());
        drop(lease);
        assert!(trial.lease(count(0.1), 1).is_err());
        Ok::<_, Error>(Some((0.0, ())))
    };
    ledger.charge(search(3, &[0.1])).unwrap().search(None, run, ignore).unwrap();
    assert!(tried > 0);
}

#[test]
fn the_first_of_the_best_trials_wins_and_a_score_that_is_no_number_loses() {
    let mut ledger = without_cap(Neighbors::AddRemove).seeded(7);
    for _ in 0..50 {
        let scores = [1.0, f64::NAN, 3.0, 3.0, 2.0, f64::NEG_INFINITY];
        let mut number = 0;
        let run = |_: &mut Trial| {
            number += 1;
            Ok::<_, Error>(Some((scores[(number - 1) % 6], number)))
        };
        let best = ledger.charge(search(8, &[0.1])).unwrap().search(None, run, ignore).unwrap().unwrap();
        let winner = if number >= 3 { 3 } else { 1 };
        assert_eq!((best.found, best.score), (winner, scores[winner - 1]), "{number} trials");
    }
}

#[test]
fn a_search_that_is_interrupted_keeps_the_best_and_counts_no_half_trial() {
    let mut ledger = without_cap(Neighbors::AddRemove).seeded(7);
    let mut kept = Vec::new();
    for _ in 0..200 {
        let mut trials = 0;
        let run = |trial: &mut Trial| {
            trials += 1;
            if trials == 2 { Ok::<_, Error>(None) } else { counted(trial) }
        };
        let keep = |best: &Best<f64>, has_ended: bool| {
            kept.push(has_ended);
            assert_eq!(best.score, best.found);
            Ok(())
        };
        let found = ledger.charge(search(4, &[0.1, 0.2])).unwrap().search(None, run, keep).unwrap();
        assert_eq!(found.is_some(), *kept.last().unwrap(), "an interrupted search has no result");
    }
    assert_eq!(kept.len(), 200);
    assert!(kept.contains(&true) && kept.contains(&false));
}

#[test]
fn of_all_copies_of_a_search_one_releases() {
    let (mut first, book) = ledger(2.0);
    let mut second = Ledger::open(book.clone()).unwrap();
    let searched = |ledger: &mut Ledger<Memory>| {
        let mut lease =
            ledger.reserve_once("key", search(3, &[0.1, 0.2]), BestOf::RUNS).unwrap().in_blocks_of(1);
        lease.next().unwrap().unwrap().search(None, counted, ignore).unwrap().unwrap()
    };
    let last = |ledger: &mut Ledger<Memory>| {
        let lease = ledger.reserve_once("key", search(3, &[0.1, 0.2]), BestOf::RUNS).unwrap();
        lease.in_blocks_of(BestOf::RUNS).last()
    };
    // Two copies of a run search, and both end.
    let (one, other) = (searched(&mut first), searched(&mut second));
    let right = last(&mut first).unwrap().unwrap();
    assert_eq!(right.release(one.clone()).unwrap(), one);
    assert!(last(&mut second).is_none(), "{other:?} must not leave, too");
    // A run that is not the last releases nothing.
    let (mut third, _) = ledger(2.0);
    let mut lease = third.reserve(search(3, &[0.1]), BestOf::RUNS).unwrap().in_blocks_of(1);
    assert!(lease.next().unwrap().unwrap().release(other).is_err());
    assert_eq!(first.state().unwrap().charges().len(), 1);
}

#[test]
fn a_search_costs_what_its_event_says_and_is_refused_where_it_was_not_planned() {
    let (mut ledger, _) = ledger(1.0);
    let (charge, spent) = ledger.quote(&search(10, &[0.1, 0.2]), BestOf::RUNS).unwrap();
    assert!(matches!(&charge.plan.event, Event::BestOf { expected: 10, trials } if trials.len() == 2));
    // At most three trials of the dearest kind, and more than one.
    assert!(spent.epsilon > 0.25 && spent.epsilon <= 0.6 * (1.0 + 1e-6), "{spent:?}");
    // Trials that were planned for the addition of a record cost more when a record is replaced.
    assert_eq!(search(10, &[0.1]).event(Neighbors::Replace), Event::NonPrivate);
    let terms = terms(Some(1.0), 1e-5, Neighbors::Replace, Composition::Combined);
    let mut other = Ledger::create(Memory::default(), terms).unwrap();
    assert!(other.quote(&search(10, &[0.1]), BestOf::RUNS).is_err());
    // Nor can a search of nothing be bought, or a part of its runs.
    let nothing = BestOf::new(3.try_into().unwrap(), vec![TrialPlan::default()], Neighbors::AddRemove);
    assert!(ledger.reserve(nothing, BestOf::RUNS).is_err());
    assert!(ledger.reserve(search(3, &[0.1]), 2).is_err());
}

#[test]
fn trials_that_are_all_released_are_handed_out_once_and_cost_their_sum() {
    let trials = AllTrials::new(vec![plan(0.1), plan(0.2), plan(0.3)], Neighbors::AddRemove);
    let (mut ledger, book) = ledger(1.0);
    let (_, spent) = ledger.quote(&trials, 3).unwrap();
    // Pure releases in one plan cost at most the sum, and at this δ hardly less.
    assert!(spent.epsilon > 0.55 && spent.epsilon <= 0.6 * (1.0 + 1e-6), "{spent:?}");
    let mut lease = ledger.reserve_once("key", trials.clone(), 3).unwrap().in_blocks_of(1);
    let mut first = lease.next().unwrap().unwrap().trial().unwrap();
    assert_eq!(first.kind(), 0);
    // Each run is its own trial, and nothing else.
    assert!(first.lease(count(0.3), 1).is_err());
    assert!(first.lease(count(0.1), 1).unwrap().next().unwrap().is_ok());
    assert!(first.lease(count(0.1), 1).is_err());
    drop(lease);
    // A copy of the run goes on after the trials that were handed out.
    let mut copy = Ledger::open(book).unwrap();
    let rest = copy.reserve_once("key", trials.clone(), 3).unwrap().in_blocks_of(1);
    let kinds: Vec<usize> = rest.map(|paid| paid.unwrap().trial().unwrap().kind()).collect();
    assert_eq!(kinds, [1, 2]);
    assert_eq!(copy.state().unwrap().charges().len(), 1);
    // More runs than trials, fewer trials than were planned, or other neighbours cannot be bought.
    assert!(copy.reserve(trials.clone(), 4).is_err());
    assert!(copy.reserve(AllTrials::new(Vec::new(), Neighbors::AddRemove), 1).is_err());
    assert!(copy.reserve(AllTrials::new(vec![TrialPlan::default()], Neighbors::AddRemove), 1).is_err());
    assert_eq!(trials.event(Neighbors::Replace), Event::NonPrivate);
}

/// One run of all trials is a whole trial, and one run of a staged plan is a step. So neither may pass for the other.
#[test]
fn a_charge_for_steps_is_no_charge_for_a_trial() {
    let descent = |noise: f64| Descent {
        sampling: Sampling::Full,
        clipping: Clipping::Flat { norm: ClipNorm::new(1.0).unwrap() },
        noise_multiplier: NoiseMultiplier::new(noise).unwrap(),
        dimension: 1,
    };
    let staged = StagedDescent { preparation: vec![(descent(30.0), 1)], descent: descent(40.0) };
    for (steps, staged) in
        [(3, staged), (3, StagedDescent::of(descent(40.0))), (1, StagedDescent::of(descent(40.0)))]
    {
        let trial = TrialPlan::default().then(&staged, steps, Neighbors::AddRemove);
        let trials = AllTrials::new(vec![trial], Neighbors::AddRemove);
        let (mut one, _) = ledger(2.0);
        one.reserve_once("steps", staged.clone(), steps).unwrap();
        let charge = one.state().unwrap().charges()[0].entry;
        assert!(one.resume(trials.clone(), charge).is_err(), "{steps} steps are resumed as a trial");
        let (mut other, _) = ledger(2.0);
        assert_eq!(other.reserve(trials.clone(), steps).is_ok(), steps == 1, "{steps}");
        let (mut other, _) = ledger(2.0);
        other.reserve_once("trial", trials, 1).unwrap();
        let charge = other.state().unwrap().charges()[0].entry;
        assert!(other.resume(staged, charge).is_err(), "a trial is resumed as {steps} steps");
    }
}

/// The attacker sees the best noisy count, and guesses that the record is missing if it is at most 100.
///
/// With noise of ε = 1 the exact probabilities of that are 0.2137 without the record and 0.0355 with it, so the
/// attack shows ε = 1.79: almost twice what one trial costs.
#[test]
fn the_best_attack_on_a_search_gets_more_than_a_trial_and_less_than_the_charge() {
    let searches = 40_000_u32;
    let mut ledger = without_cap(Neighbors::AddRemove).seeded(11);
    let mut share_of_guesses = |records: u64| {
        let run = |trial: &mut Trial| {
            let found = trial.lease(count(1.0), 1)?.next().unwrap()?.run(&Sensitive::new(records))?.value;
            Ok::<_, Error>(Some((found, ())))
        };
        let is_guessed = |_| {
            let paid = ledger.charge(search(10, &[1.0])).unwrap();
            paid.search(None, run, ignore).unwrap().unwrap().score <= 100.0
        };
        let share =
            f64::from((0..searches).map(is_guessed).map(u32::from).sum::<u32>()) / f64::from(searches);
        // Five deviations: false alarms in fewer than one of a million runs.
        let margin = 5.0 * (share * (1.0 - share) / f64::from(searches)).sqrt();
        [share - margin, share + margin]
    };
    let (without, with) = (share_of_guesses(100), share_of_guesses(101));
    let shown = (without[0] / with[1]).ln();
    let (mut ledger, _) = self::ledger(10.0);
    let charged = ledger.quote(&search(10, &[1.0]), BestOf::RUNS).unwrap().1.epsilon;
    assert!(shown > 1.4 && shown < charged, "the attack shows {shown}, the charge is {charged}");
    assert!(without[0] < 0.2137 && without[1] > 0.2137 && with[0] < 0.0355 && with[1] > 0.0355);
}
