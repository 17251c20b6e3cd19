//! What a statement promises: never less than what could have been released.

use crate::book::{Memory, ledger, terms, without_cap};
use quell_privacy::{
    Bound, Error, Event, Neighbors, Statement,
    accounting::Pld,
    ledger::{Budget, Composition, Ledger, Line, Promise, State, Unpromised},
    mechanism::{Additive, Count, IntegerNoise, Noise},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier},
};

fn count(epsilon: f64) -> Count {
    Count { noise: IntegerNoise::for_epsilon(Epsilon::new(epsilon).unwrap(), 1).unwrap() }
}

fn gaussian(noise_multiplier: f64) -> Additive {
    Additive {
        noise: Noise::Gaussian,
        contribution: ClipNorm::new(1.0).unwrap(),
        noise_multiplier: NoiseMultiplier::new(noise_multiplier).unwrap(),
        dimension: 1,
    }
}

fn budget(epsilon: Option<f64>, delta: f64) -> Budget {
    Budget {
        epsilon: epsilon.map(|epsilon| Epsilon::new(epsilon).unwrap()),
        delta: Delta::new(delta).unwrap(),
    }
}

fn statement(ledger: &mut Ledger<Memory>) -> Statement {
    Statement::new(ledger.state().unwrap()).unwrap()
}

/// What is promised after two charges under a cap of 3 and then these budgets.
fn after(budgets: &[Budget]) -> Result<Promise, Unpromised> {
    let (mut ledger, _) = ledger(3.0);
    let _ = ledger.charge(count(0.1)).unwrap();
    let _ = ledger.charge(count(0.1)).unwrap();
    for budget in budgets {
        ledger.raise(*budget, "test").unwrap();
    }
    let promise = ledger.state().unwrap().promise();
    let said = statement(&mut ledger);
    assert_eq!(said.epsilon.map(|epsilon| epsilon.upper), promise.ok().map(|promise| promise.epsilon));
    assert_eq!(said.unpromised, promise.err());
    promise
}

#[test]
fn a_cap_that_is_set_after_a_charge_promises_nothing() {
    let mut ledger = without_cap(Neighbors::AddRemove);
    for _ in 0..3 {
        let _ = ledger.charge(count(0.5)).unwrap();
    }
    ledger.raise(budget(Some(1.6), 1e-5), "after three results").unwrap();
    let said = statement(&mut ledger);
    assert_eq!((said.epsilon, said.unpromised), (None, Some(Unpromised::LateCap)));
    assert!(said.to_string().contains("NOTHING IS PROMISED: the ledger had no cap for some time"), "{said}");
    assert!(
        matches!(ledger.charge(count(0.5)).err(), Some(Error::Refused { .. })),
        "the cap limits what follows all the same"
    );
    // Before the first charge nothing has been seen, and any cap can be set.
    let mut early = without_cap(Neighbors::AddRemove);
    early.raise(budget(Some(1.6), 1e-5), "before any result").unwrap();
    for _ in 0..2 {
        let _ = early.charge(count(0.5)).unwrap();
    }
    assert_eq!(statement(&mut early).epsilon.unwrap().upper, 1.6);
}

#[test]
fn the_largest_cap_since_the_first_charge_is_promised_at_the_delta_of_all_that_could_have_been_set() {
    let capped = |cap| budget(Some(cap), 1e-5);
    let promised = |epsilon, delta| Ok(Promise { epsilon, delta });
    assert_eq!(after(&[]), promised(3.0, 1e-5));
    assert_eq!(after(&[capped(4.0)]), promised(4.0, 2e-5));
    assert_eq!(
        after(&[capped(5.0)]),
        promised(5.0, (3.0_f64 * 1e-5).next_up()),
        "four could have been set, too"
    );
    assert_eq!(after(&[capped(4.0), capped(5.0)]), after(&[capped(5.0)]));
    assert_eq!(
        after(&[capped(3.5)]),
        promised(4.0, 2e-5),
        "a cap in between promises the whole number above it"
    );
    assert_eq!(after(&[capped(1.0)]), promised(3.0, 1e-5), "a lower cap lowers no promise");
    assert_eq!(after(&[capped(5.0), capped(1.0)]), after(&[capped(5.0)]));
    assert_eq!(after(&[budget(None, 1e-5)]), Err(Unpromised::NoCap));
    assert_eq!(after(&[budget(None, 1e-5), capped(4.0)]), Err(Unpromised::LateCap));
    assert_eq!(after(&[budget(Some(3.0), 1e-7)]), promised(3.0, 1e-5), "a lower delta lowers no promise");
}

#[test]
fn delta_is_not_raised_after_a_charge() {
    let (mut ledger, book) = ledger(3.0);
    ledger.raise(budget(Some(3.0), 1e-4), "nothing was seen yet").unwrap();
    let _ = ledger.charge(count(0.1)).unwrap();
    let _ = ledger.charge(count(0.1)).unwrap();
    assert!(matches!(ledger.raise(budget(Some(3.0), 1e-3), "more").err(), Some(Error::Unfit { .. })));
    // An old ledger in which it was.
    let mut lines = book.lines.borrow().clone();
    lines.push(Line::Raised { budget: budget(Some(3.0), 1e-3), reason: "more".into() });
    let said = Statement::new(&State::new(&lines).unwrap()).unwrap();
    assert_eq!((said.epsilon, said.unpromised), (None, Some(Unpromised::DeltaRaised)));
}

