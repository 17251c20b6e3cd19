//! What is trained and tested on, and how a path becomes that.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Examples, Scaling, Schema, Split, Table, cifar, encoder, folder, idx, memory::Memory, numpy, stream, users};
use crate::Error;

/// Records to train on, and maybe others to test on.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// What it is called: the name of its file or folder.
    pub name: String,
    /// What a learner trains on.
    pub train: Examples,
    /// What nothing is trained on.
    pub test: Option<Examples>,
    /// Whether the test part may be looked at for free. Otherwise what is said about it must be paid for too.
    pub test_is_public: bool,
}

/// What to train on, and what to test on if there is such a part.
pub(super) type Parts = (Examples, Option<Examples>);

/// What is public about data and not in its files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Bounds, categories and classes of a table. A table cannot be learned from without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// The classes, in the order of the labels, where files hold labels as numbers; of pictures in folders, the names of the
    /// folders: those of a public test part unless told otherwise. IDX files have ten. A record of any other class is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Channels, rows and columns of pictures in folders; those of the first public one if left out. A picture of another shape is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<[usize; 3]>,
    /// Whether everyone may know all of the data: then what is not declared about pictures is read off them, and an error may speak of one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public: bool,
    /// Whether everyone may know all of the part to test on. A schema may say the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public_test: bool,
    /// Mean and deviation, for all formats but tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// A share to test on, where the files do not have a part for that. It is as private as the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Whose record each row to train on is, in a file of its own: integers in an NPY or IDX file, or a text file with one line for each row. Not for pictures in folders,
    /// which have no order, nor where a schema or an archive says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<PathBuf>,
    /// The most bytes that records may take in memory; four gibibytes unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// Reads data to learn from:
///
/// | what | how it is recognised | the part to test on |
/// |---|---|---|
/// | IDX, packed or not | `…images…idx…`, or the folder of `train-images…`; labels beside | `t10k-…` or `test-…` beside |
/// | CIFAR-10, packed or not | `.bin`, or a folder of such files | files named `test…` in the folder |
/// | NumPy | `.npz`; `.npy`, or a folder of such files | arrays with `test` before or after their names |
/// | pictures | a folder of folders of PNG and JPEG files; their names are the classes, which are declared | folders `test` or `val` beside `train`; if they are public, classes and shape may be read off them |
/// | tables | `.csv`, `.tsv`, packed or not; `.parquet` | what the schema says |
///
/// The part to test on is as private as the rest, unless [`Options::public_test`] or the schema says that it is public.
///
/// All records are held in memory, pictures as bytes and everything else as 32-bit floats. A table is read row by row, or
/// some thousand rows at a time, so that it may itself be larger than memory: only the features that the schema makes of it
/// must fit. [`Table`] answers questions about tables of any size.
pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Dataset, Error> {
    let path = path.as_ref();
    let memory = Memory::new(options.memory.unwrap_or(Memory::USUAL));
    let parts = match Format::of(path, options)? {
        Format::Idx => idx::open(path, options, &memory),
        Format::Cifar => cifar::open(path, options, &memory),
        Format::Npy => numpy::open_files(path, options, &memory),
        Format::Npz => numpy::open_archive(path, options, &memory),
        Format::Folder => folder::open(path, options, &memory),
        Format::Table => return named(path, table(path, options, &memory)?),
    };
    let (mut train, mut test) = parts?;
    let test_is_public = test.is_some() && (options.public || options.public_test);
    train = with_users(train, path, options, &memory)?;
    if let Some(scaling) = &options.scaling {
        train = train.scaled(scaling)?;
        test = test.map(|test| test.scaled(scaling)).transpose()?;
    }
    if let (Some(rule), None) = (options.split, &test) {
        let (rest, part) = train.split(rule)?;
        (train, test) = (rest, Some(part));
    }
    named(path, Dataset { name: String::new(), train, test, test_is_public })
}

