//! Reads images in folders: the name of a folder is the class of its images.
//!
//! The folders `train` and `test` (or `val`) each hold such folders. Without them, every image is in the
//! training part. All images have one shape. Shape and classes are declared, or read from public images:
//! never from private training images. A private image counts as a record without a class if it cannot be
//! read, has another shape or lies in a folder of another name. No learner trains on such a record.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::data::{
    Examples, FormatError, Options, Targets,
    examples::{
        Features,
        dataset::Parts,
        memory::Memory,
        users::{self, UsersOfFiles},
    },
    formats::{array::NO_CLASS, image},
};

/// Reads all images.
pub(in crate::data) fn open(path: &Path, options: &Options, memory: &Memory) -> Result<Parts, Error> {
    let train = Some(path.join("train")).filter(|folder| folder.is_dir());
    let test = ["test", "val"]
        .map(|name| path.join(name))
        .into_iter()
        .find(|folder| train.is_some() && folder.is_dir());
    let train = train.as_deref().unwrap_or(path);
    // The folder that is public, from which classes and shape may be read.
    let public = if options.public { Some(train) } else { test.as_deref().filter(|_| options.public_test) };
    let undeclared = |what| FormatError::Undeclared { path: path.to_owned(), what }.into();
    let classes = match (&options.classes, public) {
        (Some(classes), _) => classes.clone(),
        (None, Some(public)) => folders(public)?,
        (None, None) => return Err(undeclared("classes of the images")),
    };
    let shape = match (options.shape, public) {
        (Some(shape), _) => checked(shape)?,
        (None, Some(public)) => first_shape(public)?,
        (None, None) => return Err(undeclared("shape of the images")),
    };
    let users = options.users.as_deref().map(|path| users::of_files(path, memory)).transpose()?;
    let read = |folder: &Path, public: bool, users: Option<&UsersOfFiles>| {
        let pictures = Pictures { folder, classes: &classes, shape, users, memory };
        if public { pictures.public() } else { pictures.private() }
    };
    let train = read(train, options.public, users.as_ref())?;
    let test = test.map(|test| read(&test, options.public || options.public_test, None)).transpose()?;
    Ok((train, test))
}

/// Folders of images, and public facts about them.
struct Pictures<'a> {
    folder: &'a Path,
    classes: &'a [String],
    shape: [usize; 3],
    /// The user of each image, if users are named.
    users: Option<&'a UsersOfFiles>,
    memory: &'a Memory,
}

impl Pictures<'_> {
    /// Reads public images. An error names the image that cannot be read.
    fn public(self) -> Result<Examples, Error> {
        let unknown = folders(self.folder)?.into_iter().find(|name| !self.classes.contains(name));
        if let Some(name) = unknown {
            return Err(FormatError::NoClass {
                path: self.folder.to_owned(),
                name,
                classes: self.classes.to_vec(),
            }
            .into());
        }
        self.examples(true, |picture, shape| {
            image::read(picture, Some(shape)).map(|image| Some(image.planes))
        })
    }

    /// Reads private images. An image that cannot be used has no class, and no error mentions it.
    fn private(self) -> Result<Examples, Error> {
        let planes =
            |picture: &Path, shape| Ok(image::read(picture, Some(shape)).ok().map(|image| image.planes));
        Ok(self.examples(false, planes)?.without_places())
    }

    /// Reads one record for each file, or for each user of a file that has several.
    ///
    /// A private file counts as a record whatever it holds: replacing an image by a file that is no image
    /// does not change the number of records.
    fn examples(
        &self,
        is_public: bool,
        read: impl Fn(&Path, [usize; 3]) -> Result<Option<Vec<u8>>, Error>,
    ) -> Result<Examples, Error> {
        let bytes: usize = self.shape.iter().product();
        let (mut values, mut labels, mut users) = (Vec::new(), Vec::new(), Vec::new());
        for folder in subfolders(self.folder)? {
            let class = self
                .classes
                .iter()
                .position(|class| folder.file_name().is_some_and(|name| name == class.as_str()));
            for picture in files(&folder, is_public)? {
                let planes = if class.is_some() { read(&picture, self.shape)? } else { None };
                let label = class.filter(|_| planes.is_some()).map_or(NO_CLASS, |class| class as u32);
                let planes = planes.unwrap_or_else(|| vec![0; bytes]);
                let named = self.users.map_or(&[][..], |users| users.of(&folder, &picture));
                for place in 0..named.len().max(1) {
                    self.memory.take(bytes as u64 + 4, self.folder)?;
                    labels.push(label);
                    values.extend_from_slice(&planes);
                    users.push(named.get(place).copied());
                }
            }
        }
        let targets = Targets::Classes { labels, names: self.classes.to_vec() };
        Examples::assemble(
            &self.shape,
            Features::Bytes(values),
            1.0 / 255.0,
            targets,
            self.users.map(|_| users),
        )
    }
}

