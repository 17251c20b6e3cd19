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

/// Why a cell is no ballot.
pub(super) enum Fault {
    /// There is none.
    Missing,
    /// It cannot be counted.
    Wrong,
}

impl<T> Sheet<T> {
    /// Reads a CSV or Parquet file; `wrong` says what a ballot that cannot be counted is, and what there should be.
    pub(super) fn read(
        path: &Path,
        usage: Use,
        wrong: (&str, &str),
        ballot: impl Fn(&Row<'_>, usize) -> Result<T, Fault>,
    ) -> Result<Self, Error> {
        let table = Table::open(path)?;
        let columns: Vec<(&str, Use)> = table.columns().iter().map(|column| (column.name.as_str(), usage)).collect();
        let (teachers, mut cells, mut failed, mut row_number) = (columns.len(), Vec::new(), None, 0);
        table.all().scan(&columns, |row| {
            row_number += 1;
            if failed.is_some() {
                return;
            }
            let (mut missing, mut bad) = (0, false);
            for teacher in 0..teachers {
                match ballot(row, teacher) {
                    Ok(ballot) => cells.push(ballot),
                    Err(Fault::Missing) => missing += 1,
                    Err(Fault::Wrong) => bad = true,
                }
            }
            let (found, expected) = match (missing, bad) {
                (0, false) => return,
                (0, true) => (wrong.0.to_owned(), wrong.1.to_owned()),
                (missing, _) => (format!("{} ballots", teachers - missing), format!("{teachers}, one of each teacher")),
            };
            failed = Some(Error::Ballot { path: path.to_owned(), row: row_number, found, expected });
        })?;
        match failed {
            Some(failed) => Err(failed),
            None if cells.is_empty() => {
                Err(Error::Missing { what: "question", hint: "the file of ballots has a header and no row behind it" })
            }
            None => Ok(Self { teachers, cells }),
        }
    }

    pub(super) fn questions(&self) -> usize {
        self.cells.len().checked_div(self.teachers).unwrap_or(0)
    }
}
