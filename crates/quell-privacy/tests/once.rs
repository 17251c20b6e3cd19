//! Charges under an idempotency key: each is charged once.
//!
//! Nothing is lost before a step is leased.

use crate::book::{Memory, ledger};
use quell_privacy::{
    Error,
    ledger::{Ledger, Line, State},
    mechanism::{Count, IntegerNoise, Sensitive},
    units::Epsilon,
};

fn count(epsilon: f64) -> Count {
    Count { noise: IntegerNoise::for_epsilon(Epsilon::new(epsilon).unwrap(), 1).unwrap() }
}

fn charges(ledger: &mut Ledger<Memory>) -> usize {
    ledger.state().unwrap().charges().len()
}

#[test]
fn a_key_is_charged_once_however_often_somebody_pays() {
    let (mut ledger, book) = ledger(1.0);
    for steps in [1, 4] {
        let key = format!("key {steps}");
        // Killed after it had paid, again and again: nothing was leased, so nothing is lost.
        for _ in 0..3 {
            assert_eq!(ledger.reserve_once(&key, count(0.1), steps).unwrap().position(), 0);
        }
        let mut reopened = Ledger::open(book.clone()).unwrap();
        let lease = reopened.reserve_once(&key, count(0.1), steps).unwrap().in_blocks_of(1);
        let released =
            lease.map(|paid| paid.unwrap().run(&Sensitive::new(3)).unwrap()).collect::<Vec<_>>().len() as u64;
        assert_eq!(released, steps);
        // All steps were taken: none is handed out again.
        assert!(ledger.reserve_once(&key, count(0.1), steps).unwrap().next().is_none());
    }
    assert_eq!(charges(&mut ledger), 2);
    assert_eq!(State::new(&book.lines.borrow()).unwrap().keyed("key 1").unwrap().leased, 1);
}

#[test]
fn a_key_is_for_one_plan() {
    let (mut ledger, _) = ledger(1.0);
    drop(ledger.reserve_once("key", count(0.1), 2).unwrap());
    for (epsilon, steps) in [(0.1, 3), (0.2, 2), (0.1, 1)] {
        let refused = ledger.reserve_once("key", count(epsilon), steps).err();
        assert!(matches!(refused, Some(Error::Book { .. })), "{epsilon}, {steps}: {refused:?}");
    }
    assert_eq!(charges(&mut ledger), 1);
}

#[test]
fn who_pays_second_under_a_key_goes_on_with_the_first_charge() {
    let (mut first, book) = ledger(1.0);
    let mut second = Ledger::open(book.clone()).unwrap();
    // Between the second's look and its line, the first has paid.
    let (charge, _) = first.quote(&count(0.1), 1).unwrap();
    let charge = quell_privacy::ledger::Charge { key: Some("key".into()), ..charge };
    book.intruders.borrow_mut().push(Line::Charged(charge));
    assert!(second.reserve_once("key", count(0.1), 1).unwrap().next().unwrap().is_ok());
    assert!(first.reserve_once("key", count(0.1), 1).unwrap().next().is_none(), "the step is taken");
    assert_eq!(charges(&mut first), 1);
}

#[test]
fn a_book_with_two_charges_under_one_key_is_none() {
    let (mut ledger, book) = ledger(1.0);
    drop(ledger.reserve_once("key", count(0.1), 1).unwrap());
    let again = book.lines.borrow()[1].clone();
    book.lines.borrow_mut().push(again);
    let refused = State::new(&book.lines.borrow()).err().map(|error| error.to_string());
    assert!(
        refused.as_deref().is_some_and(|said| said.contains("a second time under one key")),
        "{refused:?}"
    );
}

#[test]
fn a_witness_is_told_of_each_block_before_its_first_step() {
    let (mut ledger, book) = ledger(1.0);
    let seen = std::cell::RefCell::new(Vec::new());
    let mut lease = ledger.reserve_once("key", count(0.1), 4).unwrap().in_blocks_of(2).witnessed(|receipt| {
        seen.borrow_mut().push(receipt.entry);
        Ok(())
    });
    for expected in [1, 1, 2, 2] {
        assert!(lease.next().unwrap().is_ok());
        assert_eq!(seen.borrow().len(), expected);
    }
    drop(lease);
    assert_eq!(*seen.borrow(), [2, 3], "the lines that leased");
    assert!(book.lines.borrow().len() == 4);
    // A witness that cannot write ends the lease before a step.
    let failed = |_: &_| Err(Error::Book { cause: "the disk is full".into() });
    let mut lease = ledger.reserve_once("other", count(0.1), 4).unwrap().witnessed(failed);
    assert!(lease.next().unwrap().is_err() && lease.next().is_none());
}