/// Images to predict, with the name of each: its path within the folder.
pub struct NewPictures {
    /// The images in the order of their names. Every target is 0.
    pub examples: Examples,
    /// The name of each image.
    pub names: Vec<String>,
}

/// Reads images to predict: one image, or all images in a folder and in the folders inside it.
///
/// Nothing about them is private to the caller, so an error names the image that cannot be read.
pub fn pictures(path: impl AsRef<Path>, shape: [usize; 3]) -> Result<NewPictures, Error> {
    let path = path.as_ref();
    let memory = Memory::new(Memory::USUAL);
    let mut found = Vec::new();
    if path.is_dir() {
        list(path, &mut found)?;
    } else {
        found.push(path.to_owned());
    }
    if found.is_empty() {
        return Err(FormatError::Unrecognised { path: path.to_owned() }.into());
    }
    let (mut values, mut names) = (Vec::new(), Vec::new());
    for picture in found {
        memory.take(shape.iter().product::<usize>() as u64 + 4, path)?;
        values.extend(image::read(&picture, Some(shape))?.planes);
        let inside = picture.strip_prefix(path).ok().filter(|inside| !inside.as_os_str().is_empty());
        let inside = inside.or_else(|| picture.file_name().map(Path::new)).unwrap_or(&picture);
        names.push(inside.to_string_lossy().into_owned());
    }
    let targets = Targets::Numbers(vec![0.0; names.len()]);
    let examples = Examples::assemble(&shape, Features::Bytes(values), 1.0 / 255.0, targets, None)?;
    Ok(NewPictures { examples, names })
}

/// Lists all images in a folder and in the folders inside it.
fn list(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    found.extend(files(folder, true)?);
    subfolders(folder)?.iter().try_for_each(|inside| list(inside, found))
}

/// Checks a declared shape.
fn checked(shape: [usize; 3]) -> Result<[usize; 3], Error> {
    if matches!(shape[0], 1 | 3) && image::fits(shape) {
        return Ok(shape);
    }
    let expected = "1 or 3 channels, and at least 1 row and 1 column, within the size limit of an image";
    Err(Error::Setting { name: "shape", found: format!("{shape:?}"), expected })
}

/// Returns the shape of the first image by name.
fn first_shape(folder: &Path) -> Result<[usize; 3], Error> {
    for name in folders(folder)? {
        if let Some(picture) = files(&folder.join(name), true)?.first() {
            return Ok(image::read(picture, None)?.shape);
        }
    }
    Err(FormatError::Unrecognised { path: folder.to_owned() }.into())
}

/// Lists the folders in a folder, sorted by name.
fn subfolders(path: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(entries(path)?.into_iter().filter(|path| path.is_dir()).collect())
}

/// Lists the names of the folders in a folder that can be class names.
fn folders(path: &Path) -> Result<Vec<String>, Error> {
    Ok(subfolders(path)?.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect())
}

/// Lists the files in a folder, sorted by name.
///
/// If `pictures` is true, only files with an image's file name extension are listed.
fn files(path: &Path, pictures: bool) -> Result<Vec<PathBuf>, Error> {
    let is_picture = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        ["png", "jpg", "jpeg"].iter().any(|name| extension == *name)
    };
    Ok(entries(path)?.into_iter().filter(|path| (!pictures || is_picture(path)) && path.is_file()).collect())
}

/// Lists the entries of a folder, sorted by name, without hidden ones.
///
/// The name of a hidden entry begins with a dot.
fn entries(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error: std::io::Error| Error::io(path, &error);
    let entries =
        std::fs::read_dir(path).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()).map_err(failed));
    let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
    entries.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
    entries.sort();
    Ok(entries)
}

/// Returns whether a folder contains folders.
pub(in crate::data) fn any_in(path: &Path) -> bool {
    folders(path).is_ok_and(|folders| !folders.is_empty())
}
