//! The rows of a table that a predicate selects.

use std::collections::HashMap;

use crate::Error;
use crate::data::{
    Predicate, Row, Table, TableError,
    table::{
        header::{Kind, Reading, Use},
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
    /// The column of the users, and the most rows of each.
    limit: Option<(String, u32)>,
}

impl<'a> Selection<'a> {
    pub(in crate::data) fn new(table: &'a Table, filter: Filter) -> Self {
        Self { table, filter, limit: None }
    }

    /// Keeps at most this many of the selected rows of each user: the first ones in the file.
    ///
    /// Which rows of a user are kept depends on the rows of this user alone. Rows without a user are left out.
    ///
    /// ```
    /// use quell::data::Table;
    /// # let path = std::env::temp_dir().join(format!("quell-limit-{}.csv", std::process::id()));
    /// std::fs::write(&path, "user,spent\nada,3\nbob,9\nada,4\n,5\nada,5\n")?;
    /// let table = Table::open(&path)?;
    /// let limited = table.all().at_most_per_user("user", 2)?;
    /// assert_eq!(limited.numbers("spent")?, [Some(3.0), Some(9.0), Some(4.0)]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at_most_per_user(self, column: &str, rows: u32) -> Result<Self, Error> {
        if rows == 0 {
            return Err(Error::Setting {
                name: "the most records of a user",
                found: "0".into(),
                expected: "a positive number",
            });
        }
        self.table.header().reading(column, Use::Name)?;
        Ok(Self { limit: Some((column.to_owned(), rows)), ..self })
    }

    /// The declared type of a column, if there is one of this name.
    pub(crate) fn kind(&self, column: &str) -> Option<Kind> {
        let columns = &self.table.header().columns;
        columns.iter().find(|known| known.name == column).map(|column| column.kind)
    }

    /// Returns the most selected rows of a user, if they are limited.
    #[must_use]
    pub fn most_per_user(&self) -> Option<u32> {
        self.limit.as_ref().map(|(_, rows)| *rows)
    }

    /// Refuses a key that no row can have, because a schema excludes it.
    pub(crate) fn check_key(&self, column: &str, key: &str) -> Result<(), Error> {
        let header = self.table.header();
        let meant = header.key(column, key)?;
        match header.declared(header.find(column)?).filter(|_| meant != key) {
            Some(declared) => Err(declared.refuse(column, key).into()),
            None => Ok(()),
        }
    }

    /// Looks up the columns of a condition that divides the selected rows.
    pub(crate) fn filter(&self, predicate: &Predicate) -> Result<Filter, Error> {
        Ok(Filter::new(predicate, self.table.header())?)
    }

    /// The names and types of the cells that a filter reads.
    pub(crate) fn cells_of(&self, filter: &Filter) -> Vec<(&'a str, Use)> {
        let columns = &self.table.header().columns;
        let cell = |reading: &Reading| (columns[reading.column].name.as_str(), reading.usage);
        filter.readings.iter().map(cell).collect()
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
        let Some((column, most)) = &self.limit else {
            return self.table.scan(&readings, &mut |row| {
                if self.filter.takes(row, first) {
                    each(row);
                }
            });
        };
        let user = readings.len();
        readings.push(header.reading(column, Use::Name)?);
        let mut kept: HashMap<Box<[u8]>, u32> = HashMap::new();
        self.table.scan(&readings, &mut |row| {
            if let Some(name) = row.name(user)
                && self.filter.takes(row, first)
            {
                let rows = kept.entry(name.into()).or_default();
                if *rows < *most {
                    *rows += 1;
                    each(row);
                }
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
