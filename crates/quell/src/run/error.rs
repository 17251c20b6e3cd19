//! Errors about the folders of runs and the files of answers.

use std::path::PathBuf;

use crate::{Hint, error::quoted};

/// Why a run cannot be started or resumed, or an answer cannot be bought.
///
/// A message depends on paths, settings and the ledger, which are public. It never depends on the value of a
/// record or on the number of records.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be read.
    #[error("the configuration cannot be read: {because}")]
    Configuration {
        /// The message of the parser, with line and column.
        because: String,
    },
    /// The folder of a new run exists already.
    #[error("{} already exists, expected the name of a new folder", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder contains no run.
    #[error("{} contains no run", path.display())]
    NotFound {
        /// The folder.
        path: PathBuf,
    },
    /// The run has not written its model yet.
    #[error("the run in {} has no model yet", folder.display())]
    NoModel {
        /// The folder.
        folder: PathBuf,
    },
    /// The file is damaged, or is not a model.
    #[error("{} is not a readable model: {because}", path.display())]
    UnreadableModel {
        /// The file.
        path: PathBuf,
        /// The reason.
        because: String,
    },
    /// Another process works on the run.
    #[error("another process is working on the run in {}", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The output file exists already, or contains the answer to another question.
    #[error("{} already exists, expected the name of a new file", path.display())]
    AnswerExists {
        /// The file.
        path: PathBuf,
    },
    /// An earlier version stored the question in another form, so it cannot be compared.
    #[error("{} was written by an earlier version of Quell, so it is unknown whether it answers this question; nothing was charged", path.display())]
    EarlierQuestion {
        /// The file of paid answers.
        path: PathBuf,
    },
    /// The answer was paid for and is lost.
    #[error("the answer in {} was paid for and is lost: the process ended while the answer was drawn", path.display())]
    AnswerLost {
        /// The file.
        path: PathBuf,
    },
    /// All steps were paid for, and all are lost.
    #[error("all steps of the run in {} were charged and lost when the run was killed, so there is no model", path.display())]
    AllStepsLost {
        /// The folder.
        path: PathBuf,
    },
    /// The ledger lacks a line that the run has seen.
    #[error(
        "line {line} of the ledger of {} is missing or differs from the line that the run in {} has recorded: the ledger, which has {lines} lines, is an older copy or another ledger",
        quoted(dataset), path.display()
    )]
    LedgerRolledBack {
        /// The folder.
        path: PathBuf,
        /// The dataset.
        dataset: String,
        /// The number of the line that was seen.
        line: u64,
        /// The number of lines in the ledger.
        lines: u64,
    },
    /// The search has released its result, or a kill lost it.
    #[error("the search in {} has released its result already, in this folder or in a copy of it, or the result was lost when the run was killed", path.display())]
    SearchReleased {
        /// The folder.
        path: PathBuf,
    },
    /// The run contains results of more steps than the ledger has leased.
    #[error("the run in {} contains {found} {what}, but the ledger has leased {leased}: the ledger is an older copy", path.display())]
    AheadOfLease {
        /// The folder.
        path: PathBuf,
        /// The unit of the count.
        what: &'static str,
        /// The number in the run.
        found: u64,
        /// The number that was leased.
        leased: u64,
    },
}

impl Error {
    /// What to try next.
    pub(crate) fn hint(&self) -> Hint {
        match self {
            Self::Configuration { .. } => Hint::Example { what: "a setting", text: "noise_multiplier = 1.1" },
            Self::Exists { path } => Hint::ResumeRun { folder: path.clone() },
            Self::NotFound { .. } => Hint::NameRun,
            Self::NoModel { folder } => Hint::FinishRun { folder: folder.clone() },
            Self::UnreadableModel { .. } => Hint::NameModel,
            Self::Busy { .. } => Hint::WaitForProcess,
            Self::AnswerExists { .. } => Hint::NewOutput,
            Self::EarlierQuestion { .. } | Self::AnswerLost { .. } => Hint::AskAgain,
            Self::AllStepsLost { .. } | Self::SearchReleased { .. } => Hint::StartAgain,
            Self::LedgerRolledBack { .. } | Self::AheadOfLease { .. } => Hint::RestoreLedger,
        }
    }

    /// The lines below the message that show the place of the error, if any.
    pub(crate) fn picture(&self) -> Option<String> {
        match self {
            // The parser puts no line break before these lines.
            Self::Configuration { because } => {
                because.split_once('\n').map(|(_, picture)| picture.to_owned())
            }
            _ => None,
        }
    }
}
