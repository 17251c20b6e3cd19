//! Flags that several subcommands share.

pub(crate) mod event;
pub(crate) mod layout;
pub(crate) mod ledger;
pub(crate) mod placeholder;
pub(crate) mod ratings;
pub(crate) mod run;

use clap::ValueEnum;
use quell_privacy::Neighbors;

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs, with all digits.
    Json,
}

/// The change of one record that the guarantee hides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Change {
    /// One record is added or removed.
    #[default]
    AddRemove,
    /// One record is replaced by another.
    Replace,
}

impl From<Change> for Neighbors {
    fn from(change: Change) -> Self {
        match change {
            Change::AddRemove => Self::AddRemove,
            Change::Replace => Self::Replace,
        }
    }
}

/// Parses a whole number of at least 1, also as `1e4` or `10_000`.
pub(crate) fn parse_positive(text: &str) -> Result<u64, String> {
    let number = parse_count(text).ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number of at least 1".into())
}

/// Parses a whole number, also as `1e4` or `10_000`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let exact =
        |x: f64| (x.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&x)).then_some(x as u64);
    let number = digits.parse().ok().or_else(|| digits.parse().ok().and_then(exact));
    number.ok_or_else(|| "expected a whole number of at least 0".into())
}