/// How far an analyst who stops at the best moment exceeds the promises.
///
/// The analyst knows both datasets and adds Gaussians of μ² = 1/40 each. After each of them the analyst
/// decides on the result whether to stop. Where the loss exceeds the ε that is promised at that moment, the
/// promise does not cover 1 - e^(ε - loss) of the probability. The sum of these parts is the excess.
fn excess_of_a_stopping_analyst(promised: &[Option<Promise>]) -> f64 {
    // Dynamic programming over the loss on a grid: after n Gaussians it is N(nμ²/2, nμ²).
    const SQUARE: f64 = 1.0 / 40.0;
    const NODES: i32 = 2000;
    let step = 0.004;
    let loss = |node: i32| f64::from(node - NODES / 2) * step;
    let weights: Vec<f64> = {
        let density = |d: f64| (-(d - SQUARE / 2.0).powi(2) / (2.0 * SQUARE)).exp();
        let all: Vec<f64> = (-300..=300).map(|d| density(f64::from(d) * step)).collect();
        let total: f64 = all.iter().sum();
        all.into_iter().map(|weight| weight / total).collect()
    };
    // What is gained by the best stopping from here on.
    let mut value = vec![0.0; NODES as usize];
    for promise in promised.iter().rev() {
        let stop =
            |node: i32| promise.map_or(0.0, |promise| -(promise.epsilon - loss(node)).min(0.0).exp_m1());
        let best: Vec<f64> = (0..NODES).map(|node| stop(node).max(value[node as usize])).collect();
        let next = |node: i32| {
            let reached = |d: usize| best[(node + d as i32 - 300).clamp(0, NODES - 1) as usize];
            weights.iter().enumerate().map(|(d, weight)| weight * reached(d)).sum()
        };
        value = (0..NODES).map(next).collect();
    }
    value[NODES as usize / 2]
}

/// Charges Gaussians under the budgets of `cap`, and returns each promise.
fn promises(cap: impl Fn(usize) -> Option<f64>, plans: usize) -> Vec<Option<Promise>> {
    let first = cap(0);
    let mut ledger =
        Ledger::create(Memory::default(), terms(first, 0.01, Neighbors::AddRemove, Composition::Gaussian))
            .unwrap();
    (1..=plans)
        .map(|plan| {
            let _ = ledger.charge(gaussian(40.0_f64.sqrt())).unwrap();
            if cap(plan) != cap(plan - 1) {
                ledger.raise(budget(cap(plan), 0.01), "test").unwrap();
            }
            let said = statement(&mut ledger);
            said.epsilon.map(|epsilon| Promise { epsilon: epsilon.upper, delta: said.delta })
        })
        .collect()
}

#[test]
fn an_analyst_who_stops_when_it_suits_gains_no_more_than_delta() {
    const PLANS: usize = 24;
    // A cap that follows what is spent, without one before: the hole this closes. Nothing is promised, so nothing is exceeded.
    let late = promises(|plan| (plan > 0).then_some(0.6 + 0.1 * plan as f64), PLANS);
    assert_eq!(excess_of_a_stopping_analyst(&late), 0.0);
    // If what is spent were promised each time, he would gain several times the 2 % that were claimed.
    let spent: Vec<Option<Promise>> = {
        let mut ledger = Ledger::create(
            Memory::default(),
            terms(Some(30.0), 0.01, Neighbors::AddRemove, Composition::Gaussian),
        )
        .unwrap();
        (0..PLANS)
            .map(|_| {
                let _ = ledger.charge(gaussian(40.0_f64.sqrt())).unwrap();
                Some(Promise { epsilon: ledger.state().unwrap().spent().epsilon, delta: 0.02 })
            })
            .collect()
    };
    assert!(excess_of_a_stopping_analyst(&spent) > 0.02, "the test has no power");
    // Caps that rise with what is spent, from the smallest that bears the first two.
    for start in [0.6, 1.0, 1.4] {
        let rising = promises(|plan| Some(start + 0.1 * plan as f64), PLANS);
        let most = rising.iter().flatten().map(|promise| promise.delta).fold(0.0, f64::max);
        let excess = excess_of_a_stopping_analyst(&rising);
        assert!(most > 0.01 && excess <= most, "{excess} where {most} was promised");
    }
    // A cap that stays and that all plans together use up.
    let cap = spent[PLANS - 1].unwrap().epsilon * 1.000_1;
    let fixed = promises(|_| Some(cap), PLANS);
    assert!(excess_of_a_stopping_analyst(&fixed) <= 0.01);
    // If what the first plan costs were promised as long as it is the only one, he would stop there or use up the cap.
    let alone = [&spent[..1], &fixed[1..]].concat();
    assert!(excess_of_a_stopping_analyst(&alone) > 0.015, "the test has no power");
}

