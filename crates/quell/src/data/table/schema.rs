//! A file of public facts about a table: bounds, categories, classes and the user column.
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
//! Nothing in a schema may be read from private records for free: it is known from another source, or was
//! paid for.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{Error, data::TableError, file, toml_error};

/// The most bytes of a schema, enough for more than a hundred thousand categories.
const LONGEST: u64 = 1 << 24;

/// The public facts about a table to learn from. Each column appears in it once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Columns that are not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The column that identifies users. If it is set, records without a user are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The column to learn. Models without labels, such as clusters, need none and do not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// The records to test on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestPart>,
    /// The columns to learn from, in this order.
    #[serde(default, rename = "column")]
    pub columns: Vec<Feature>,
}

/// The column to learn: a class or a number.
///
/// A record that has none of the classes, or no number, is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The name of the column.
    pub column: String,
    /// All classes, as they are written in the cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// The bounds of the numbers. Numbers are clamped to the bounds and scaled to [-1, 1].
    #[serde(default, deserialize_with = "two", skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
}

/// A column to learn from: a number or a category.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// The name of the column.
    pub name: String,
    /// The bounds of the numbers. Numbers are clamped to the bounds and scaled to [-1, 1].
    ///
    /// A missing number is 0, the middle.
    #[serde(default, deserialize_with = "two", skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// All categories, as they are written in the cells.
    ///
    /// Each category is a feature, which is 1 if the cell holds that category and 0 otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
    /// Whether to add a feature for unknown cells.
    ///
    /// The feature is 1 if the cell is missing, not a number or not among the categories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

/// The records to test on: a share of the records, or another file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestPart {
    /// The probability that a record is in the test part: see [`Split`](crate::data::Split).
    ///
    /// Where there are users, it is the probability of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// A table with the same columns.
    ///
    /// The path is relative to the folder of the training table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Whether the test part is public.
    #[serde(default)]
    pub public: bool,
}

impl Schema {
    /// Reads a schema from a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let bytes = file::read(path, LONGEST)?;
        Self::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| match error {
            Error::Table(TableError::Schema { because, .. }) => {
                TableError::Schema { path: Some(path.to_owned()), because }.into()
            }
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

    /// Writes the schema as the text of a file.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|error| wrong(error.to_string()))
    }

    /// Refuses a schema that contradicts itself.
    pub fn check(&self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let names = self.ignore.iter().chain(&self.user).chain(self.label.iter().map(|label| &label.column));
        for name in names.chain(self.columns.iter().map(|column| &column.name)) {
            if name.is_empty() || !seen.insert(name) {
                return Err(wrong(format!(
                    "column {name:?} is named twice or has no name, expected every column once"
                )));
            }
        }
        if self.columns.is_empty() {
            return Err(wrong("there is no column to learn from, expected at least one [[column]]"));
        }
        if let Some(label) = &self.label {
            check_values("label", label.bounds, label.classes.as_deref(), "classes")?;
        }
        for column in &self.columns {
            check_values(
                &format!("column {:?}", column.name),
                column.bounds,
                column.categories.as_deref(),
                "categories",
            )?;
        }
        match &self.test {
            Some(TestPart { share: Some(share), file: None, .. }) => {
                crate::data::Split { share: *share }.check()
            }
            Some(TestPart { share: None, file: Some(_), .. }) | None => Ok(()),
            Some(_) => Err(wrong("test has neither or both of share and file, expected one of them")),
        }
    }

    /// Returns the names of the features of a record, in order.
    ///
    /// A name is that of the column, followed by `=category` or `=?` if the column has several features.
    #[must_use]
    pub fn features(&self) -> Vec<String> {
        let mut names = Vec::new();
        for column in &self.columns {
            match &column.categories {
                Some(categories) => {
                    names.extend(categories.iter().map(|category| format!("{}={category}", column.name)));
                }
                None => names.push(column.name.clone()),
            }
            if column.unknown {
                names.push(format!("{}=?", column.name));
            }
        }
        names
    }

    /// The same table without a label: the label is the last column, and unknown cells of all columns are marked.
    ///
    /// No record is left out for lack of a label.
    #[must_use]
    pub fn with_label_as_column(&self) -> Self {
        let label = self.label.clone().map(|Label { column, classes, bounds }| Feature {
            name: column,
            bounds,
            categories: classes,
            unknown: true,
        });
        let columns = self.columns.iter().cloned().chain(label);
        let columns = columns.map(|column| Feature { unknown: true, ..column }).collect();
        Self { label: None, columns, ..self.clone() }
    }

    /// Converts a target in [-1, 1] back to the original scale.
    ///
    /// Returns `None` if the targets are classes, or if there are none.
    #[must_use]
    pub fn unscaled(&self, number: f32) -> Option<f64> {
        let [low, high] = self.label.as_ref()?.bounds?;
        Some(low + (f64::from(number) * 0.5 + 0.5) * (high - low))
    }
}

/// Checks that a column has either bounds or a list, and that neither is empty.
fn check_values(
    of: &str,
    bounds: Option<[f64; 2]>,
    list: Option<&[String]>,
    lists: &str,
) -> Result<(), Error> {
    match (bounds, list) {
        (Some([low, high]), None) if low < high && (high - low).is_finite() => Ok(()),
        (Some([low, high]), None) => Err(wrong(format!(
            "{of} has bounds [{low}, {high}], expected two finite numbers, the lower first"
        ))),
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

/// Reads exactly two numbers. The arrays of serde do not check whether more follow.
fn two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[f64; 2]>, D::Error> {
    let numbers = Vec::<f64>::deserialize(deserializer)?;
    let count = numbers.len();
    numbers.try_into().map(Some).map_err(|_| D::Error::invalid_length(count, &"two numbers"))
}

fn wrong(because: impl Into<String>) -> Error {
    TableError::Schema { path: None, because: because.into() }.into()
}
