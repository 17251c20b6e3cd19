//! Statements that would promise too little.

use quell_ledger::Store;
use quell_privacy::{
    Event, Statement,
    ledger::{Charge, Cost, Line, State},
};

use super::{Attempt, refused};
use crate::fixture::{DATASET, budget, charge, count, create, terms};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("a cap after the fact", late_cap),
    ("a lower cap after the fact", lower_cap),
    ("a cap that was raised and lowered again", raised_and_lowered),
    ("a cap that was gone for a while", gone_for_a_while),
    ("lines beyond the cap", beyond_the_cap),
    ("a price that is a lie", underpriced),
    ("a price that is negative, infinite or no number", no_price),
    ("no noise, said to cost nothing", non_private),
    ("a plan for more steps than it says", other_steps),
    ("leases that nobody paid for", unpaid_leases),
    ("a second opening", second_opening),
    ("a statement of nothing", no_lines),
];

/// The terms of a ledger with this cap, and an honest charge of ε = 1 per step.
fn honest(cap: Option<f64>, steps: u64) -> (Line, Charge) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    let mut ledger = create(&store, DATASET, cap);
    let (charge, _) = ledger.quote(&count(1.0), steps).unwrap();
    (Line::Opened(terms(DATASET, cap)), charge)
}

/// What is promised for these lines; infinite if nothing is.
fn promised(lines: &[Line]) -> f64 {
    let statement = Statement::new(&State::new(lines).unwrap()).unwrap();
    statement.epsilon.map_or(f64::INFINITY, |epsilon| epsilon.upper)
}

fn after(cap: Option<f64>, caps: &[Option<f64>]) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    let mut ledger = create(&store, DATASET, cap);
    charge(&mut ledger, 2);
    for cap in caps {
        ledger.raise(budget(*cap), "test").unwrap();
    }
    Statement::new(ledger.state().unwrap()).unwrap().epsilon.map_or(f64::INFINITY, |epsilon| epsilon.upper)
}

fn late_cap() {
    assert_eq!(after(None, &[Some(2.1)]), f64::INFINITY);
}

fn lower_cap() {
    assert!(after(Some(9.0), &[Some(2.1)]) >= 9.0);
}

fn raised_and_lowered() {
    assert!(after(Some(3.0), &[Some(9.0), Some(4.0)]) >= 9.0);
}

fn gone_for_a_while() {
    assert_eq!(after(Some(9.0), &[None, Some(9.0)]), f64::INFINITY);
}

fn beyond_the_cap() {
    let (terms, charge) = honest(Some(1.0), 1000);
    assert_eq!(promised(&[terms.clone(), Line::Charged(charge)]), f64::INFINITY);
    let (_, one) = honest(Some(1.0), 1);
    let several: Vec<Line> = [terms].into_iter().chain((0..5).map(|_| Line::Charged(one.clone()))).collect();
    assert_eq!(promised(&several), f64::INFINITY);
}

fn underpriced() {
    let (terms, mut charge) = honest(Some(1.0), 2);
    for pure in [0.0, 0.5, 1.9] {
        charge.cost.pure = Some(pure);
        let lines = [terms.clone(), Line::Charged(charge.clone()), Line::Charged(charge.clone())];
        assert!(promised(&lines) >= 4.0, "two plans of ε = 2 at {pure} each");
    }
}

fn no_price() {
    let (terms, charge) = honest(Some(1.0), 1);
    for number in [-1.0, f64::NAN, f64::INFINITY] {
        for cost in [
            Cost { pure: Some(number), ..charge.cost.clone() },
            Cost { slack: number, ..charge.cost.clone() },
            Cost { distance: number, ..charge.cost.clone() },
            Cost { renyi: Some(vec![number; 14]), ..charge.cost.clone() },
        ] {
            let charge = Charge { cost, ..charge.clone() };
            refused(State::new(&[terms.clone(), Line::Charged(charge)]), "line 1 has an invalid cost");
        }
    }
}

fn non_private() {
    let (terms, charge) = honest(Some(1.0), 1);
    let free = Charge { plan: Event::NonPrivate.into(), ..charge.clone() };
    assert_eq!(promised(&[terms.clone(), Line::Charged(charge), Line::Charged(free.clone())]), f64::INFINITY);
    assert_eq!(promised(&[terms, Line::Charged(free)]), f64::INFINITY);
}

fn other_steps() {
    let (terms, charge) = honest(Some(1.0), 2);
    let more = State::new(&[terms, Line::Charged(Charge { steps: 2000, ..charge })]);
    refused(more, "line 1 pays for a different number of steps than it hands out");
}

fn unpaid_leases() {
    let (terms, charge) = honest(Some(3.0), 2);
    let lines = |line| vec![terms.clone(), Line::Charged(charge.clone()), line];
    for (charge, until) in [(1, 3), (0, 1), (9, 1)] {
        refused(
            State::new(&lines(Line::Leased { charge, until })),
            "line 2 leases steps that were not paid for",
        );
    }
    refused(
        State::new(&lines(Line::Confirmed { charge: 1, until: 1 })),
        "line 2 confirms steps that were not leased",
    );
}

fn second_opening() {
    let (one, charge) = honest(Some(1.0), 1);
    let (two, _) = honest(Some(20.0), 1);
    refused(State::new(&[one, Line::Charged(charge), two]), "line 2 opens the ledger a second time");
}

fn no_lines() {
    refused(State::new(&[]), "the ledger does not begin with its terms");
    let (_, charge) = honest(Some(1.0), 1);
    refused(State::new(&[Line::Charged(charge)]), "the ledger does not begin with its terms");
}
