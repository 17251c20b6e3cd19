//! A table with one row for each question and one column for each teacher.

use std::path::Path;

use crate::{
    Error,
    data::{Row, Table, Use},
};

/// What teachers said, question by question.
pub(super) struct Sheet<T> {
    pub(super) teachers: usize,
    pub(super) cells: Vec<T>,
}

impl<T> Sheet<T> {
    /// Reads a CSV or Parquet file. Every cell is a ballot, whatever is in it: an error would speak of a record.
    pub(super) fn read(path: &Path, usage: Use, ballot: impl Fn(&Row<'_>, usize) -> T) -> Result<Self, Error> {
        let table = Table::open(path)?;
        let columns: Vec<(&str, Use)> = table.columns().iter().map(|column| (column.name.as_str(), usage)).collect();
        let (teachers, mut cells) = (columns.len(), Vec::new());
        table.all().scan(&columns, |row| cells.extend((0..teachers).map(|teacher| ballot(row, teacher))))?;
        if cells.is_empty() {
            return Err(Error::Missing { what: "question", hint: "the file of ballots has a header and no row behind it" });
        }
        Ok(Self { teachers, cells })
    }

    pub(super) fn questions(&self) -> usize {
        self.cells.len().checked_div(self.teachers).unwrap_or(0)
    }
}
