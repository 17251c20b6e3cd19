//! What to try next after an error.
//!
//! A hint is a value. Its text here is for a Rust program; the command and other front ends phrase the same
//! value with the names of their own flags and functions.
//!
//! A hint depends on the same public facts as the message of its error: it contains no value of a record and
//! no number of records (see [`Error`](crate::Error)).

use std::{fmt, path::PathBuf};

use crate::{
    data::{Kind, Use},
    error::quoted,
};

/// What to try next after an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Check the path.
    CheckPath,
    /// Check that the file can be read.
    CheckPermissions,
    /// Check that the folder can be written to.
    FreeSpace,
    /// Get an undamaged copy of the file.
    ExportAgain,
    /// Export the table as CSV or Parquet.
    ExportTable,
    /// Give every column its own name in the first row.
    NameColumns,
    /// Declare the character between the cells.
    DeclareDelimiter,
    /// Export a column as another type, or choose another column.
    ExportColumn {
        /// The type that the column is read as.
        usage: Use,
    },
    /// Use a name that exists and is similar.
    DidYouMean {
        /// The similar name.
        name: String,
    },
    /// Check how the name of the column is written.
    CheckColumnName,
    /// Compare the column with a value of its own type.
    CompareWith {
        /// The type of the column.
        kind: Kind,
    },
    /// Follow an example.
    Example {
        /// What the example is.
        what: &'static str,
        /// The example.
        text: &'static str,
    },
    /// Bring all images to one size and format.
    ConvertImage,
    /// Allow more memory, or use less data.
    AllowMemory,
    /// Use a supported data format.
    SupportedFormats,
    /// Put the labels where they are expected.
    AddLabels,
    /// Declare the classes.
    DeclareClasses,
    /// Declare the classes and the shape of images.
    DeclareImages,
    /// Give one entry for each record.
    MatchRecords,
    /// Write a schema for a table.
    WriteSchema {
        /// The table.
        path: PathBuf,
    },
    /// Describe a column in the schema.
    DeclareColumn {
        /// The column.
        name: String,
    },
    /// Write the values of public records as the schema does.
    MatchSchema,
    /// Ask for values that the schema has.
    AskAsDeclared,
    /// Change a layer, or the layer before it.
    ChangeLayer,
    /// Make the kernel of a layer fit its input.
    ShrinkKernel,
    /// Make the output of a block fit its input.
    KeepShape,
    /// Make the network smaller.
    NarrowLayers,
    /// Write layers in sequence instead of nesting them.
    ListLayers,
    /// Normalise each example separately.
    UseGroupNorm,
    /// Choose one of the predefined models, or give layers.
    ChooseModel,
    /// Provide the public network again, or another one.
    RestoreNetwork,
    /// Provide a missing input.
    Give {
        /// The missing input.
        what: Input,
    },
    /// Choose a new folder, or resume the run in this one.
    ResumeRun {
        /// The folder of the run.
        folder: PathBuf,
    },
    /// Name the folder of a run.
    NameRun,
    /// Finish the run.
    FinishRun {
        /// The folder of the run.
        folder: PathBuf,
    },
    /// Name the folder of a run, or its model file.
    NameModel,
    /// Wait for another process.
    WaitForProcess,
    /// Choose a new file for the answer.
    NewOutput,
    /// Ask again, as a new release with its own charge.
    AskAgain,
    /// Start a new run, which is charged.
    StartAgain,
    /// Use the settings that the run was started with.
    SameConfiguration,
    /// Restore the newest copy of the ledger.
    RestoreLedger,
    /// Use the privacy unit and the neighbour relation of the ledger.
    MatchLedger,
    /// Spend less, or raise the budget.
    SpendLess,
    /// Change the privacy settings.
    ChangePrivacy,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExportColumn { usage } => {
                return write!(f, "choose another column, or export this one as {usage}");
            }
            Self::DidYouMean { name } => return write!(f, "did you mean {}?", quoted(name)),
            Self::Example { what, text } => return write!(f, "{what} reads like: {text}"),
            Self::WriteSchema { path } => {
                return write!(f, "write a schema for {}, or find one privately", path.display());
            }
            Self::DeclareColumn { name } => {
                let name = quoted(name);
                return write!(f, "give it bounds or categories, or add it to the list: ignore = [{name}]");
            }
            Self::ResumeRun { folder } => {
                return write!(f, "choose another folder, or resume the run in {}", folder.display());
            }
            Self::FinishRun { folder } => return write!(f, "resume the run in {}", folder.display()),
            Self::AskAsDeclared => "ask for values that the schema has, or change the schema",
            Self::MatchSchema => "write the values as the schema does, or change the schema",
            Self::Give { what } => what.hint(),
            Self::CheckPath => "check the path",
            Self::CheckPermissions => "check the permissions, and that the path is a file",
            Self::FreeSpace => "free space, or ask for write access to the folder",
            Self::ExportAgain => "download or export the file again",
            Self::ExportTable => {
                "export it as UTF-8 text with one character between the cells and points in the numbers, or as Parquet"
            }
            Self::NameColumns => {
                "put a row of names above the records: each column has its own name, and a name is not a number; or declare the names of all columns"
            }
            Self::DeclareDelimiter => "declare the character between the cells: it is not looked for in a record",
            Self::CheckColumnName => {
                "names are case-sensitive and stand in the first row; write a name with spaces or signs in double quotes"
            }
            Self::CompareWith { kind: Kind::Number } => "compare it with a number, without quotes",
            Self::CompareWith { .. } => "compare it with text in single quotes, like 'a'",
            Self::ConvertImage => {
                "export it as PNG or JPEG, in the size and the colours of the other images; or remove it"
            }
            Self::AllowMemory => "allow more memory, or use fewer or smaller records",
            Self::SupportedFormats => {
                "supported are text (.csv, .tsv, .gz, .zip) and .parquet tables with a schema, IDX and CIFAR-10 files, .npy and .npz arrays, and folders of images"
            }
            Self::AddLabels => "put the labels there, or rename them",
            Self::DeclareClasses => {
                "declare the classes; they are not read from the records, because that would reveal something about them"
            }
            Self::DeclareImages => {
                "declare the classes and the shape, or put public images into a folder test beside train; private images are not used for this"
            }
            Self::MatchRecords => {
                "check that the parts belong together: every record has its features, its target and, if there are users, its user"
            }
            Self::ChangeLayer => "change this layer or the one before it; flatten and reshape change the shape",
            Self::ShrinkKernel => {
                "choose a smaller kernel, more padding, or fewer layers that make the image smaller"
            }
            Self::KeepShape => "give the block a projection to the same shape, or layers that keep the shape",
            Self::NarrowLayers => "make layers narrower, or make images smaller before wide layers",
            Self::ListLayers => "write the layers one after the other",
            Self::UseGroupNorm => "use group_norm instead",
            Self::ChooseModel => "choose a model of this list, or give a list of layers",
            Self::RestoreNetwork => {
                "features come from the model file of a run; put the file back, or name another one"
            }
            Self::NameRun => "name the folder of a run",
            Self::NameModel => "give the folder of a run, or its model.safetensors",
            Self::WaitForProcess => "wait until it ends, or stop it first",
            Self::NewOutput => "choose another file; the same question for the same file is paid for once",
            Self::AskAgain => {
                "ask again with another file; drawing the answer again is another release and is charged"
            }
            Self::StartAgain => "start a new run; it is another release and is charged",
            Self::SameConfiguration => {
                "restore the file as the run wrote it, or start a new run"
            }
            Self::RestoreLedger => {
                "restore the newest copy of the ledger; if it is lost, start a new run, and charge what was released to the ledger that is left"
            }
            Self::MatchLedger => {
                "use the privacy unit and the neighbours of the ledger, or name another dataset"
            }
            Self::SpendLess => "ask for less, or raise the budget",
            Self::ChangePrivacy => "change the privacy settings, or ask for less",
        })
    }
}

