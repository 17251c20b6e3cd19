//! Finds the cells of a table that are not what a schema declares.
//!
//! The result depends on the records, so it is for records that are public, or that belong to the person who
//! asks: test records that everyone may see, and records to predict.

use std::{collections::BTreeMap, path::Path};

use crate::data::{DateRange, Feature, Kind, Row, Schema, Table, Use, table::feature::TRUTHS};
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

/// What a cell must be.
struct Expected<'a> {
    name: &'a str,
    /// The categories or classes; `None` for numbers.
    names: Option<&'a [String]>,
    /// Other ways to write them.
    aliases: &'a BTreeMap<String, String>,
    /// The column, unless it is the label.
    column: Option<&'a Feature>,
    /// Whether the file declares that the column has numbers.
    is_number: bool,
    is_label: bool,
    is_declared: bool,
}

impl Expected<'_> {
    /// Whether the column has neither bounds nor categories.
    fn is_other_kind(&self) -> bool {
        self.column.is_some_and(|column| column.bounds.is_none() && column.categories.is_none())
    }

    /// Whether a cell is true or false, a date or a text, as the column declares. Any text is a text.
    fn has_other_kind(&self, text: &str) -> bool {
        let Some(column) = self.column else { return false };
        let is_truth = || TRUTHS.iter().flatten().any(|word| text.eq_ignore_ascii_case(word));
        let is_date = |date: &DateRange| date.order.day(text).is_some();
        column.text.is_some() || column.date.as_ref().is_some_and(is_date) || (column.boolean && is_truth())
    }

    fn misfit(&self, row: &Row<'_>, slot: usize) -> Option<(MisfitKind, Option<String>)> {
        if !row.has(slot) && !self.is_label {
            return Some((MisfitKind::NoCell, None));
        }
        let number = if self.is_number { row.number(slot) } else { None };
        let text = if self.is_number {
            number.map(|number| number.to_string())
        } else {
            row.text(slot).map(Into::into)
        };
        let text = text.map(|text: String| text.trim().to_owned()).filter(|text| !text.is_empty());
        let fits = match (&text, self.names) {
            (Some(text), _) if self.is_other_kind() => self.has_other_kind(text),
            (Some(text), Some(_)) if self.aliases.keys().any(|alias| alias.trim() == text) => true,
            // A missing cell has a meaning in a column to learn from, and none as a label.
            (None, _) => !self.is_label,
            (Some(text), None) => self.is_number || row.as_number(text).is_some(),
            (Some(text), Some(names)) => names.iter().any(|name| {
                name.trim() == text || (self.is_number && name.trim().parse::<f64>().ok() == number)
            }),
        };
        let kind = match (self.is_label, self.names.is_some()) {
            _ if self.is_other_kind() => MisfitKind::NoCategory,
            (false, false) => MisfitKind::NoNumber,
            (false, true) => MisfitKind::NoCategory,
            (true, false) => MisfitKind::NoTarget,
            (true, true) => MisfitKind::NoClass,
        };
        (!fits).then_some((kind, text))
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
        let table = Table::open_as(path, &schema.file)?;
        let is_number =
            |name: &str| table.columns().iter().any(|one| one.name == name && one.kind == Kind::Number);
        let label = schema.label.iter().filter(|_| needs_label).map(|label| Expected {
            name: &label.column,
            names: label.classes.as_deref(),
            aliases: &label.aliases,
            column: None,
            is_number: is_number(&label.column),
            is_label: true,
            is_declared: false,
        });
        let columns = schema.columns.iter().map(|column| Expected {
            name: &column.name,
            names: column.categories.as_deref(),
            aliases: &column.aliases,
            column: Some(column),
            is_number: is_number(&column.name),
            is_label: false,
            is_declared: column.unknown,
        });
        let expected: Vec<Expected<'_>> = columns.chain(label).collect();
        let usage = |column: &Expected<'_>| if column.is_number { Use::Number } else { Use::Text };
        let readings: Vec<(&str, Use)> = expected.iter().map(|column| (column.name, usage(column))).collect();
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
                        column: column.name.to_owned(),
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
