//! The state of a ledger, computed from its lines.

use super::{
    Budget, Charge, Composition, Line, Spent, Terms, Theorem,
    cost::TOLERANCE,
    filter::{Rule, Sum},
    promise::{History, Promise, Unpromised},
};
use crate::{
    Error, Event,
    accounting::{Pld, distance::excess},
    mechanism::BestOf,
    units::Delta,
};

/// The state of a ledger after some lines.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    terms: Terms,
    budget: Budget,
    charges: Vec<Account>,
    sum: Sum,
    lines: u64,
    /// The budgets since the first charge. `None` before it.
    history: Option<History>,
}

/// A charge and the progress of its run.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Number of the line with the charge.
    pub entry: u64,
    /// The charge.
    pub charge: Charge,
    /// Number of steps handed out. They count as run.
    pub leased: u64,
    /// Number of steps whose results the run reported as saved.
    pub confirmed: u64,
}

impl State {
    /// Computes the state from all lines of a ledger.
    pub fn new(lines: &[Line]) -> Result<Self, Error> {
        let Some((Line::Opened(terms), rest)) = lines.split_first() else {
            return Err(Error::Book { cause: "the ledger does not begin with its terms".into() });
        };
        let budget = terms.budget.check()?;
        let mut state = Self {
            terms: terms.clone(),
            budget,
            charges: Vec::new(),
            sum: Sum::default(),
            lines: 1,
            history: None,
        };
        for line in rest {
            state.apply(line)?;
        }
        Ok(state)
    }

    /// Applies the next line.
    pub fn apply(&mut self, line: &Line) -> Result<(), Error> {
        self.check(line)?;
        match line {
            Line::Opened(_) => {}
            Line::Charged(charge) => {
                self.history.get_or_insert_with(|| History::new(self.budget));
                self.sum = self.sum.add(&charge.cost);
                // A single step without a key is leased by its charge.
                let leased = u64::from(charge.steps == 1 && charge.key.is_none());
                self.charges.push(Account {
                    entry: self.lines,
                    charge: charge.clone(),
                    leased,
                    confirmed: leased,
                });
            }
            Line::Leased { charge, until } => self.with_account(*charge, |account| account.leased = *until),
            Line::Confirmed { charge, until } => {
                self.with_account(*charge, |account| account.confirmed = *until);
            }
            Line::Raised { budget, .. } => {
                if let Some(history) = &mut self.history {
                    history.apply(budget);
                }
                self.budget = *budget;
            }
        }
        self.lines += 1;
        Ok(())
    }

    /// Checks whether a line is valid as the next one.
    pub(super) fn check(&self, line: &Line) -> Result<(), Error> {
        let invalid = |what: &str| Err(Error::Book { cause: format!("line {} {what}", self.lines) });
        match line {
            Line::Opened(_) => invalid("opens the ledger a second time"),
            Line::Leased { charge, until } => match self.account(*charge) {
                Some(account) if *until > account.leased && *until <= account.charge.steps => Ok(()),
                _ => invalid("leases steps that were not paid for"),
            },
            Line::Confirmed { charge, until } => match self.account(*charge) {
                Some(account) if *until >= account.confirmed && *until <= account.leased => Ok(()),
                _ => invalid("confirms steps that were not leased"),
            },
            Line::Charged(charge) if charge.steps == 0 => invalid("charges for zero steps"),
            Line::Charged(charge) if charge.key.as_deref().is_some_and(|key| self.keyed(key).is_some()) => {
                invalid("charges a second time under one key")
            }
            Line::Charged(charge) if !charge.cost.makes_sense() => invalid("has an invalid cost"),
            Line::Charged(charge) => match &charge.plan.event {
                Event::NonPrivate => Ok(()),
                Event::Repeated { count, .. } if *count == charge.steps => Ok(()),
                // Stages or trials one after the other: see `StagedDescent` and `AllTrials`.
                Event::Composed(stages) if steps_of(stages) == Some(charge.steps) => Ok(()),
                // The runs of a search together are one release: see `BestOf`.
                Event::BestOf { .. } if charge.steps == BestOf::RUNS => Ok(()),
                _ if charge.steps == 1 => Ok(()),
                _ => invalid("pays for a different number of steps than it hands out"),
            },
            Line::Raised { budget, .. } => budget.check().map(drop),
        }
    }

    fn with_account(&mut self, entry: u64, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.charges.iter_mut().rev().find(|account| account.entry == entry) {
            change(account);
        }
    }

