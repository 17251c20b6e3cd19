//! Tests of the ledger: which charges it grants or refuses, and what it writes.

use crate::book::{Memory, ledger, terms, without_cap};
use quell_privacy::{
    Error, Event, Neighbors, Statement,
    accounting::{Pld, closed},
    ledger::{Budget, Composition, Ledger, Line, State, Theorem},
    mechanism::{
        Additive, Clipping, Count, Descends, Descent, GaussianSparseVector, IntegerNoise, Mechanism, Noise,
        Sampling, Sensitive, StableHistogram, StagedDescent, Vectors,
    },
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier, SamplingRate, Scale},
};

fn count(epsilon: f64) -> Count {
    Count { noise: IntegerNoise::for_epsilon(Epsilon::new(epsilon).unwrap(), 1).unwrap() }
}

fn gaussian(noise_multiplier: f64) -> Additive {
    Additive {
        noise: Noise::Gaussian,
        contribution: ClipNorm::new(1.0).unwrap(),
        noise_multiplier: NoiseMultiplier::new(noise_multiplier).unwrap(),
        dimension: 3,
    }
}

fn step(noise_multiplier: f64, rate: f64) -> Descent {
    Descent {
        sampling: Sampling::Poisson { rate: SamplingRate::new(rate).unwrap() },
        clipping: Clipping::Flat { norm: ClipNorm::new(1.0).unwrap() },
        noise_multiplier: NoiseMultiplier::new(noise_multiplier).unwrap(),
        dimension: 2,
    }
}

fn delta(delta: f64) -> Delta {
    Delta::new(delta).unwrap()
}

#[test]
fn pure_releases_add_up_to_the_cap_and_no_further() {
    let (mut ledger, _) = ledger(1.0);
    for _ in 0..9 {
        let _ = ledger.charge(count(0.1)).unwrap().run(&Sensitive::new(10)).unwrap();
    }
    let spent = ledger.state().unwrap().spent();
    assert!(spent.theorem == Theorem::Addition && spent.epsilon <= 0.9 && spent.epsilon > 0.899, "{spent:?}");
    let refused = ledger.charge(count(0.2)).err().unwrap();
    assert!(
        matches!(refused, Error::Refused { would_be, spent, budget } if would_be > 1.09 && spent < 0.9 + 1e-9 && budget == 1.0),
        "{refused}"
    );
    assert_eq!(ledger.state().unwrap().charges().len(), 9, "a refusal costs nothing");
    assert!(ledger.charge(count(0.0999)).is_ok());
}

#[test]
fn gaussians_cost_what_one_gaussian_of_all_their_noise_costs() {
    let all = Event::Composed(
        [4.0, 7.0, 9.0, 5.0].map(|z| Event::gaussian(NoiseMultiplier::new(z).unwrap())).to_vec(),
    );
    let exact = closed::epsilon(&all, Neighbors::AddRemove, delta(1e-5)).unwrap();
    for (composition, factor) in
        [(Composition::Gaussian, 1.001), (Composition::Best, 1.001), (Composition::Combined, 1.015)]
    {
        let terms = terms(Some(3.0), 1e-5, Neighbors::AddRemove, composition);
        let mut ledger = Ledger::create(Memory::default(), terms).unwrap();
        for z in [4.0, 7.0, 9.0, 5.0] {
            let _ = ledger.charge(gaussian(z)).unwrap();
        }
        let spent = ledger.state().unwrap().spent();
        assert_eq!(spent.theorem, Theorem::Gaussian);
        assert!(
            spent.epsilon >= exact.lower && spent.epsilon <= exact.upper * factor,
            "{} for {exact:?}",
            spent.epsilon
        );
    }
}

#[test]
fn a_plan_that_fills_the_budget_by_the_tight_accountant_is_granted_whole_and_nothing_after_it() {
    let plan = step(1.1, 0.01);
    let whole = Pld::default()
        .epsilon(&plan.event(Neighbors::AddRemove).repeated(1000), Neighbors::AddRemove, delta(1e-5))
        .unwrap()
        .upper;
    let (mut small, _) = ledger(whole * 0.999);
    assert!(matches!(small.reserve(plan.clone(), 1000).err(), Some(Error::Refused { .. })));
    let (mut enough, _) = ledger(whole * 1.0001);
    assert!(enough.reserve(plan, 1000).is_ok());
    let spent = enough.state().unwrap().spent();
    assert!(spent.theorem == Theorem::Whole && spent.epsilon <= whole * 1.0001, "{spent:?}");
    assert!(matches!(enough.charge(count(0.001)).err(), Some(Error::Refused { .. })));
}

