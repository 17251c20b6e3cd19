//! What a ledger asks of a database, whichever it is. All SQL is behind this.

use crate::{
    chain::{Hash, Row, Stored},
    error::Error,
    finding::Finding,
};

/// A line to be written, and the row after it.
pub(crate) struct Step<'a> {
    /// The head before the line.
    pub(crate) old: Hash,
    pub(crate) entry: &'a Stored,
    pub(crate) row: &'a Row,
    /// The line sets a new cap.
    pub(crate) sets_cap: bool,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is on stable storage.
    Written,
    /// Somebody else was faster.
    Taken,
    /// The ledger does not end with the head that the line was made for.
    Elsewhere,
    /// The ledger has another cap.
    OtherCap,
}

/// A connection to a database.
///
/// # Contract
/// `append` is one transaction that is durable, in the storage that was opened, when it says `Written`, and leaves nothing behind otherwise. `snapshot` is of one moment.
pub(crate) trait Database: Send {
    /// The public key that signs this ledger.
    fn public_key(&mut self) -> Result<Option<[u8; 32]>, Error>;

    /// Nothing has been written into the storage at all, as after a creation that was interrupted.
    fn is_blank(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Whether the storage is still the one that was opened: asked before a receipt is believed.
    fn is_in_place(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Sets the public key, unless there is one.
    fn adopt(&mut self, public_key: &[u8; 32]) -> Result<(), Error>;

    /// All datasets, by name.
    fn rows(&mut self) -> Result<Vec<Row>, Error>;

    /// One dataset.
    fn row(&mut self, dataset: &str) -> Result<Option<Row>, Error>;

    /// One line.
    fn entry(&mut self, dataset: &str, number: u64) -> Result<Option<Stored>, Error>;

    /// One dataset with its lines from a number on.
    fn snapshot(&mut self, dataset: &str, from: u64) -> Result<Option<(Row, Vec<Stored>)>, Error>;

    /// Writes a line if it is the next one.
    fn append(&mut self, step: &Step) -> Result<Outcome, Error>;

    /// Problems that concern the storage as a whole, and remarks.
    fn inspect(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error>;

    /// Records what the storage looks like now, so that any later change of it can be seen. False if others are writing.
    fn seal(&mut self) -> Result<bool, Error>;
}

/// What became of a line that found no row to update: `found` is the row of the dataset.
pub(crate) fn why_not(found: Option<&Row>, step: &Step) -> Outcome {
    match found {
        Some(row) if row.lines > step.entry.number => Outcome::Taken,
        Some(row) if row.lines == step.entry.number && row.head == step.old => Outcome::OtherCap,
        _ => Outcome::Elsewhere,
    }
}
