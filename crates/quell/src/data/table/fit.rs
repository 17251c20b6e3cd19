//! Finds the cells of a table that are not what a schema declares.
//!
//! The result depends on the records, so it is for records that are public, or that belong to the person who
//! asks: test records that everyone may see, and records to predict.

use std::path::Path;

use crate::data::{FeatureKind, Row, Schema, Table, Use, table::encoder::Part};
use crate::{Error, error::quoted};

/// A cell that is not what the schema declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The number of the record, counted from 1.
    pub record: usize,
    /// The column.
    pub column: String,
    /// What is wrong.
    pub kind: MisfitKind,
    /// The text of the cell, if there is one.
    pub text: Option<String>,
    /// Whether the schema declares that the column has such values, with `unknown = true`.
    pub is_declared: bool,
}

impl std::fmt::Display for Misfit {
    /// What is wrong, with the value: for public records only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.text {
            Some(text) => write!(f, "{}, such as {}", self.kind, quoted(text)),
            None => self.kind.fmt(f),
        }
    }
}

/// Why a cell does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MisfitKind {
    /// The row ends before the cell.
    NoCell,
    /// The cell is no number.
    NoNumber,
    /// The cell is none of the categories.
    NoCategory,
    /// The cell is neither true nor false.
    NoTruth,
    /// The cell is no date.
    NoDate,
    /// The label is missing or none of the classes.
    NoClass,
    /// The label is missing or no number.
    NoTarget,
}

impl std::fmt::Display for MisfitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoCell => "is missing, because the row is short",
            Self::NoNumber | Self::NoTarget => "is no number",
            Self::NoCategory => "is none of the categories",
            Self::NoTruth => "is neither true nor false",
            Self::NoDate => "is no date",
            Self::NoClass => "is none of the classes",
        })
    }
}

/// The records of a table, compared with a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// The number of records.
    pub records: usize,
    /// All cells that do not fit, in the order of the records.
    pub misfits: Vec<Misfit>,
    /// The records with more cells than the table has columns, counted from 1.
    pub long: Vec<usize>,
}

/// A column, and what is wrong with cells that are not what it declares.
struct Expected<'a> {
    part: Part<'a>,
    misfit: MisfitKind,
    is_label: bool,
    is_declared: bool,
    /// How the cell is read to see whether there is one.
    presence: Use,
    /// The place of that reading.
    presence_slot: usize,
}

impl Expected<'_> {
    /// What is wrong with a cell, and its text. Records are encoded by the same part.
    fn misfit(&self, row: &Row<'_>, slot: usize) -> Option<(MisfitKind, Option<String>)> {
        if !row.has(slot) && !self.is_label {
            return Some((MisfitKind::NoCell, None));
        }
        if self.part.fits(row, slot) {
            return None;
        }
        let text = match self.presence {
            Use::Number => row.number(self.presence_slot).map(|number| number.to_string()),
            Use::Text | Use::Name => row.text(self.presence_slot).map(|text| text.trim().to_owned()),
        };
        // A number that stands for a missing one may be written in several ways.
        let is_number = |text: &String| row.as_number(text).is_some();
        let is_missing = text.as_ref().is_none_or(|text| {
            text.is_empty()
                || (self.part.reading().1 == Use::Number && self.presence == Use::Text && is_number(text))
        });
        // A missing cell has a meaning in a column to learn from, and none as a label.
        (self.is_label || !is_missing).then_some((self.misfit, text))
    }
}

impl Fit {
    /// Compares all records of a table with a schema; the label too, if it is needed.
    ///
    /// ```
    /// use quell::data::{Fit, Schema};
    /// # let path = std::env::temp_dir().join(format!("quell-fit-{}.csv", std::process::id()));
    /// std::fs::write(&path, "age,sick\n36,yes\nabc,no\n17,yes.\n")?;
    /// let schema = Schema::parse("[label]\ncolumn = 'sick'\nclasses = ['no', 'yes']\n[[column]]\nname = 'age'\nbounds = [0, 99]\n")?;
    /// let fit = Fit::new(&path, &schema, true)?;
    /// let found: Vec<_> = fit.misfits.iter().map(|misfit| (misfit.record, misfit.column.as_str())).collect();
    /// assert_eq!(found, [(2, "age"), (3, "sick")]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(path: impl AsRef<Path>, schema: &Schema, needs_label: bool) -> Result<Self, Error> {
        Self::of_table(&Table::open_as(path, &schema.file)?, schema, needs_label)
    }

    /// Compares all records of an open table with a schema, like [`Fit::new`].
    pub fn of_table(table: &Table, schema: &Schema, needs_label: bool) -> Result<Self, Error> {
        let columns = schema.columns.iter().map(|column| {
            let misfit = match column.kind {
                FeatureKind::Bounds(_) => MisfitKind::NoNumber,
                FeatureKind::Categories { .. } => MisfitKind::NoCategory,
                FeatureKind::Boolean => MisfitKind::NoTruth,
                FeatureKind::Date(_) => MisfitKind::NoDate,
                // Any cell is a text, if there is one.
                FeatureKind::Text(_) => MisfitKind::NoCell,
            };
            Ok((Part::of_column(table, column)?, misfit, column.unknown))
        });
        let label = schema.label.iter().filter(|_| needs_label).map(|label| {
            let misfit = if label.bounds.is_some() { MisfitKind::NoTarget } else { MisfitKind::NoClass };
            Ok((Part::of_label(table, label)?, misfit, false))
        });
        let parts = columns.chain(label).collect::<Result<Vec<_>, Error>>()?;
        let mut readings: Vec<(&str, Use)> = parts.iter().map(|(part, ..)| part.reading()).collect();
        let mut expected = Vec::new();
        for (slot, (part, misfit, is_declared)) in parts.into_iter().enumerate() {
            let (name, usage) = part.reading();
            let presence = table.header().presence(name)?.usage;
            // A cell that is no number is seen as text.
            let presence_slot = if presence == usage { slot } else { readings.len() };
            if presence != usage {
                readings.push((name, presence));
            }
            let is_label = matches!(misfit, MisfitKind::NoClass | MisfitKind::NoTarget);
            expected.push(Expected { part, misfit, is_label, is_declared, presence, presence_slot });
        }
        let mut fit = Self::default();
        table.all().scan(&readings, |row| {
            fit.records += 1;
            if row.has_more_than(table.columns().len()) {
                fit.long.push(fit.records);
            }
            for (slot, column) in expected.iter().enumerate() {
                if let Some((kind, text)) = column.misfit(row, slot) {
                    fit.misfits.push(Misfit {
                        record: fit.records,
                        column: column.part.reading().0.to_owned(),
                        kind,
                        text,
                        // A short row is a damaged one, whatever the schema says.
                        is_declared: column.is_declared && kind != MisfitKind::NoCell,
                    });
                }
            }
        })?;
        Ok(fit)
    }

    /// The misfits of each column: how many, and the first.
    #[must_use]
    pub fn by_column(&self) -> Vec<(usize, &Misfit)> {
        let mut columns: Vec<(usize, &Misfit)> = Vec::new();
        for misfit in &self.misfits {
            match columns
                .iter_mut()
                .find(|(_, known)| known.column == misfit.column && known.kind == misfit.kind)
            {
                Some((count, _)) => *count += 1,
                None => columns.push((1, misfit)),
            }
        }
        columns
    }
}