/// Two runs of another kind, then steps of DP-SGD: charged as a whole, handed out in their turn, also after a
/// kill.
#[test]
fn a_staged_plan_hands_out_each_stage_in_its_turn() {
    let before = Descent { sampling: Sampling::Full, dimension: 5, ..step(7.0, 1.0) };
    let staged = StagedDescent { preparation: vec![(before.clone(), 2)], descent: step(4.0, 0.01) };
    let neighbors = Neighbors::AddRemove;
    let all = Event::Composed(vec![
        before.event(neighbors).repeated(2),
        step(4.0, 0.01).event(neighbors).repeated(10),
    ]);
    let truth = Pld::default().epsilon(&all, neighbors, delta(1e-5)).unwrap();
    let (mut ledger, _) = ledger(truth.upper * 1.001);
    let mut kinds = Vec::new();
    let lease = ledger.reserve(staged.clone(), 12).unwrap().in_blocks_of(1);
    let charge = lease.entry();
    for paid in lease.take(1) {
        let mut batches = StagedDescent::start(paid.unwrap(), 3).unwrap();
        kinds.push(batches.next(&mut Vectors::new(5, vec![])).unwrap().unwrap().sum.len());
    }
    // Killed and resumed: the second run is still one of the preparation.
    for paid in ledger.resume(staged.clone(), charge).unwrap().in_blocks_of(1) {
        let mut batches = StagedDescent::start(paid.unwrap(), 3).unwrap();
        let dimension = if kinds.len() < 2 { 5 } else { 2 };
        kinds.push(batches.next(&mut Vectors::new(dimension, vec![])).unwrap().unwrap().sum.len());
    }
    assert_eq!(kinds, [5, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    let spent = ledger.state().unwrap().spent();
    assert!(spent.epsilon >= truth.lower && spent.epsilon <= truth.upper * 1.001, "{spent:?} {truth:?}");
    // Another order, or another number of runs of the preparation, is another plan.
    let other = StagedDescent { preparation: vec![(before, 3)], ..staged };
    assert!(matches!(ledger.resume(other, charge).err(), Some(Error::Book { .. })));
}

#[test]
fn several_plans_of_dp_sgd_add_up_nearly_as_one() {
    let (mut ledger, _) = ledger(8.0);
    for _ in 0..3 {
        let _ = ledger.reserve(step(1.0, 0.01), 2000).unwrap();
    }
    let spent = ledger.state().unwrap().spent();
    let together = step(1.0, 0.01).event(Neighbors::AddRemove).repeated(6000);
    let truth = Pld::default().epsilon(&together, Neighbors::AddRemove, delta(1e-5)).unwrap();
    assert!(spent.epsilon >= truth.lower, "{spent:?} for {truth:?}");
    assert!(spent.epsilon <= 1.15 * truth.upper, "{spent:?} for {truth:?}");
}

/// The cost of a run of DP-SGD and a count, by each composition.
#[test]
fn the_usual_way_of_adding_up_is_good_for_mixed_plans() {
    let spent = |composition| {
        let mut ledger =
            Ledger::create(Memory::default(), terms(Some(10.0), 1e-5, Neighbors::AddRemove, composition))
                .unwrap();
        let _ = ledger.reserve(step(1.1, 0.01), 3300).unwrap();
        let _ = ledger.charge(count(0.9)).unwrap();
        ledger.state().unwrap().spent().epsilon
    };
    let [usual, mostly_gaussian] = [Composition::default(), Composition::Best].map(spent);
    // 4.61 and 4.99; the truth is 3.66, if both plans were fixed in advance.
    assert!(usual < 4.65 && mostly_gaussian > 4.95, "{usual} {mostly_gaussian}");
}

#[test]
fn each_way_of_adding_up_is_above_the_tight_accountant() {
    for composition in [
        Composition::Combined,
        Composition::Best,
        Composition::Gaussian,
        Composition::Renyi,
        Composition::Addition,
    ] {
        for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
            let mut ledger =
                Ledger::create(Memory::default(), terms(Some(30.0), 1e-5, neighbors, composition)).unwrap();
            let _ = ledger.charge(count(0.5)).unwrap();
            let _ = ledger.charge(gaussian(3.0)).map(drop);
            let _ = ledger.reserve(step(2.0, 0.1), 50).map(drop);
            let _ = ledger
                .charge(StableHistogram::new(Epsilon::new(0.3).unwrap(), delta(1e-8)).unwrap())
                .map(drop);
            let state = ledger.state().unwrap();
            let plans = state.charges().iter().map(|account| account.charge.plan.event.clone()).collect();
            let truth = Pld::default().epsilon(&Event::Composed(plans), neighbors, delta(1e-5)).unwrap();
            let spent = state.spent();
            assert!(spent.epsilon >= truth.lower, "{composition:?} {neighbors:?}: {spent:?} for {truth:?}");
        }
    }
}

#[test]
fn guarantees_known_only_by_their_divergences_are_added_up_as_such() {
    let (mut ledger, _) = ledger(20.0);
    let scale = |x| Scale::new(x).unwrap();
    let sparse = GaussianSparseVector {
        threshold: 100,
        positives: 2,
        questions: 50,
        on_threshold: scale(20.0),
        on_counts: scale(40.0),
    };
    let _ = ledger.charge(sparse).unwrap();
    let _ = ledger.charge(gaussian(5.0)).unwrap();
    let spent = ledger.state().unwrap().spent();
    assert_eq!(spent.theorem, Theorem::Renyi);
    assert!(spent.epsilon > 0.5 && spent.epsilon < 5.0, "{spent:?}");
}

#[test]
fn a_seed_is_non_private_and_a_capped_budget_refuses_it() {
    let (capped, _) = ledger(5.0);
    let refused = capped.seeded(1).charge(count(0.1)).err().unwrap();
    assert!(matches!(refused, Error::Refused { would_be, .. } if would_be.is_infinite()), "{refused}");
    let draw = |seed| {
        without_cap(Neighbors::AddRemove)
            .seeded(seed)
            .charge(count(0.1))
            .unwrap()
            .run(&Sensitive::new(50))
            .unwrap()
            .value
    };
    assert_eq!(draw(7).to_bits(), draw(7).to_bits());
    let mut open = without_cap(Neighbors::AddRemove).seeded(1);
    let paid = open.charge(count(0.1)).unwrap();
    assert!(serde_json::to_string(paid.receipt()).unwrap().contains(r#""non_private":true"#));
    drop(paid);
    let state = open.state().unwrap();
    assert!(
        state.charges()[0].charge.non_private && state.charges()[0].charge.plan.event == Event::NonPrivate
    );
    let statement = Statement::new(state).unwrap();
    assert!(statement.to_string().contains("NOTHING IS PROMISED"), "{statement}");
}

#[test]
fn noise_is_fresh_for_every_run() {
    let mut ledger = without_cap(Neighbors::AddRemove);
    let mut draw = || ledger.charge(count(1e-4)).unwrap().run(&Sensitive::new(0)).unwrap().value;
    let values: Vec<f64> = (0..20).map(|_| draw()).collect();
    // A scale of ten thousand repeats a value among twenty with probability below 1 %, all of them never.
    assert!(values.iter().any(|v| *v != values[0]), "{values:?}");
}

#[test]
fn whoever_comes_second_decides_anew() {
    let (mut ledger, book) = ledger(1.0);
    let (mut other, others_book) = self::ledger(1.0);
    let _ = other.charge(count(0.95)).unwrap();
    let theirs = others_book.lines.borrow()[1].clone();
    // The other's charge arrives between our decision and our writing.
    book.intruders.borrow_mut().push(theirs);
    assert!(matches!(ledger.charge(count(0.1)).err(), Some(Error::Refused { .. })));
    assert_eq!(ledger.state().unwrap().charges().len(), 1);
}

#[test]
fn no_debt_no_release() {
    let (mut ledger, book) = ledger(1.0);
    *book.broken.borrow_mut() = true;
    let error = ledger.charge(count(0.1)).err().unwrap();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    *book.broken.borrow_mut() = false;
    assert!(ledger.state().unwrap().charges().is_empty());
}

#[test]
fn a_killed_run_resumes_after_what_was_leased_and_no_step_is_run_twice() {
    let (mut first, book) = ledger(5.0);
    let mut lease = first.reserve(step(2.0, 0.1), 10).unwrap().in_blocks_of(4);
    let charge = lease.entry();
    for expected in [0, 1, 2, 3, 4] {
        assert_eq!(lease.position(), expected);
        let mut batches = lease.next().unwrap().unwrap().start(0).unwrap();
        let _ = batches.next(&mut Vectors::new(2, vec![])).unwrap().unwrap();
    }
    lease.confirm().unwrap();
    drop(lease);
    drop(first); // killed in the second block, of which three steps are lost
    let mut second = Ledger::open(book).unwrap();
    let account = second.state().unwrap().charges()[0].clone();
    assert_eq!((account.leased, account.confirmed, account.charge.steps), (8, 5, 10));
    assert_eq!(second.resume(step(2.0, 0.1), charge).unwrap().flatten().count(), 2);
    assert_eq!(second.resume(step(2.0, 0.1), charge).unwrap().count(), 0);
    let other = second.resume(step(2.1, 0.1), charge).err().unwrap();
    assert!(other.to_string().contains("is the charge of another plan"), "{other}");
    assert_eq!(second.state().unwrap().charges().len(), 1, "nothing was charged twice");
}

fn epoch(noise_multiplier: f64) -> Descent {
    Descent { sampling: Sampling::Shuffled { batches: 3 }, ..step(noise_multiplier, 1.0) }
}

#[test]
fn an_epoch_that_is_killed_is_lost_and_no_other_and_no_batch_is_run_twice() {
    let (mut first, book) = ledger(5.0);
    let mut lease = first.reserve(epoch(3.0), 4).unwrap().in_blocks_of(1);
    let charge = lease.entry();
    let mut nobody = Vectors::new(2, vec![]);
    let mut batches = lease.next().unwrap().unwrap().start(0).unwrap();
    while let Some(step) = batches.next(&mut nobody) {
        let _ = step.unwrap();
    }
    lease.confirm().unwrap();
    let mut batches = lease.next().unwrap().unwrap().start(0).unwrap();
    let _ = batches.next(&mut nobody).unwrap().unwrap();
    drop(batches); // killed in the second epoch, of which two batches are lost
    drop(lease);
    drop(first);
    let mut second = Ledger::open(book).unwrap();
    let account = second.state().unwrap().charges()[0].clone();
    assert_eq!((account.leased, account.confirmed, account.charge.steps), (2, 1, 4));
    assert_eq!(second.resume(epoch(3.0), charge).unwrap().flatten().count(), 2);
    assert_eq!(second.resume(epoch(3.0), charge).unwrap().count(), 0);
    assert!(second.resume(step(3.0, 0.1), charge).is_err());
    assert_eq!(second.state().unwrap().charges().len(), 1, "nothing was charged twice");
}

#[test]
fn every_way_of_sampling_is_charged_as_its_own_event_whatever_the_clipping() {
    let z = NoiseMultiplier::new(1.3).unwrap();
    let gaussian = Event::gaussian(z);
    let charged = |sampling, neighbors| Descent { sampling, ..step(1.3, 0.1) }.event(neighbors);
    let rate = SamplingRate::new(0.1).unwrap();
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        assert_eq!(charged(Sampling::Poisson { rate }, neighbors), gaussian.clone().poisson_sampled(rate));
        assert_eq!(charged(Sampling::Full, neighbors), gaussian);
        // All batches together cost as much as one.
        assert_eq!(epoch(1.3).event(neighbors), gaussian);
        // Parts and quantiles change the noise and not the cost.
        let norms = vec![ClipNorm::new(2.0).unwrap(); 2];
        let parts = Descent { clipping: Clipping::PerPart { parts: vec![1, 1], norms }, ..step(1.3, 0.1) };
        assert_eq!(parts.event(neighbors), gaussian.clone().poisson_sampled(rate));
    }
    let fixed = Sampling::WithoutReplacement { size: 10, records: 1000 };
    let event =
        Event::SampledWithoutReplacement { batch: 10, records: 1000, event: Box::new(gaussian.clone()) };
    assert_eq!(charged(fixed, Neighbors::Replace), event);
    assert_eq!(charged(fixed, Neighbors::AddRemove), Event::NonPrivate);
    assert_eq!(charged(Sampling::WithoutReplacement { size: 9, records: 9 }, Neighbors::Replace), gaussian);
    // And the ledger that knows the number of records grants it, for less than a full batch costs.
    let mut replace =
        Ledger::create(Memory::default(), terms(Some(30.0), 1e-5, Neighbors::Replace, Composition::Combined))
            .unwrap();
    let _ = replace.charge(Descent { sampling: fixed, ..step(1.3, 0.1) }).unwrap();
    let spent = replace.state().unwrap().spent().epsilon;
    let epsilon = |event| Pld::default().epsilon(&event, Neighbors::Replace, delta(1e-5)).unwrap();
    let (truth, full) = (epsilon(event), epsilon(gaussian));
    assert!(
        spent >= truth.lower && spent <= 1.01 * truth.upper && spent < 0.5 * full.lower,
        "{spent} for {truth:?}"
    );
}

#[test]
fn a_single_step_is_not_run_again_by_resuming() {
    let (mut ledger, _) = ledger(5.0);
    let mut lease = ledger.reserve(step(2.0, 0.1), 1).unwrap();
    let entry = lease.entry();
    assert!(lease.next().is_some() && lease.next().is_none());
    drop(lease);
    assert_eq!(ledger.resume(step(2.0, 0.1), entry).unwrap().count(), 0);
}

#[test]
fn a_run_whose_book_fails_stops_with_the_error() {
    let (mut ledger, book) = ledger(5.0);
    let mut lease = ledger.reserve(step(2.0, 0.1), 4).unwrap().in_blocks_of(2);
    assert!(lease.next().unwrap().is_ok() && lease.next().unwrap().is_ok());
    *book.broken.borrow_mut() = true;
    assert!(lease.next().unwrap().is_err());
    assert!(lease.next().is_none());
}

#[test]
fn a_budget_is_raised_in_writing_and_never_below_what_is_spent() {
    let (mut ledger, book) = ledger(1.0);
    let _ = ledger.charge(count(0.9)).unwrap();
    let budget = |epsilon| Budget { epsilon: Some(Epsilon::new(epsilon).unwrap()), delta: delta(1e-5) };
    assert!(matches!(ledger.raise(budget(0.5), "less").err(), Some(Error::Refused { .. })));
    ledger.raise(budget(2.0), "the board agreed").unwrap();
    assert!(
        matches!(book.lines.borrow().last(), Some(Line::Raised { reason, .. }) if reason == "the board agreed")
    );
    assert!(ledger.charge(count(0.9)).is_ok());
}

#[test]
fn a_cap_that_protects_nobody_is_refused() {
    let create = |cap| {
        Ledger::create(Memory::default(), terms(cap, 1e-5, Neighbors::AddRemove, Composition::Combined))
            .map(drop)
    };
    assert!(create(Some(30.0)).is_ok() && create(None).is_ok());
    assert!(matches!(create(Some(31.0)), Err(Error::OutOfRange { .. })));
}

#[test]
fn lines_that_make_no_sense_are_refused() {
    let (mut ledger, book) = ledger(5.0);
    let _ = ledger.reserve(step(2.0, 0.1), 4).unwrap();
    let good = book.lines.borrow().clone();
    assert!(State::new(&good).is_ok());
    for bad in [
        Line::Opened(terms(None, 1e-5, Neighbors::AddRemove, Composition::Combined)),
        Line::Leased { charge: 1, until: 5 },
        Line::Leased { charge: 0, until: 1 },
        Line::Confirmed { charge: 1, until: 1 },
    ] {
        let lines: Vec<Line> = good.iter().cloned().chain([bad.clone()]).collect();
        assert!(State::new(&lines).is_err(), "{bad:?}");
    }
    assert!(State::new(&good[1..]).is_err());
}

#[test]
fn what_has_no_guarantee_under_a_relation_is_refused() {
    use quell_privacy::{mechanism::RandomizedResponse, units::Probability};
    let (mut ledger, _) = ledger(30.0);
    let response = RandomizedResponse::new(4, Probability::new(0.5).unwrap()).unwrap();
    assert!(matches!(ledger.charge(response).err(), Some(Error::Refused { .. })));
    let mut replace =
        Ledger::create(Memory::default(), terms(Some(5.0), 1e-5, Neighbors::Replace, Composition::Combined))
            .unwrap();
    assert!(replace.charge(response).is_ok());
}

#[test]
fn a_statement_says_it_all_in_sentences() {
    let (mut ledger, _) = ledger(3.0);
    let _ = ledger.charge(gaussian(4.0)).unwrap();
    let statement = Statement::new(ledger.state().unwrap()).unwrap();
    let exact = closed::epsilon(
        &Event::gaussian(NoiseMultiplier::new(4.0).unwrap()),
        Neighbors::AddRemove,
        delta(1e-5),
    )
    .unwrap();
    // Whether another plan follows may depend on what this plan released. So the cap is promised, and the
    // statement shows the plan's own cost beside it.
    let (promised, alone) = (statement.epsilon.unwrap(), statement.alone.unwrap());
    assert!(promised.upper == 3.0 && promised.lower <= exact.upper, "{promised:?}");
    assert!(alone.epsilon >= exact.lower && alone.epsilon <= exact.upper * 1.0001, "{alone:?}");
    // Φ(Φ⁻¹(0.01) + 1/4)
    assert!((alone.true_positive_rate - 0.018_94).abs() < 1e-4, "{alone:?}");
    assert!(
        (statement.true_positive_rate - 3_f64.exp() * 0.01).abs() < 1e-4,
        "{}",
        statement.true_positive_rate
    );
    let text = statement.to_string();
    for words in
        ["one example", "added or removed", "δ = 1e-5", "false-positive rate of 1 %", "Not covered", "ZDW22"]
    {
        assert!(text.contains(words), "{words:?} in {text}");
    }
}

#[test]
fn of_several_plans_the_cap_is_promised_and_a_change_of_budget_costs_its_delta() {
    let (mut ledger, _) = ledger(3.0);
    let _ = ledger.charge(count(0.1)).unwrap();
    assert!(Statement::new(ledger.state().unwrap()).unwrap().alone.unwrap().epsilon <= 0.1);
    let _ = ledger.charge(count(0.1)).unwrap();
    let statement = Statement::new(ledger.state().unwrap()).unwrap();
    assert_eq!((statement.epsilon.unwrap().upper, statement.delta), (3.0, 1e-5));
    assert!(statement.counted.epsilon <= 0.2 && statement.true_positive_rate > 0.19, "{statement:?}");
    let budget = Budget { epsilon: Some(Epsilon::new(4.0).unwrap()), delta: delta(1e-5) };
    ledger.raise(budget, "more").unwrap();
    let statement = Statement::new(ledger.state().unwrap()).unwrap();
    assert_eq!((statement.epsilon.unwrap().upper, statement.delta), (4.0, 2e-5));
    assert!(statement.to_string().contains("δ counts once for each"), "{statement}");
}

#[test]
fn without_a_cap_nothing_is_promised_and_an_own_delta_is_not_forgotten() {
    let mut open = without_cap(Neighbors::AddRemove);
    let _ = open.charge(StableHistogram::new(Epsilon::new(0.5).unwrap(), delta(1e-2)).unwrap()).unwrap();
    let state = open.state().unwrap();
    assert_eq!(state.spent().theorem, Theorem::None, "{:?}", state.spent());
    assert_eq!(Statement::new(state).unwrap().epsilon, None);
}

#[test]
fn a_charge_that_was_priced_by_somebody_else_is_not_resumed() {
    let (mut ledger, book) = ledger(5.0);
    let _ = ledger.reserve(step(2.0, 0.1), 10).unwrap();
    let Line::Charged(mut charge) = book.lines.borrow()[1].clone() else { panic!("a charge") };
    charge.cost.gaussian = Some(1e-9);
    charge.cost.pure = Some(0.0);
    book.lines.borrow_mut().push(Line::Charged(charge.clone()));
    assert!(ledger.resume(step(2.0, 0.1), 2).is_err());
    assert!(ledger.resume(step(2.0, 0.1), 1).is_ok());
    // Costs and steps that make no sense are not even read.
    charge.cost.slack = -1.0;
    assert!(State::new(&[book.lines.borrow()[0].clone(), Line::Charged(charge.clone())]).is_err());
    charge.cost.slack = 0.0;
    charge.steps = 11;
    assert!(State::new(&[book.lines.borrow()[0].clone(), Line::Charged(charge)]).is_err());
}

#[test]
fn a_ledger_that_adds_has_room_for_gaussians_too() {
    let mut ledger = Ledger::create(
        Memory::default(),
        terms(Some(3.0), 1e-5, Neighbors::AddRemove, Composition::Addition),
    )
    .unwrap();
    let _ = ledger.charge(gaussian(10.0)).unwrap();
    let _ = ledger.charge(count(0.1)).unwrap();
    let spent = ledger.state().unwrap().spent();
    // One sixteenth of δ goes into the ε of the first.
    let one = closed::epsilon(
        &Event::gaussian(NoiseMultiplier::new(10.0).unwrap()),
        Neighbors::AddRemove,
        delta(1e-5 / 16.0),
    )
    .unwrap();
    assert_eq!(spent.theorem, Theorem::Addition);
    assert!((spent.epsilon - one.upper - 0.1).abs() < 2e-3, "{spent:?} {one:?}");
}
