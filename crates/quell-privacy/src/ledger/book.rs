//! What is written down: the lines of a ledger, and the book that keeps them.

use serde::{Deserialize, Serialize};

use super::{Composition, Cost, Permit};
use crate::{
    Error, Neighbors,
    event::Record,
    units::{Delta, Epsilon},
};

/// Whose data a guarantee protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// One record. A person with several records has less protection.
    #[default]
    Example,
    /// One person with all their records; every record of theirs must be grouped before it is used.
    User,
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Example => "example",
            Self::User => "user",
        })
    }
}

/// What may be spent on a dataset in all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The cap on ε. None is no cap: nothing is promised, as for public data and tests.
    pub epsilon: Option<Epsilon>,
    /// δ.
    pub delta: Delta,
}

impl Budget {
    /// Caps above this promise nothing worth the name, and are more than the precision of noise supports.
    pub const LARGEST: f64 = 30.0;

    /// The budget, if something can be bought with it, for whoever sets one.
    pub(crate) fn offered(self) -> Result<Self, Error> {
        // Zero and its negative buy nothing.
        if self.epsilon.is_some_and(|cap| cap.get() <= 0.0) {
            return Err(Error::OutOfRange { what: "epsilon of a budget", value: self.cap(), range: "(0, 30], or none at all" });
        }
        self.check()
    }

    /// The budget, if its cap is one that can be kept.
    pub(crate) fn check(self) -> Result<Self, Error> {
        if self.epsilon.is_some_and(|cap| cap.get() > Self::LARGEST) {
            return Err(Error::OutOfRange { what: "epsilon of a budget", value: self.cap(), range: "[0, 30], or none at all" });
        }
        Ok(self)
    }

    /// The cap as a number, infinite where there is none.
    #[must_use]
    pub fn cap(&self) -> f64 {
        self.epsilon.map_or(f64::INFINITY, Epsilon::get)
    }
}

/// The first line of a ledger: what is protected, and how much may be spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Name of the dataset.
    pub dataset: String,
    /// Whose data a guarantee protects.
    pub unit: Unit,
    /// When two datasets count as neighbours.
    pub neighbors: Neighbors,
    /// What may be spent.
    pub budget: Budget,
    /// How plans are added up.
    pub composition: Composition,
}

/// A debt: a plan that was paid for in full before its first step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// What was done, in words.
    pub what: String,
    /// The whole plan as an accountant sees it.
    pub plan: Record,
    /// How many runs of the mechanism it is made of.
    pub steps: u64,
    /// What it costs in every way in which plans are added up.
    pub cost: Cost,
    /// The noise came from a seed: whoever knows it can take the noise away, so nothing is promised.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_private: bool,
    /// Idempotency key of the payer: a ledger is charged once under each key, and the charge leases nothing, not even a single step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// One line of a ledger. Variants are added, never changed: an old ledger parses for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// The first line.
    Opened(Terms),
    /// A debt.
    Charged(Charge),
    /// Steps of a charge handed out to a run, up to `until`. They count as run, whatever became of them.
    Leased {
        /// Number of the line that paid.
        charge: u64,
        /// Steps handed out so far.
        until: u64,
    },
    /// Steps of which a run says that their results are safe.
    Confirmed {
        /// Number of the line that paid.
        charge: u64,
        /// Steps confirmed so far.
        until: u64,
    },
    /// A new budget. What was spent stays spent.
    Raised {
        /// What may be spent from now on.
        budget: Budget,
        /// Why, for the auditor.
        reason: String,
    },
}

/// Proof that a line stands in a book: its number, and the head of the chain that ends with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Name of the dataset.
    pub dataset: String,
    /// Number of the line, the first being 0.
    pub entry: u64,
    /// Head of the hash chain after that line, in hexadecimal.
    pub head: String,
    /// The noise came from a seed: what carries this receipt is not private.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_private: bool,
    /// Which ledger it was: the public key that signs its heads, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
}

impl Receipt {
    /// Of a line as a book knows it.
    #[must_use]
    pub fn new(dataset: String, entry: u64, head: String) -> Self {
        Self { dataset, entry, head, non_private: false, ledger: None }
    }

    /// The same receipt, with the public key of the ledger that gave it.
    #[must_use]
    pub fn of_ledger(self, public_key: String) -> Self {
        Self { ledger: Some(public_key), ..self }
    }
}

/// Where the lines of one dataset are kept.
///
/// # Contract
/// Whoever implements this keeps the debts:
/// 1. When `append` returns a receipt, the line has reached stable storage and survives a power cut.
/// 2. At most one line ever gets a given number; of several writers all but one get `None`, and nothing of theirs is kept.
/// 3. A line is never changed or removed, and `read` returns all of them in order.
/// 4. `append` refuses a permit whose `spent` exceeds its `cap`, and one that does not follow the lines that the book holds.
///
/// A book that breaks the contract can forget debts between two [`Ledger`](super::Ledger) values. It cannot make one such value grant more than its cap: a ledger
/// counts what it granted itself, whatever the book says afterwards.
pub trait Book {
    /// What can go wrong with the storage.
    type Error: std::fmt::Display;

    /// The lines from number `from` on.
    fn read(&mut self, from: u64) -> Result<Vec<Line>, Self::Error>;

    /// Writes the line of the permit, or returns `None` if its number is taken.
    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, Self::Error>;

    /// The receipt of a line that was written earlier.
    fn receipt(&mut self, number: u64) -> Result<Receipt, Self::Error>;
}
