//! Composition of plans that may depend on the results of earlier plans.
//!
//! Inside a plan all numbers are fixed in advance, and the tight accountant evaluates it as a whole. Across
//! plans an analyst chooses the next plan after seeing the last result. There only a privacy filter is valid:
//! a stopping rule that holds however the plans were chosen.

use serde::{Deserialize, Serialize};

use super::{Budget, Cost, cost::ORDERS};
use crate::accounting::{Conversion, distance::excess, gaussian_epsilon, renyi_epsilon};

/// How plans are composed.
///
/// This is fixed when a ledger is opened, because δ is divided between the theorems that may decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Composition {
    /// The smallest of the three bounds.
    ///
    /// Most of δ goes to Gaussian DP, a tenth to Rényi.
    #[default]
    Combined,
    /// The same three bounds, with nearly all of δ for Gaussian DP.
    ///
    /// Older ledgers use this division.
    Best,
    /// Gaussian DP and addition.
    Gaussian,
    /// Rényi divergences and addition.
    Renyi,
    /// Addition only: all of δ is for guarantees that have their own δ.
    Addition,
}

/// A composition theorem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theorem {
    /// One plan alone, accounted for as a whole.
    Whole,
    /// ε adds up.
    Addition,
    /// μ² adds up.
    Gaussian,
    /// Rényi divergences add up.
    Renyi,
    /// There is no bound.
    None,
}

impl std::fmt::Display for Theorem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Whole => "dominating pairs of the only plan compose [ZDW22, Theorem 10]",
            Self::Addition => "ε adds up over adaptively chosen plans [RRUV16]",
            Self::Gaussian => "μ² adds up over adaptively chosen plans [ST22]",
            Self::Renyi => "Rényi divergences add up over adaptively chosen plans [FZ21]",
            Self::None => "no bound",
        })
    }
}

/// ε of everything spent so far, and the theorem behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spent {
    /// ε at the δ of the budget.
    pub epsilon: f64,
    /// The theorem that gave it.
    pub theorem: Theorem,
}

/// The parameters for evaluating a sum of costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    /// δ of the budget in force.
    pub(crate) delta: f64,
    /// The promised ε; infinite if nothing is promised.
    ///
    /// The distance of the noise from ideal noise is charged at this ε.
    pub(crate) promised: f64,
    /// The budget that determines how δ is divided between the Rényi orders.
    ///
    /// It is the budget in force at the first charge, so that the division never depends on a result.
    pub(crate) division: Budget,
}

impl Composition {
    /// Shares of δ: for Gaussian DP, for Rényi, for slack.
    ///
    /// Two theorems, addition and Gaussian DP, may use the slack of a plan. So the share of the slack counts
    /// twice if both apply. Counted so, the shares sum to at most one.
    fn shares(self) -> [f64; 3] {
        match self {
            Self::Combined => [0.8, 0.1, 0.05],
            Self::Best => [0.99, 0.004, 0.003],
            Self::Gaussian => [0.998, 0.0, 0.001],
            Self::Renyi => [0.0, 0.99, 0.005],
            Self::Addition => [0.0, 0.0, 1.0],
        }
    }

    /// Slack in δ that all plans together may use.
    pub(crate) fn slack(self, delta: f64) -> f64 {
        self.shares()[2] * delta
    }

    /// The slack that a sum of costs uses.
    ///
    /// It includes what the distance of the noise from ideal noise costs at ε.
    pub(crate) fn slack_used(sum: &Sum, epsilon: f64) -> f64 {
        (sum.slack + excess(epsilon, sum.distance)) * (1.0 + 1e-9)
    }

    /// ε of a sum of costs: the smallest bound of all theorems.
    ///
    /// Each theorem has its own share of δ.
    ///
    /// # Theorem
    /// (THEORY, Filters) If every plan is granted only while some theorem's ε is at most the cap, everything
    /// together is (cap, δ)-DP however the plans were chosen: the transcripts that end within theorem v are
    /// transcripts of the filter v, which is (cap, shareᵥ δ)-DP [RRUV16, ST22, FZ21], and the shares sum to
    /// one. Plans may be interleaved [HSTVVXZ23].
    pub(crate) fn spent(self, sum: &Sum, rule: &Rule) -> Spent {
        let delta = rule.delta;
        let [gaussian, renyi, _] = self.shares();
        let mut best = Spent { epsilon: f64::INFINITY, theorem: Theorem::None };
        let mut consider = |theorem: Theorem, epsilon: f64| {
            // Without a promise, the distance is charged at the ε of the sum itself.
            let promised = if rule.promised.is_finite() { rule.promised } else { epsilon };
            if epsilon < best.epsilon && Self::slack_used(sum, promised) <= self.slack(delta) {
                best = Spent { epsilon, theorem };
            }
        };
        if let Some(pure) = sum.pure {
            consider(Theorem::Addition, pure * (1.0 + 1e-9));
        }
        if let Some(square) = sum.gaussian.filter(|_| gaussian > 0.0) {
            consider(Theorem::Gaussian, gaussian_epsilon((square * (1.0 + 1e-9)).sqrt(), gaussian * delta));
        }
        if let Some(curve) = sum.renyi.as_ref().filter(|_| renyi > 0.0) {
            for ((order, divergence), weight) in ORDERS.iter().zip(curve).zip(weights(&rule.division)) {
                consider(
                    Theorem::Renyi,
                    renyi_epsilon(
                        Conversion::Tight,
                        *order,
                        *divergence * (1.0 + 1e-9),
                        weight * renyi * delta,
                    ),
                );
            }
        }
        best
    }
}

/// Divides the Rényi share of δ between the orders.
///
/// Most goes to the order that is best for Gaussian noise at this budget, 1 + 2 ln(1/δ)/ε, and half as much
/// with every step away from it. Any weights that sum to at most one are valid.
fn weights(budget: &Budget) -> [f64; ORDERS.len()] {
    let order = 1.0 + 2.0 * -budget.delta.get().ln() / budget.cap().max(1e-6);
    let best = ORDERS.iter().position(|&o| o >= order).unwrap_or(ORDERS.len() - 1);
    // Σ 2^-|j| < 3
    std::array::from_fn(|j| 0.5_f64.powi(j.abs_diff(best) as i32) / 3.0)
}

/// A sum of costs; `None` where one of them had no bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sum {
    pure: Option<f64>,
    /// Σμ².
    gaussian: Option<f64>,
    renyi: Option<[f64; ORDERS.len()]>,
    slack: f64,
    distance: f64,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            pure: Some(0.0),
            gaussian: Some(0.0),
            renyi: Some([0.0; ORDERS.len()]),
            slack: 0.0,
            distance: 0.0,
        }
    }
}

impl Sum {
    pub(crate) fn add(&self, cost: &Cost) -> Self {
        let both = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        let renyi = match (&self.renyi, &cost.renyi) {
            (Some(sum), Some(curve)) if curve.len() == sum.len() => {
                Some(std::array::from_fn(|i| sum[i] + curve[i]))
            }
            _ => None,
        };
        Self {
            pure: both(self.pure, cost.pure),
            gaussian: both(self.gaussian, cost.gaussian.map(|mu| mu * mu)),
            renyi,
            slack: self.slack + cost.slack,
            distance: self.distance + cost.distance,
        }
    }
}
