//! Datasets with a training part and a test part, opened from a path.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::data::{
    Examples, FormatError, Scaling, Schema, Split, Table, TableError,
    examples::{memory::Memory, users},
    formats::{cifar, folder, idx, numpy, stream, zipped},
    table::encoder::{self, Purpose},
};

/// Records to train on and, optionally, records to test on.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The name of the dataset: the name of its file or folder.
    pub name: String,
    /// The records that a learner trains on.
    pub train: Examples,
    /// The records that no learner trains on.
    pub test: Option<Examples>,
    /// Whether the test part is public. If not, every release about it must be paid for too.
    pub test_is_public: bool,
}

/// The training part, and the test part if there is one.
pub(in crate::data) type Parts = (Examples, Option<Examples>);

/// Public facts about data that its files do not state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Bounds, categories and classes of a table. A learner cannot train on a table without a schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// The names of the classes, in the order of the labels.
    ///
    /// Formats that store labels as numbers need them. For images in folders, they are the names of the
    /// folders; the default is the folders of a public test part. IDX files have ten classes by default. A
    /// record of any other class is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Channels, rows and columns of images in folders.
    ///
    /// The default is the shape of the first public image. An image of another shape is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<[usize; 3]>,
    /// Whether the label of a table is not read, because the learner needs none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_label: bool,
    /// Whether all of the data is public.
    ///
    /// If it is, what is not declared about images is read from them, and an error may mention one of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public: bool,
    /// Whether the whole test part is public. A schema can declare the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public_test: bool,
    /// Mean and deviation, for all formats except tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// The share of records to test on, for files without a test part. It is as private as the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// A file that names the user of each training row.
    ///
    /// The file holds integers or names (NPY or IDX), or text with one line for each row. For images in folders,
    /// it is a table with the columns `file` (such as `cat/1.png`) and `user`. It cannot be used together with a
    /// schema or an archive that names the users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<PathBuf>,
    /// The most bytes that records may take in memory. The default is four gibibytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// Reads data to learn from.
///
/// The format is recognised as follows:
///
/// | format | how it is recognised | the test part |
/// |---|---|---|
/// | IDX, gzipped or not | `…images…idx…`, or the folder of `train-images…`; labels in the same folder | `t10k-…` or `test-…` in the same folder |
/// | CIFAR-10, gzipped or not | `.bin`, or a folder of such files | files named `test…` in the folder |
/// | NumPy | `.npz`; `.npy`, or a folder of such files | arrays with `test` before or after their names |
/// | images | a folder of folders of PNG and JPEG files; the folder names are the classes, which are declared | folders `test` or `val` beside `train`; if they are public, classes and shape may be read from them |
/// | tables | `.csv`, `.tsv`, gzipped or not; `.parquet`; a `.zip` of one text table; any name with a schema | what the schema declares |
///
/// The test part is as private as the rest, unless [`Options::public_test`] or the schema declares it public.
///
/// All records are held in memory: images as bytes, everything else as 32-bit floats. A table is read row by
/// row, or a few thousand rows at a time. The table itself may therefore be larger than memory; only the
/// features that the schema makes of it must fit. [`Table`] answers questions about tables of any size.
pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Dataset, Error> {
    let path = path.as_ref();
    let memory = Memory::new(options.memory.unwrap_or(Memory::USUAL));
    let format = Format::of(path, options)?;
    let parts = match format {
        Format::Idx => idx::open(path, options, &memory),
        Format::Cifar => cifar::open(path, options, &memory),
        Format::Npy => numpy::open_files(path, options, &memory),
        Format::Npz => numpy::open_archive(path, options, &memory),
        Format::Folder => folder::open(path, options, &memory),
        Format::Table => return named(path, table(path, options, &memory)?),
    };
    let (mut train, mut test) = parts?;
    let test_is_public = test.is_some() && (options.public || options.public_test);
    // Files in folders have no order that rows could follow: their reader finds users by name.
    if format != Format::Folder {
        train = with_users(train, path, options, &memory)?;
    }
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

/// The file of synthetic rows in the folder of a run.
pub(crate) const SYNTHETIC: &str = "synthetic.csv";

/// The file of a run that says what paid for it.
const PAYMENT: &str = "paid.json";

/// Names of image folders that form one dataset with their parent folder.
const PARTS: [&str; 3] = ["train", "test", "val"];

/// Returns the default name of a dataset and of its ledger.
///
/// The name is that of the file or folder, without file name extensions.
///
/// A gzipped file has the name of the file inside it. An IDX, CIFAR or NPY file has the name of its folder:
/// whichever of these files is opened, the data is the same and must have the same ledger. The file
/// `synthetic.csv` in the folder of a run has the name of that folder, too: the rows of another run are other data.
/// Returns `None` if the path has no name.
///
/// ```
/// use quell::data::name_of;
/// assert_eq!(name_of("data/people.csv.gz".as_ref()), name_of("people.csv".as_ref()));
/// assert_eq!(name_of("mnist/train-images-idx3-ubyte.gz".as_ref()), name_of("mnist".as_ref()));
/// ```
#[must_use]
pub fn name_of(path: &Path) -> Option<String> {
    if path.file_name().is_none() {
        // The path is one such as `.`, which is the parent of a file that was given without its folder.
        return path
            .canonicalize()
            .ok()
            .filter(|whole| whole.file_name().is_some())
            .and_then(|whole| name_of(&whole));
    }
    let stem = || unpacked(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    // Only what a run wrote: a table of that name in another folder may be a copy of the same records.
    let of_run = || {
        let file = path.canonicalize().ok().filter(|file| file.ends_with(SYNTHETIC))?;
        let folder = file.parent().filter(|folder| folder.join(PAYMENT).is_file())?;
        folder.file_name().map(|name| format!("{}-synthetic", name.to_string_lossy()))
    };
    folder_of(path).and_then(|folder| name_of(&folder)).or_else(of_run).or_else(stem)
}

/// Returns the folder of this path, if the whole folder is the dataset.
fn folder_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    if path.is_dir() {
        // Training images and test images are one dataset, whichever folder is opened.
        let is_part = PARTS.iter().any(|part| name == *part);
        return path
            .canonicalize()
            .ok()
            .filter(|_| is_part)
            .and_then(|whole| whole.parent().map(Path::to_owned));
    }
    if zipped::is_zip(path) {
        return None;
    }
    let unpacked = unpacked(path);
    let extension = unpacked.extension().unwrap_or_default().to_ascii_lowercase();
    let is_part = match extension.to_str().unwrap_or_default() {
        "csv" | "tsv" | "parquet" | "pq" | "npz" => false,
        "npy" | "bin" => true,
        _ => unpacked.file_name().is_some_and(|name| name.to_string_lossy().contains("idx")),
    };
    let folder = path.parent().filter(|_| is_part)?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() })
}

