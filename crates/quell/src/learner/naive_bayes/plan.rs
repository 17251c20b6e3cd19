//! A complete plan: all numbers are public and fixed before the first record is read.

use quell_privacy::{
    Bound, Neighbors,
    mechanism::{Clipping, Descent, Sampling},
    units::{ClipNorm, Delta},
};

use super::{Block, Recipe};
use crate::{
    Error, Input,
    layer::Spec,
    learner::{Subject, default_delta, loss::Loss},
};

/// A plan with complete settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The mechanism that the ledger is charged for. It runs once.
    pub descent: Descent,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// δ.
    pub delta: Delta,
    /// ε of the release, as an interval.
    pub epsilon: Bound,
    /// Number of records (or users) that the plan was made for: a public number.
    pub records: u64,
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
        let delta = Delta::new(recipe.privacy.delta.unwrap_or_else(|| default_delta(records)))?;
        let clipping = Clipping::Flat { norm: ClipNorm::new(1.0)? };
        let dimension = classes * block.len();
        let (descent, epsilon) = recipe.privacy.calibrate(delta, 1, |noise_multiplier| {
            Ok(Descent { sampling: Sampling::Full, clipping: clipping.clone(), noise_multiplier, dimension })
        })?;
        Ok(Self { descent, neighbors: recipe.privacy.neighbors, delta, epsilon, records, classes, block })
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
