//! The kinds of the columns that a model learns from: public facts.

use crate::data::Schema;

/// Which features are numbers, and which are indicators of a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::learner) struct Columns {
    /// Whether each feature is an indicator, which is 0 or 1.
    is_indicator: Vec<bool>,
    /// Number of columns of the table. The features of one column have length at most one together.
    ///
    /// Data without a schema may be longer; the mechanism clips it.
    pub(super) count: usize,
    /// For trees: the number of categories of each column, or 0 for a number.
    ///
    /// The indicator of an unknown cell is a category, or a column of its own beside a number.
    pub(in crate::learner) categories: Vec<usize>,
}

impl Columns {
    /// The columns of a schema. Without a schema, each of `width` features is a number.
    pub(in crate::learner) fn new(schema: Option<&Schema>, width: usize) -> Self {
        let Some(schema) = schema else {
            return Self { is_indicator: vec![false; width], count: width, categories: vec![0; width] };
        };
        let (mut is_indicator, mut categories) = (Vec::new(), Vec::new());
        for column in &schema.columns {
            let unknown = usize::from(column.unknown);
            if let Some(names) = column.categories() {
                is_indicator.extend(names.iter().map(|_| true));
                categories.push(names.len() + unknown);
            } else {
                is_indicator.push(false);
                categories.extend([0, unknown].into_iter().take(1 + unknown));
            }
            is_indicator.extend(column.unknown.then_some(true));
        }
        Self { is_indicator, count: schema.columns.len(), categories }
    }

    /// Number of features.
    pub(super) fn width(&self) -> usize {
        self.is_indicator.len()
    }

    /// Number of features that are numbers.
    pub(super) fn numbers(&self) -> usize {
        self.features_of_numbers().count()
    }

    /// The features that are numbers.
    pub(in crate::learner) fn features_of_numbers(&self) -> impl Iterator<Item = usize> {
        (0..self.width()).filter(|feature| !self.is_indicator(*feature))
    }

    /// Whether a feature is an indicator of a category.
    pub(super) fn is_indicator(&self, feature: usize) -> bool {
        self.is_indicator[feature]
    }
}