/// Removes the extension of a compressed file from the path.
///
/// An archive whose name does not say what is in it, such as `people.zip`, is the table that it holds.
fn unpacked(path: &Path) -> PathBuf {
    let inside = path.with_extension("");
    if zipped::is_zip(path) && inside.extension().is_none() {
        let member = zipped::Member::only(path)
            .ok()
            .and_then(|member| member.name.file_name().map(std::ffi::OsStr::to_owned));
        let member = member.map_or(inside, |name| path.with_file_name(name));
        // The table in the archive may be compressed itself.
        return if stream::packed(&member) { member.with_extension("") } else { member };
    }
    if stream::packed(path) || zipped::is_zip(path) { inside } else { path.to_owned() }
}

/// Returns ledger names that earlier versions used for this data and that [`name_of`] does not.
///
/// Earlier versions named a ledger after the last part of the path: `pictures/train` was called `train`, and
/// `people.csv.gz` was called `people.csv`. The same data may have been opened by another of its paths, so
/// the result holds the names of all these paths.
///
/// ```
/// use quell::data::former_names;
/// assert_eq!(former_names("data/people.csv".as_ref()), ["people.csv"]);
/// assert_eq!(former_names("mnist/train-images-idx3-ubyte.gz".as_ref()), ["train-images-idx3-ubyte"]);
/// ```
#[must_use]
pub fn former_names(path: &Path) -> Vec<String> {
    let name = name_of(path);
    let mut names: Vec<String> = Vec::new();
    let mut add = |found: Option<&std::ffi::OsStr>| {
        let found = found.map(|found| found.to_string_lossy().into_owned());
        names.extend(found.filter(|found| Some(found) != name.as_ref()));
    };
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut place = path.to_owned();
    loop {
        // A symbolic link has its own name. The ledger may have either name.
        add(place.file_stem());
        add(whole(&place).file_stem());
        let Some(folder) = folder_of(&place) else { break };
        place = folder;
    }
    if place.is_dir() {
        for part in PARTS.map(|part| place.join(part)).iter().filter(|part| part.is_dir()) {
            add(part.file_name());
        }
    } else {
        add(unpacked(&place).file_name());
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns whether a path shares records with the data.
///
/// It does in three cases: it is the same file or folder, gzipped or not; it lies inside the data and is not
/// named as a test part; or the data lies inside it.
///
/// ```
/// use quell::data::shares_records;
/// let shares = |path: &str, data: &str| shares_records(path.as_ref(), data.as_ref());
/// assert!(shares("people.csv.gz", "people.csv") && shares("pictures", "pictures/train") && shares("mnist/train-images", "mnist"));
/// assert!(!shares("mnist/t10k-images", "mnist") && !shares("others.csv", "people.csv"));
/// ```
#[must_use]
pub fn shares_records(path: &Path, data: &Path) -> bool {
    if is_same(path, data) {
        return true;
    }
    let (path, data) = (whole(path), whole(data));
    if path.starts_with(&data) { !is_test_part(&data, &path) } else { data.starts_with(&path) }
}

/// Returns whether a file belongs to the data: it shares records with it, or is one of several files of it.
///
/// All IDX files of a folder are one dataset, test part included, and so are all arrays of a folder of NPY files.
/// All files in a folder of data belong to it.
pub(crate) fn belongs_to(path: &Path, data: &Path) -> bool {
    let is_beside = |is_part: &dyn Fn(&Path) -> bool| {
        let (path, data) = (whole(path), whole(data));
        is_part(&path) && is_part(&data) && path.parent() == data.parent()
    };
    let is_npy = |path: &Path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
    let is_idx = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("idx"));
    let is_inside = || whole(path).starts_with(whole(data));
    shares_records(path, data) || is_inside() || is_beside(&is_idx) || is_beside(&is_npy)
}

/// Whether a path within a folder of data is that of its test part, by its name.
pub(crate) fn is_test_part(data: &Path, path: &Path) -> bool {
    let inside = path.strip_prefix(data).ok().and_then(|inside| inside.iter().next());
    let is_test = |name: &std::ffi::OsStr| {
        ["test", "t10k", "val"].iter().any(|test| name.to_string_lossy().starts_with(test))
    };
    inside.is_some_and(is_test)
}

/// Returns whether two paths are the same file or folder, gzipped or not.
///
/// ```
/// use quell::data::is_same;
/// let same = |one: &str, two: &str| is_same(one.as_ref(), two.as_ref());
/// assert!(same("people.csv.gz", "people.csv") && !same("data", "data/people.csv"));
/// ```
#[must_use]
pub fn is_same(one: &Path, two: &Path) -> bool {
    is_same_file(one, two) || whole(one) == whole(two)
}

/// The BLAKE3 hash of a path, in hexadecimal digits.
pub(crate) fn location(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex().to_string()
}

/// Returns the canonical path without the extension of a gzipped file.
pub(crate) fn whole(path: &Path) -> PathBuf {
    unpacked(&path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

/// Returns whether two paths name the same file.
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

/// Reads the records of a table in memory, as [`open`] reads those of a file.
pub(crate) fn of_table(table: &Table, options: &Options) -> Result<Dataset, Error> {
    let Some(schema) = &options.schema else {
        return Err(TableError::NoSchema { path: table.path().to_owned() }.into());
    };
    if schema.test.as_ref().is_some_and(|test| test.file.is_some()) {
        let (name, found) = ("test", "a file in the schema of a table in memory".into());
        return Err(Error::Setting { name, found, expected: "public records in memory, or a share" });
    }
    parts_of_table(
        table,
        table.path(),
        schema,
        options,
        &Memory::new(options.memory.unwrap_or(Memory::USUAL)),
    )
}

/// Reads the records of a table in memory in order to predict their targets, like [`unlabelled`].
pub fn unlabelled_in(table: &Table, schema: &Schema) -> Result<Examples, Error> {
    encoder::examples(table, table.path(), schema, Purpose::Prediction, &Memory::new(Memory::USUAL))
}

/// Reads the records of a table in order to predict their targets.
///
/// No label is needed, no record is left out, and every target is 0.
pub fn unlabelled(path: impl AsRef<Path>, schema: &Schema) -> Result<Examples, Error> {
    let path = path.as_ref();
    let table = Table::open_as(path, &schema.file)?;
    encoder::examples(&table, path, schema, Purpose::Prediction, &Memory::new(Memory::USUAL))
}

fn table(path: &Path, options: &Options, memory: &Memory) -> Result<Dataset, Error> {
    let Some(schema) = &options.schema else {
        // A file that is no table is an error of its own.
        Table::open(path)?;
        return Err(TableError::NoSchema { path: path.to_owned() }.into());
    };
    parts_of_table(&Table::open_as(path, &schema.file)?, path, schema, options, memory)
}

/// Reads the records of a table, and divides them as the schema declares.
fn parts_of_table(
    table: &Table,
    path: &Path,
    schema: &Schema,
    options: &Options,
    memory: &Memory,
) -> Result<Dataset, Error> {
    let purpose = if options.ignore_label { Purpose::TrainingWithoutLabels } else { Purpose::Training };
    let all = with_users(encoder::examples(table, path, schema, purpose, memory)?, path, options, memory)?;
    let public =
        options.public || options.public_test || schema.test.as_ref().is_some_and(|test| test.public);
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
            let of_file = Table::open_as(&file, &schema.file)?;
            let test = encoder::examples(&of_file, &file, schema, purpose, memory)?;
            (all, Some(test))
        }
        (Some(_), None) if public && !options.public => {
            return Err(Error::Setting {
                name: "test",
                found: "a share of the data, and declared public".into(),
                expected: "public records in a separate file: which records are in a share depends on their values, and all records have the same guarantee",
            });
        }
        (Some(rule), None) => all.split(rule).map(|(train, test)| (train, Some(test)))?,
        (None, None) => (all, None),
    };
    Ok(Dataset { name: String::new(), train, test_is_public: public && test.is_some(), test })
}

/// Assigns users to the records if a file names them.
///
/// The file lists the rows of the raw data, before any record is split off.
fn with_users(train: Examples, path: &Path, options: &Options, memory: &Memory) -> Result<Examples, Error> {
    let Some(users) = &options.users else { return Ok(train) };
    let refused =
        |found: &str, expected| Err(Error::Setting { name: "users", found: found.into(), expected });
    if train.users().is_some() {
        return refused("a file, and the data contains users of its own", "one of them");
    }
    let tags = users::read(users, train.row_count(), memory)?;
    train
        .with_users_of_rows(&tags)
        .ok_or_else(|| FormatError::Counts { path: path.into(), other: users.clone() }.into())
}

fn named(path: &Path, dataset: Dataset) -> Result<Dataset, Error> {
    let whole = path.canonicalize().map_err(|error| Error::io(path, &error))?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Dataset { name, ..dataset })
}

