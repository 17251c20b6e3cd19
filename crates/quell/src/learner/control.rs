//! How a callback controls a run.

/// What the callback asks training to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Take the next step.
    Continue,
    /// Confirm the steps so far to the ledger, and take the next step.
    ///
    /// The callback has saved these steps.
    Saved,
    /// Stop after this step.
    Stop,
}
