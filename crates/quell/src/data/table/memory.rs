//! Columns of a table in memory, as other programs hand them over.

use std::sync::Arc;

use super::{
    error::Error,
    header::{Column, Header, Kind, Reading, Use},
    layout::Marks,
    row::{Cells, Row},
};
use crate::data::formats::parquet::{Text, Values};

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
        }
    }

    /// Whether there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Numbers(_) | Self::Integers(_) => Kind::Number,
            Self::Truths(_) => Kind::Boolean,
            Self::Texts(_) | Self::Listed { .. } => Kind::Text,
        }
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
            Self::Texts(_) | Self::Listed { .. } => None,
        }
    }

    fn text(&self, row: usize) -> Option<Text> {
        match self {
            Self::Numbers(_) => None,
            Self::Integers(cells) => cells[row].map(|number| Text::Written(number.to_string())),
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
