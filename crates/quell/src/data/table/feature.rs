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

/// A column to learn from: a number, a category, true or false, a date or a text.
///
/// Exactly one of `bounds`, `categories`, `boolean`, `date` and `text` is given.
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
    /// Whether the cells are true or false.
    ///
    /// They become two categories. True is written true, yes, t, y, on or 1, and false is written false, no,
    /// f, n, off or 0, in small or capital letters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub boolean: bool,
    /// Whether to add a feature for unknown cells.
    ///
    /// The feature is 1 if the cell is missing, not a number or not among the categories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// Other ways to write a category: the text of a cell, and the category that it means.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// The range of dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<DateRange>,
    /// How the words of a text become numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextFeatures>,
}

/// Ways to write false and true, in lower case.
pub(super) const TRUTHS: [[&str; 6]; 2] =
    [["false", "no", "f", "n", "off", "0"], ["true", "yes", "t", "y", "on", "1"]];

impl Label {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_values("label", self.bounds, self.classes.as_deref(), "classes")?;
        check_aliases("label", &self.aliases, self.classes.as_deref(), "classes")
    }
}

impl Feature {
    pub(super) fn check(&self) -> Result<(), Error> {
        let of = format!("column {:?}", self.name);
        let others = [self.boolean, self.date.is_some(), self.text.is_some()];
        let count = others.into_iter().filter(|is_given| *is_given).count();
        check_aliases(&of, &self.aliases, self.categories.as_deref(), "categories")?;
        if count == 0 {
            return check_values(&of, self.bounds, self.categories.as_deref(), "categories");
        }
        if count > 1 || self.bounds.is_some() || self.categories.is_some() {
            return Err(wrong(format!(
                "{of} has several of bounds, categories, boolean, date and text, expected one of them"
            )));
        }
        if let Some(DateRange { from, to, .. }) = self.date.as_ref().filter(|date| date.from >= date.to) {
            return Err(wrong(format!("{of} has dates from {from} to {to}, expected the earlier day first")));
        }
        self.text.as_ref().map_or(Ok(()), |text| text.check(&self.name))
    }

    /// The same features as columns of numbers and categories.
    pub(super) fn plain(&self) -> Vec<Self> {
        // A column of numbers or categories stays as it is, also one that was made here.
        if self.bounds.is_some() || self.categories.is_some() {
            return vec![self.clone()];
        }
        let made = |name: String| Self { name, ..Self::default() };
        if self.boolean {
            let categories = Some(TRUTHS.map(|words| words[0].to_owned()).to_vec());
            return vec![Self { categories, unknown: self.unknown, ..made(self.name.clone()) }];
        }
        if let Some(date) = &self.date {
            let bounds = Some([date.from, date.to].map(|day| f64::from(day.number())));
            // The date remains, so that synthetic rows show days as dates.
            let day = Self { bounds, ..self.clone() };
            let parts = date.parts.iter().map(|part| Self {
                categories: Some(part.names()),
                ..made(format!("{} ({part})", self.name))
            });
            return std::iter::once(day).chain(parts).collect();
        }
        if let Some(text) = &self.text {
            let width = text.width().unwrap_or(0);
            let number = |place: usize| Self {
                bounds: Some([-1.0, 1.0]),
                unknown: self.unknown && place == width,
                ..made(format!("{} ({place})", self.name))
            };
            return (1..=width).map(number).collect();
        }
        Vec::new()
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

/// Checks that every alias means a listed name and is none itself.
fn check_aliases(
    of: &str,
    aliases: &BTreeMap<String, String>,
    list: Option<&[String]>,
    lists: &str,
) -> Result<(), Error> {
    let has = |text: &String| list.unwrap_or_default().iter().any(|name| name.trim() == text.trim());
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
