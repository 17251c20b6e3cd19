//! Names and types of columns: the public facts about a table.

use std::{collections::HashMap, fmt, path::Path};

use super::{declared::Declared, error::Error, schema::Schema};

/// The declared type of a column.
///
/// The file's schema declares it. It is never inferred from the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers.
    Number,
    /// Text. Dates and times are text too, written so that text order is chronological order.
    Text,
    /// True or false: 1 or 0 as a number, `true` or `false` as text.
    Boolean,
    /// No declared type, as in every CSV file: the column is read as the caller asks.
    Undeclared,
    /// Lists, intervals and other values that are neither a number nor a text.
    Unreadable,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "numbers",
            Self::Text => "text",
            Self::Boolean => "true or false",
            Self::Undeclared => "undeclared cells",
            Self::Unreadable => "a type that is neither a number nor text",
        })
    }
}

/// The type that a column is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Finite numbers. Any other cell is missing.
    Number,
    /// Text.
    Text,
    /// The bytes that identify a user: those of a text, or the digits of an integer.
    Name,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "numbers",
            Self::Text => "text",
            Self::Name => "integers or text that identify users",
        })
    }
}

/// The name and the type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name. A column whose name is empty in the header cannot be read.
    pub name: String,
    /// The declared type.
    pub kind: Kind,
}

/// A column and the type that it is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) column: usize,
    pub(crate) usage: Use,
}

/// All columns of a table, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) columns: Vec<Column>,
    /// What a schema declares about some columns, by their places.
    declared: HashMap<usize, Declared>,
}

impl Header {
    /// Creates a header. Two columns may both have an empty name, but not the same other name.
    pub(crate) fn new(columns: Vec<Column>, path: &Path) -> Result<Self, Error> {
        let mut seen = HashMap::new();
        for (number, column) in (1..).zip(&columns).filter(|(_, column)| !column.name.is_empty()) {
            if let Some(first) = seen.insert(&column.name, number) {
                return Err(Error::DuplicateColumn { path: path.to_owned(), columns: [first, number] });
            }
        }
        Ok(Self { columns, declared: HashMap::new() })
    }

    /// Adds what a schema declares. Types that the file declares remain.
    pub(super) fn declare(&mut self, schema: &Schema) {
        for (place, column) in self.columns.iter_mut().enumerate() {
            let Some(declared) = Declared::of(schema, &column.name) else { continue };
            if column.kind == Kind::Undeclared {
                column.kind = match &declared {
                    Declared::Numbers => Kind::Number,
                    Declared::Truth => Kind::Boolean,
                    // Categories that are numbers can be read as both.
                    Declared::Names { .. } if declared.may_be_numbers() => Kind::Undeclared,
                    Declared::Names { .. } | Declared::Date(_) | Declared::Text => Kind::Text,
                };
            }
            self.declared.insert(place, declared);
        }
    }

    /// What a schema declares about the column at this place.
    pub(in crate::data) fn declared(&self, place: usize) -> Option<&Declared> {
        self.declared.get(&place)
    }

    /// The text that a key of a column means, where a schema declares the column.
    pub(in crate::data) fn key(&self, column: &str, text: &str) -> Result<String, Error> {
        match self.declared(self.find(column)?) {
            Some(declared) => declared.meant(text).ok_or_else(|| declared.refuse(column, text)),
            None => Ok(text.to_owned()),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<usize, Error> {
        let position = self.columns.iter().position(|column| column.name == name && !name.is_empty());
        position.ok_or_else(|| Error::no_column(name, &self.columns))
    }

    /// Looks up a column to read as the given type, if its declared type permits.
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

    /// Looks up a column to test whether its cells are missing.
    ///
    /// The column is read as its declared type, or as text without a declaration.
    pub(crate) fn presence(&self, name: &str) -> Result<Reading, Error> {
        let column = self.find(name)?;
        let usage = if self.columns[column].kind == Kind::Number { Use::Number } else { Use::Text };
        self.reading(name, usage)
    }
}
