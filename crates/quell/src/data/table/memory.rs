//! Columns of a table in memory, as other programs hand them over.

use std::sync::Arc;

use super::{
    error::Error,
    header::{Column, Header, Kind, Reading, Use},
    layout::Marks,
    row::{Cells, Row},
};
use crate::data::formats::{
    calendar,
    parquet::{Text, Values},
};

/// Rows that are converted at a time.
const BATCH: usize = 4096;

/// The cells of a column in memory. A cell may be missing.
#[derive(Clone)]
pub enum ColumnCells {
    /// Numbers. One that is not finite is missing.
    Numbers(Vec<f64>),
    /// Integers, which may also identify users.
    Integers(Vec<Option<i64>>),
    /// Truths.
    Truths(Vec<Option<bool>>),
    /// Texts. Dates and times are texts, too, such as `2024-12-31`.
    Texts(Vec<Option<String>>),
    /// Texts of which many are equal: the place of each in a list. A place beyond the list is a missing cell.
    Listed {
        /// The place of each text.
        places: Vec<u32>,
        /// The different texts.
        texts: Vec<Arc<str>>,
    },
    /// Integers that are not negative, which may also identify users.
    Naturals(Vec<Option<u64>>),
    /// Days since 1970-01-01, which are read as texts.
    Days(Vec<Option<i64>>),
    /// Units since 1970-01-01 00:00:00, which are read as texts such as `2024-12-31 23:59:59.5`.
    Moments {
        /// The units of each cell.
        units: Vec<Option<i64>>,
        /// Units in a second: a power of ten, of at most 10⁹.
        per_second: u32,
    },
    /// Units since midnight, which are read as texts such as `23:59:59.5`.
    Times {
        /// The units of each cell.
        units: Vec<Option<i64>>,
        /// Units in a second: a power of ten, of at most 10⁹.
        per_second: u32,
    },
    /// Cells without a declared type, as in a CSV file: they are read as the caller asks.
    Undeclared(Vec<Option<Scalar>>),
    /// So many cells that are neither numbers nor texts. Whoever reads the column is refused.
    Unreadable(usize),
}

/// A cell of a column without a declared type.
///
/// A text is no number. A number is also a text: its shortest decimal digits.
#[derive(Clone)]
pub enum Scalar {
    /// A number. One that is not finite is missing.
    Number(f64),
    /// An integer.
    Integer(i64),
    /// True or false.
    Truth(bool),
    /// A text.
    Text(String),
}

impl ColumnCells {
    /// The number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(cells) => cells.len(),
            Self::Integers(cells) => cells.len(),
            Self::Truths(cells) => cells.len(),
            Self::Texts(cells) => cells.len(),
            Self::Listed { places, .. } => places.len(),
            Self::Naturals(cells) => cells.len(),
            Self::Days(units) | Self::Moments { units, .. } | Self::Times { units, .. } => units.len(),
            Self::Undeclared(cells) => cells.len(),
            Self::Unreadable(cells) => *cells,
        }
    }

    /// Whether there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Numbers(_) | Self::Integers(_) | Self::Naturals(_) => Kind::Number,
            Self::Truths(_) => Kind::Boolean,
            Self::Texts(_)
            | Self::Listed { .. }
            | Self::Days(_)
            | Self::Moments { .. }
            | Self::Times { .. } => Kind::Text,
            Self::Undeclared(_) => Kind::Undeclared,
            Self::Unreadable(_) => Kind::Unreadable,
        }
    }

    /// Refuses units of time that have no name.
    fn check(&self) -> Result<(), crate::Error> {
        let (Self::Moments { per_second, .. } | Self::Times { per_second, .. }) = self else { return Ok(()) };
        if (0..=9).any(|digits| 10_u32.pow(digits) == *per_second) {
            return Ok(());
        }
        Err(crate::Error::Setting {
            name: "units in a second",
            found: per_second.to_string(),
            expected: "a power of ten, of at most 10^9",
        })
    }

    /// Converts the cells of some rows to the type that they are read as.
    fn read(&self, usage: Use, rows: std::ops::Range<usize>) -> Values {
        match usage {
            Use::Number => Values::Numbers(rows.map(|row| self.number(row)).collect()),
            Use::Text => Values::Texts(rows.map(|row| self.text(row)).collect()),
            Use::Name => Values::Names(rows.map(|row| self.text(row)).collect()),
        }
    }

    fn number(&self, row: usize) -> Option<f64> {
        match self {
            Self::Numbers(cells) => Some(cells[row]).filter(|number| number.is_finite()),
            Self::Integers(cells) => cells[row].map(|number| number as f64),
            Self::Truths(cells) => cells[row].map(|truth| f64::from(u8::from(truth))),
            Self::Naturals(cells) => cells[row].map(|number| number as f64),
            Self::Undeclared(cells) => match cells[row].as_ref()? {
                Scalar::Number(number) => Some(*number).filter(|number| number.is_finite()),
                Scalar::Integer(number) => Some(*number as f64),
                Scalar::Truth(truth) => Some(f64::from(u8::from(*truth))),
                Scalar::Text(_) => None,
            },
            Self::Texts(_)
            | Self::Listed { .. }
            | Self::Days(_)
            | Self::Moments { .. }
            | Self::Times { .. }
            | Self::Unreadable(_) => None,
        }
    }

    fn text(&self, row: usize) -> Option<Text> {
        match self {
            Self::Numbers(_) | Self::Unreadable(_) => None,
            Self::Integers(cells) => cells[row].map(|number| Text::Written(number.to_string())),
            Self::Naturals(cells) => cells[row].map(|number| Text::Written(number.to_string())),
            Self::Days(days) => calendar::date(days[row]?).map(Text::Written),
            Self::Moments { units, per_second } => {
                calendar::timestamp(units[row]?, i64::from(*per_second)).map(Text::Written)
            }
            Self::Times { units, per_second } => {
                calendar::time(units[row]?, i64::from(*per_second)).map(Text::Written)
            }
            Self::Undeclared(cells) => match cells[row].as_ref()? {
                Scalar::Number(number) => number.is_finite().then(|| Text::Written(number.to_string())),
                Scalar::Integer(number) => Some(Text::Written(number.to_string())),
                Scalar::Truth(truth) => Some(Text::Written(truth.to_string())),
                Scalar::Text(text) => Some(Text::Written(text.clone())),
            },
            Self::Truths(cells) => cells[row].map(|truth| Text::Written(truth.to_string())),
            Self::Texts(cells) => cells[row].clone().map(Text::Written),
            Self::Listed { places, texts } => texts.get(places[row] as usize).cloned().map(Text::Shared),
        }
    }
}

