//! The promise of a ledger whose budget changes.
//!
//! Whoever changes a budget after a release may have seen the release. The promise must then hold for every
//! budget that could have been set.

use serde::Serialize;

use super::Budget;

/// The guarantee for everything that a ledger pays for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Promise {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
}

impl Promise {
    /// The largest true-positive rate of a membership test at a false-positive rate.
    ///
    /// # Theorem
    /// [DRS22] A test that tells neighbours apart has TPR ≤ e^ε FPR + δ, and 1 - TPR ≥ e^-ε (1 - FPR - δ).
    #[must_use]
    pub fn power(self, false_positive_rate: f64) -> f64 {
        let (alpha, Self { epsilon, delta }) = (false_positive_rate, self);
        (epsilon.exp() * alpha + delta).min(1.0 - (-epsilon).exp() * (1.0 - alpha - delta)).clamp(alpha, 1.0)
    }
}

/// Why nothing is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unpromised {
    /// There is no cap.
    #[error("the ledger has no cap, so nothing limits what is released")]
    NoCap,
    /// There was no cap for some time after the first charge.
    #[error(
        "the ledger had no cap for some time after its first charge; a cap that is set after results are seen limits later charges only, so nothing is promised"
    )]
    LateCap,
    /// δ was raised after a charge.
    #[error("delta was raised after the first charge, when results may have been seen")]
    DeltaRaised,
    /// The total δ of all budgets that could have been set is one or more.
    #[error("the delta of all budgets that could have been set is 1 or more")]
    NoDelta,
    /// Some noise came from a seed.
    #[error("the noise of some plans came from a seed, and everyone who knows the seed can remove the noise")]
    Seeded,
    /// There is no bound on the released information.
    #[error("there is no bound on what was released")]
    Unbounded,
    /// The charges exceed the cap.
    #[error("more is counted than the budget allows, so these lines were not written by a ledger of Quell")]
    OverCap,
    /// A plan was charged for less than it costs.
    #[error("line {entry} was charged for less than it costs")]
    Underpriced {
        /// Number of the line.
        entry: u64,
    },
}

/// The budgets in force since the first charge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct History {
    /// The budget at the first charge, before any result.
    first: Budget,
    /// The largest cap since then; infinite if there was no cap for some time.
    largest: f64,
    /// The largest δ since then.
    delta: f64,
}

impl History {
    pub(super) fn new(first: Budget) -> Self {
        Self { first, largest: first.cap(), delta: first.delta.get() }
    }

    pub(super) fn apply(&mut self, budget: &Budget) {
        self.largest = self.largest.max(budget.cap());
        self.delta = self.delta.max(budget.delta.get());
    }

    pub(super) fn first(&self) -> Budget {
        self.first
    }

    /// The promise of this history of budgets.
    ///
    /// # Theorem
    /// (THEORY, Budgets) Let c₀ be the cap at the first charge and C the largest cap since, rounded up to a
    /// whole number if it is not c₀. A promise of C or less is one of c₀ and the whole numbers in (c₀, C].
    /// For each of them the transcripts that end with that promise exceed it by δ at most, so all together by
    /// δ times their number.
    pub(super) fn promise(&self) -> Result<Promise, Unpromised> {
        let (cap, delta) = (self.first.cap(), self.first.delta.get());
        if self.largest.is_infinite() {
            return Err(Unpromised::LateCap);
        }
        if self.delta > delta {
            return Err(Unpromised::DeltaRaised);
        }
        if self.largest <= cap {
            return Ok(Promise { epsilon: cap, delta });
        }
        let epsilon = self.largest.ceil();
        let budgets = 1.0 + epsilon - cap.floor();
        //            c₀ and the whole numbers in (c₀, C]
        let product = delta * budgets;
        // Doubling is exact.
        let delta = if budgets > 2.0 { product.next_up() } else { product };
        if delta < 1.0 { Ok(Promise { epsilon, delta }) } else { Err(Unpromised::NoDelta) }
    }
}
