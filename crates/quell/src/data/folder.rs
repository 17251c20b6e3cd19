//! Pictures in folders: the name of a folder is the class of the pictures in it.
//!
//! Folders `train` and `test` (or `val`) hold such folders each; otherwise everything is to train on. All pictures have one
//! size, which is that of the first by name.

use std::path::{Path, PathBuf};

use super::{Dataset, Examples, Options, Targets, examples::Features, image, memory::Memory};
use crate::Error;

/// Reads all pictures.
pub(super) fn open(path: &Path, options: &Options, memory: &Memory) -> Result<Dataset, Error> {
    let train = Some(path.join("train")).filter(|folder| folder.is_dir());
    let test = ["test", "val"].map(|name| path.join(name)).into_iter().find(|folder| train.is_some() && folder.is_dir());
    let train = train.as_deref().unwrap_or(path);
    let names = match &options.classes {
        Some(classes) => classes.clone(),
        None => folders(train)?,
    };
    let mut shape = None;
    let train = part(train, &names, &mut shape, memory)?;
    let test = test.map(|test| part(&test, &names, &mut shape, memory)).transpose()?;
    Ok(Dataset { name: String::new(), train, test_is_public: test.is_some(), test })
}

fn part(folder: &Path, names: &[String], shape: &mut Option<[usize; 3]>, memory: &Memory) -> Result<Examples, Error> {
    let present = folders(folder)?;
    if let Some(name) = present.iter().find(|name| !names.contains(name)) {
        return Err(Error::NoClass { path: folder.to_owned(), name: name.clone(), classes: names.to_vec() });
    }
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for (label, name) in names.iter().enumerate().filter(|(_, name)| present.contains(name)) {
        for path in pictures(&folder.join(name))? {
            let image = image::read(&path, *shape)?;
            memory.take(image.planes.len() as u64 + 4, &path)?;
            *shape = Some(image.shape);
            values.extend_from_slice(&image.planes);
            labels.push(label as u32);
        }
    }
    let Some(shape) = shape else { return Err(Error::Unrecognised { path: folder.to_owned() }) };
    Examples::assemble(&*shape, Features::Bytes(values), 1.0 / 255.0, Targets::Classes { labels, names: names.to_vec() }, None)
}

/// Names of the folders in a folder, sorted; without those that begin with a point.
fn folders(path: &Path) -> Result<Vec<String>, Error> {
    let folders = entries(path)?.into_iter().filter(|path| path.is_dir());
    Ok(folders.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).filter(|name| !name.starts_with('.')).collect())
}

/// Pictures in a folder, sorted by name.
fn pictures(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let named = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        ["png", "jpg", "jpeg"].iter().any(|name| extension == *name)
    };
    Ok(entries(path)?.into_iter().filter(|path| named(path) && path.is_file()).collect())
}

fn entries(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error: std::io::Error| Error::io(path, &error);
    let entries = std::fs::read_dir(path).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()).map_err(failed));
    let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
    entries.sort();
    Ok(entries)
}

/// Whether a folder holds folders.
pub(super) fn any_in(path: &Path) -> bool {
    folders(path).is_ok_and(|folders| !folders.is_empty())
}
