//! Names and types of columns: what is public about a table.

use std::{collections::HashMap, fmt, path::Path};

use crate::Error;

/// What a column holds, by declaration of the file's schema and never by a look at its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers.
    Number,
    /// Text; dates and times are text too, written so that the order of the text is the order of time.
    Text,
    /// True or false: 1 or 0 as a number, `true` or `false` as text.
    Boolean,
    /// Nothing is declared, as everywhere in CSV: a column is what it is used as.
    Undeclared,
    /// Lists, intervals and other things that are neither a number nor a text.
    Unreadable,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "numbers",
            Self::Text => "text",
            Self::Boolean => "true or false",
            Self::Undeclared => "undeclared cells",
            Self::Unreadable => "a Parquet type that is neither a number nor text",
        })
    }
}

/// What a column is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Finite numbers; any other cell is missing.
    Number,
    /// Text.
    Text,
    /// What tells one user from another: the bytes of a text, or the digits of an integer.
    Name,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "numbers",
            Self::Text => "text",
            Self::Name => "integers or text that tell users apart",
        })
    }
}

/// A column's name and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; empty where the header has none, and then it cannot be asked for.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// One column read as one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) column: usize,
    pub(crate) usage: Use,
}

/// All columns of a table, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) columns: Vec<Column>,
}

impl Header {
    /// Two columns may both have no name, but not the same one.
    pub(crate) fn new(columns: Vec<Column>, path: &Path) -> Result<Self, Error> {
        let mut seen = HashMap::new();
        for (number, column) in (1..).zip(&columns).filter(|(_, column)| !column.name.is_empty()) {
            if let Some(first) = seen.insert(&column.name, number) {
                return Err(Error::DuplicateColumn { path: path.to_owned(), columns: [first, number] });
            }
        }
        Ok(Self { columns })
    }

    pub(crate) fn find(&self, name: &str) -> Result<usize, Error> {
        let position = self.columns.iter().position(|column| column.name == name && !name.is_empty());
        position.ok_or_else(|| Error::no_column(name, &self.columns))
    }

    /// A column read as numbers or text, if its kind permits.
    pub(crate) fn reading(&self, name: &str, usage: Use) -> Result<Reading, Error> {
        let column = self.find(name)?;
        let kind = self.columns[column].kind;
        match (kind, usage) {
            (Kind::Number, Use::Number | Use::Name)
            | (Kind::Text, Use::Text | Use::Name)
            | (Kind::Boolean | Kind::Undeclared, _) => Ok(Reading { column, usage }),
            _ => Err(Error::WrongUse { name: name.to_owned(), kind, usage, place: None }),
        }
    }

    /// A column read as what it is, to see whether something is there; text where nothing is declared.
    pub(crate) fn presence(&self, name: &str) -> Result<Reading, Error> {
        let column = self.find(name)?;
        let usage = if self.columns[column].kind == Kind::Number { Use::Number } else { Use::Text };
        self.reading(name, usage)
    }
}
