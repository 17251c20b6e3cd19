//! The stored form of a ledger: its lines, and the book that keeps them.

use serde::{Deserialize, Serialize};

use super::{Composition, Cost, Note, Permit};
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
    /// One person with all their records, which must be grouped before use.
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

/// The total budget of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The cap on ε. `None` means no cap, and no promise.
    pub epsilon: Option<Epsilon>,
    /// δ.
    pub delta: Delta,
}

impl Budget {
    /// The largest cap.
    ///
    /// A larger cap is no meaningful promise, and the precision of the noise does not support it.
    pub const LARGEST: f64 = 30.0;

    /// Checks a budget that a user sets: a plan must be affordable under it.
    pub(crate) fn check_new(self) -> Result<Self, Error> {
        // Zero and negative zero afford nothing.
        if self.epsilon.is_some_and(|cap| cap.get() <= 0.0) {
            return Err(Error::OutOfRange {
                what: "epsilon of a budget",
                value: self.cap(),
                range: "(0, 30], or none at all",
            });
        }
        self.check()
    }

    /// Checks that the cap is in the supported range.
    pub(crate) fn check(self) -> Result<Self, Error> {
        if self.epsilon.is_some_and(|cap| cap.get() > Self::LARGEST) {
            return Err(Error::OutOfRange {
                what: "epsilon of a budget",
                value: self.cap(),
                range: "[0, 30], or none at all",
            });
        }
        Ok(self)
    }

    /// The cap as a number, infinite if there is none.
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
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// The total budget.
    pub budget: Budget,
    /// How plans are composed.
    pub composition: Composition,
}

/// A charge: a plan that was paid for in full before its first step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// A description of the mechanism, for people.
    pub what: String,
    /// The privacy event of the whole plan.
    pub plan: Record,
    /// Number of runs of the mechanism in the plan.
    pub steps: u64,
    /// The cost of the plan under each composition theorem.
    pub cost: Cost,
    /// The noise came from a seed, so nothing is promised.
    ///
    /// Whoever knows the seed can subtract the noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_private: bool,
    /// Idempotency key of the payer.
    ///
    /// A ledger is charged once under each key, and the charge leases nothing, not even a single step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// One line of a ledger.
///
/// Variants are added, never changed: an old ledger must parse forever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// The first line.
    Opened(Terms),
    /// A charge.
    Charged(Charge),
    /// Steps of a charge handed out to a run. They count as run.
    Leased {
        /// Number of the line with the charge.
        charge: u64,
        /// Steps handed out so far.
        until: u64,
    },
    /// Steps whose results a run reports as saved.
    Confirmed {
        /// Number of the line with the charge.
        charge: u64,
        /// Steps confirmed so far.
        until: u64,
    },
    /// A new budget. Spent ε stays spent.
    Raised {
        /// The total budget from now on.
        budget: Budget,
        /// The reason, for the auditor.
        reason: String,
    },
}

/// Proof that a line is in a book.
///
/// It contains the number of the line, and the head of the hash chain after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Name of the dataset.
    pub dataset: String,
    /// Number of the line, the first being 0.
    pub entry: u64,
    /// Head of the hash chain after that line, in hexadecimal.
    pub head: String,
    /// The noise came from a seed: a release with this receipt is not private.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_private: bool,
    /// The ledger's public key, which signs its heads, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
}

impl Receipt {
    /// The receipt of a line in a book.
    #[must_use]
    pub fn new(dataset: String, entry: u64, head: String) -> Self {
        Self { dataset, entry, head, non_private: false, ledger: None }
    }

    /// Adds the public key of the ledger that issued the receipt.
    #[must_use]
    pub fn of_ledger(self, public_key: String) -> Self {
        Self { ledger: Some(public_key), ..self }
    }
}

/// Storage for the lines of one dataset's ledger.
///
/// # Contract
/// An implementation keeps the charges safe:
/// 1. When `append` returns a receipt, the line has reached stable storage and survives a power cut.
/// 2. At most one line ever gets a given number; of several writers all but one get `None`, and nothing of
///    theirs is kept.
/// 3. A line is never changed or removed, and `read` returns all of them in order.
/// 4. `append` refuses a permit whose `spent` exceeds its `cap`, and one that does not follow the lines that
///    the book holds.
///
/// A book that breaks the contract can lose charges between two [`Ledger`](super::Ledger) values. It cannot
/// make one such value grant more than its cap: a ledger counts what it granted itself, whatever the book
/// says afterwards.
pub trait Book {
    /// The error of the storage.
    type Error: std::fmt::Display;

    /// Reads the lines from number `from` on.
    fn read(&mut self, from: u64) -> Result<Vec<Line>, Self::Error>;

    /// Writes the line of the permit, or returns `None` if its number is taken.
    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, Self::Error>;

    /// Reads the receipt of a line that was written earlier.
    fn receipt(&mut self, number: u64) -> Result<Receipt, Self::Error>;

    /// Keeps words to store with the next lines. A book may ignore them.
    fn annotate(&mut self, _note: &Note) {}
}
