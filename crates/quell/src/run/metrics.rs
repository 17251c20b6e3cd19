//! Public metrics of a training run.

use serde::{Deserialize, Serialize};

use super::TrialRecord;
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
    /// Root mean square error on public test data, in the units of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
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
    /// The evaluation of the model on public test data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// Targets and predicted numbers of some public test data, in the units of the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<[f64; 2]>,
    /// Whether the error of numbers is in the units of the target.
    ///
    /// Earlier versions wrote errors on the scale of training, [-1, 1], and not this field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_target_units: bool,
    /// Number of correct predictions on private test records, with noise, in the model of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noisy_correct: Option<f64>,
    /// All trials of a search that shows them, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialRecord>,
}

impl Metrics {
    /// The evaluation in the units of the target, whose declared bounds are given.
    #[must_use]
    pub fn evaluation_in_units(&self, bounds: Option<[f64; 2]>) -> Option<Evaluation> {
        let bounds = bounds.filter(|_| !self.in_target_units);
        self.evaluation.as_ref().map(|evaluation| evaluation.in_units(bounds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_earlier_versions_are_read_in_the_units_of_the_target() {
        let old = r#"{"steps":1,"taken":1,"seconds":0.5,"points":[],"evaluation":{"numbers":{"error":0.1,"count":9}}}"#;
        let mut metrics: Metrics = serde_json::from_str(old).unwrap();
        let error = |metrics: &Metrics| match metrics.evaluation_in_units(Some([0.0, 100.0])) {
            Some(Evaluation::Numbers { error, .. }) => error,
            _ => f64::NAN,
        };
        assert!((error(&metrics) - 5.0).abs() < 1e-12);
        metrics.in_target_units = true;
        assert_eq!(error(&metrics), 0.1);
    }
}
