//! Checks what a path refers to before anything is read from it.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read},
    path::Path,
};

use crate::error::Error;

/// Refuses a pipe, a device or a directory, because reading one may never end.
///
/// A missing file is accepted.
pub(crate) fn must_be_regular(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(Error::NotAFile { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Reads a regular file; fails if it has more than `limit` bytes.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// The identity of a file: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Identity {
    /// The identity of the file at a path; none if there is no file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(path).ok().map(|file| Self { device: file.dev(), inode: file.ino() })
        }
        // On other systems, an open file can be neither removed nor replaced.
        #[cfg(not(unix))]
        fs::metadata(path).ok().map(|_| Self {})
    }
}
