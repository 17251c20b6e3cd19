//! Problems that a verification can find in a ledger.

use serde::Serialize;

/// A problem and its location.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Name of the dataset, if the problem concerns one dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of the line, if the problem concerns one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// The problem.
    pub problem: Problem,
}

/// A kind of damage or inconsistency.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// The storage returned an error.
    #[error("cannot be read: {cause}")]
    Unreadable {
        /// The error.
        cause: String,
    },
    /// SQLite's integrity check failed.
    #[error("the file is damaged: {message}")]
    Unsound {
        /// The message of SQLite.
        #[serde(rename = "said")]
        message: String,
    },
    /// Tables, constraints or triggers are not those of a ledger.
    #[error("{name} in the database is missing, altered or not part of a ledger")]
    Schema {
        /// Name of the table or trigger.
        name: String,
    },
    /// The database file differs from the hash in its seal.
    #[error("the file differs from its seal, although the number of lines is the same")]
    Seal,
    /// A record of the seal has a wrong checksum.
    #[error("record {record} of the seal is damaged")]
    SealDamaged {
        /// Number of the record.
        record: u64,
    },
    /// Lines are missing.
    #[error(
        "{expected} lines were written, of which the ledger has {lines}: the end is missing, or this is an older copy"
    )]
    Truncated {
        /// Lines in the ledger.
        lines: u64,
        /// Lines that a seal, receipt or export attests.
        expected: u64,
    },
    /// The chain has another hash than the one attested earlier.
    #[error("the head after it is {found}, expected {expected}: this is another history")]
    Forked {
        /// Head in the ledger.
        found: String,
        /// Head that a seal, receipt, export or earlier line attests.
        expected: String,
    },
    /// A number is missing or appears twice.
    #[error("it has the number {found}, expected {expected}")]
    Gap {
        /// Number of the line found.
        found: u64,
        /// Number that should come next.
        expected: u64,
    },
    /// The text of a line does not match its hash.
    #[error("its text was changed")]
    Edited,
    /// The text is not a valid line, or does not match its position.
    #[error("its text is not a line of a ledger: {cause}")]
    Unparsable {
        /// Why the text is not valid.
        cause: String,
    },
    /// The row of the dataset disagrees with its lines.
    #[error("{what} is {found}, expected {expected}, according to its lines")]
    Row {
        /// Name of the column.
        what: &'static str,
        /// Value in the row.
        found: String,
        /// Value according to the lines.
        expected: String,
    },
    /// The signature of the head is not valid for the key of the ledger.
    #[error("the head is not signed by the key of this ledger")]
    Signature,
    /// The public key is not the expected one.
    #[error("the public key is {found}, expected {expected}, as {says}")]
    PublicKey {
        /// The key in the ledger, or `missing`.
        found: String,
        /// The key expected.
        expected: String,
        /// The source of the expected key.
        says: &'static str,
    },
    /// The signing key is missing.
    #[error(
        "the signing key {path} is missing, expected the one with the public part {public}: nothing can be charged, and the public key could not be checked"
    )]
    KeyMissing {
        /// The expected path of the key.
        path: String,
        /// The public key in the ledger.
        public: String,
    },
    /// The lines contradict each other.
    #[error("the lines contradict each other: {cause}")]
    Nonsense {
        /// The contradiction.
        cause: String,
    },
    /// The recorded ε is smaller than the actual ε.
    #[error("the recorded epsilon is {found}, expected {expected}")]
    Understated {
        /// The ε recorded in the line.
        found: f64,
        /// The ε recomputed from all lines up to this one.
        expected: f64,
    },
    /// A plan was charged for less than it costs.
    #[error("{what} costs more than was charged for it")]
    Underpriced {
        /// Description of the plan.
        what: String,
    },
    /// The ledger exceeds its budget.
    #[error("epsilon is {spent}, but the budget at that time was {cap}")]
    Overspent {
        /// ε after the line.
        spent: f64,
        /// The budget.
        cap: f64,
    },
    /// A receipt or export names a dataset that the store does not have.
    #[error("the store has no such dataset, although a receipt or export names it")]
    NoDataset,
    /// An export is damaged.
    #[error("the export is damaged: {cause}")]
    Export {
        /// The damage.
        cause: String,
    },
}

impl Problem {
    pub(crate) fn in_store(self) -> Finding {
        Finding { dataset: None, entry: None, problem: self }
    }

    pub(crate) fn of(self, dataset: &str) -> Finding {
        Finding { dataset: Some(dataset.to_owned()), entry: None, problem: self }
    }

    pub(crate) fn at(self, dataset: &str, entry: u64) -> Finding {
        Finding { dataset: Some(dataset.to_owned()), entry: Some(entry), problem: self }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.dataset, self.entry) {
            (Some(dataset), Some(entry)) => write!(f, "dataset {dataset:?}, line {entry}: {}", self.problem),
            (Some(dataset), None) => write!(f, "dataset {dataset:?}: {}", self.problem),
            (None, Some(entry)) => write!(f, "line {entry}: {}", self.problem),
            (None, None) => write!(f, "{}", self.problem),
        }
    }
}
