//! What a ledger promises, in sentences that a person can check.

use serde::Serialize;

use crate::{
    Bound, Error, Neighbors,
    accounting::{Pld, TradeOff},
    ledger::{Budget, Spent, State, Theorem, Unit},
    number::{Toward, given, rounded},
    special::{normal_below, normal_quantile},
    units::Probability,
};

/// A promise, with all that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// Name of the dataset.
    pub dataset: String,
    /// Whose data is protected.
    pub unit: Unit,
    /// When two datasets count as neighbours.
    pub neighbors: Neighbors,
    /// The budget.
    pub budget: Budget,
    /// How many plans were paid for.
    pub plans: usize,
    /// ε of everything paid for so far, and the theorem.
    pub spent: Spent,
    /// ε as an interval: how much of it is known to be needed.
    pub epsilon: Bound,
    /// Most often that a test which accuses the innocent at this rate …
    pub false_positive_rate: f64,
    /// … can recognise someone's presence.
    pub true_positive_rate: f64,
    /// Plans whose noise came from a seed. If there are any, nothing is promised.
    pub seeded: usize,
}

/// The false-positive rate at which the attack is described.
const FALSE_POSITIVES: f64 = 0.01;

impl Statement {
    /// The statement of everything that was paid for so far.
    pub fn new(state: &State) -> Result<Self, Error> {
        let spent = state.spent()?;
        let terms = state.terms();
        let lower = match (state.charges(), spent.theorem) {
            // One plan alone has a lower bound too; of several, chosen as they came, none is known.
            ([only], Theorem::Whole) => {
                Pld::default().epsilon(&only.charge.plan.event, terms.neighbors, state.budget().delta)?.lower
            }
            _ => 0.0,
        };
        Ok(Self {
            dataset: terms.dataset.clone(),
            unit: terms.unit,
            neighbors: terms.neighbors,
            budget: state.budget(),
            plans: state.charges().len(),
            spent,
            epsilon: Bound { lower: lower.min(spent.epsilon), upper: spent.epsilon },
            false_positive_rate: FALSE_POSITIVES,
            true_positive_rate: power(state, spent)?,
            seeded: state.charges().iter().filter(|account| account.charge.non_private).count(),
        })
    }
}

/// Power of the best test at [`FALSE_POSITIVES`], from above: the least of what (ε, δ), Gaussian DP and, for one plan, its
/// own trade-off function allow.
fn power(state: &State, spent: Spent) -> Result<f64, Error> {
    let alpha = FALSE_POSITIVES;
    if !spent.epsilon.is_finite() {
        return Ok(1.0);
    }
    let delta = state.budget().delta.get();
    // (ε, δ): TPR ≤ e^ε FPR + δ, and 1 - TPR ≥ e^-ε (1 - FPR - δ). [DRS22]
    let mut power = (spent.epsilon.exp() * alpha + delta).min(1.0 - (-spent.epsilon).exp() * (1.0 - alpha - delta));
    let inexact: f64 = state.charges().iter().map(|account| account.charge.cost.distance).sum();
    if let Some((mu, slack)) = state.gaussian() {
        power = power.min(normal_below(normal_quantile(alpha) + mu) * (1.0 + 1e-12) + slack + 2.0 * inexact);
    }
    if let [only] = state.charges() {
        match TradeOff::new(&Pld::default(), &only.charge.plan.event, state.terms().neighbors) {
            Ok(attack) => power = power.min(attack.power(Probability::new(alpha)?).upper + 2.0 * inexact),
            Err(Error::Unsupported { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(power.clamp(alpha, 1.0))
}

impl std::fmt::Display for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "Dataset {:?}: what was released from it, and what that says about one {}.", self.dataset, self.unit)?;
        if self.seeded > 0 {
            writeln!(
                f,
                "NOTHING IS PROMISED: the noise of {} of {} plans came from a seed, and whoever knows it can take the noise away.",
                self.seeded, self.plans
            )?;
            return Ok(());
        }
        if !self.spent.epsilon.is_finite() {
            return writeln!(f, "NOTHING IS PROMISED: {} plans were paid for without a cap and without a bound.", self.plans);
        }
        let change = match self.neighbors {
            Neighbors::AddRemove => "were added or removed",
            Neighbors::Replace => "were exchanged for another (their number is public)",
        };
        writeln!(
            f,
            "Promise: if one {} {change}, everything released from this dataset would be nearly as likely as it is: (ε, δ)-differential \
             privacy with ε ≤ {} at δ = {}.",
            self.unit,
            up(self.spent.epsilon),
            given(self.budget.delta.get())
        )?;
        match self.budget.epsilon {
            Some(cap) => writeln!(
                f,
                "Budget: ε ≤ {} for all releases together, of which {} is spent by {} plans; more is refused.",
                cap.get(),
                up(self.spent.epsilon),
                self.plans
            )?,
            None => writeln!(f, "Budget: none was set, so later releases are not limited.")?,
        }
        writeln!(f, "Why: {}. Inside each plan: privacy loss distributions, from above and from below.", self.spent.theorem)?;
        writeln!(f, "Interval: ε of all releases is between {} and {}.", down(self.epsilon.lower), up(self.epsilon.upper))?;
        writeln!(
            f,
            "For an attacker: with {} % false positives, a test detects someone's presence at most {} % of the time.",
            100.0 * self.false_positive_rate,
            up(100.0 * self.true_positive_rate)
        )?;
        writeln!(
            f,
            "Covered: everything paid for from this ledger, in any order, however later releases were chosen after earlier ones, \
             and anything computed from the releases."
        )?;
        match self.unit {
            Unit::Example => writeln!(
                f,
                "Not covered: a person with several records; groups of people; what others publish; copies of the data used without this ledger; the settings themselves, if they were read off the data."
            )?,
            Unit::User => writeln!(
                f,
                "Not covered: groups of people; what others publish; copies of the data used without this ledger; the settings themselves, if they were read off the data."
            )?,
        }
        Ok(())
    }
}

/// Four digits, rounded to the side on which what is said stays true.
fn up(value: f64) -> String {
    rounded(value, 4, Toward::Up)
}

fn down(value: f64) -> String {
    rounded(value, 4, Toward::Down)
}
