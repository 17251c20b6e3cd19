//! Everything that can go wrong in this crate.

use crate::number::{Toward, rounded};

/// Why there is no answer. Messages say what is and what was expected, never a value read from a record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number outside the range in which it means something.
    #[error("{what} is {value}, expected a number in {range}")]
    OutOfRange {
        /// Name of the number.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// No theorem, no number.
    #[error("the {accountant} accountant has no theorem for {event} {because}")]
    Unsupported {
        /// The accountant that was asked.
        accountant: &'static str,
        /// The offending sub-event.
        event: String,
        /// What is missing.
        because: &'static str,
    },
    /// An event that contradicts itself.
    #[error("{event} is malformed: {because}")]
    Malformed {
        /// The offending sub-event.
        event: String,
        /// What was expected.
        because: &'static str,
    },
    /// Settings that cannot be paid for, because no theorem covers them here.
    #[error("{what} cannot be used: {because}")]
    Unfit {
        /// Which settings.
        what: &'static str,
        /// Why, and what to try instead.
        because: &'static str,
    },
    /// A calibration whose target no value in the searched range reaches.
    #[error("no {what} in {range} reaches the target")]
    Unreachable {
        /// What was searched for.
        what: &'static str,
        /// Where it was searched.
        range: &'static str,
    },
    /// The budget does not bear it.
    #[error(
        "this release would bring epsilon to {}, the budget is {budget}, of which {} is spent",
        rounded(*.would_be, 4, Toward::Up),
        rounded(*.spent, 4, Toward::Up)
    )]
    Refused {
        /// ε after the release; infinite if there would be no bound.
        would_be: f64,
        /// ε before it.
        spent: f64,
        /// The cap.
        budget: f64,
    },
    /// The ledger could not be read or written, or does not make sense.
    #[error("the ledger cannot be used: {cause}")]
    Book {
        /// What happened.
        cause: String,
    },
    /// The operating system gives no randomness, so there is no noise and no release.
    #[error("the operating system gives no random numbers")]
    NoEntropy,
}
