//! The ledger: budget of a dataset, what was spent, and who may release.
//!
//! A [`Ledger`] decides; a [`Book`] stores its decisions. The ledger takes a mechanism, records a charge, and
//! returns a [`Paid`] mechanism, in that order. Whatever happens afterwards, the charge stays.
//!
//! Here are the operations of a ledger. The module `decision` compares them with the budget and writes them.

mod book;
mod cost;
mod decision;
mod filter;
mod lease;
mod note;
mod paid;
mod permit;
mod promise;
mod state;
mod trial;

pub use book::{Book, Budget, Charge, Line, Receipt, Terms, Unit};
pub use cost::Cost;
pub use filter::{Composition, Spent, Theorem};
pub use lease::Lease;
pub use note::Note;
pub use paid::Paid;
pub use permit::Permit;
pub use promise::{Promise, Unpromised};
pub use state::{Account, State};
pub use trial::{Trial, Unwritten};

use decision::Decision;

use crate::{Error, Event, event::Record, mechanism::Mechanism, noise::random::Randomness, units::Delta};

/// The ledger of one dataset.
///
/// # Contract
/// A [`Paid`] mechanism exists only after its charge is durable in the book, and the sum of all charges is at
/// most the cap. Nothing is ever refunded. This value counts everything it granted, whatever the book says
/// afterwards.
pub struct Ledger<B> {
    book: B,
    state: State,
    randomness: Randomness,
    /// The spent ε, with the charges and the budget it was computed for.
    cached_spent: Option<(usize, Budget, Spent)>,
}

/// Part of the free slack that one plan may use.
///
/// It is enough for any number of plans, because a part of the slack always remains.
const SLACK_PER_PLAN: f64 = 1.0 / 16.0;

impl<B: Book> Ledger<B> {
    /// Creates a new ledger by writing its first line.
    pub fn create(mut book: B, terms: Terms) -> Result<Self, Error> {
        if terms.dataset.is_empty() {
            return Err(Error::Book { cause: "the dataset has no name".into() });
        }
        terms.budget.check_new()?;
        let line = Line::Opened(terms);
        let cap = State::new(std::slice::from_ref(&line))?.budget().cap();
        match book.append(&Permit::new(None, &line, 0.0, cap)).map_err(storage)? {
            Some(_) => Self::open(book),
            None => Err(Error::Book { cause: "this dataset has a ledger already".into() }),
        }
    }

    /// Opens an existing ledger.
    pub fn open(mut book: B) -> Result<Self, Error> {
        let state = State::new(&book.read(0).map_err(storage)?)?;
        Ok(Self { book, state, randomness: Randomness::OperatingSystem, cached_spent: None })
    }