/// An input that the caller must provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// Records that are public.
    PublicRecords,
    /// Questions to vote on.
    Questions,
    /// Answers that a student learns from.
    Answers,
    /// The user of each record.
    Users,
    /// The number of records, or a public estimate of it.
    RecordCount,
    /// The ε to spend.
    Epsilon,
    /// The budget of the ledger.
    Budget,
}

impl Input {
    /// What to do if the input is missing.
    fn hint(self) -> &'static str {
        match self {
            Self::PublicRecords => {
                "give public records of the same kind, or declare the test part of the data public"
            }
            Self::Questions => "give at least one question: a public record, or a row of ballots",
            Self::Answers => "ask some questions first; a lower threshold or more teachers give more answers",
            Self::Users => {
                "name the column of users in the schema, an array `users` in an archive, or a file of users; the embedded digits have no users"
            }
            Self::RecordCount => "give a public number, even a rough one, or release one as a private count",
            Self::Epsilon => "set epsilon, or the noise multiplier",
            Self::Budget => {
                "revealing the cost of the votes is charged as well: set a budget of at least 1.5 times epsilon, plus 1"
            }
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PublicRecords => "public record",
            Self::Questions => "question",
            Self::Answers => "answer",
            Self::Users => "list of users",
            Self::RecordCount => "number of records",
            Self::Epsilon => "epsilon",
            Self::Budget => "budget",
        })
    }
}

/// Finds the name that is nearest to a misspelt one. At most a third of the letters differ, besides case.
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let distance = |other: &str| strsim::levenshtein(&other.to_lowercase(), &lower);
    let (distance, near) =
        names.into_iter().map(|other| (distance(other), other)).min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= name.chars().count()).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_close_names_are_suggested() {
        assert_eq!(nearest("additiv", ["logistic", "additive"]), Some("additive"));
        assert_eq!(nearest("X", ["x", "y"]), Some("x"));
        for far in ["z", "ab", "income"] {
            assert_eq!(nearest(far, ["x", "y", "age"]), None, "{far}");
        }
    }
}
