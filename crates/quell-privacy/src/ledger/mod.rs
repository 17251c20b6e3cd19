//! The cashier: what may be spent on a dataset, what was spent, and the only door to a release.
//!
//! A [`Ledger`] decides; a [`Book`] keeps what it decided. A mechanism goes in, a debt is written down, and a [`Paid`] mechanism comes out,
//! in that order. Whatever happens afterwards, the debt stays.

mod book;
mod cost;
mod filter;
mod lease;
mod paid;
mod state;

pub use book::{Book, Budget, Charge, Line, Receipt, Terms, Unit};
pub use cost::Cost;
pub use filter::{Composition, Spent, Theorem};
pub use lease::Lease;
pub use paid::Paid;
pub use state::{Account, State};

use crate::{Error, Event, event::Record, mechanism::Mechanism, noise::random::Randomness, units::Delta};

/// The ledger of one dataset.
///
/// # Contract
/// A [`Paid`] mechanism exists only after its charge is durable in the book, and the sum of all charges is at most the cap.
/// Nothing is ever refunded.
pub struct Ledger<B> {
    book: B,
    state: State,
    randomness: Randomness,
}

/// How often a writer tries again when others write before it. Each time somebody gets through.
const ATTEMPTS: usize = 10_000;

/// Part of the free slack that one plan may use: enough for any number of plans, since a share of what is left is always left.
const SLACK_PER_PLAN: f64 = 1.0 / 16.0;

impl<B: Book> Ledger<B> {
    /// Opens a new ledger: writes its first line.
    pub fn create(mut book: B, terms: Terms) -> Result<Self, Error> {
        if terms.dataset.is_empty() {
            return Err(Error::Book { cause: "the dataset has no name".into() });
        }
        terms.budget.check()?;
        let line = Line::Opened(terms);
        let cap = State::new(std::slice::from_ref(&line))?.budget().cap();
        match book.append(0, &line, 0.0, cap).map_err(storage)? {
            Some(_) => Self::open(book),
            None => Err(Error::Book { cause: "there is already a ledger for this dataset".into() }),
        }
    }

    /// Opens a ledger that exists.
    pub fn open(mut book: B) -> Result<Self, Error> {
        let state = State::new(&book.read(0).map_err(storage)?)?;
        Ok(Self { book, state, randomness: Randomness::OperatingSystem })
    }