#[test]
fn the_interval_of_a_promise_is_at_its_own_delta() {
    let (mut ledger, _) = ledger(3.0);
    let _ = ledger.charge(gaussian(4.0)).unwrap();
    for (cap, delta) in [(4.0, 1e-5), (4.0, 1e-7), (8.0, 1e-9)] {
        ledger.raise(budget(Some(cap), delta), "test").unwrap();
        let said = statement(&mut ledger);
        let event = Event::gaussian(NoiseMultiplier::new(4.0).unwrap());
        let truth =
            Pld::default().epsilon(&event, Neighbors::AddRemove, Delta::new(said.delta).unwrap()).unwrap();
        let Bound { lower, upper } = said.epsilon.unwrap();
        assert!(lower <= truth.upper && upper >= truth.lower, "{lower} {upper} {truth:?} at {}", said.delta);
        assert!(lower >= 0.99 * truth.lower, "{lower} where {truth:?} is known at {}", said.delta);
    }
}

#[test]
fn lines_that_no_ledger_wrote_leave_no_promise() {
    let (mut ledger, book) = ledger(1.0);
    let (charge, spent) = ledger.quote(&gaussian(0.5), 100).unwrap();
    assert!(spent.epsilon > 100.0);
    let terms = book.lines.borrow()[0].clone();
    // More than the cap, honestly priced.
    let over = State::new(&[terms.clone(), Line::Charged(charge.clone())]).unwrap();
    assert!(!over.is_within_cap());
    let said = Statement::new(&over).unwrap();
    assert_eq!((said.epsilon, said.unpromised), (None, Some(Unpromised::OverCap)));
    // Within the cap, because the price is a lie.
    let mut cheap = charge;
    cheap.cost.gaussian = Some(0.01);
    cheap.cost.pure = None;
    cheap.cost.renyi = None;
    let (honest, _) = ledger.quote(&count(0.1), 1).unwrap();
    let lied = State::new(&[terms, Line::Charged(honest), Line::Charged(cheap)]).unwrap();
    assert!(lied.is_within_cap());
    let said = Statement::new(&lied).unwrap();
    assert_eq!((said.epsilon, said.unpromised), (None, Some(Unpromised::Underpriced { entry: 2 })));
}

#[test]
fn a_charge_beyond_the_cap_is_not_resumed() {
    let (mut ledger, book) = ledger(1.0);
    let (charge, _) = ledger.quote(&count(0.4), 1000).unwrap();
    book.lines.borrow_mut().push(Line::Charged(charge));
    let refused = ledger.resume(count(0.4), 1).err().unwrap();
    assert!(refused.to_string().contains("expected at most the budget of 1"), "{refused}");
}

#[test]
fn plans_that_are_interleaved_cost_what_they_cost_one_after_the_other() {
    let (mut one, book) = ledger(3.0);
    let mut two = Ledger::open(book.clone()).unwrap();
    let mut three = Ledger::open(book).unwrap();
    let mut first = one.reserve(gaussian(9.0), 4).unwrap().in_blocks_of(1);
    let mut second = two.reserve(gaussian(11.0), 3).unwrap().in_blocks_of(1);
    let mut steps = 0;
    loop {
        let taken = [first.next().map(Result::unwrap).is_some(), second.next().map(Result::unwrap).is_some()];
        // A plan that begins between the steps of others, and a fourth after all.
        if steps == 2 {
            let _ = three.charge(gaussian(10.0)).unwrap();
        }
        steps += taken.iter().filter(|taken| **taken).count();
        if taken == [false, false] {
            break;
        }
    }
    assert_eq!(steps, 7, "each step once");
    let interleaved = three.state().unwrap().spent();
    let (mut ordered, _) = ledger(3.0);
    let _ = ordered.reserve(gaussian(9.0), 4).unwrap().count();
    let _ = ordered.reserve(gaussian(11.0), 3).unwrap().count();
    let _ = ordered.charge(gaussian(10.0)).unwrap();
    assert_eq!(interleaved, ordered.state().unwrap().spent());
    let event = |z: f64, steps| Event::gaussian(NoiseMultiplier::new(z).unwrap()).repeated(steps);
    let all = Event::Composed(vec![event(9.0, 4), event(11.0, 3), event(10.0, 1)]);
    let truth = Pld::default().epsilon(&all, Neighbors::AddRemove, Delta::new(1e-5).unwrap()).unwrap();
    assert!(interleaved.epsilon >= truth.lower, "{interleaved:?} {truth:?}");
}

#[test]
fn budgets_that_no_ledger_has_are_not_read() {
    let (_, book) = ledger(1.0);
    let Line::Opened(mut terms) = book.lines.borrow()[0].clone() else { panic!("terms") };
    let raised =
        Line::Raised { budget: budget(Some(1000.0), 1e-5), reason: "as much as anybody wants".into() };
    assert!(State::new(&[Line::Opened(terms.clone()), raised]).is_err());
    terms.budget = budget(Some(1000.0), 1e-5);
    assert!(State::new(&[Line::Opened(terms)]).is_err());
}
