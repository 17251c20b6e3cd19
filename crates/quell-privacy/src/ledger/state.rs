//! A ledger as its lines tell it.

use super::{Budget, Charge, Composition, Line, Spent, Terms, Theorem, filter::Sum};
use crate::{Error, Event, accounting::Pld, units::Delta};

/// What the lines of a ledger add up to.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    terms: Terms,
    budget: Budget,
    charges: Vec<Account>,
    sum: Sum,
    lines: u64,
    /// δ of the budgets that were in force before and under which something was released.
    earlier: f64,
}

/// A charge and how far its run has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Number of the line that charged.
    pub entry: u64,
    /// The charge.
    pub charge: Charge,
    /// Steps handed out. They count as run.
    pub leased: u64,
    /// Steps whose results the run has declared safe.
    pub confirmed: u64,
}

impl State {
    /// Reads a ledger from its first line on.
    pub fn new(lines: &[Line]) -> Result<Self, Error> {
        let Some((Line::Opened(terms), rest)) = lines.split_first() else {
            return Err(Error::Book { cause: "the ledger does not begin with its terms".into() });
        };
        let mut state =
            Self { budget: terms.budget, terms: terms.clone(), charges: Vec::new(), sum: Sum::default(), lines: 1, earlier: 0.0 };
        for line in rest {
            state.follow(line)?;
        }
        Ok(state)
    }

    /// Takes in the next line.
    pub fn follow(&mut self, line: &Line) -> Result<(), Error> {
        self.check(line)?;
        match line {
            Line::Opened(_) => {}
            Line::Charged(charge) => {
                self.sum = self.sum.add(&charge.cost);
                // A single step without a key needs no lease of its own.
                let leased = u64::from(charge.steps == 1 && charge.key.is_none());
                self.charges.push(Account { entry: self.lines, charge: charge.clone(), leased, confirmed: leased });
            }
            Line::Leased { charge, until } => self.with_account(*charge, |account| account.leased = *until),
            Line::Confirmed { charge, until } => self.with_account(*charge, |account| account.confirmed = *until),
            Line::Raised { budget, .. } => {
                if !self.charges.is_empty() {
                    self.earlier += self.budget.delta.get();
                }
                self.budget = *budget;
            }
        }
        self.lines += 1;
        Ok(())
    }

    /// Whether a line makes sense as the next one.
    pub(super) fn check(&self, line: &Line) -> Result<(), Error> {
        let nonsense = |what: &str| Err(Error::Book { cause: format!("line {} {what}", self.lines) });
        match line {
            Line::Opened(_) => nonsense("opens the ledger a second time"),
            Line::Leased { charge, until } => match self.account(*charge) {
                Some(account) if *until > account.leased && *until <= account.charge.steps => Ok(()),
                _ => nonsense("leases steps that were not paid for"),
            },
            Line::Confirmed { charge, until } => match self.account(*charge) {
                Some(account) if *until >= account.confirmed && *until <= account.leased => Ok(()),
                _ => nonsense("confirms steps that were not leased"),
            },
            Line::Charged(charge) if charge.steps == 0 => nonsense("charges for nothing"),
            Line::Charged(charge) if charge.key.as_deref().is_some_and(|key| self.keyed(key).is_some()) => {
                nonsense("charges a second time under one key")
            }
            Line::Charged(charge) if !charge.cost.makes_sense() => nonsense("has a cost that is none"),
            Line::Charged(charge) => match &charge.plan.event {
                Event::NonPrivate => Ok(()),
                Event::Repeated { count, .. } if *count == charge.steps => Ok(()),
                _ if charge.steps == 1 => Ok(()),
                _ => nonsense("pays for another number of steps than it hands out"),
            },
            Line::Raised { .. } => Ok(()),
        }
    }

    fn with_account(&mut self, entry: u64, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.charges.iter_mut().rev().find(|account| account.entry == entry) {
            change(account);
        }
    }

    /// What the first line says.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The budget in force.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// δ of everything together. A budget that is changed after results were seen is a choice that depends on them: the transcripts that end under each budget
    /// use up its δ (THEORY, Filters).
    #[must_use]
    pub fn delta(&self) -> f64 {
        (self.earlier + self.budget.delta.get()).min(1.0)
    }

    /// All charges, the oldest first.
    #[must_use]
    pub fn charges(&self) -> &[Account] {
        &self.charges
    }

    /// The charge on a given line.
    #[must_use]
    pub fn account(&self, entry: u64) -> Option<&Account> {
        self.charges.iter().rev().find(|account| account.entry == entry)
    }

    /// The charge that was made under an idempotency key.
    #[must_use]
    pub fn keyed(&self, key: &str) -> Option<&Account> {
        self.charges.iter().rev().find(|account| account.charge.key.as_deref() == Some(key))
    }

    /// How many lines there are.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// ε of everything spent so far.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let only = if let [only] = self.charges.as_slice() { Some(&only.charge) } else { None };
        self.judge(&self.sum, only)
    }

    /// ε after one more charge.
    #[must_use]
    pub fn spent_with(&self, charge: &Charge) -> Spent {
        self.judge(&self.sum.add(&charge.cost), self.charges.is_empty().then_some(charge))
    }

    /// A first plan is fixed before anything was released, so it may be judged whole. If it exceeds the cap in every way of adding up, nothing
    /// can follow it, and if it does not, the filter judges it together with what follows (THEORY, Filters).
    fn judge(&self, sum: &Sum, only: Option<&Charge>) -> Spent {
        let filtered = self.terms.composition.spent(sum, &self.budget);
        let Some(charge) = only.filter(|charge| !charge.non_private) else { return filtered };
        let inexact = if charge.cost.distance > 0.0 { (1.0 + self.budget.cap().exp()) * charge.cost.distance } else { 0.0 };
        let Ok(delta) = Delta::new((self.budget.delta.get() - inexact) * (1.0 - 1e-12)) else { return filtered };
        match Pld::default().epsilon(&charge.plan.event, self.terms.neighbors, delta) {
            Ok(whole) if whole.upper < filtered.epsilon => Spent { epsilon: whole.upper, theorem: Theorem::Whole },
            // Where the plan cannot be judged whole, the filter has judged it already.
            Ok(_) | Err(_) => filtered,
        }
    }

    /// Slack in δ that is still free.
    pub(super) fn slack_left(&self) -> f64 {
        let composition = self.terms.composition;
        composition.slack(&self.budget)
            - Composition::slack_used(&self.sum, if self.budget.cap().is_finite() { self.budget.cap() } else { 0.0 })
    }
}
