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
    /// For trees: the number of indicators that exclude each other, or 0 for a number.
    pub(in crate::learner) questions: Vec<usize>,
}

impl Columns {
    /// The columns of a schema. Without a schema, each of `width` features is a number.
    pub(in crate::learner) fn new(schema: Option<&Schema>, width: usize) -> Self {
        let Some(schema) = schema else {
            return Self { is_indicator: vec![false; width], count: width, questions: vec![0; width] };
        };
        let (mut is_indicator, mut questions) = (Vec::new(), Vec::new());
        for column in &schema.columns {
            let unknown = usize::from(column.unknown);
            if let Some(categories) = &column.categories {
                is_indicator.extend(categories.iter().map(|_| true));
                questions.push(categories.len() + unknown);
            } else {
                is_indicator.push(false);
                questions.extend([0, unknown].into_iter().take(1 + unknown));
            }
            is_indicator.extend(column.unknown.then_some(true));
        }
        Self { is_indicator, count: schema.columns.len(), questions }
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
