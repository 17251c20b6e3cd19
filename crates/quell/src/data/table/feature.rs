//! The columns of a schema: the one to learn, and those to learn from.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{date::DateRange, schema::wrong, text::TextFeatures};
use crate::Error;

/// The column to learn: a class or a number.
///
/// A record that has none of the classes, or no number, is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Other ways to write a class: the text of a cell, and the class that it means.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
}

/// A column to learn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Feature {
    /// The name of the column.
    pub name: String,
    /// What the cells are, and the features that they become.
    pub kind: FeatureKind,
    /// Whether to add a feature for unknown cells.
    ///
    /// The feature is 1 if the cell is missing, or is not what `kind` says.
    pub unknown: bool,
}

/// What the cells of a column are.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureKind {
    /// Numbers, which are clamped to these bounds and scaled to [-1, 1].
    ///
    /// A missing number is 0, the middle.
    Bounds([f64; 2]),
    /// Texts that are categories.
    ///
    /// Each category is a feature, which is 1 if the cell holds that category and 0 otherwise.
    Categories {
        /// All categories, as they are written in the cells.
        names: Vec<String>,
        /// Other ways to write a category: the text of a cell, and the category that it means.
        aliases: BTreeMap<String, String>,
    },
    /// True or false, which become two categories.
    ///
    /// True is written true, yes, t, y, on or 1, and false is written false, no, f, n, off or 0, in small or
    /// capital letters.
    Boolean,
    /// Dates of a range.
    Date(DateRange),
    /// Texts, whose words become numbers.
    Text(TextFeatures),
}

/// A column as files have it: exactly one of the kinds is given.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename = "column", deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default, deserialize_with = "two", skip_serializing_if = "Option::is_none")]
    bounds: Option<[f64; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    categories: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    boolean: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unknown: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    aliases: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    date: Option<DateRange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<TextFeatures>,
}

impl TryFrom<Written> for Feature {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { name, bounds, categories, boolean, unknown, aliases, date, text } = written;
        if categories.is_none() && !aliases.is_empty() {
            return Err("a column has aliases and no categories, expected the categories that they mean");
        }
        let categories = categories.map(|names| FeatureKind::Categories { names, aliases });
        let given = [
            bounds.map(FeatureKind::Bounds),
            categories,
            boolean.then_some(FeatureKind::Boolean),
            date.map(FeatureKind::Date),
            text.map(FeatureKind::Text),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(kind), None) => Ok(Self { name, kind, unknown }),
            // The names of the file stay out of a message on its form.
            (None, _) => {
                Err("a column has none of bounds, categories, boolean, date and text, expected one of them")
            }
            (Some(_), Some(_)) => Err(
                "a column has several of bounds, categories, boolean, date and text, expected one of them",
            ),
        }
    }
}

impl From<Feature> for Written {
    fn from(Feature { name, kind, unknown }: Feature) -> Self {
        let written = Self { name, unknown, ..Self::default() };
        match kind {
            FeatureKind::Bounds(bounds) => Self { bounds: Some(bounds), ..written },
            FeatureKind::Categories { names, aliases } => {
                Self { categories: Some(names), aliases, ..written }
            }
            FeatureKind::Boolean => Self { boolean: true, ..written },
            FeatureKind::Date(date) => Self { date: Some(date), ..written },
            FeatureKind::Text(text) => Self { text: Some(text), ..written },
        }
    }
}

/// Ways to write false and true, in lower case.
pub(crate) const TRUTHS: [[&str; 6]; 2] =
    [["false", "no", "f", "n", "off", "0"], ["true", "yes", "t", "y", "on", "1"]];

impl Label {
    pub(super) fn check(&self) -> Result<(), Error> {
        match (self.bounds, self.classes.as_deref()) {
            (Some(bounds), None) => check_bounds("label", bounds)?,
            (None, Some(classes)) => check_list("label", classes, "classes")?,
            _ => return Err(wrong("label has neither or both of bounds and classes, expected one of them")),
        }
        check_aliases("label", &self.aliases, self.classes.as_deref().unwrap_or_default(), "classes")
    }
}

impl Feature {
    /// A column of numbers, without a feature for unknown cells.
    pub fn numbers(name: impl Into<String>, bounds: [f64; 2]) -> Self {
        Self { name: name.into(), kind: FeatureKind::Bounds(bounds), unknown: false }
    }

