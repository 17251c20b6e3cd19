//! The interface to a database. All SQL is behind this trait.

use crate::{
    chain::{Hash, Row, Stored},
    error::Error,
    finding::Finding,
};

/// A line to write, and the dataset row after it.
pub(crate) struct PendingLine<'a> {
    /// The head before the line.
    pub(crate) previous_head: Hash,
    pub(crate) entry: &'a Stored,
    pub(crate) row: &'a Row,
    /// Whether the line sets a new cap.
    pub(crate) sets_cap: bool,
}

/// Result of an attempt to write a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The line is on stable storage.
    Written,
    /// Another writer took the number of the line.
    Taken,
    /// The head of the ledger is not the head that the line follows.
    HeadDiffers,
    /// The ledger has a different cap.
    OtherCap,
}

/// A connection to a database.
///
/// # Contract
/// `append` is one transaction. If it returns `Written`, the line is durable in the storage that was opened;
/// otherwise nothing was changed. `snapshot` reads the state at one moment.
pub(crate) trait Database: Send {
    /// The public key of this ledger.
    fn public_key(&mut self) -> Result<Option<[u8; 32]>, Error>;

    /// Whether the storage is still empty, as after an interrupted creation.
    fn is_blank(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Fails if the storage was replaced since it was opened; checked before issuing a receipt.
    fn check_in_place(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Sets the public key, unless one is set already.
    fn set_public_key(&mut self, public_key: &[u8; 32]) -> Result<(), Error>;

    /// All datasets, sorted by name.
    fn rows(&mut self) -> Result<Vec<Row>, Error>;

    /// One dataset.
    fn row(&mut self, dataset: &str) -> Result<Option<Row>, Error>;

    /// One line.
    fn entry(&mut self, dataset: &str, number: u64) -> Result<Option<Stored>, Error>;

    /// One dataset with its lines from number `from` on.
    fn snapshot(&mut self, dataset: &str, from: u64) -> Result<Option<(Row, Vec<Stored>)>, Error>;

    /// Writes a line if it is the next line.
    fn append(&mut self, pending: &PendingLine) -> Result<Outcome, Error>;

    /// Problems that concern the storage as a whole, and notes.
    fn inspect(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error>;

    /// Records a hash of the storage, so that any later change is detected.
    ///
    /// Returns false if other connections are writing.
    fn seal(&mut self) -> Result<bool, Error>;
}

/// Why no row was updated for a line.
///
/// `found` is the current row of the dataset.
pub(crate) fn rejection(found: Option<&Row>, pending: &PendingLine) -> Outcome {
    match found {
        Some(row) if row.lines > pending.entry.number => Outcome::Taken,
        Some(row) if row.lines == pending.entry.number && row.head == pending.previous_head => {
            Outcome::OtherCap
        }
        _ => Outcome::HeadDiffers,
    }
}