/// What data is called where nobody names it, and so is its ledger: the name of its file or folder without endings.
///
/// Data that is packed has the name of what is in it, and a file of IDX, CIFAR or NPY that of its folder: whichever of them
/// is opened, it is the same data, and must have the same ledger. None if the path has no name.
///
/// ```
/// use quell::data::name_of;
/// assert_eq!(name_of("data/people.csv.gz".as_ref()), name_of("people.csv".as_ref()));
/// assert_eq!(name_of("mnist/train-images-idx3-ubyte.gz".as_ref()), name_of("mnist".as_ref()));
/// ```
#[must_use]
pub fn name_of(path: &Path) -> Option<String> {
    if path.file_name().is_none() {
        // Such as `.`, or a file beside which one stands.
        return path.canonicalize().ok().filter(|whole| whole.file_name().is_some()).and_then(|whole| name_of(&whole));
    }
    // Pictures to train on and to test on are one dataset, whichever folder is opened.
    let name = path.file_name().unwrap_or_default();
    if path.is_dir() && ["train", "test", "val"].iter().any(|part| name == *part) {
        let whole = path.canonicalize().ok()?;
        return whole.parent().and_then(name_of).or_else(|| Some(name.to_string_lossy().into_owned()));
    }
    let unpacked = if stream::packed(path) { path.with_extension("") } else { path.to_owned() };
    let extension = unpacked.extension().unwrap_or_default().to_ascii_lowercase();
    let is_part = match extension.to_str().unwrap_or_default() {
        "csv" | "tsv" | "parquet" | "pq" | "npz" => false,
        "npy" | "bin" => true,
        _ => unpacked.file_name().is_some_and(|name| name.to_string_lossy().contains("idx")),
    };
    let stem = || unpacked.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    if is_part && !path.is_dir() {
        let folder = path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        return folder.and_then(name_of).or_else(stem);
    }
    stem()
}

/// Whether a path shares records with the data: it is the same, packed or not; it lies in the data and is not called a test part; or the data lies in it.
///
/// ```
/// use quell::data::shares_records;
/// let shares = |path: &str, data: &str| shares_records(path.as_ref(), data.as_ref());
/// assert!(shares("people.csv.gz", "people.csv") && shares("pictures", "pictures/train") && shares("mnist/train-images", "mnist"));
/// assert!(!shares("mnist/t10k-images", "mnist") && !shares("others.csv", "people.csv"));
/// ```
#[must_use]
pub fn shares_records(path: &Path, data: &Path) -> bool {
    if is_same_file(path, data) {
        return true;
    }
    let whole = |path: &Path| {
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if stream::packed(&whole) { whole.with_extension("") } else { whole }
    };
    let (path, data) = (whole(path), whole(data));
    let is_test = |name: &std::ffi::OsStr| ["test", "t10k", "val"].iter().any(|test| name.to_string_lossy().starts_with(test));
    match path.strip_prefix(&data) {
        Ok(inside) => !inside.iter().next().is_some_and(is_test),
        Err(_) => data.starts_with(&path),
    }
}

/// Whether two names are those of one file.
#[cfg(unix)]
fn is_same_file(one: &Path, two: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|one| identity(two) == Some(one))
}

#[cfg(not(unix))]
fn is_same_file(_: &Path, _: &Path) -> bool {
    false
}

/// Reads records of a table to make predictions about: no label is needed, no record is left out, and every target is 0.
pub fn unlabelled(path: impl AsRef<Path>, schema: &Schema) -> Result<Examples, Error> {
    let path = path.as_ref();
    encoder::examples(&Table::open(path)?, path, schema, false, &Memory::new(Memory::USUAL))
}

