//! Reads features and labels from NumPy arrays: an archive (NPZ), or the files of a folder (NPY).
//!
//! The names of the arrays tell them apart: x and y, features and labels, data and target, images and labels,
//! arr_0 and arr_1. Where there are two parts, `train` or `test` stands before or after these names. An array
//! `users` names the users, if there are any.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

use zip::ZipArchive;

use crate::Error;
use crate::data::{
    Examples, FormatError, Options,
    examples::{dataset::Parts, memory::Memory},
    formats::{
        array::{self, Array},
        npy,
        stream::Stream,
    },
};

const PAIRS: [(&str, &str); 5] =
    [("x", "y"), ("features", "labels"), ("data", "target"), ("images", "labels"), ("arr_0", "arr_1")];

/// The names of the arrays, as they are written in the file.
#[derive(Clone)]
struct Names {
    features: String,
    labels: String,
    users: Option<String>,
}

/// Reads an archive.
pub(in crate::data) fn open_archive(path: &Path, options: &Options, memory: &Memory) -> Result<Parts, Error> {
    let names: Vec<String> = archive(path)?.file_names_raw().filter_map(stem).collect();
    let part = |names: &Names| {
        let (mut features, mut labels, mut users) = (archive(path)?, archive(path)?, archive(path)?);
        let users = names.users.as_ref().map(|name| member(path, &mut users, name)).transpose()?;
        let (features, labels) =
            (member(path, &mut features, &names.features)?, member(path, &mut labels, &names.labels)?);
        array::examples(features, labels, users, options.classes.as_deref(), memory)
    };
    both(path, part_named(&names, "train"), part_named(&names, "test"), part)
}

/// Reads arrays in files, given the file of the features or the folder.
pub(in crate::data) fn open_files(path: &Path, options: &Options, memory: &Memory) -> Result<Parts, Error> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let names = names_in(folder);
    let part = |names: &Names| {
        let open = |name: &String| npy::array(Stream::open(&folder.join(format!("{name}.npy")))?);
        let users = names.users.as_ref().map(open).transpose()?;
        array::examples(
            open(&names.features)?,
            open(&names.labels)?,
            users,
            options.classes.as_deref(),
            memory,
        )
    };
    let train = part_named(&names, "train");
    // If a folder has several pairs, the path must name the features of the training pair.
    let meant =
        train.filter(|names| path.is_dir() || path.file_stem().is_some_and(|stem| *stem == *names.features));
    both(path, meant, part_named(&names, "test"), part)
}

/// Lists the names of the arrays in a folder.
pub(in crate::data) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| stem(entry.ok()?.file_name().as_encoded_bytes())).collect()
}

/// Returns whether a folder has arrays to train on.
pub(in crate::data) fn any_in(folder: &Path) -> bool {
    part_named(&names_in(folder), "train").is_some()
}

fn both(
    path: &Path,
    train: Option<Names>,
    test: Option<Names>,
    part: impl Fn(&Names) -> Result<Examples, Error>,
) -> Result<Parts, Error> {
    let expected =
        "arrays named x and y, features and labels, data and target, images and labels, or arr_0 and arr_1";
    let train = train.ok_or_else(|| FormatError::NoLabels { path: path.to_owned(), expected })?;
    let train = part(&train)?;
    let test = test.map(|names| part(&names)).transpose()?;
    Ok((train, test))
}

/// Removes the file name extension from the name of an array.
fn stem(name: &[u8]) -> Option<String> {
    std::str::from_utf8(name).ok()?.strip_suffix(".npy").map(str::to_owned)
}

/// Finds the arrays of a part. Arrays whose names mention no part are to train on.
fn part_named(names: &[String], part: &str) -> Option<Names> {
    let find = |wanted: &str| names.iter().find(|name| name.eq_ignore_ascii_case(wanted)).cloned();
    let forms = [format!("{part}_"), String::new()].into_iter().zip([String::new(), format!("_{part}")]);
    let plain = (part == "train").then(|| (String::new(), String::new()));
    for (before, after) in forms.chain(plain) {
        let named = |name: &str| find(&format!("{before}{name}{after}"));
        for (features, labels) in PAIRS {
            if let (Some(features), Some(labels)) = (named(features), named(labels)) {
                return Some(Names { features, labels, users: named("users") });
            }
        }
    }
    None
}

/// Opens an archive and reads its directory.
fn archive(path: &Path) -> Result<ZipArchive<BufReader<File>>, Error> {
    let file = File::open(path).map_err(|error| Error::io(path, &error))?;
    ZipArchive::new(BufReader::new(file)).map_err(|_| damaged(path))
}

/// Opens an array of an archive. The length in the directory is not trusted.
fn member<'a>(
    path: &Path,
    archive: &'a mut ZipArchive<BufReader<File>>,
    name: &str,
) -> Result<Array<'a>, Error> {
    let length = std::fs::metadata(path).map_err(|error| Error::io(path, &error))?.len();
    let name = format!("{name}.npy");
    let file = archive.by_name(&name).map_err(|_| damaged(path))?;
    let shown: PathBuf = path.join(&name);
    npy::array(Stream::packed(shown, file, length))
}

/// Creates the error for a damaged archive. The cause is dropped: it may quote what was read.
fn damaged(path: &Path) -> Error {
    FormatError::NoArchive { path: path.to_owned() }.into()
}
