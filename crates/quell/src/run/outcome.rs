//! What a run of DP-SGD tells: along the way, and at its end.

use super::{Metrics, Paid};

/// What who watches is told after a step. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Steps so far, lost ones included.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
    /// ε of the steps so far.
    pub epsilon: f64,
    /// The newest accuracy on public test data.
    pub accuracy: Option<f64>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Which debt it lived on.
    pub paid: Paid,
    /// What may be known about it.
    pub metrics: Metrics,
    /// Steps that are behind it, lost ones included.
    pub position: u64,
    /// Whether it went to its end.
    pub finished: bool,
}
