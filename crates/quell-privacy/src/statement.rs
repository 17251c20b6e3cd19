//! The privacy guarantee of a ledger, in sentences that a person can check.

use serde::Serialize;

use crate::{
    Bound, Error, Neighbors,
    accounting::{Pld, TradeOff},
    ledger::{Budget, Charge, Promise, Spent, State, Theorem, Unit, Unpromised},
    number::{Toward, format_exact, format_rounded},
    units::{Delta, Probability},
};

/// The privacy guarantee of a ledger, with everything that it depends on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// Name of the dataset.
    pub dataset: String,
    /// Whose data is protected.
    pub unit: Unit,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// The budget.
    pub budget: Budget,
    /// Number of plans that were paid for.
    pub plans: usize,
    /// The total privacy cost of the plans, and the theorem behind it.
    pub counted: Spent,
    /// The promised ε and a lower bound; `None` if nothing is promised.
    pub epsilon: Option<Bound>,
    /// The δ of the promise, or of the budget if nothing is promised.
    pub delta: f64,
    /// Why nothing is promised. `None` if something is.
    pub unpromised: Option<Unpromised>,
    /// The false-positive rate of an attack …
    pub false_positive_rate: f64,
    /// … and the largest true-positive rate of a membership test at that rate.
    pub true_positive_rate: f64,
    /// Number of plans whose noise came from a seed.
    ///
    /// If there are any, nothing is promised.
    pub seeded: usize,
    /// The cost of the plan by itself, if there is only one.
    pub alone: Option<Alone>,
}

/// The cost of a single plan by itself.
///
/// It is a promise only if it was decided in advance that no plan follows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Alone {
    /// ε, at the δ of the budget.
    pub epsilon: f64,
    /// Largest true-positive rate of a membership test at the statement's false-positive rate.
    pub true_positive_rate: f64,
}

/// The false-positive rate at which the attack is described.
const FALSE_POSITIVES: f64 = 0.01;

impl Statement {
    /// Computes the statement of everything that was paid for so far.
    ///
    /// # Theorem
    /// (THEORY, Filters, Budgets) Each plan may depend on the results before it, and so may the total cost
    /// and the decision to continue. So the promise is the cap, which was fixed in advance, or the result of
    /// [`State::promise`] if the cap was changed.
    ///
    /// Recorded costs are not trusted: each plan is accounted for again, and a plan that was charged for less
    /// than it costs leaves no promise. The lines are trusted: a release that is not recorded is in no
    /// statement.
    pub fn new(state: &State) -> Result<Self, Error> {
        let (counted, budget) = (state.spent(), state.budget());
        let seeded = state.charges().iter().filter(|account| account.charge.non_private).count();
        let promise = promise(state, counted, seeded)?;
        let epsilon = match promise {
            Ok(promise) => Some(Bound {
                lower: lower(state, counted, promise)?.min(promise.epsilon),
                upper: promise.epsilon,
            }),
            Err(_) => None,
        };
        Ok(Self {
            dataset: state.terms().dataset.clone(),
            unit: state.terms().unit,
            neighbors: state.terms().neighbors,
            budget,
            plans: state.charges().len(),
            counted,
            epsilon,
            delta: promise.map_or(budget.delta.get(), |promise| promise.delta),
            unpromised: promise.err(),
            false_positive_rate: FALSE_POSITIVES,
            true_positive_rate: promise.map_or(1.0, |promise| promise.power(FALSE_POSITIVES)),
            seeded,
            alone: promise.is_ok().then(|| alone(state, counted)).transpose()?.flatten(),
        })
    }
}

/// The promise, or why nothing is promised.
fn promise(state: &State, counted: Spent, seeded: usize) -> Result<Result<Promise, Unpromised>, Error> {
    if seeded > 0 {
        return Ok(Err(Unpromised::Seeded));
    }
    let promise = match state.promise() {
        Ok(promise) => promise,
        Err(why) => return Ok(Err(why)),
    };
    if !counted.epsilon.is_finite() {
        return Ok(Err(Unpromised::Unbounded));
    }
    if !state.is_within_cap() {
        return Ok(Err(Unpromised::OverCap));
    }
    if let Some(entry) = underpriced(state)? {
        return Ok(Err(Unpromised::Underpriced { entry }));
    }
    Ok(Ok(promise))
}

/// Number of the first line that was charged for less than its plan costs.
fn underpriced(state: &State) -> Result<Option<u64>, Error> {
    // Many charges are for the same plan, and accounting for one takes a while.
    let mut priced: Vec<&Charge> = Vec::new();
    for account in state.charges() {
        let charge = &account.charge;
        if priced.iter().any(|known| known.plan == charge.plan && known.cost == charge.cost) {
            continue;
        }
        if !charge.cost.covers(&charge.plan.event, state.terms().neighbors)? {
            return Ok(Some(account.entry));
        }
        priced.push(charge);
    }
    Ok(None)
}

