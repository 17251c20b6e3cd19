//! A ledger as its lines tell it.

use super::{
    Budget, Charge, Composition, Line, Spent, Terms, Theorem,
    cost::TOLERANCE,
    filter::{Rule, Sum},
    promise::{History, Promise, Unpromised},
};
use crate::{Error, Event, accounting::Pld, units::Delta};

/// What the lines of a ledger add up to.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    terms: Terms,
    budget: Budget,
    charges: Vec<Account>,
    sum: Sum,
    lines: u64,
    /// The budgets since the first charge. None before it.
    history: Option<History>,
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
        let budget = terms.budget.check()?;
        let mut state = Self { terms: terms.clone(), budget, charges: Vec::new(), sum: Sum::default(), lines: 1, history: None };
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
                self.history.get_or_insert_with(|| History::new(self.budget));
                self.sum = self.sum.add(&charge.cost);
                // A single step without a key needs no lease of its own.
                let leased = u64::from(charge.steps == 1 && charge.key.is_none());
                self.charges.push(Account { entry: self.lines, charge: charge.clone(), leased, confirmed: leased });
            }
            Line::Leased { charge, until } => self.with_account(*charge, |account| account.leased = *until),
            Line::Confirmed { charge, until } => self.with_account(*charge, |account| account.confirmed = *until),
            Line::Raised { budget, .. } => {
                if let Some(history) = &mut self.history {
                    history.follow(budget);
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
            Line::Raised { budget, .. } => budget.check().map(drop),
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

    /// What is promised for everything together, or why nothing is.
    ///
    /// # Theorem
    /// (THEORY, Budgets) The largest cap in force since the first charge, at the δ of every cap that could have been set up to it.
    pub fn promise(&self) -> Result<Promise, Unpromised> {
        if self.budget.epsilon.is_none() {
            return Err(Unpromised::NoCap);
        }
        self.history.unwrap_or_else(|| History::new(self.budget)).promise()
    }

    /// Whether what is counted is within the cap. If it is not, the lines were not written by a ledger, and nothing is promised.
    #[must_use]
    pub fn is_within_cap(&self) -> bool {
        self.fits(self.spent())
    }

    pub(super) fn fits(&self, spent: Spent) -> bool {
        // Sums of what is written down give the same number every time. A plan that is judged whole is judged anew, by today's accountant.
        let tolerance = if spent.theorem == Theorem::Whole { TOLERANCE } else { 1e-9 };
        spent.epsilon <= self.budget.cap() * (1.0 + tolerance)
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
        let filtered = self.terms.composition.spent(sum, &self.rule());
        let Some(charge) = only.filter(|charge| !charge.non_private) else { return filtered };
        let inexact = if charge.cost.distance > 0.0 { (1.0 + self.budget.cap().exp()) * charge.cost.distance } else { 0.0 };
        let Ok(delta) = Delta::new((self.budget.delta.get() - inexact) * (1.0 - 1e-12)) else { return filtered };
        match Pld::default().epsilon(&charge.plan.event, self.terms.neighbors, delta) {
            Ok(whole) if whole.upper < filtered.epsilon => Spent { epsilon: whole.upper, theorem: Theorem::Whole },
            // Where the plan cannot be judged whole, the filter has judged it already.
            Ok(_) | Err(_) => filtered,
        }
    }

    /// By which numbers costs are judged now.
    fn rule(&self) -> Rule {
        let promised = self.promise().map_or(self.budget.cap(), |promise| promise.epsilon);
        Rule { delta: self.budget.delta.get(), promised, division: self.history.map_or(self.budget, |history| history.first()) }
    }

    /// A δ for one plan with a δ of its own: so small that 64 such plans can be granted.
    #[must_use]
    pub fn usual_delta(&self) -> f64 {
        self.terms.composition.slack(self.budget.delta.get()) / 64.0
    }

    /// Whether nothing could follow this charge: plans with a δ of their own would have used more than is set aside for them.
    #[must_use]
    pub fn is_last(&self, charge: &Charge) -> bool {
        let rule = self.rule();
        let promised = if rule.promised.is_finite() { rule.promised } else { 0.0 };
        let used = Composition::slack_used(&self.sum.add(&charge.cost), promised);
        used > self.terms.composition.slack(rule.delta)
    }

    /// δ that is set aside for plans with a δ of their own, and still free.
    #[must_use]
    pub fn slack_left(&self) -> f64 {
        let rule = self.rule();
        let promised = if rule.promised.is_finite() { rule.promised } else { 0.0 };
        self.terms.composition.slack(rule.delta) - Composition::slack_used(&self.sum, promised)
    }
}
