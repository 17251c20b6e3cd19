//! One record, for as long as it is looked at.

use std::borrow::Cow;

use super::{
    csv,
    header::{Reading, Use},
    parquet::{Text, Values},
};

/// The cells of one record that were asked for, numbered in the order they were asked for. A cell is parsed when it is
/// looked at. It has no `Debug`, so that it is not printed by accident.
pub struct Row<'a>(pub(super) Cells<'a>);

/// Where the cells are.
pub(super) enum Cells<'a> {
    Csv {
        record: &'a csv::Record,
        readings: &'a [Reading],
    },
    /// One of a batch of rows, by its index in every column.
    Parquet {
        columns: &'a [Values],
        index: usize,
    },
}

impl Row<'_> {
    /// Whether there is a cell, if perhaps an empty one: short rows of CSV have fewer than others.
    #[must_use]
    pub fn has(&self, slot: usize) -> bool {
        match &self.0 {
            Cells::Csv { record, readings } => readings.get(slot).is_some_and(|reading| reading.column < record.len()),
            Cells::Parquet { columns, .. } => slot < columns.len(),
        }
    }

    /// A cell that was asked for as a number; none if it is missing or not a finite number.
    #[must_use]
    pub fn number(&self, slot: usize) -> Option<f64> {
        match &self.0 {
            Cells::Csv { record, readings } => csv::number(record, readings.get(slot).filter(|r| r.usage == Use::Number)?.column),
            Cells::Parquet { columns, index } => match columns.get(slot)? {
                Values::Numbers(numbers) => *numbers.get(*index)?,
                Values::Texts(_) | Values::Names(_) => None,
            },
        }
    }

    /// A cell that was asked for as text; none if it is missing.
    #[must_use]
    pub fn text(&self, slot: usize) -> Option<Cow<'_, str>> {
        match &self.0 {
            Cells::Csv { record, readings } => csv::text(record, readings.get(slot).filter(|r| r.usage == Use::Text)?.column),
            Cells::Parquet { columns, index } => match columns.get(slot)? {
                Values::Texts(texts) => texts.get(*index)?.as_ref().map(Text::show),
                Values::Numbers(_) | Values::Names(_) => None,
            },
        }
    }

    /// The bytes of a cell that was asked for as a user's name, an integer as its digits; none if it is missing or blank.
    #[must_use]
    pub fn name(&self, slot: usize) -> Option<&[u8]> {
        let bytes = match &self.0 {
            Cells::Csv { record, readings } => csv::bytes(record, readings.get(slot).filter(|r| r.usage == Use::Name)?.column)?,
            Cells::Parquet { columns, index } => match columns.get(slot)? {
                Values::Names(names) => names.get(*index)?.as_ref()?.bytes(),
                Values::Numbers(_) | Values::Texts(_) => return None,
            },
        };
        (!bytes.trim_ascii().is_empty()).then_some(bytes)
    }
}
