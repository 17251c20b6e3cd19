//! Reads whole files up to a size limit.

use std::{fs::File, io::Read, path::Path};

use crate::Error;

/// Reads a file of at most `most` bytes, whatever size the operating system reports.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let failed = |error: std::io::Error| Error::io(path, &error);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(Error::TooLong { path: path.to_owned(), most });
    }
    Ok(bytes)
}

/// Whether a path is a regular file.
pub(crate) fn is_file(path: &Path) -> Result<bool, Error> {
    Ok(std::fs::metadata(path).map_err(|error| Error::io(path, &error))?.is_file())
}

/// Reads a UTF-8 file of at most `most` bytes.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String, Error> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| Error::Unreadable { path: path.to_owned(), because: std::io::ErrorKind::InvalidData })
}
