//! What may be known about a run besides its model.

use serde::{Deserialize, Serialize};

use crate::dp_sgd::Evaluation;

/// What is known of one moment of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Steps so far.
    pub step: u64,
    /// ε of those steps alone. What was paid is the ε of all.
    pub epsilon: f64,
    /// Accuracy on public test data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
}

/// What may be known about a run besides its model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Steps that were paid for.
    pub steps: u64,
    /// Steps that were taken; fewer if the run was killed.
    pub taken: u64,
    /// Time it took, in seconds, all sittings together.
    pub seconds: f64,
    /// The way there.
    pub points: Vec<Point>,
    /// The model on public test data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
}