/// Columns of equal length.
pub(super) struct Memory {
    names: Vec<String>,
    columns: Vec<ColumnCells>,
    rows: usize,
}

impl Memory {
    /// Creates the columns and their header.
    pub(super) fn new(columns: Vec<(String, ColumnCells)>) -> Result<(Self, Header), crate::Error> {
        let rows = columns.first().map_or(0, |(_, cells)| cells.len());
        if columns.iter().any(|(_, cells)| cells.len() != rows) {
            return Err(crate::Error::Sizes { name: "cells of a column" });
        }
        columns.iter().try_for_each(|(_, cells)| cells.check())?;
        let (names, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let header =
            names.iter().cloned().zip(&columns).map(|(name, cells)| Column { name, kind: cells.kind() });
        let header = Header::new(header.collect(), super::IN_MEMORY.as_ref())?;
        Ok((Self { names, columns, rows }, header))
    }

    /// Visits every record once, from first to last.
    pub(super) fn scan(
        &self,
        readings: &[Reading],
        marks: &Marks,
        each: &mut dyn FnMut(&Row<'_>),
    ) -> Result<(), crate::Error> {
        let is_fraction = |reading: &&Reading| {
            reading.usage == Use::Name && matches!(self.columns[reading.column], ColumnCells::Numbers(_))
        };
        if let Some(reading) = readings.iter().find(is_fraction) {
            // Fractions can be written in several ways: one user could become two.
            return Err(Error::FractionsAsUsers { name: self.names[reading.column].clone() }.into());
        }
        for first in (0..self.rows).step_by(BATCH) {
            let rows = first..(first + BATCH).min(self.rows);
            let read = |reading: &Reading| self.columns[reading.column].read(reading.usage, rows.clone());
            let cells: Vec<Values> = readings.iter().map(read).collect();
            for index in 0..rows.len() {
                each(&Row { cells: Cells::Columns { columns: &cells, index }, marks, declared: &[] });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Table, TableError};

    #[test]
    fn every_kind_of_cell_is_read_as_a_parquet_file_is_read() {
        let text = |text: &str| Some(text.to_owned());
        let columns = vec![
            ("id".to_owned(), ColumnCells::Naturals(vec![Some(u64::MAX), None])),
            ("born".to_owned(), ColumnCells::Days(vec![Some(19_782), None])),
            ("seen".to_owned(), ColumnCells::Moments { units: vec![Some(1500), None], per_second: 1000 }),
            ("woke".to_owned(), ColumnCells::Times { units: vec![Some(25_200), None], per_second: 1 }),
            ("list".to_owned(), ColumnCells::Unreadable(2)),
        ];
        let table = Table::in_memory(columns).unwrap();
        let all = table.all();
        assert_eq!(all.keys("id").unwrap(), [text("18446744073709551615"), None]);
        assert_eq!(all.texts("born").unwrap(), [text("2024-02-29"), None]);
        assert_eq!(all.texts("seen").unwrap(), [text("1970-01-01 00:00:01.5"), None]);
        assert_eq!(all.texts("woke").unwrap(), [text("07:00:00"), None]);
        for refused in [all.texts("list").err(), all.numbers("list").err(), all.numbers("born").err()] {
            assert!(matches!(refused, Some(crate::Error::Table(TableError::WrongUse { .. }))), "{refused:?}");
        }
        let odd = ColumnCells::Moments { units: vec![], per_second: 60 };
        assert!(Table::in_memory(vec![("minutes".into(), odd)]).is_err());
    }

    #[test]
    fn cells_without_a_declared_type_are_read_as_the_caller_asks() {
        let cells = vec![
            Some(Scalar::Number(1.5)),
            Some(Scalar::Number(f64::NAN)),
            Some(Scalar::Integer(-7)),
            Some(Scalar::Truth(true)),
            Some(Scalar::Text("7".into())),
            None,
        ];
        let table = Table::in_memory(vec![("x".into(), ColumnCells::Undeclared(cells))]).unwrap();
        let (all, text) = (table.all(), |text: &str| Some(text.to_owned()));
        assert_eq!(all.numbers("x").unwrap(), [Some(1.5), None, Some(-7.0), Some(1.0), None, None]);
        let texts = [text("1.5"), None, text("-7"), text("true"), text("7"), None];
        assert_eq!(all.texts("x").unwrap(), texts);
    }
}
