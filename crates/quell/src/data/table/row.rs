//! One record, available only while it is visited.

use std::borrow::Cow;

use crate::data::{
    formats::{
        csv,
        parquet::{Text, Values},
    },
    table::{
        declared::{Declared, truth},
        header::{Reading, Use},
        layout::Marks,
    },
};

/// The requested cells of one record, numbered in the order of the request.
///
/// A cell is parsed when it is accessed. `Row` does not implement `Debug`, so that it is not printed by
/// accident.
pub struct Row<'a> {
    pub(in crate::data) cells: Cells<'a>,
    /// Texts and numbers that stand for missing cells.
    pub(in crate::data) marks: &'a Marks,
    /// What a schema declares about each cell; empty if nothing is declared.
    pub(in crate::data) declared: &'a [Option<&'a Declared>],
}

/// The place where the cells are stored.
#[derive(Clone, Copy)]
pub(in crate::data) enum Cells<'a> {
    Csv {
        record: &'a csv::Record,
        readings: &'a [Reading],
    },
    /// One row of a batch, given by its index in every column.
    Columns {
        columns: &'a [Values],
        index: usize,
    },
}

impl Row<'_> {
    /// Returns whether the cell exists, even if it is empty.
    ///
    /// Short rows of CSV have fewer cells than others.
    #[must_use]
    pub fn has(&self, slot: usize) -> bool {
        match &self.cells {
            Cells::Csv { record, readings } => {
                readings.get(slot).is_some_and(|reading| reading.column < record.len())
            }
            Cells::Columns { columns, .. } => slot < columns.len(),
        }
    }

    /// Returns whether a row of CSV has more cells than there are columns.
    #[must_use]
    pub fn has_more_than(&self, columns: usize) -> bool {
        match &self.cells {
            Cells::Csv { record, .. } => record.len() > columns,
            Cells::Columns { .. } => false,
        }
    }

    /// Returns a cell that was requested as a number.
    ///
    /// Returns `None` if the cell is missing or not a finite number.
    #[must_use]
    pub fn number(&self, slot: usize) -> Option<f64> {
        let is_truth = matches!(self.declared(slot), Some(Declared::Truth));
        if let (true, Cells::Csv { record, readings }) = (is_truth, &self.cells) {
            let reading = readings.get(slot).filter(|r| r.usage == Use::Number)?;
            let text = self.unmarked(csv::text(record, reading.column, self.marks.writing))?;
            return truth(&text).map(|index| index as f64);
        }
        let number = match &self.cells {
            Cells::Csv { record, readings } => {
                let column = readings.get(slot).filter(|r| r.usage == Use::Number)?.column;
                csv::number(record, column, self.marks.writing)
            }
            Cells::Columns { columns, index } => match columns.get(slot)? {
                Values::Numbers(numbers) => *numbers.get(*index)?,
                Values::Texts(_) | Values::Names(_) => None,
            },
        };
        number.filter(|number| !self.marks.has_number(*number) && (!is_truth || matches!(number, 0.0 | 1.0)))
    }

    /// Returns a cell that was requested as text, or `None` if it is missing.
    #[must_use]
    pub fn text(&self, slot: usize) -> Option<Cow<'_, str>> {
        let text = match &self.cells {
            Cells::Csv { record, readings } => {
                let column = readings.get(slot).filter(|r| r.usage == Use::Text)?.column;
                csv::text(record, column, self.marks.writing)
            }
            Cells::Columns { columns, index } => match columns.get(slot)? {
                Values::Texts(texts) => texts.get(*index)?.as_ref().map(Text::show),
                Values::Numbers(_) | Values::Names(_) => None,
            },
        };
        let text = self.unmarked(text)?;
        match self.declared(slot) {
            Some(declared) => declared.text(text),
            None => Some(text),
        }
    }

    /// Leaves out a text that stands for a missing cell.
    fn unmarked<'t>(&self, text: Option<Cow<'t, str>>) -> Option<Cow<'t, str>> {
        text.filter(|text| !self.marks.has_text(text.trim().as_bytes()))
    }

    fn declared(&self, slot: usize) -> Option<&Declared> {
        self.declared.get(slot).copied().flatten()
    }

    /// Returns a text as a number, as the file writes numbers.
    pub(in crate::data) fn as_number(&self, text: &str) -> Option<f64> {
        self.marks.writing.number(text.as_bytes())
    }

    /// Returns a cell as a key: a text, or the digits of an integer that was requested as a name.
    pub(crate) fn key(&self, slot: usize) -> Option<Cow<'_, str>> {
        self.text(slot).or_else(|| self.name(slot).map(|name| self.marks.writing.text(name)))
    }

    /// Returns the bytes of a cell that was requested as a user's name.
    ///
    /// An integer is returned as its digits. Returns `None` if the cell is missing or blank.
    #[must_use]
    pub fn name(&self, slot: usize) -> Option<&[u8]> {
        let bytes = match &self.cells {
            Cells::Csv { record, readings } => {
                csv::bytes(record, readings.get(slot).filter(|r| r.usage == Use::Name)?.column)?
            }
            Cells::Columns { columns, index } => match columns.get(slot)? {
                Values::Names(names) => names.get(*index)?.as_ref()?.bytes(),
                Values::Numbers(_) | Values::Texts(_) => return None,
            },
        };
        // Marks are compared as letters, as everywhere: else records without a user would share one.
        let is_marked = |bytes: &[u8]| self.marks.has_text(self.marks.writing.text(bytes).trim().as_bytes());
        Some(bytes.trim_ascii()).filter(|bytes| !bytes.is_empty() && !is_marked(bytes))
    }
}
