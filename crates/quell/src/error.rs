//! The error type of this crate.
//!
//! Some modules have their own enums: [`FormatError`] and [`TableError`] for data, [`layer::Error`] and
//! [`network::Error`] for models, [`run::Error`] for the folders of runs. [`Error`] unites them, and adds the
//! errors that several modules share.

use std::path::{Path, PathBuf};

use crate::{
    Hint, Input,
    data::{FormatError, TableError},
    layer, network, run,
};

/// An error of this crate.
/// The message says what was found and what was expected; [`Error::hint`] says what to try next.
///
/// A message depends on public facts only: the path, the format, the shape of a record, the types of the
/// columns, the schema, the expression. No message contains a value read from a record or the number of
/// records, and no value of a record decides whether there is a message. A message names a column if the
/// caller asked for that name or nearly that name. It names another column only once all requested columns
/// were found: a file without a header has a record in place of the names.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of data cannot be used.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A column, a schema or an expression does not fit the table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A layer, or a list of layers, is invalid.
    #[error(transparent)]
    Layer(#[from] layer::Error),
    /// A named model or a public network cannot be used.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// The folder of a run, or the file of an answer, cannot be used.
    #[error(transparent)]
    Run(#[from] run::Error),
    /// An error of the privacy crate.
    #[error(transparent)]
    Privacy(#[from] quell_privacy::Error),
    /// The path does not exist.
    #[error("{} does not exist, expected a file or folder", path.display())]
    Absent {
        /// The missing path.
        path: PathBuf,
    },
    /// The operating system does not let the file be read.
    #[error("{} cannot be read: {because}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error kind of the operating system.
        because: std::io::ErrorKind,
    },
    /// The file is longer than any file of its kind.
    #[error("{} is longer than {most} bytes, expected at most that many", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The largest number of bytes that is read.
        most: u64,
    },
    /// The operating system does not let the file be written.
    #[error("{} cannot be written: {because}", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The error kind of the operating system.
        because: std::io::ErrorKind,
    },
    /// A setting is invalid.
    #[error("{name} is {found}, expected {expected}")]
    Setting {
        /// The name of the setting.
        name: &'static str,
        /// What was found.
        found: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// A number is out of its range.
    #[error("{what} is {value}, expected a number in {range}")]
    OutOfRange {
        /// The name of the number.
        what: &'static str,
        /// The given value.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A vector has the wrong length.
    #[error("the length of {what} is {found}, expected {expected}")]
    Length {
        /// The name of the vector.
        what: &'static str,
        /// The length of the vector.
        found: usize,
        /// The expected length.
        expected: usize,
    },
    /// A list does not have one entry for each record. The numbers are not shown.
    #[error("the number of {name} differs from the number of records, expected {name} for every record")]
    Sizes {
        /// The name of the list.
        name: &'static str,
    },
    /// A required input is missing.
    #[error("no {what} is given")]
    Missing {
        /// What is missing.
        what: Input,
    },
    /// The ledger has another neighbour relation or another privacy unit.
    #[error("the ledger of {} has another privacy unit or other neighbours than requested", quoted(dataset))]
    OtherTerms {
        /// The dataset.
        dataset: String,
    },
    /// The saved state is damaged, or belongs to other settings.
    #[error("{} of the saved state is {found}, expected {expected}", quoted(part))]
    SavedState {
        /// The name of the part.
        part: String,
        /// What was found.
        found: &'static str,
        /// What was expected.
        expected: &'static str,
    },
}

impl Error {
    /// What to try next. `None` if the message says it.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Format(error) => error.hint(),
            Self::Table(error) => error.hint(),
            Self::Layer(error) => error.hint(),
            Self::Network(error) => error.hint(),
            Self::Run(error) => error.hint(),
            Self::Privacy(error) => return privacy_hint(error),
            Self::Absent { .. } | Self::TooLong { .. } => Hint::CheckPath,
            Self::Unreadable { .. } => Hint::CheckPermissions,
            Self::Unwritable { .. } => Hint::FreeSpace,
            // The message says what is expected.
            Self::Setting { .. } | Self::OutOfRange { .. } | Self::Length { .. } => return None,
            Self::Sizes { .. } => Hint::MatchRecords,
            Self::Missing { what } => Hint::Give { what: *what },
            Self::OtherTerms { .. } => Hint::MatchLedger,
            Self::SavedState { .. } => Hint::SameConfiguration,
        })
    }

    /// The lines below the message that show the place of the error, if any.
    /// The text of the error ends with these lines, after a line break.
    #[must_use]
    pub fn picture(&self) -> Option<String> {
        match self {
            Self::Table(error) => error.picture(),
            Self::Run(error) => error.picture(),
            _ => None,
        }
    }

    /// The error for an invalid part of a saved state.
    pub(crate) fn saved(part: &str, found: &'static str, expected: &'static str) -> Self {
        Self::SavedState { part: part.into(), found, expected }
    }

    /// The error for a file that cannot be read.
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::Absent { path },
            because => Self::Unreadable { path, because },
        }
    }

    /// The error for a file that cannot be written.
    pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        Self::Unwritable { path: path.to_owned(), because: error.kind() }
    }
}

/// What to try after an error of the privacy crate.
fn privacy_hint(error: &quell_privacy::Error) -> Option<Hint> {
    use quell_privacy::Error as Privacy;
    match error {
        Privacy::Refused { .. } => Some(Hint::SpendLess),
        Privacy::OutOfRange { .. } | Privacy::Book { .. } | Privacy::NoEntropy => None,
        _ => Some(Hint::ChangePrivacy),
    }
}

/// Quotes a name as in an expression.
/// Control characters, which could move a cursor, are replaced, and a long name is cut.
pub(crate) fn quoted(name: &str) -> String {
    const LONGEST: usize = 60;
    let mut text: String =
        name.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Lists the first of many names.
pub(crate) fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| quoted(name)).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests;
