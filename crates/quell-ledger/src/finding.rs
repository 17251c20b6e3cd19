//! What can be wrong with a ledger.

use serde::Serialize;

/// Something that is not as it was written, and where.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Name of the dataset, if it concerns one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of the line, if it concerns one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// The storage gives an error instead of an answer.
    #[error("cannot be read: {cause}")]
    Unreadable {
        /// The error.
        cause: String,
    },
    /// SQLite's own check of the file.
    #[error("the file is not sound: {said}")]
    Unsound {
        /// What SQLite says.
        said: String,
    },
    /// Tables, constraints or triggers are not those of a ledger.
    #[error("{name} in the database is not what a ledger has")]
    Schema {
        /// Name of the table or trigger.
        name: String,
    },
    /// The bytes of the file are not those that were sealed.
    #[error("the file differs from its seal, though the number of lines is the same")]
    Seal,
    /// A record of the seal is not one.
    #[error("record {record} of the seal is damaged")]
    SealDamaged {
        /// Its number.
        record: u64,
    },
    /// Lines that existed do not.
    #[error("{expected} lines were written, of which the ledger has {lines}: the end is missing, or this is an older copy")]
    Truncated {
        /// Lines in the ledger.
        lines: u64,
        /// Lines that somebody saw.
        expected: u64,
    },
    /// Another line stands where one was seen.
    #[error("the head after it is {found}, expected {expected}: this is another history")]
    Forked {
        /// Head in the ledger.
        found: String,
        /// Head that somebody saw.
        expected: String,
    },
    /// A number is missing or appears twice.
    #[error("it has the number {found}, expected {expected}")]
    Gap {
        /// The number.
        found: u64,
        /// The number that follows.
        expected: u64,
    },
    /// The text does not have the hash it was written with.
    #[error("its text is not what was written")]
    Edited,
    /// The text is not a line, or says something else than its place.
    #[error("its text is not a line of a ledger: {cause}")]
    Unparsable {
        /// Why not.
        cause: String,
    },
    /// The row of the dataset says something else than its lines.
    #[error("{what} is {found}, expected {expected}, as its lines say")]
    Row {
        /// Name of the column.
        what: &'static str,
        /// What the row says.
        found: String,
        /// What the lines say.
        expected: String,
    },
    /// The head was not signed by the key of the ledger.
    #[error("the head is not signed by the key of this ledger")]
    Signature,
    /// The public key is another one.
    #[error("the public key is {found}, expected {expected}, as {says}")]
    PublicKey {
        /// The key in the ledger, or nothing.
        found: String,
        /// The key expected.
        expected: String,
        /// Who expects it.
        says: &'static str,
    },
    /// The key that signs is gone.
    #[error(
        "the signing key {path} is missing, expected the one with the public part {public}: nothing can be charged, and the public key was compared with nothing"
    )]
    KeyMissing {
        /// Where it was looked for.
        path: String,
        /// The public key in the ledger.
        public: String,
    },
    /// The lines contradict each other.
    #[error("the lines make no sense: {cause}")]
    Nonsense {
        /// Why.
        cause: String,
    },
    /// ε was written down smaller than it is.
    #[error("epsilon was written down as {found}, expected {expected}")]
    Understated {
        /// What the line says.
        found: f64,
        /// What its predecessors and itself add up to.
        expected: f64,
    },
    /// A plan was charged for less than it costs.
    #[error("{what} costs more than was charged for it")]
    Underpriced {
        /// The plan, in words.
        what: String,
    },
    /// More was spent than there was.
    #[error("epsilon is {spent}, the budget at that time was {cap}")]
    Overspent {
        /// ε after the line.
        spent: f64,
        /// The budget.
        cap: f64,
    },
    /// Something was paid for in a dataset that is not here.
    #[error("there is no such dataset, though something was paid for from it")]
    NoDataset,
    /// An export is not as it was made.
    #[error("the export is damaged: {cause}")]
    Export {
        /// How.
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
