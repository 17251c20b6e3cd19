//! What is public about the records of a table, as a file: bounds, categories, classes, and who is who.
//!
//! ```toml
//! ignore = ["id"]
//! user = "person"
//!
//! [label]
//! column = "income"
//! classes = ["low", "high"]
//!
//! [test]
//! share = 0.2
//!
//! [[column]]
//! name = "age"
//! bounds = [18.0, 90.0]
//!
//! [[column]]
//! name = "work"
//! categories = ["private", "state", "none"]
//! unknown = true
//! ```
//!
//! Nothing in it may be read off private records for free: it is known from elsewhere, or was paid for.

use std::{
    collections::HashSet,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{Error, toml_error};

/// Longer than a schema with a hundred thousand categories.
const LONGEST: u64 = 1 << 24;

/// What is public about a table that is learned from. Every column of the table is in it once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Columns that are not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The column that tells people apart. Where it is, records without it are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What is to be learned.
    pub label: Label,
    /// What to test on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestPart>,
    /// What it is learned from, in this order.
    #[serde(default, rename = "column")]
    pub columns: Vec<Feature>,
}

/// The column to be learned: a class or a number. A record that has none of the classes, or no number, is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Its name.
    pub column: String,
    /// All classes there are, as they are written in the cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Where the numbers lie. They are clamped to it, and scaled to [-1, 1].
    #[serde(default, deserialize_with = "two", skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
}

/// A column to be learned from: a number or a category.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// Where the numbers lie. They are clamped to it, and scaled to [-1, 1]; one that is missing is in the middle, 0.
    #[serde(default, deserialize_with = "two", skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// All categories, as they are written in the cells: each is a feature that is 1 where the cell is it, otherwise 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
    /// Whether there is one feature more, which is 1 where the cell is missing, not a number or not among the categories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

/// What to test on: a share of the records, or another file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestPart {
    /// The probability of a record (or of a user, where there are users) to be tested on: see [`Split`](super::Split).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// A table with the same columns; the path is relative to the folder of the table that is trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Whether it may be looked at for free.
    #[serde(default)]
    pub public: bool,
}

impl Schema {
    /// Reads a schema from a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| Error::io(path, &error);
        let mut bytes = Vec::new();
        File::open(path).map_err(failed)?.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > LONGEST {
            return Err(Error::TooLarge { path: path.to_owned(), limit: LONGEST });
        }
        Self::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| match error {
            Error::Schema { because, .. } => Error::Schema { path: Some(path.to_owned()), because },
            error => error,
        })
    }

    /// Reads a schema from the text of a file.
    ///
    /// ```
    /// use quell::data::Schema;
    /// let text = "[label]\ncolumn = 'sick'\nclasses = ['no', 'yes']\n[[column]]\nname = 'age'\nbounds = [0, 120]\n";
    /// let schema = Schema::parse(text)?;
    /// assert_eq!(schema.features(), ["age"]);
    /// assert_eq!(Schema::parse(&schema.to_toml()?)?, schema);
    /// # Ok::<(), quell::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, Error> {
        let schema: Self = toml::from_str(text).map_err(|error| wrong(toml_error::describe(text, &error)))?;
        schema.check()?;
        Ok(schema)
    }

    /// The text of a file with this schema.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|error| wrong(error.to_string()))
    }

    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let names = self.ignore.iter().chain(&self.user).chain([&self.label.column]);
        for name in names.chain(self.columns.iter().map(|column| &column.name)) {
            if name.is_empty() || !seen.insert(name) {
                return Err(wrong(format!("column {name:?} is named twice or has no name, expected every column once")));
            }
        }
        if self.columns.is_empty() {
            return Err(wrong("there is no column to learn from, expected at least one [[column]]"));
        }
        check_values("label", self.label.bounds, self.label.classes.as_deref(), "classes")?;
        for column in &self.columns {
            check_values(&format!("column {:?}", column.name), column.bounds, column.categories.as_deref(), "categories")?;
        }
        match &self.test {
            Some(TestPart { share: Some(share), file: None, .. }) => super::Split { share: *share }.check(),
            Some(TestPart { share: None, file: Some(_), .. }) | None => Ok(()),
            Some(_) => Err(wrong("test has neither or both of share and file, expected one of them")),
        }
    }

    /// Names of the features of a record, in order: a column's name, followed by `=category` or `=?` where it has several.
    #[must_use]
    pub fn features(&self) -> Vec<String> {
        let mut names = Vec::new();
        for column in &self.columns {
            match &column.categories {
                Some(categories) => names.extend(categories.iter().map(|category| format!("{}={category}", column.name))),
                None => names.push(column.name.clone()),
            }
            if column.unknown {
                names.push(format!("{}=?", column.name));
            }
        }
        names
    }

    /// The number that a learned number in [-1, 1] means; none if classes are learned.
    #[must_use]
    pub fn unscaled(&self, number: f32) -> Option<f64> {
        let [low, high] = self.label.bounds?;
        Some(low + (f64::from(number) * 0.5 + 0.5) * (high - low))
    }
}

/// Bounds or a list, and neither empty.
fn check_values(of: &str, bounds: Option<[f64; 2]>, list: Option<&[String]>, lists: &str) -> Result<(), Error> {
    match (bounds, list) {
        (Some([low, high]), None) if low < high && (high - low).is_finite() => Ok(()),
        (Some([low, high]), None) => {
            Err(wrong(format!("{of} has bounds [{low}, {high}], expected two finite numbers, the lower first")))
        }
        (None, Some(list)) => {
            let mut seen = HashSet::new();
            if list.is_empty() || list.iter().any(|name| !seen.insert(name)) {
                return Err(wrong(format!("{of} has no {lists} or one twice, expected each once")));
            }
            Ok(())
        }
        _ => Err(wrong(format!("{of} has neither or both of bounds and {lists}, expected one of them"))),
    }
}

/// Exactly two numbers: serde's own arrays do not look whether more follow.
fn two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[f64; 2]>, D::Error> {
    let numbers = Vec::<f64>::deserialize(deserializer)?;
    let count = numbers.len();
    numbers.try_into().map(Some).map_err(|_| D::Error::invalid_length(count, &"two numbers"))
}

fn wrong(because: impl Into<String>) -> Error {
    Error::Schema { path: None, because: because.into() }
}