    /// A column of categories, without a feature for unknown cells.
    pub fn categorical(name: impl Into<String>, names: Vec<String>) -> Self {
        let kind = FeatureKind::Categories { names, aliases: BTreeMap::new() };
        Self { name: name.into(), kind, unknown: false }
    }

    /// The bounds, if the column has numbers.
    #[must_use]
    pub fn bounds(&self) -> Option<[f64; 2]> {
        match self.kind {
            FeatureKind::Bounds(bounds) => Some(bounds),
            _ => None,
        }
    }

    /// The categories, if the column has a list of them.
    #[must_use]
    pub fn categories(&self) -> Option<&[String]> {
        match &self.kind {
            FeatureKind::Categories { names, .. } => Some(names),
            _ => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let of = format!("column {:?}", self.name);
        match &self.kind {
            FeatureKind::Bounds(bounds) => check_bounds(&of, *bounds),
            FeatureKind::Categories { names, aliases } => {
                check_list(&of, names, "categories")?;
                check_aliases(&of, aliases, names, "categories")
            }
            FeatureKind::Boolean => Ok(()),
            FeatureKind::Date(DateRange { from, to, .. }) if from >= to => {
                Err(wrong(format!("{of} has dates from {from} to {to}, expected the earlier day first")))
            }
            FeatureKind::Date(_) => Ok(()),
            FeatureKind::Text(text) => text.check(&self.name),
        }
    }

    /// The same features as columns of numbers and categories.
    pub(crate) fn plain(&self) -> Vec<Self> {
        match &self.kind {
            FeatureKind::Bounds(_) | FeatureKind::Categories { .. } => vec![self.clone()],
            FeatureKind::Boolean => {
                let names = TRUTHS.map(|words| words[0].to_owned()).to_vec();
                vec![Self { unknown: self.unknown, ..Self::categorical(&self.name, names) }]
            }
            FeatureKind::Date(date) => {
                let bounds = [date.from, date.to].map(|day| f64::from(day.number()));
                let day = Self { unknown: self.unknown, ..Self::numbers(&self.name, bounds) };
                let parts = date.parts.iter();
                let parts =
                    parts.map(|part| Self::categorical(format!("{} ({part})", self.name), part.names()));
                std::iter::once(day).chain(parts).collect()
            }
            FeatureKind::Text(text) => {
                let width = text.width().unwrap_or(0);
                let number = |place: usize| Self {
                    unknown: self.unknown && place == width,
                    ..Self::numbers(format!("{} ({place})", self.name), [-1.0, 1.0])
                };
                (1..=width).map(number).collect()
            }
        }
    }
}

/// Checks that two bounds are a range.
fn check_bounds(of: &str, [low, high]: [f64; 2]) -> Result<(), Error> {
    if low < high && (high - low).is_finite() {
        return Ok(());
    }
    Err(wrong(format!("{of} has bounds [{low}, {high}], expected two finite numbers, the lower first")))
}

/// Checks that a list has names, and none twice.
fn check_list(of: &str, list: &[String], lists: &str) -> Result<(), Error> {
    let mut seen = HashSet::new();
    if list.is_empty() || list.iter().any(|name| !seen.insert(name)) {
        return Err(wrong(format!("{of} has no {lists} or one twice, expected each once")));
    }
    Ok(())
}

/// Checks that every alias means a listed name and is none itself.
fn check_aliases(
    of: &str,
    aliases: &BTreeMap<String, String>,
    list: &[String],
    lists: &str,
) -> Result<(), Error> {
    let has = |text: &String| list.iter().any(|name| name.trim() == text.trim());
    match aliases.iter().find(|(alias, name)| has(alias) || !has(name)) {
        Some((alias, name)) => Err(wrong(format!(
            "{of} has the alias {alias:?} of {name:?}, expected an alias that is not among the {lists} of one that is"
        ))),
        None => Ok(()),
    }
}

/// Reads exactly two numbers. The arrays of serde do not check whether more follow.
fn two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[f64; 2]>, D::Error> {
    let numbers = Vec::<f64>::deserialize(deserializer)?;
    let count = numbers.len();
    numbers.try_into().map(Some).map_err(|_| D::Error::invalid_length(count, &"two numbers"))
}
