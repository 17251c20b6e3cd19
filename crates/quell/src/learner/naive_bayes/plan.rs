//! A complete plan: all numbers are public and fixed before the first record is read.

use super::{Block, Recipe};
use crate::{
    Error, Input,
    layer::Spec,
    learner::{Subject, loss::Loss, sums::Sums},
};

/// A plan with complete settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is paid for: one sum.
    pub sums: Sums,
    /// Number of classes.
    pub classes: usize,
    pub(super) block: Block,
}

impl Plan {
    /// Completes the settings from public facts. Nothing is charged yet.
    pub fn new(recipe: &Recipe, subject: &Subject<'_>) -> Result<Self, Error> {
        subject.check_schema()?;
        let classes = subject.facts.classes.filter(|classes| *classes > 0).ok_or(Error::Setting {
            name: "model",
            found: "naive-bayes, and the target is a number".into(),
            expected: "another model, or a target with classes",
        })?;
        let records = recipe.records.or(subject.facts.records).filter(|records| *records > 0);
        let records = records.ok_or(Error::Missing { what: Input::RecordCount })?;
        let block = Block::new(subject.schema, subject.shape.iter().product());
        let sums = Sums::new(&recipe.privacy, records, 1, classes * block.len())?;
        Ok(Self { sums, classes, block })
    }

    /// The layers of the model.
    pub(super) fn layers(&self) -> Vec<Spec> {
        vec![Spec::HardTanh {}, Spec::AppendSquares {}, Spec::Linear { outputs: self.classes }]
    }

    /// The loss by which the model is evaluated.
    pub(super) fn loss() -> Loss {
        Loss::CrossEntropy { label_smoothing: 0.0 }
    }
}
