//! Errors about columns, schemas and expressions.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::header::{Column, Kind, Use};
use crate::{Hint, error::quoted, hint::nearest};

/// Why a column, a schema or an expression does not fit a table.
///
/// A message depends on the names and the declared types of columns, the schema and the expression. No
/// message contains a value read from a record or the number of records, and no value of a record decides
/// whether there is a message. A message names a column if the caller asked for that name or nearly that
/// name. It names another column only once all requested columns were found: a file without a header has a
/// record in place of the names.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two columns have the same name.
    #[error("columns {} and {} of {} have the same name, expected every name once", columns[0], columns[1], path.display())]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// The numbers of the two columns, counted from 1.
        columns: [usize; 2],
    },
    /// There is no column of this name.
    #[error(
        "there is no column {}, expected one of the {columns} columns of {}{}",
        quoted(name),
        file.as_ref().map_or("the file".into(), |file| file.display().to_string()),
        shown(place.as_ref())
    )]
    NoColumn {
        /// The requested name.
        name: String,
        /// The file, if there are several that could lack the column.
        file: Option<PathBuf>,
        /// The number of columns.
        columns: usize,
        /// The most similar column name, if there is one.
        /// Other names are not shown: a file without a header has a record in their place.
        near: Option<String>,
        /// The place in the expression, if the name comes from an expression.
        place: Option<Place>,
    },
    /// The column is used as another kind than it is.
    #[error("column {} contains {kind}, expected {usage}{}", quoted(name), shown(place.as_ref()))]
    WrongUse {
        /// The name of the column.
        name: String,
        /// The kind of the column in the schema.
        kind: Kind,
        /// The requested use.
        usage: Use,
        /// The place in the expression, if the name comes from an expression.
        place: Option<Place>,
    },
    /// A condition or a key names a value that the schema excludes.
    #[error("column {} has no value {}, expected {expected}{}", quoted(name), quoted(found), shown(place.as_ref()))]
    Excluded {
        /// The name of the column.
        name: String,
        /// The value, as the condition or the list of keys has it.
        found: Box<str>,
        /// What the schema declares.
        expected: Box<str>,
        /// The most similar name that the schema declares, if there is one.
        near: Option<Box<str>>,
        /// The place in the expression, if the value comes from an expression.
        place: Option<Place>,
    },
    /// A condition asks which of two texts comes first.
    #[error(
        "column {} is compared with a text by < or >, expected a number without quotes, or a column that a schema declares as dates{}",
        quoted(name),
        shown(Some(place))
    )]
    TextOrder {
        /// The name of the column.
        name: String,
        /// The place in the expression.
        place: Place,
    },
    /// The column contains numbers that cannot identify users.
    #[error(
        "column {} contains floating-point or decimal numbers, expected integers or text that identify users",
        quoted(name)
    )]
    FractionsAsUsers {
        /// The name of the column.
        name: String,
    },
    /// The expression is malformed.
    #[error("the expression has {found} at character {}, expected {expected}{}", place.at + 1, shown(Some(place)))]
    Malformed {
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
        /// The place in the expression.
        place: Place,
    },
    /// The table has no schema.
    #[error("{} is a table without a schema, expected one that states the bounds and categories of its columns", path.display())]
    NoSchema {
        /// The table.
        path: PathBuf,
    },
    /// The schema names no label, and the learner needs one.
    #[error("the schema has no [label], expected the column that the model learns to predict")]
    NoLabel,
    /// The schema is invalid. The message describes the schema only, which is public.
    #[error("{} is invalid: {because}", path.as_ref().map_or("the schema".into(), |path| path.display().to_string()))]
    Schema {
        /// The file of the schema, if there is one.
        path: Option<PathBuf>,
        /// The reason.
        because: String,
    },
    /// Public records do not fit the schema. They are public, so the message may show a value.
    #[error("{found}, expected {expected}")]
    UnfitRecords {
        /// Which records of which file, and what is wrong.
        found: String,
        /// What the schema declares.
        expected: String,
    },
    /// The table has a column that the schema does not have.
    #[error("{} has a column {} that is not in the schema, expected every column of the table in the schema", path.display(), quoted(name))]
    Unmentioned {
        /// The table.
        path: PathBuf,
        /// The name that was found.
        name: String,
    },
}

