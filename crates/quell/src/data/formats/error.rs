//! Errors about files of data: their format, their size and their labels.

use std::path::PathBuf;

use crate::{
    Hint,
    error::{listed, quoted},
};

/// Why a file of data cannot be used.
///
/// A message depends on the path, the format, the shape of a record and the declared classes. No message
/// contains a value read from a record or the number of records, and no value of a record decides whether
/// there is a message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The format of the data is not recognised.
    #[error("{} is not in a supported data format", path.display())]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
    },
    /// The file is not a table.
    #[error("{} is {found}, expected CSV with a header row, or Parquet", path.display())]
    NoTable {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: &'static str,
    },
    /// The first row cannot be column names. It is not shown: it may be a record.
    #[error("the first row of {} contains a number, expected the names of the columns", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// The cells have another separator than the name of the file implies.
    #[error("the first row of {} is separated by {found}, expected {expected}", path.display())]
    Separator {
        /// The file.
        path: PathBuf,
        /// The separator that was found.
        found: &'static str,
        /// The separator that the name of the file implies.
        expected: &'static str,
    },
    /// The names of the columns are declared, and the delimiter is not. It cannot be looked for in a record.
    #[error("the names of the columns of {} are declared and its delimiter is not, expected both", path.display())]
    NoDelimiter {
        /// The file.
        path: PathBuf,
    },
    /// The Parquet file cannot be decoded.
    #[error("{} is damaged or not Parquet: {part} cannot be decoded", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The part that cannot be decoded.
        part: String,
    },
    /// The compression of the Parquet file is not supported.
    #[error("{} is compressed with {codec}, expected snappy, gzip, zstd, lz4 or no compression", path.display())]
    Codec {
        /// The file.
        path: PathBuf,
        /// The compression of the file.
        codec: &'static str,
    },
    /// The compressed text cannot be decompressed.
    #[error("{} is damaged: it cannot be decompressed completely", path.display())]
    Packed {
        /// The file.
        path: PathBuf,
    },
    /// The binary file does not match its header or its length.
    #[error("{} has {found}, expected {expected}", path.display())]
    Broken {
        /// The file, or the file in an archive.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The file is not a readable zip archive.
    #[error("{} is damaged or not an .npz archive: its directory cannot be read", path.display())]
    NoArchive {
        /// The file.
        path: PathBuf,
    },
    /// The file is not an image that can be read.
    #[error("{} is {found}, expected a PNG or JPEG file in grey or colour", path.display())]
    NoImage {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: &'static str,
    },
    /// The image has another size than the images before it.
    #[error("{} has {}, expected {} like the images before it", path.display(), size(found), size(expected))]
    Shape {
        /// The file.
        path: PathBuf,
        /// Its channels, rows and columns.
        found: [usize; 3],
        /// The channels, rows and columns of the other images.
        expected: [usize; 3],
    },
    /// The path is a single image rather than a folder of folders.
    #[error("{} is a single image, expected a folder with one folder of images for each class", path.display())]
    SingleImage {
        /// The file.
        path: PathBuf,
    },
    /// The name of a folder is not one of the classes.
    #[error("{} has a folder {}, expected one of the classes {}", path.display(), quoted(name), listed(classes))]
    NoClass {
        /// The folder that contains the folders of classes.
        path: PathBuf,
        /// The name that was found.
        name: String,
        /// The classes.
        classes: Vec<String>,
    },
    /// The data exceeds the memory limit.
    #[error("{} takes more than {limit} bytes in memory, expected at most that many", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What is allowed.
        limit: u64,
    },
    /// The labels are missing.
    #[error("the labels of {} are missing, expected {expected}", path.display())]
    NoLabels {
        /// The file or folder.
        path: PathBuf,
        /// Where labels are expected.
        expected: &'static str,
    },
    /// The labels are integers or names, and the classes are not declared.
    #[error("the labels in {} are classes, and the classes are not declared", path.display())]
    NoClasses {
        /// The file with the labels.
        path: PathBuf,
    },
    /// A public fact about private data must be declared.
    #[error("the {what} in {} must be declared", path.display())]
    Undeclared {
        /// The file or folder.
        path: PathBuf,
        /// What must be declared.
        what: &'static str,
    },
    /// Two files have different numbers of records. The numbers are not shown.
    #[error("{} and {} have different numbers of records, expected the same number", path.display(), other.display())]
    Counts {
        /// The file with the features.
        path: PathBuf,
        /// The file with the labels or the users.
        other: PathBuf,
    },
}

impl Error {
    /// What to try next.
    pub(crate) fn hint(&self) -> Hint {
        match self {
            Self::Unrecognised { .. } => Hint::SupportedFormats,
            Self::NoTable { .. } | Self::Separator { .. } => Hint::ExportTable,
            Self::NoHeader { .. } => Hint::NameColumns,
            Self::NoDelimiter { .. } => Hint::DeclareDelimiter,
            Self::Damaged { .. }
            | Self::Codec { .. }
            | Self::Packed { .. }
            | Self::Broken { .. }
            | Self::NoArchive { .. } => Hint::ExportAgain,
            Self::NoImage { .. } | Self::Shape { .. } => Hint::ConvertImage,
            Self::SingleImage { .. } | Self::NoClass { .. } => {
                Hint::Example { what: "a folder of images", text: "data/cat/1.png, data/dog/2.jpg" }
            }
            Self::TooLarge { .. } => Hint::AllowMemory,
            Self::NoLabels { .. } => Hint::AddLabels,
            Self::NoClasses { .. } => Hint::DeclareClasses,
            Self::Undeclared { .. } => Hint::DeclareImages,
            Self::Counts { .. } => Hint::MatchRecords,
        }
    }
}

/// The size of an image in words.
fn size([channels, rows, columns]: &[usize; 3]) -> String {
    format!("{columns} by {rows} pixels in {}", if *channels == 1 { "grey" } else { "colour" })
}