    /// The terms in the first line.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The budget in force.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The promise for everything that the ledger paid for, or why nothing is promised.
    ///
    /// # Theorem
    /// (THEORY, Budgets) The largest cap in force since the first charge, at the δ of every cap that could
    /// have been set up to it.
    pub fn promise(&self) -> Result<Promise, Unpromised> {
        if self.budget.epsilon.is_none() {
            return Err(Unpromised::NoCap);
        }
        self.history.unwrap_or_else(|| History::new(self.budget)).promise()
    }

    /// Whether the spent ε is within the cap.
    ///
    /// If it is not, the lines were not written by a ledger, and nothing is promised.
    #[must_use]
    pub fn is_within_cap(&self) -> bool {
        self.fits(self.spent())
    }

    pub(super) fn fits(&self, spent: Spent) -> bool {
        // Sums of recorded costs give the same number every time. A plan that is accounted for as a whole is
        // computed again, by today's accountant.
        let tolerance = if spent.theorem == Theorem::Whole { TOLERANCE } else { 1e-9 };
        spent.epsilon <= self.budget.cap() * (1.0 + tolerance)
    }

    /// All charges, the oldest first.
    #[must_use]
    pub fn charges(&self) -> &[Account] {
        &self.charges
    }

    /// The charge in the given line.
    #[must_use]
    pub fn account(&self, entry: u64) -> Option<&Account> {
        self.charges.iter().rev().find(|account| account.entry == entry)
    }

    /// The charge under an idempotency key.
    #[must_use]
    pub fn keyed(&self, key: &str) -> Option<&Account> {
        self.charges.iter().rev().find(|account| account.charge.key.as_deref() == Some(key))
    }

    /// Number of lines.
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

    /// Evaluates a sum of costs.
    ///
    /// A first plan is fixed before anything was released, so it may be accounted for as a whole. If it
    /// exceeds the cap under every composition theorem, nothing can follow it. Otherwise the filter accounts
    /// for it together with what follows (THEORY, Filters).
    fn judge(&self, sum: &Sum, only: Option<&Charge>) -> Spent {
        let filtered = self.terms.composition.spent(sum, &self.rule());
        let Some(charge) = only.filter(|charge| !charge.non_private) else { return filtered };
        let excess = excess(self.budget.cap(), charge.cost.distance);
        let Ok(delta) = Delta::new((self.budget.delta.get() - excess) * (1.0 - 1e-12)) else {
            return filtered;
        };
        match Pld::default().epsilon(&charge.plan.event, self.terms.neighbors, delta) {
            Ok(whole) if whole.upper < filtered.epsilon => {
                Spent { epsilon: whole.upper, theorem: Theorem::Whole }
            }
            // If the plan cannot be accounted for as a whole, the filter's result applies.
            Ok(_) | Err(_) => filtered,
        }
    }

    /// The parameters by which costs are evaluated now.
    fn rule(&self) -> Rule {
        let promised = self.promise().map_or(self.budget.cap(), |promise| promise.epsilon);
        Rule {
            delta: self.budget.delta.get(),
            promised,
            division: self.history.map_or(self.budget, |history| history.first()),
        }
    }

    /// The default δ of one plan that has its own δ.
    ///
    /// It is so small that 64 such plans can be granted.
    #[must_use]
    pub fn usual_delta(&self) -> f64 {
        self.terms.composition.slack(self.budget.delta.get()) / 64.0
    }

    /// Whether no plan could follow this charge.
    ///
    /// This is so if plans with their own δ would have used more than the δ set aside for them.
    #[must_use]
    pub fn is_last(&self, charge: &Charge) -> bool {
        let rule = self.rule();
        let promised = if rule.promised.is_finite() { rule.promised } else { 0.0 };
        let used = Composition::slack_used(&self.sum.add(&charge.cost), promised);
        used > self.terms.composition.slack(rule.delta)
    }

    /// δ that is set aside for plans with their own δ, and still free.
    #[must_use]
    pub fn slack_left(&self) -> f64 {
        let rule = self.rule();
        let promised = if rule.promised.is_finite() { rule.promised } else { 0.0 };
        self.terms.composition.slack(rule.delta) - Composition::slack_used(&self.sum, promised)
    }
}

/// Number of steps that stages consist of; `None` if it is too large.
fn steps_of(stages: &[Event]) -> Option<u64> {
    stages.iter().try_fold(0_u64, |sum, stage| match stage {
        Event::Repeated { count, .. } => sum.checked_add(*count),
        _ => sum.checked_add(1),
    })
}