/// The file format of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// IDX files: images and labels.
    Idx,
    /// Files of CIFAR-10.
    Cifar,
    /// NumPy arrays in files.
    Npy,
    /// NumPy arrays in an archive.
    Npz,
    /// Images in folders, whose names are the classes.
    Folder,
    /// A table of text or Parquet, which needs a schema.
    Table,
}

impl Format {
    /// Recognises the format of a file or folder, like [`open`]. A file of unknown format is a table.
    ///
    /// The result depends on names and on the first bytes, which tell binary formats.
    pub fn find(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        match Self::of(path, &Options::default()) {
            Err(Error::Format(FormatError::Unrecognised { .. })) if !path.is_dir() => Ok(Self::Table),
            found => found,
        }
    }

    fn of(path: &Path, options: &Options) -> Result<Self, Error> {
        if path.is_dir() {
            return Self::of_folder(path, options);
        }
        let failed = |error: std::io::Error| Error::io(path, &error);
        let mut first = Vec::new();
        File::open(path).map_err(failed)?.take(4).read_to_end(&mut first).map_err(failed)?;
        if zipped::is_zip(path) {
            return Ok(Self::Table);
        }
        let unpacked = unpacked(path);
        let extension = unpacked.extension().unwrap_or_default().to_ascii_lowercase();
        let name = unpacked.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match (extension.to_str().unwrap_or_default(), first.as_slice()) {
            ("csv" | "tsv" | "parquet" | "pq", _) => Ok(Self::Table),
            ("npz", _) => Ok(Self::Npz),
            ("npy", _) => Ok(Self::Npy),
            ("bin", _) => Ok(Self::Cifar),
            ("png" | "jpg" | "jpeg", _) => Err(FormatError::SingleImage { path: path.to_owned() }.into()),
            _ if name.contains("idx") => Ok(Self::Idx),
            // Only tables have a schema. Their first bytes may belong to a record: they decide nothing.
            _ if options.schema.is_some() => Ok(Self::Table),
            (_, b"PAR1") => Ok(Self::Table),
            (_, [0, 0, 0x08..=0x0e, 1..=8]) => Ok(Self::Idx),
            _ => Err(FormatError::Unrecognised { path: path.to_owned() }.into()),
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
            // With a declared shape, nothing must be inferred: a private folder may have lost its last image.
            Ok(Self::Folder)
        } else {
            Err(FormatError::Unrecognised { path: path.to_owned() }.into())
        }
    }
}
