//! Public metrics of a training run.

use serde::{Deserialize, Serialize};

use crate::learner::Evaluation;

/// Public metrics after one step of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Steps taken or lost so far.
    pub step: u64,
    /// ε of these steps alone. The run paid the ε of all its steps.
    pub epsilon: f64,
    /// Accuracy on public test data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
}

/// Public metrics of a training run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Steps that were paid for.
    pub steps: u64,
    /// Steps that were taken; fewer than `steps` if the run was killed.
    pub taken: u64,
    /// Total time of the run in seconds, including earlier sessions.
    pub seconds: f64,
    /// The metrics over the course of the run.
    pub points: Vec<Point>,
    /// The evaluation of the model on public test data. An error is on the scale of training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
}
