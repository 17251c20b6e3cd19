//! Reads IDX, the format of MNIST.
//!
//! A file is two zero bytes, a type, the number of dimensions, their lengths and the numbers, all big-endian.
//!
//! Images and labels are in two files whose names differ in one word. The same holds for training and test
//! files.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::data::{
    Examples, FormatError, Options,
    examples::{dataset::Parts, memory::Memory},
    formats::{
        array::{self, Array, Numbers, Stored},
        stream::Stream,
    },
};

/// The most dimensions. No file that is used for learning has more.
const MOST_SIDES: u8 = 8;

/// Opens the array in a file.
pub(in crate::data) fn array(path: &Path) -> Result<Array<'static>, Error> {
    let mut stream = Stream::open(path)?;
    let [zero, also_zero, kind, sides] = stream.array("the header of an IDX file")?;
    if (zero, also_zero) != (0, 0) {
        return Err(stream.broken("other bytes", "the two zero bytes that an IDX file begins with"));
    }
    let (numbers, size) = match kind {
        0x08 => (Numbers::Unsigned, 1),
        0x09 => (Numbers::Signed, 1),
        0x0b => (Numbers::Signed, 2),
        0x0c => (Numbers::Signed, 4),
        0x0d => (Numbers::Float, 4),
        0x0e => (Numbers::Float, 8),
        _ => {
            return Err(
                stream.broken(format!("type {kind:#04x}"), "one of 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e")
            );
        }
    };
    if !(1..=MOST_SIDES).contains(&sides) {
        return Err(stream.broken(format!("{sides} sides"), format!("1 to {MOST_SIDES}")));
    }
    let sides = (0..sides)
        .map(|_| stream.array("the sides of the array").map(|side| u64::from(u32::from_be_bytes(side))));
    let sides = sides.collect::<Result<Vec<u64>, Error>>()?;
    Ok(Array { stream, stored: Stored { numbers, size, big_endian: true }, sides })
}

/// The file of the labels of images, by its name.
pub(in crate::data) fn labels_of(images: &Path) -> Option<PathBuf> {
    renamed(images, &[("images", "labels"), ("idx3", "idx1")])
}

/// Reads images and labels, given the images or their folder.
///
/// Images and labels to test on are read too, if they are in the same folder.
pub(in crate::data) fn open(path: &Path, options: &Options, memory: &Memory) -> Result<Parts, Error> {
    let images = if path.is_dir() {
        images_in(path).ok_or_else(|| FormatError::Unrecognised { path: path.to_owned() })?
    } else {
        path.to_owned()
    };
    let train = part(&images, options, memory)?;
    let beside = ["t10k", "test"]
        .into_iter()
        .filter_map(|test| renamed(&images, &[("train", test)]))
        .find(|path| path.exists());
    let test = beside.map(|images| part(&images, options, memory)).transpose()?;
    Ok((train, test))
}

/// Finds the training images in a folder, or the test images if there are no others.
pub(in crate::data) fn images_in(folder: &Path) -> Option<PathBuf> {
    let names =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|name| name.contains("idx")).collect();
    let of = |part: &str| {
        let images = names.iter().filter(|name| name.contains(part));
        // The shortest name is that of the file that is not gzipped.
        images.min_by_key(|name| (name.len(), *name)).map(|name| folder.join(name))
    };
    ["train-images", "t10k-images", "test-images"].into_iter().find_map(of)
}

fn part(images: &Path, options: &Options, memory: &Memory) -> Result<Examples, Error> {
    let labels = labels_of(images).filter(|path| path.exists());
    let Some(labels) = labels else {
        return Err(FormatError::NoLabels {
            path: images.to_owned(),
            expected: "a file beside it, named with labels for images and idx1 for idx3",
        }
        .into());
    };
    let digits: Vec<String> = (0..10).map(|digit| digit.to_string()).collect();
    let classes = options.classes.as_deref().unwrap_or(&digits);
    let labels = array(&labels)?;
    let classes =
        if labels.stored.numbers == Numbers::Float { options.classes.as_deref() } else { Some(classes) };
    array::examples(array(images)?, labels, None, classes, memory)
}

/// Finds the file in the same folder whose name has some words replaced.
///
/// If only a gzipped file exists, its path is returned. Returns `None` if the name lacks one of the words.
fn renamed(path: &Path, words: &[(&str, &str)]) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_str()?.to_owned();
    let (first, _) = words.first()?;
    if !name.contains(first) {
        return None;
    }
    for (word, other) in words {
        name = name.replace(word, other);
    }
    let there = path.with_file_name(&name);
    let otherwise = match name.strip_suffix(".gz") {
        Some(name) => path.with_file_name(name),
        None => path.with_file_name(format!("{name}.gz")),
    };
    Some(if there.exists() || !otherwise.exists() { there } else { otherwise })
}