    /// Draws all noise from a seed from now on, to repeat a test.
    ///
    /// Whoever knows the seed can subtract the noise, so every charge is recorded as non-private, which a
    /// capped budget refuses.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { randomness: Randomness::seeded(seed), ..self }
    }

    /// The current state of the ledger, including the lines of other writers.
    pub fn state(&mut self) -> Result<&State, Error> {
        for line in self.book.read(self.state.lines()).map_err(storage)? {
            self.state.apply(&line)?;
        }
        Ok(&self.state)
    }

    /// Passes words about the next charges to the book. They change no decision.
    pub fn annotate(&mut self, note: &Note) {
        self.book.annotate(note);
    }

    /// The receipt of a line.
    pub fn receipt(&mut self, entry: u64) -> Result<Receipt, Error> {
        self.book.receipt(entry).map_err(storage)
    }

    /// Computes what a plan would cost: the charge, and ε after it. Writes nothing.
    pub fn quote<M: Mechanism>(&mut self, mechanism: &M, steps: u64) -> Result<(Charge, Spent), Error> {
        self.state()?;
        let charge = self.price(mechanism, steps)?;
        let spent = self.state.spent_with(&charge);
        Ok((charge, spent))
    }

    /// Pays for one run.
    pub fn charge<M: Mechanism>(&mut self, mechanism: M) -> Result<Paid<M>, Error> {
        let receipt = self.pay(&mechanism, 1)?;
        Ok(self.hand_out(mechanism.at_run(0), receipt))
    }

    /// Pays for `steps` runs before the first of them.
    ///
    /// Reserved steps are spent even if the run stops early, because the decision to stop is itself a
    /// release. Steps are leased in blocks, so that a run that was killed can resume where its last lease
    /// ended.
    pub fn reserve<M: Mechanism>(&mut self, mechanism: M, steps: u64) -> Result<Lease<'_, M, B>, Error> {
        if steps == 0 {
            return Err(Error::OutOfRange { what: "steps", value: 0.0, range: "[1, 2^64)" });
        }
        let receipt = self.pay(&mechanism, steps)?;
        // The charge of a single step is also its lease.
        let leased = u64::from(steps == 1);
        Ok(Lease::new(self, mechanism, receipt, steps, (0, leased)))
    }

    /// Pays for `steps` runs under an idempotency key, or resumes the charge under this key.
    ///
    /// # Contract
    /// However often and by however many processes this is called, the ledger holds at most one charge under
    /// the key. Steps are leased by lines of their own, also where there is only one step, so that a run
    /// that was killed after its payment and before its first lease loses nothing.
    pub fn reserve_once<M: Mechanism>(
        &mut self,
        key: &str,
        mechanism: M,
        steps: u64,
    ) -> Result<Lease<'_, M, B>, Error> {
        if steps == 0 {
            return Err(Error::OutOfRange { what: "steps", value: 0.0, range: "[1, 2^64)" });
        }
        if self.state()?.keyed(key).is_none() {
            let charge = Charge { key: Some(key.to_owned()), ..self.price(&mechanism, steps)? };
            let paid = self.append(|state| {
                let spent = state.spent_with(&charge);
                Ok(Decision { line: Line::Charged(charge.clone()), spent: Some(spent) })
            });
            match paid {
                Ok(receipt) => return Ok(Lease::new(self, mechanism, receipt, steps, (0, 0))),
                // Another process has paid under this key in between.
                Err(_) if self.state()?.keyed(key).is_some() => {}
                Err(other) => return Err(other),
            }
        }
        match self.state.keyed(key).map(|account| (account.entry, account.charge.steps)) {
            Some((entry, paid)) if paid == steps => self.resume(mechanism, entry),
            _ => {
                Err(Error::Book { cause: "the charge under this key is for another number of steps".into() })
            }
        }
    }

    /// Resumes a charge of an earlier run.
    ///
    /// Steps that were leased and not confirmed stay spent and are not run again. This fails if the charges
    /// exceed the cap.
    pub fn resume<M: Mechanism>(&mut self, mechanism: M, charge: u64) -> Result<Lease<'_, M, B>, Error> {
        self.state()?;
        self.within_cap()?;
        let Some(account) = self.state.account(charge) else {
            return Err(Error::Book { cause: format!("line {charge} is not a charge") });
        };
        mechanism.check(self.state.terms().neighbors)?;
        let steps = account.charge.steps;
        let distance = mechanism.distance_of_runs(steps) * (1.0 + 1e-9);
        let neighbors = self.state.terms().neighbors;
        // A recorded cost is not trusted: whoever wrote it may have computed it differently.
        let is_covered = account.charge.cost.covers(&account.charge.plan.event, neighbors)?;
        if self.plan(&mechanism, steps) != account.charge.plan.event
            || distance > account.charge.cost.distance
            || !is_covered
        {
            return Err(Error::Book {
                cause: format!("line {charge} is the charge of another plan: {}", account.charge.what),
            });
        }
        let leased = account.leased;
        let receipt = self.book.receipt(charge).map_err(storage)?;
        Ok(Lease::new(self, mechanism, receipt, steps, (leased, leased)))
    }

    /// Changes the budget and records the change.
    ///
    /// No budget can be set below what is spent. After the first charge δ cannot be raised, and
    /// [`State::promise`] says what is promised: never less than the largest cap since the first charge.
    pub fn raise(&mut self, budget: Budget, reason: &str) -> Result<Receipt, Error> {
        let (budget, reason) = (budget.check_new()?, reason.to_owned());
        self.append(|state| {
            if !state.charges().is_empty() && budget.delta > state.budget().delta {
                let because = "results may have been seen, so delta must not grow";
                return Err(Error::Unfit { what: "a larger delta after the first charge", because });
            }
            let line = Line::Raised { budget, reason: reason.clone() };
            let mut after = state.clone();
            after.apply(&line)?;
            let spent = after.spent();
            Ok(Decision { line, spent: Some(spent) })
        })
    }

    fn plan<M: Mechanism>(&self, mechanism: &M, steps: u64) -> Event {
        if self.randomness.is_seeded() {
            return Event::NonPrivate;
        }
        mechanism.event_of_runs(self.state.terms().neighbors, steps)
    }

    fn price<M: Mechanism>(&self, mechanism: &M, steps: u64) -> Result<Charge, Error> {
        mechanism.check(self.state.terms().neighbors)?;
        let plan = self.plan(mechanism, steps);
        let cost = if plan == Event::NonPrivate {
            Cost::unbounded()
        } else {
            let slack = self.state.slack_left() * SLACK_PER_PLAN;
            // No slack left: a plan that needs slack then finds no bound, and is refused.
            let allowance = Delta::new(slack).or_else(|_| Delta::new(f64::MIN_POSITIVE))?;
            let distance = mechanism.distance_of_runs(steps) * (1.0 + 1e-9);
            let terms = self.state.terms();
            Cost::new(
                &plan,
                terms.neighbors,
                distance,
                allowance,
                terms.composition == Composition::Addition,
            )?
        };
        Ok(Charge {
            what: mechanism.to_string(),
            non_private: self.randomness.is_seeded(),
            plan: Record::from(plan),
            steps,
            cost,
            key: None,
        })
    }

    fn pay<M: Mechanism>(&mut self, mechanism: &M, steps: u64) -> Result<Receipt, Error> {
        self.state()?;
        let charge = self.price(mechanism, steps)?;
        self.append(|state| {
            let spent = state.spent_with(&charge);
            Ok(Decision { line: Line::Charged(charge.clone()), spent: Some(spent) })
        })
    }

    fn hand_out<M: Mechanism>(&mut self, mechanism: M, receipt: Receipt) -> Paid<M> {
        let receipt = Receipt { non_private: self.randomness.is_seeded(), ..receipt };
        let Terms { unit, neighbors, .. } = *self.state.terms();
        Paid::new(mechanism, (unit, neighbors), self.randomness.split(), receipt)
    }
}

fn storage(error: impl std::fmt::Display) -> Error {
    Error::Book { cause: error.to_string() }
}
