//! Reads the binary version of CIFAR-10.
//!
//! A record is one byte for the class and 3072 bytes for the pixels: the red plane, then green, then blue.
//! The format has no header, so only the length of a file can be wrong.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::data::{
    Examples, FormatError, Options, Targets,
    examples::{Features, dataset::Parts, memory::Memory},
    formats::stream::{Stream, packed},
};

const PIXELS: usize = 3 * 32 * 32;
const RECORD: usize = 1 + PIXELS;

/// The names of the classes, in the order of the labels.
const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// Reads one file, or the files of a folder.
///
/// Files named `test…` are the test part. All others are the training part.
pub(in crate::data) fn open(path: &Path, options: &Options, memory: &Memory) -> Result<Parts, Error> {
    let (test, train) = if path.is_dir() {
        files_in(path).into_iter().partition(|path| tests(path))
    } else {
        (vec![], vec![path.to_owned()])
    };
    if train.is_empty() {
        return Err(FormatError::Unrecognised { path: path.to_owned() }.into());
    }
    let train = part(&train, options, memory)?;
    let test = if test.is_empty() { None } else { Some(part(&test, options, memory)?) };
    Ok((train, test))
}

/// Lists the CIFAR-10 files of a folder, sorted by name.
///
/// If a file exists both gzipped and not gzipped, the list holds one of them.
pub(in crate::data) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let stem = |path: &Path| if packed(path) { path.with_extension("") } else { path.to_owned() };
    let mut files: Vec<PathBuf> =
        entries.filter(|path| stem(path).extension().is_some_and(|extension| extension == "bin")).collect();
    files.sort();
    files.dedup_by_key(|path| stem(path));
    files
}

fn tests(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"test"))
}

fn part(paths: &[PathBuf], options: &Options, memory: &Memory) -> Result<Examples, Error> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for path in paths {
        records(path, &mut pixels, &mut labels, memory)?;
    }
    let names = options.classes.clone().unwrap_or_else(|| CLASSES.map(String::from).to_vec());
    Examples::assemble(
        &[3, 32, 32],
        Features::Bytes(pixels),
        1.0 / 255.0,
        Targets::Classes { labels, names },
        None,
    )
}

fn records(path: &Path, pixels: &mut Vec<u8>, labels: &mut Vec<u32>, memory: &Memory) -> Result<(), Error> {
    let mut stream = Stream::open(path)?;
    let mut record = [0; RECORD];
    loop {
        match stream.read(&mut record)? {
            RECORD => {
                memory.take(RECORD as u64 + 3, path)?;
                labels.push(u32::from(record[0]));
                pixels.extend_from_slice(&record[1..]);
            }
            0 => return Ok(()),
            rest => {
                return Err(
                    stream.broken(format!("a record of {rest} bytes"), format!("records of {RECORD} bytes"))
                );
            }
        }
    }
}