impl Error {
    /// The error for a missing column.
    #[must_use]
    pub fn no_column(name: &str, columns: &[Column]) -> Self {
        let names = columns.iter().map(|column| column.name.as_str()).filter(|name| !name.is_empty());
        Self::NoColumn {
            name: name.to_owned(),
            file: None,
            columns: columns.len(),
            near: nearest(name, names).map(str::to_owned),
            place: None,
        }
    }

    /// Adds the file to the error, if it is about a missing column.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        if let Self::NoColumn { file, .. } = &mut self {
            *file = Some(path.to_owned());
        }
        self
    }

    /// Adds a place in an expression to the error.
    pub(super) fn at(mut self, here: &Place) -> Self {
        if let Self::NoColumn { place, .. } | Self::WrongUse { place, .. } | Self::Excluded { place, .. } =
            &mut self
        {
            *place = Some(here.clone());
        }
        self
    }

    /// What to try next.
    pub(crate) fn hint(&self) -> Hint {
        match self {
            Self::DuplicateColumn { .. } => Hint::NameColumns,
            Self::NoColumn { near: Some(near), .. } => Hint::DidYouMean { name: near.clone() },
            Self::Excluded { near: Some(near), .. } => Hint::DidYouMean { name: near.to_string() },
            Self::Excluded { near: None, .. } => Hint::AskAsDeclared,
            Self::TextOrder { .. } => Hint::Example {
                what: "a column of dates in a schema",
                text: "[[column]] name = \"admitted\" date = { from = \"2020-01-01\", to = \"2029-12-31\", order = \"day-month-year\" }",
            },
            Self::NoColumn { near: None, .. } => Hint::CheckColumnName,
            Self::WrongUse { kind, place: Some(_), .. } if *kind != Kind::Unreadable => {
                Hint::CompareWith { kind: *kind }
            }
            Self::WrongUse { usage, .. } => Hint::ExportColumn { usage: *usage },
            Self::FractionsAsUsers { .. } => Hint::ExportColumn { usage: Use::Name },
            Self::Malformed { .. } => Hint::Example {
                what: "an expression",
                text: "age >= 18 and (city in ('Bern', 'Basel') or not income is missing)",
            },
            Self::NoSchema { path } => Hint::WriteSchema { path: path.clone() },
            Self::NoLabel => Hint::Example {
                what: "a label",
                text: "[label] column = \"income\" classes = [\"low\", \"high\"]",
            },
            Self::Schema { because, .. } => schema_example(because),
            Self::UnfitRecords { .. } => Hint::MatchSchema,
            Self::Unmentioned { name, .. } => Hint::DeclareColumn { name: name.clone() },
        }
    }

    /// The lines below the message that show the place of the error, if any.
    pub(crate) fn picture(&self) -> Option<String> {
        match self {
            Self::NoColumn { place, .. } | Self::WrongUse { place, .. } | Self::Excluded { place, .. } => {
                place.as_ref().map(ToString::to_string)
            }
            Self::Malformed { place, .. } | Self::TextOrder { place, .. } => Some(place.to_string()),
            // The parser puts no line break before these lines.
            Self::Schema { because, .. } => because.split_once('\n').map(|(_, picture)| picture.to_owned()),
            _ => None,
        }
    }
}

/// The example that fits an error of a schema.
fn schema_example(because: &str) -> Hint {
    let has = |word: &str| because.contains(word);
    let (what, text) = if has("label") {
        ("a label", "[label] column = \"income\" classes = [\"low\", \"high\"]")
    } else if has("alias") {
        (
            "a column with aliases",
            "[[column]] name = \"sex\" categories = [\"f\", \"m\"] aliases = { female = \"f\" }",
        )
    } else if has("date") || has("a day is") {
        (
            "a column of dates",
            "[[column]] name = \"born\" date = { from = \"1930-01-01\", to = \"2010-12-31\" }",
        )
    } else if has("delimiter") || has("header") || has("quotes") {
        ("the layout of a file", "[file] delimiter = \";\" missing = [\"n/a\"]")
    } else if has("test") || has("share") {
        ("a test part", "[test] share = 0.2")
    } else {
        ("a column", "[[column]] name = \"age\" bounds = [18, 90]")
    };
    Hint::Example { what, text }
}

/// A character of an expression, displayed by a caret below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The whole expression.
    pub expression: String,
    /// The number of characters before it.
    pub at: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line: String = self.expression.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "  {line}\n  {}^", " ".repeat(self.at))
    }
}

fn shown(place: Option<&Place>) -> String {
    place.map(|place| format!("\n{place}")).unwrap_or_default()
}
