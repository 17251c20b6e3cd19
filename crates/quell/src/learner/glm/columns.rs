//! The kinds of the columns that a model learns from: public facts.

use crate::data::Schema;

/// Which features are numbers, and which are indicators of a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Whether each feature is an indicator, which is 0 or 1.
    is_indicator: Vec<bool>,
    /// Number of columns of the table. The features of one column have length at most one together.
    ///
    /// Data without a schema may be longer; the mechanism clips it.
    pub(super) count: usize,
}

impl Columns {
    /// The columns of a schema. Without a schema, each of `width` features is a number.
    pub(super) fn new(schema: Option<&Schema>, width: usize) -> Self {
        let Some(schema) = schema else {
            return Self { is_indicator: vec![false; width], count: width };
        };
        let mut is_indicator = Vec::new();
        for column in &schema.columns {
            match &column.categories {
                Some(categories) => is_indicator.extend(categories.iter().map(|_| true)),
                None => is_indicator.push(false),
            }
            is_indicator.extend(column.unknown.then_some(true));
        }
        Self { is_indicator, count: schema.columns.len() }
    }

    /// Number of features.
    pub(super) fn width(&self) -> usize {
        self.is_indicator.len()
    }

    /// Number of features that are numbers.
    pub(super) fn numbers(&self) -> usize {
        self.is_indicator.iter().filter(|indicator| !**indicator).count()
    }

    /// Whether a feature is an indicator of a category.
    pub(super) fn is_indicator(&self, feature: usize) -> bool {
        self.is_indicator[feature]
    }
}
