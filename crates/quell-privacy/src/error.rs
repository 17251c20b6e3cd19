//! Everything that can go wrong in this crate.

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
    /// A calibration whose target no value in the searched range reaches.
    #[error("no {what} in {range} reaches the target")]
    Unreachable {
        /// What was searched for.
        what: &'static str,
        /// Where it was searched.
        range: &'static str,
    },
    /// No random bytes, hence no noise and no release.
    #[error("the operating system gave no random bytes, expected 32 of them")]
    NoEntropy,
}