    /// Draws all noise from a seed from now on, to repeat a test. Whoever knows the seed can take the noise away, so every charge is
    /// written down as non-private, which a capped budget refuses.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { randomness: Randomness::seeded(seed), ..self }
    }

    /// What the lines add up to, others' included.
    pub fn state(&mut self) -> Result<&State, Error> {
        for line in self.book.read(self.state.lines()).map_err(storage)? {
            self.state.follow(&line)?;
        }
        Ok(&self.state)
    }

    /// The book behind it.
    pub fn book(&mut self) -> &mut B {
        &mut self.book
    }

    /// What a plan would cost: the charge, and ε after it. Nothing is written down.
    pub fn quote<M: Mechanism>(&mut self, mechanism: &M, steps: u64) -> Result<(Charge, Spent), Error> {
        self.state()?;
        let charge = self.price(mechanism, steps)?;
        let spent = self.state.spent_with(&charge);
        Ok((charge, spent))
    }

    /// Pays for one run.
    pub fn charge<M: Mechanism>(&mut self, mechanism: M) -> Result<Paid<M>, Error> {
        let receipt = self.pay(&mechanism, 1)?;
        Ok(self.hand_out(mechanism, receipt))
    }

    /// Pays for `steps` runs before the first of them. What is reserved is spent, also if the run stops early: when to stop is itself a
    /// release. Steps are leased in blocks, so that a run that was killed can resume where its last lease ended.
    pub fn reserve<M: Mechanism>(&mut self, mechanism: M, steps: u64) -> Result<Lease<'_, M, B>, Error> {
        if steps == 0 {
            return Err(Error::OutOfRange { what: "steps", value: 0.0, range: "[1, 2^64)" });
        }
        let receipt = self.pay(&mechanism, steps)?;
        // A single step is leased by its charge.
        let leased = u64::from(steps == 1);
        Ok(Lease::new(self, mechanism, receipt, steps, (0, leased)))
    }

    /// Pays for `steps` runs under an idempotency key, or goes on with the charge that was made under this key.
    ///
    /// # Contract
    /// However often and by however many processes this is called, the ledger holds at most one charge under the key. A step is leased by a line of its own,
    /// also where there is only one, so that a run which was killed after it had paid and before its first lease loses nothing.
    pub fn reserve_once<M: Mechanism>(&mut self, key: &str, mechanism: M, steps: u64) -> Result<Lease<'_, M, B>, Error> {
        if steps == 0 {
            return Err(Error::OutOfRange { what: "steps", value: 0.0, range: "[1, 2^64)" });
        }
        if self.state()?.keyed(key).is_none() {
            let charge = Charge { key: Some(key.to_owned()), ..self.price(&mechanism, steps)? };
            let paid = self.append(|state| Ok((Line::Charged(charge.clone()), state.spent_with(&charge))));
            match paid {
                Ok(receipt) => return Ok(Lease::new(self, mechanism, receipt, steps, (0, 0))),
                // Another process has paid under this key in between.
                Err(_) if self.state()?.keyed(key).is_some() => {}
                Err(other) => return Err(other),
            }
        }
        match self.state.keyed(key).map(|account| (account.entry, account.charge.steps)) {
            Some((entry, paid)) if paid == steps => self.resume(mechanism, entry),
            _ => Err(Error::Book { cause: "the charge under this key is for another number of steps".into() }),
        }
    }

    /// The receipt of a line that stands in the book.
    pub fn receipt(&mut self, number: u64) -> Result<Receipt, Error> {
        self.book.receipt(number).map_err(storage)
    }

    /// Goes on with a charge of an earlier run. Steps that were leased and not confirmed stay spent and are not run again.
    pub fn resume<M: Mechanism>(&mut self, mechanism: M, charge: u64) -> Result<Lease<'_, M, B>, Error> {
        self.state()?;
        let Some(account) = self.state.account(charge) else {
            return Err(Error::Book { cause: format!("line {charge} is not a charge") });
        };
        mechanism.check(self.state.terms().neighbors)?;
        let steps = account.charge.steps;
        let distance = mechanism.distance() * steps as f64 * (1.0 + 1e-9);
        let neighbors = self.state.terms().neighbors;
        // A line is believed only as far as it can be checked: whoever wrote it may have priced it otherwise.
        let priced = account.charge.cost.covers(&account.charge.plan.event, neighbors)?;
        if self.plan(&mechanism, steps) != account.charge.plan.event || distance > account.charge.cost.distance || !priced {
            return Err(Error::Book { cause: format!("line {charge} paid for something else: {}", account.charge.what) });
        }
        let leased = account.leased;
        let receipt = self.book.receipt(charge).map_err(storage)?;
        Ok(Lease::new(self, mechanism, receipt, steps, (leased, leased)))
    }

    /// Changes the budget. That, too, is written down, and no budget can be set below what is spent.
    pub fn raise(&mut self, budget: Budget, reason: &str) -> Result<Receipt, Error> {
        let (budget, reason) = (budget.check()?, reason.to_owned());
        self.append(|state| {
            let line = Line::Raised { budget, reason: reason.clone() };
            let mut after = state.clone();
            after.follow(&line)?;
            Ok((line, after.spent()))
        })
    }

    fn plan<M: Mechanism>(&self, mechanism: &M, steps: u64) -> Event {
        if self.randomness.is_seeded() {
            return Event::NonPrivate;
        }
        let event = mechanism.event(self.state.terms().neighbors);
        if steps == 1 { event } else { event.repeated(steps) }
    }

    fn price<M: Mechanism>(&self, mechanism: &M, steps: u64) -> Result<Charge, Error> {
        mechanism.check(self.state.terms().neighbors)?;
        let plan = self.plan(mechanism, steps);
        let cost = if plan == Event::NonPrivate {
            Cost::unbounded()
        } else {
            let left = self.state.slack_left() * SLACK_PER_PLAN;
            // Nothing left: a plan that needs slack then finds no bound, and is refused.
            let allowance = Delta::new(left).or_else(|_| Delta::new(f64::MIN_POSITIVE))?;
            let distance = mechanism.distance() * steps as f64 * (1.0 + 1e-9);
            let terms = self.state.terms();
            Cost::new(&plan, terms.neighbors, distance, allowance, terms.composition == Composition::Addition)?
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
            Ok((Line::Charged(charge.clone()), spent))
        })
    }

    fn hand_out<M: Mechanism>(&mut self, mechanism: M, receipt: Receipt) -> Paid<M> {
        let receipt = Receipt { non_private: self.randomness.is_seeded(), ..receipt };
        Paid::new(mechanism, self.state.terms().neighbors, self.randomness.split(), receipt)
    }

    /// Writes the line that `decide` makes of the newest state; decides anew whenever somebody else was faster.
    fn append(&mut self, decide: impl Fn(&State) -> Result<(Line, Spent), Error>) -> Result<Receipt, Error> {
        for _ in 0..ATTEMPTS {
            self.state()?;
            let (line, spent) = decide(&self.state)?;
            self.state.check(&line)?;
            let cap = if let Line::Raised { budget, .. } = &line { budget.cap() } else { self.state.budget().cap() };
            // What was granted stays granted: handing it out costs nothing, whatever today's accountant says of it.
            let granted = matches!(line, Line::Leased { .. } | Line::Confirmed { .. });
            let epsilon = if granted { spent.epsilon.min(cap) } else { spent.epsilon };
            // A NaN does not fit.
            let fits = epsilon <= cap;
            if !fits {
                return Err(Error::Refused { would_be: spent.epsilon, spent: self.state.spent().epsilon, budget: cap });
            }
            if let Some(receipt) = self.book.append(self.state.lines(), &line, epsilon, cap).map_err(storage)? {
                self.state.follow(&line)?;
                return Ok(receipt);
            }
        }
        Err(Error::Book { cause: "others kept writing; nothing was charged".into() })
    }
}

fn storage(error: impl std::fmt::Display) -> Error {
    Error::Book { cause: error.to_string() }
}
