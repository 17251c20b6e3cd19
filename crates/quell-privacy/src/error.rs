//! The errors of this crate.

use crate::number::{Toward, format_rounded};

/// Why an operation failed.
///
/// Messages say what was found and what was expected, never a value read from a record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number out of its range.
    #[error("{what} is {value}, expected a number in {range}")]
    OutOfRange {
        /// Name of the number.
        what: &'static str,
        /// The number that was given.
        value: f64,
        /// The allowed range.
        range: &'static str,
    },
    /// The accountant has no theorem for the event.
    #[error("the {accountant} accountant has no theorem for {event} {because}")]
    Unsupported {
        /// The accountant that was asked.
        accountant: &'static str,
        /// The unsupported part of the event.
        event: String,
        /// What is missing.
        because: &'static str,
    },
    /// An event that contradicts itself.
    #[error("{event} is malformed: {because}")]
    Malformed {
        /// The malformed part of the event.
        event: String,
        /// What was expected.
        because: &'static str,
    },
    /// Settings that cannot be charged for, because no theorem covers them.
    #[error("{what} cannot be used: {because}")]
    Unfit {
        /// Which settings.
        what: &'static str,
        /// Why, and what to try instead.
        because: &'static str,
    },
    /// A calibration target that no value in the searched range reaches.
    #[error("no {what} in {range} reaches the target")]
    Unreachable {
        /// What was searched for.
        what: &'static str,
        /// The range that was searched.
        range: &'static str,
    },
    /// The release would exceed the budget.
    #[error(
        "epsilon would be {} with this charge, the budget is {budget}, of which {} is spent",
        format_rounded(*.would_be, 4, Toward::Up),
        format_rounded(*.spent, 4, Toward::Up)
    )]
    Refused {
        /// ε after the release; infinite if there would be no bound.
        would_be: f64,
        /// ε before the release.
        spent: f64,
        /// The cap.
        budget: f64,
    },
    /// The ledger could not be read or written, or is inconsistent.
    #[error("the ledger cannot be used: {cause}")]
    Book {
        /// What happened.
        cause: String,
    },
    /// The operating system provides no randomness, so no noise can be drawn.
    #[error("the operating system gives no random numbers")]
    NoEntropy,
}
