//! A table with one row for each question and one column for each teacher.

use std::path::Path;

use crate::{
    Error, Input,
    data::{Row, Table, Use},
};

/// The cells of the table, question by question.
pub(super) struct Sheet<T> {
    pub(super) teachers: usize,
    pub(super) cells: Vec<T>,
}

impl<T> Sheet<T> {
    /// Reads a CSV or Parquet file.
    /// Every cell is a ballot, whatever it holds: an error would reveal something about a record. A row has
    /// the ballots of all teachers, so a cell that is too long leaves the other cells of its row unchanged.
    pub(super) fn read(
        path: &Path,
        usage: Use,
        ballot: impl Fn(&Row<'_>, usize) -> T,
    ) -> Result<Self, Error> {
        let table = Table::open(path)?;
        let (teachers, mut cells) = (table.columns().len(), Vec::new());
        table.scan_apart(usage, |row| cells.extend((0..teachers).map(|teacher| ballot(row, teacher))))?;
        if cells.is_empty() {
            return Err(Error::Missing { what: Input::Questions });
        }
        Ok(Self { teachers, cells })
    }

    pub(super) fn questions(&self) -> usize {
        self.cells.len().checked_div(self.teachers).unwrap_or(0)
    }
}