fn table(path: &Path, options: &Options, memory: &Memory) -> Result<Dataset, Error> {
    let table = Table::open(path)?;
    let Some(schema) = &options.schema else { return Err(Error::NoSchema { path: path.to_owned() }) };
    let all = with_users(encoder::examples(&table, path, schema, true, memory)?, path, options, memory)?;
    let public = options.public || options.public_test || schema.test.as_ref().is_some_and(|test| test.public);
    let share = schema.test.as_ref().map_or(options.split, |test| test.share.map(|share| Split { share }));
    let file = schema.test.as_ref().and_then(|test| test.file.as_ref());
    let (train, test) = match (share, file) {
        (_, Some(file)) => {
            let file = path.parent().unwrap_or(path).join(file);
            if shares_records(&file, path) {
                return Err(Error::Setting {
                    name: "test",
                    found: "the data that is trained on".into(),
                    expected: "a file of other records",
                });
            }
            let test = encoder::examples(&Table::open(&file)?, &file, schema, true, memory)?;
            (all, Some(test))
        }
        (Some(_), None) if public && !options.public => {
            return Err(Error::Setting {
                name: "test",
                found: "a share of the data, which is called public".into(),
                expected: "public records in a file of their own: which records are in a share depends on what they hold, and all are promised the same",
            });
        }
        (Some(rule), None) => all.split(rule).map(|(train, test)| (train, Some(test)))?,
        (None, None) => (all, None),
    };
    Ok(Dataset { name: String::new(), train, test_is_public: public && test.is_some(), test })
}

/// Says whose records these are, where a file tells. Rows are those of the raw data, before anything is split off.
fn with_users(train: Examples, path: &Path, options: &Options, memory: &Memory) -> Result<Examples, Error> {
    let Some(users) = &options.users else { return Ok(train) };
    let refused = |found: &str, expected| Err(Error::Setting { name: "users", found: found.into(), expected });
    if train.users().is_some() {
        return refused("a file, and the data says itself whose records they are", "one of them");
    }
    if !train.has_places() {
        return refused("a file for pictures in folders", "none: files in folders have no order that lines could follow");
    }
    let tags = users::read(users, train.row_count(), memory)?;
    train.with_users_of_rows(&tags).ok_or_else(|| Error::Counts { path: path.into(), other: users.clone() })
}

fn named(path: &Path, dataset: Dataset) -> Result<Dataset, Error> {
    let whole = path.canonicalize().map_err(|error| Error::io(path, &error))?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Dataset { name, ..dataset })
}

/// What data is written in.
enum Format {
    Idx,
    Cifar,
    Npy,
    Npz,
    Folder,
    Table,
}

impl Format {
    fn of(path: &Path, options: &Options) -> Result<Self, Error> {
        if path.is_dir() {
            return Self::of_folder(path, options);
        }
        let failed = |error: std::io::Error| Error::io(path, &error);
        let mut first = Vec::new();
        File::open(path).map_err(failed)?.take(4).read_to_end(&mut first).map_err(failed)?;
        let unpacked = if stream::packed(path) { path.with_extension("") } else { path.to_owned() };
        let extension = unpacked.extension().unwrap_or_default().to_ascii_lowercase();
        let name = unpacked.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match (extension.to_str().unwrap_or_default(), first.as_slice()) {
            ("csv" | "tsv" | "parquet" | "pq", _) => Ok(Self::Table),
            ("npz", _) => Ok(Self::Npz),
            ("npy", _) => Ok(Self::Npy),
            ("bin", _) => Ok(Self::Cifar),
            ("png" | "jpg" | "jpeg", _) => Err(Error::OnePicture { path: path.to_owned() }),
            _ if name.contains("idx") => Ok(Self::Idx),
            (_, b"PAR1") => Ok(Self::Table),
            (_, [0, 0, 0x08..=0x0e, 1..=8]) => Ok(Self::Idx),
            _ if options.schema.is_some() => Ok(Self::Table),
            _ => Err(Error::Unrecognised { path: path.to_owned() }),
        }
    }

    fn of_folder(path: &Path, options: &Options) -> Result<Self, Error> {
        if idx::images_in(path).is_some() {
            Ok(Self::Idx)
        } else if !cifar::files_in(path).is_empty() {
            Ok(Self::Cifar)
        } else if numpy::any_in(path) {
            Ok(Self::Npy)
        } else if options.shape.is_some() || folder::any_in(path) {
            // Where a shape is declared, there is nothing to find out: a private folder may have lost its last picture.
            Ok(Self::Folder)
        } else {
            Err(Error::Unrecognised { path: path.to_owned() })
        }
    }
}