/// A lower bound on ε at the δ of the promise.
///
/// One plan alone has a lower bound; for several plans that were chosen adaptively, none is known.
fn lower(state: &State, counted: Spent, promise: Promise) -> Result<f64, Error> {
    match (state.charges(), counted.theorem) {
        ([only], Theorem::Whole) => Ok(Pld::default()
            .epsilon(&only.charge.plan.event, state.terms().neighbors, Delta::new(promise.delta)?)?
            .lower),
        _ => Ok(0.0),
    }
}

/// The cost of the only plan by itself, by its own trade-off function.
fn alone(state: &State, counted: Spent) -> Result<Option<Alone>, Error> {
    let [only] = state.charges() else { return Ok(None) };
    let counted_alone = Promise { epsilon: counted.epsilon, delta: state.budget().delta.get() };
    let allowed = counted_alone.power(FALSE_POSITIVES);
    let true_positive_rate =
        match TradeOff::new(&Pld::default(), &only.charge.plan.event, state.terms().neighbors) {
            // Noise at distance τ moves the false positives by τ, which a slope of at most 1/α turns into
            // power, and the power by τ.
            Ok(attack) => {
                let inexact = (1.0 + 1.0 / FALSE_POSITIVES) * only.charge.cost.distance;
                (attack.power(Probability::new(FALSE_POSITIVES)?).upper + inexact)
                    .clamp(FALSE_POSITIVES, allowed)
            }
            Err(Error::Unsupported { .. }) => allowed,
            Err(other) => return Err(other),
        };
    Ok(Some(Alone { epsilon: counted.epsilon, true_positive_rate }))
}

impl std::fmt::Display for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (up, plural) =
            (|value| format_rounded(value, 4, Toward::Up), if self.plans == 1 { "" } else { "s" });
        writeln!(
            f,
            "Dataset {:?}: the privacy guarantee of one {} over all releases from this dataset.",
            self.dataset, self.unit
        )?;
        let Some(epsilon) = self.epsilon else {
            let seeded = if self.seeded > 0 {
                format!(" ({} of {} plan{plural})", self.seeded, self.plans)
            } else {
                String::new()
            };
            let why = self.unpromised.map(|why| why.to_string()).unwrap_or_default();
            return writeln!(
                f,
                "NOTHING IS PROMISED: {why}{seeded}. Charged so far: {} plan{plural}, ε = {}.",
                self.plans,
                up(self.counted.epsilon)
            );
        };
        // The δ of several budgets is a sum, with digits that nobody wrote.
        let is_budget = self.delta == self.budget.delta.get();
        let delta = if is_budget { format_exact(self.delta) } else { up(self.delta) };
        let unit = self.unit;
        let change = match self.neighbors {
            Neighbors::AddRemove => format!("when one {unit} is added or removed"),
            Neighbors::Replace => {
                format!("when one {unit} is replaced by another; the number of {unit}s is public")
            }
        };
        writeln!(
            f,
            "Promise: all releases together are (ε, δ)-differentially private with ε ≤ {} at δ = {delta}, {change}.",
            up(epsilon.upper)
        )?;
        let (cap, has) = (format_exact(self.budget.cap()), if self.plans == 1 { "has" } else { "have" });
        writeln!(
            f,
            "Budget: ε ≤ {cap} for all releases together; {} plan{plural} {has} spent {}. The ledger refuses a plan that exceeds the budget.",
            self.plans,
            up(self.counted.epsilon)
        )?;
        writeln!(f, "Theorem: {}.", self.counted.theorem)?;
        let wrong = format_exact(100.0 * self.false_positive_rate);
        if let Some(alone) = self.alone {
            writeln!(
                f,
                "This plan alone: ε ≤ {} at δ = {}. At a false-positive rate of {wrong} %, a membership test has a true-positive rate of at most {} %. \
                 These numbers are a promise only if it was decided in advance that no other plan follows.",
                up(alone.epsilon),
                format_exact(self.budget.delta.get()),
                up(100.0 * alone.true_positive_rate)
            )?;
        }
        if self.plans > 1 {
            writeln!(
                f,
                "The spent ε is a promise only if all plans were fixed before any result was seen. The promise above holds in any case."
            )?;
        }
        if self.plans > 1 && (epsilon.upper > self.budget.cap() || self.delta > self.budget.delta.get()) {
            writeln!(
                f,
                "The budget was changed after the first release, when results may have been seen. So the promise has the largest ε since the first release, \
                 rounded up to a whole number if the budget was raised, and δ counts once for each budget that could have been set up to this ε."
            )?;
        }
        writeln!(
            f,
            "Interval: the true ε at this δ is between {} and {}.",
            format_rounded(epsilon.lower, 4, Toward::Down),
            up(epsilon.upper)
        )?;
        writeln!(
            f,
            "Attack on all releases: at a false-positive rate of {wrong} %, a membership test has a true-positive rate of at most {} %, \
             even if all of the budget is spent.",
            up(100.0 * self.true_positive_rate)
        )?;
        writeln!(
            f,
            "Covered: all releases charged to this ledger, even if later ones were chosen after earlier results were seen; \
             and everything computed from these releases."
        )?;
        let several = if unit == Unit::Example { "a person with several records; " } else { "" };
        writeln!(
            f,
            "Not covered: {several}groups of people; publications by others; use of the data without this ledger; \
             settings that were chosen by looking at the data."
        )
    }
}
