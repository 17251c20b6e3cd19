//! How a question reads the cells of a column that a schema declares.
//!
//! A declared cell has one text, however the file writes it: a date is its day as `2024-12-31`, true and false
//! are `true` and `false`, and a category is its name. Conditions and keys are brought into the same form, or
//! refused. So they mean for a question what they mean for a model. The schema alone decides on a refusal.

use std::{borrow::Cow, collections::HashMap};

use super::{
    date::{DateOrder, Day},
    error::Error,
    feature::{FeatureKind, TRUTHS},
    schema::Schema,
};
use crate::{error::listed, hint::nearest};

/// What a schema says about the cells of a column.
#[derive(Clone, Debug)]
pub(in crate::data) enum Declared {
    Numbers,
    /// All names, and the name that each way of writing one means.
    Names {
        names: Vec<String>,
        spellings: HashMap<String, String>,
    },
    Truth,
    Date(DateOrder),
    Text,
}

impl Declared {
    /// Looks a column up in a schema.
    pub(in crate::data) fn of(schema: &Schema, column: &str) -> Option<Self> {
        if let Some(label) = schema.label.as_ref().filter(|label| label.column == column) {
            return Some(match &label.classes {
                Some(classes) => Self::names(classes, label.aliases.iter()),
                None => Self::Numbers,
            });
        }
        let feature = schema.columns.iter().find(|feature| feature.name == column)?;
        Some(match &feature.kind {
            FeatureKind::Bounds(_) => Self::Numbers,
            FeatureKind::Categories { names, aliases } => Self::names(names, aliases.iter()),
            FeatureKind::Boolean => Self::Truth,
            FeatureKind::Date(date) => Self::Date(date.order),
            FeatureKind::Text(_) => Self::Text,
        })
    }

    fn names<'a>(names: &'a [String], aliases: impl Iterator<Item = (&'a String, &'a String)>) -> Self {
        let all = names.iter().map(|name| (name, name)).chain(aliases);
        let spellings = all.map(|(text, name)| (text.trim().to_owned(), name.clone())).collect();
        Self::Names { names: names.to_vec(), spellings }
    }

    /// Whether every cell that fits is a number: numbers, or categories that are all numbers.
    pub(in crate::data) fn may_be_numbers(&self) -> bool {
        match self {
            Self::Numbers => true,
            Self::Names { spellings, .. } => spellings.keys().all(|text| number(text).is_some()),
            Self::Truth | Self::Date(_) | Self::Text => false,
        }
    }

    /// The text of a cell. `None` if the cell is not what the schema declares.
    ///
    /// A text that is none of the names stays as it is: it is unequal to all of them.
    pub(in crate::data) fn text<'c>(&'c self, cell: Cow<'c, str>) -> Option<Cow<'c, str>> {
        match self {
            Self::Numbers | Self::Text => Some(cell),
            Self::Names { spellings, .. } => match spellings.get(cell.trim()) {
                Some(name) => Some(Cow::Borrowed(name)),
                None => Some(cell),
            },
            Self::Truth => truth(&cell).map(|index| Cow::Borrowed(TRUTHS[index][0])),
            Self::Date(order) => order.day(&cell).map(|day| Cow::Owned(day.to_string())),
        }
    }

    /// The text that a condition or a list of keys means. `None` if the schema excludes it.
    pub(in crate::data) fn meant(&self, text: &str) -> Option<String> {
        match self {
            Self::Numbers | Self::Text => Some(text.to_owned()),
            Self::Names { spellings, .. } => spellings.get(text.trim()).cloned(),
            Self::Truth => truth(text).map(|index| TRUTHS[index][0].to_owned()),
            // What follows a date is not read in a cell. In a condition it would be lost.
            Self::Date(order) => {
                let own = order.day(text).filter(|_| text.trim().len() <= 10);
                text.parse::<Day>().ok().or(own).map(|day| day.to_string())
            }
        }
    }

    /// Whether a number can be equal to a cell.
    pub(in crate::data) fn has_number(&self, wanted: f64) -> bool {
        match self {
            Self::Names { spellings, .. } => spellings.keys().any(|text| number(text) == Some(wanted)),
            Self::Truth => wanted == 0.0 || wanted == 1.0,
            Self::Numbers | Self::Date(_) | Self::Text => true,
        }
    }

    /// The refusal of a text that no cell of the column can be.
    pub(in crate::data) fn refuse(&self, column: &str, found: &str) -> Error {
        let (expected, near) = match self {
            Self::Names { names, .. } => (
                format!("one that the schema lists: {}", listed(names)),
                nearest(found, names.iter().map(String::as_str)).map(str::to_owned),
            ),
            Self::Truth => ("\"true\" or \"false\"".into(), None),
            Self::Date(_) => ("a day such as \"2024-12-31\"".into(), None),
            Self::Numbers | Self::Text => ("another value".into(), None),
        };
        Error::Excluded {
            name: column.to_owned(),
            found: found.into(),
            expected: expected.into(),
            near: near.map(String::into_boxed_str),
            place: None,
        }
    }
}

/// Whether a text means false or true, as an index of [`TRUTHS`].
pub(in crate::data) fn truth(text: &str) -> Option<usize> {
    TRUTHS.iter().position(|words| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word)))
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}
