//! Trials of a search: releases that are paid for by the search as a whole.

use std::convert::Infallible;

use super::{
    Book, Budget, Charge, Composition, Cost, Lease, Ledger, Line, Permit, Receipt, State, Terms, Unit,
};
use crate::{
    Error, Event, Neighbors,
    event::Record,
    mechanism::{Mechanism, PaidRuns, TrialPlan},
    noise::random::Randomness,
    units::Delta,
};

/// One trial of a search that was paid for.
///
/// # Contract
/// The trial hands out the runs of its plan once, in the order of the plan, and nothing else. The one clause
/// that the code does not enforce: nothing of a trial of [`BestOf`](crate::mechanism::BestOf) leaves but through
/// [`Paid<BestOf>::search`](crate::ledger::Paid::search).
pub struct Trial {
    kind: usize,
    plan: TrialPlan,
    /// Number of parts of the plan that were handed out.
    done: usize,
    ledger: Ledger<Unwritten>,
}

impl Trial {
    pub(crate) fn new(
        (kind, plan): (usize, TrialPlan),
        (dataset, unit, neighbors): (String, Unit, Neighbors),
        randomness: Randomness,
    ) -> Result<Self, Error> {
        // The search was charged as a whole. So the ledger of a trial promises nothing and has no cap.
        let budget = Budget { epsilon: None, delta: Delta::new(f64::MIN_POSITIVE)? };
        let terms = Terms { dataset, unit, neighbors, budget, composition: Composition::Combined };
        let mut ledger = Ledger::create(Unwritten::default(), terms)?;
        ledger.randomness = randomness;
        Ok(Self { kind, plan, done: 0, ledger })
    }

    /// Number of the kind of trial that was drawn, in the order in which the search was planned.
    #[must_use]
    pub fn kind(&self) -> usize {
        self.kind
    }

    /// The runs of the next part of the trial's plan, which must be this one.
    pub fn lease<M: Mechanism>(&mut self, mechanism: M, runs: u64) -> Result<Lease<'_, M, Unwritten>, Error> {
        let neighbors = self.ledger.state.terms().neighbors;
        mechanism.check(neighbors)?;
        let asked = PaidRuns::new(&mechanism, neighbors, runs);
        let is_planned = self.plan.parts.get(self.done).is_some_and(|part| part.covers(&asked));
        if !is_planned || runs == 0 {
            return Err(Error::Book { cause: "the search has paid for other trials".into() });
        }
        self.done += 1;
        // The search paid for this trial, so its line claims no ε: `NonPrivate` is the event without a bound.
        // `non_private` marks seeded runs for readers of a book. Nobody reads this one: the search is marked.
        let charge = Charge {
            what: mechanism.to_string(),
            plan: Record::from(Event::NonPrivate),
            steps: runs,
            cost: Cost::unbounded(),
            non_private: false,
            key: Some(self.done.to_string()),
        };
        let receipt = self.ledger.append(|state| {
            let spent = state.spent_with(&charge);
            Ok(super::Decision { line: Line::Charged(charge.clone()), spent: Some(spent) })
        })?;
        Ok(Lease::new(&mut self.ledger, mechanism, receipt, runs, (0, 0)))
    }
}

/// The book of a trial. It is forgotten with the trial.
#[derive(Default)]
pub struct Unwritten {
    lines: Vec<Line>,
}

impl Book for Unwritten {
    type Error = Infallible;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, Infallible> {
        Ok(self.lines.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)).cloned().collect())
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, Infallible> {
        let number = self.lines.len() as u64;
        let follows = permit.follows(State::new(&self.lines).ok().as_ref());
        if number != permit.number() || !follows || permit.spent() > permit.cap() {
            return Ok(None);
        }
        self.lines.push(permit.line().clone());
        self.receipt(number).map(Some)
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, Infallible> {
        let dataset = self.lines.first().map_or("", |line| match line {
            Line::Opened(terms) => &terms.dataset,
            Line::Charged(_) | Line::Leased { .. } | Line::Confirmed { .. } | Line::Raised { .. } => "",
        });
        Ok(Receipt::new(dataset.to_owned(), number, String::new()))
    }
}
