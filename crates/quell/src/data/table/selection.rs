//! The rows of a table that a predicate selects.

use crate::Error;
use crate::data::{
    Row, Table, TableError,
    table::{
        header::{Kind, Use},
        predicate::Filter,
    },
};

/// The rows of a table that a predicate selects, in the order of the file.
///
/// Creating a selection reads nothing. Each question below reads the file once, and only the columns that the
/// question and the predicate name.
///
/// The returned values are private.
#[derive(Debug)]
pub struct Selection<'a> {
    table: &'a Table,
    filter: Filter,
}

impl<'a> Selection<'a> {
    pub(in crate::data) fn new(table: &'a Table, filter: Filter) -> Self {
        Self { table, filter }
    }

    /// Returns the number of selected rows.
    pub fn count(&self) -> Result<u64, Error> {
        let mut rows = 0;
        self.scan(&[], |_| rows += 1)?;
        Ok(rows)
    }

    /// Returns a column as numbers.
    ///
    /// A cell that is empty or not a finite number is missing.
    pub fn numbers(&self, column: &str) -> Result<Vec<Option<f64>>, Error> {
        let mut numbers = Vec::new();
        self.scan(&[(column, Use::Number)], |row| numbers.push(row.number(0)))?;
        Ok(numbers)
    }

    /// Returns a column as text.
    pub fn texts(&self, column: &str) -> Result<Vec<Option<String>>, Error> {
        let mut texts = Vec::new();
        self.scan(&[(column, Use::Text)], |row| texts.push(row.text(0).map(std::borrow::Cow::into_owned)))?;
        Ok(texts)
    }

    /// Returns a column as keys: text, or the digits of integers of a declared type.
    pub fn keys(&self, column: &str) -> Result<Vec<Option<String>>, Error> {
        let mut keys = Vec::new();
        let scanned = self.scan(&[(column, self.use_of_keys(column))], |row| {
            keys.push(row.key(0).map(std::borrow::Cow::into_owned));
        });
        scanned.map_err(fractions_as_keys)?;
        Ok(keys)
    }

    /// How a column is read for its keys: by its declared type.
    pub(crate) fn use_of_keys(&self, column: &str) -> Use {
        let header = self.table.header();
        let kind = header.find(column).ok().map(|place| header.columns[place].kind);
        if kind == Some(Kind::Number) { Use::Name } else { Use::Text }
    }

    /// Visits several columns of every row together.
    ///
    /// The cell of `columns[i]` is `row.number(i)`, `row.text(i)` or `row.name(i)`, by its use.
    ///
    /// ```
    /// use quell::data::{Table, Use};
    /// # let path = std::env::temp_dir().join(format!("quell-scan-{}.csv", std::process::id()));
    /// std::fs::write(&path, "user,spent\nada,3\nbob,x\nada,4\n")?;
    /// let mut sum = 0.0;
    /// Table::open(&path)?.all().scan(&[("user", Use::Text), ("spent", Use::Number)], |row| {
    ///     if row.text(0).as_deref() == Some("ada") {
    ///         sum += row.number(1).unwrap_or(0.0);
    ///     }
    /// })?;
    /// assert_eq!(sum, 7.0);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan(&self, columns: &[(&str, Use)], mut each: impl FnMut(&Row<'_>)) -> Result<(), Error> {
        let header = self.table.header();
        let mut readings = columns
            .iter()
            .map(|(name, usage)| header.reading(name, *usage))
            .collect::<Result<Vec<_>, _>>()?;
        // The cells of the filter come after the requested cells.
        let first = readings.len();
        readings.extend(&self.filter.readings);
        self.table.scan(&readings, &mut |row| {
            if self.filter.takes(row, first) {
                each(row);
            }
        })
    }
}

/// The error for fractions that are read as keys: fractions can be written in several ways.
pub(crate) fn fractions_as_keys(error: Error) -> Error {
    match error {
        Error::Table(TableError::FractionsAsUsers { name }) => {
            TableError::WrongUse { name, kind: Kind::Number, usage: Use::Text, place: None }.into()
        }
        error => error,
    }
}
