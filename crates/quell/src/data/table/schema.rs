//! A file of public facts about a table: bounds, categories, classes and the user column.
//!
//! ```toml
//! ignore = ["id"]
//! user = "person"
//!
//! [file]
//! missing = ["?"]
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

use serde::{Deserialize, Serialize};

use super::{
    feature::{Feature, FeatureKind, Label},
    layout::Layout,
    text::TextFeatures,
};
use crate::{Error, data::TableError, file, toml_error};

/// The most bytes of a schema, enough for more than a hundred thousand categories.
const LONGEST: u64 = 1 << 24;

/// The public facts about a table to learn from. Each column appears in it once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Columns that are not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The column that identifies users. If it is set, records without a user are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How the file is written, where that is not the usual way.
    #[serde(default, skip_serializing_if = "Layout::is_default")]
    pub file: Layout,
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
        self.file.check()?;
        self.label.as_ref().map_or(Ok(()), Label::check)?;
        self.columns.iter().try_for_each(Feature::check)?;
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
        for column in self.columns.iter().flat_map(Feature::plain) {
            match column.categories() {
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

    /// The same features as columns of numbers and categories only.
    ///
    /// Dates and texts become one column for each of their numbers. Learners see a table in this way. Records
    /// are read by the schema itself.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self { columns: self.columns.iter().flat_map(Feature::plain).collect(), ..self.clone() }
    }

    /// The same table without a label: the label is the last column, and unknown cells of all columns are marked.
    ///
    /// No record is left out for lack of a label. A date is its day alone.
    #[must_use]
    pub fn with_label_as_column(&self) -> Self {
        let label = self.label.clone().map(|Label { column, classes, bounds, aliases }| Feature {
            name: column,
            kind: match bounds {
                Some(bounds) => FeatureKind::Bounds(bounds),
                None => FeatureKind::Categories { names: classes.unwrap_or_default(), aliases },
            },
            unknown: true,
        });
        let columns = self.columns.iter().cloned().chain(label);
        let columns = columns.map(|mut column| {
            if let FeatureKind::Date(date) = &mut column.kind {
                date.parts.clear();
            }
            Feature { unknown: true, ..column }
        });
        let columns = columns.collect();
        Self { label: None, columns, ..self.clone() }
    }

    /// The text columns.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &TextFeatures> {
        self.columns.iter().filter_map(|column| match &column.kind {
            FeatureKind::Text(text) => Some(text),
            _ => None,
        })
    }

    /// Records what the public embeddings hold at their first use, and refuses other ones afterwards.
    pub(crate) fn pin(&mut self) -> Result<(), Error> {
        let mut texts = self.columns.iter_mut().filter_map(|column| match &mut column.kind {
            FeatureKind::Text(text) => Some(text),
            _ => None,
        });
        texts.try_for_each(TextFeatures::pin)
    }

    /// Converts a target in [-1, 1] back to the original scale.
    ///
    /// Returns `None` if the targets are classes, or if there are none.
    #[must_use]
    pub fn unscaled(&self, number: f32) -> Option<f64> {
        Some(unscaled(f64::from(number), self.label.as_ref()?.bounds?))
    }
}

/// Converts a number in [-1, 1] back to the scale of its bounds.
#[must_use]
pub fn unscaled(number: f64, [low, high]: [f64; 2]) -> f64 {
    low + (number * 0.5 + 0.5) * (high - low)
}

pub(super) fn wrong(because: impl Into<String>) -> Error {
    TableError::Schema { path: None, because: because.into() }.into()
}
