//! Reads the only file of a zip archive, as a stream.
//!
//! The archive's directory says where the file is, how it is packed, how long it is and which checksum it
//! has. Nothing is allocated for the announced length, and reading ends with an error at the first byte that
//! exceeds it. So an archive cannot unpack to more than its directory announces, and the directory cannot
//! announce more than Deflate can pack into the archive.

use std::{
    fs::File,
    io::{BufReader, Error as IoError, ErrorKind, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use flate2::{Crc, read::DeflateDecoder};
use zip::{CompressionMethod, ZipArchive};

use crate::Error;
use crate::data::{FormatError, formats::stream::DENSEST};

/// A file in a zip archive.
#[derive(Clone, Debug)]
pub(in crate::data) struct Member {
    archive: PathBuf,
    /// The name of the file in the archive.
    pub(in crate::data) name: PathBuf,
    start: u64,
    packed: u64,
    length: u64,
    checksum: u32,
    is_deflated: bool,
}

/// Returns whether a file's name says that it is a zip archive.
pub(in crate::data) fn is_zip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}

impl Member {
    /// Finds the only file of an archive.
    ///
    /// Folders do not count, nor does what macOS adds. File names in an archive are as public as those in a
    /// folder.
    pub(in crate::data) fn only(path: &Path) -> Result<Self, Error> {
        let refused = |found| Err(FormatError::NoTable { path: path.to_owned(), found }.into());
        let file = File::open(path).map_err(|error| Error::io(path, &error))?;
        let archived = file.metadata().map_err(|error| Error::io(path, &error))?.len();
        let damaged = || Error::from(FormatError::Packed { path: path.to_owned() });
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|_| damaged())?;
        let mut only = None;
        for index in 0..archive.len() {
            let found = archive.by_index_raw(index).map_err(|_| damaged())?;
            let name = PathBuf::from(found.name().map_err(|_| damaged())?.into_owned());
            let is_hidden = name.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
            if found.is_dir() || is_hidden || name.starts_with("__MACOSX") {
                continue;
            }
            if only.is_some() {
                return refused("a zip archive of several files");
            }
            if found.encrypted() {
                return refused("an encrypted zip archive");
            }
            let is_deflated = match found.compression() {
                CompressionMethod::Stored => false,
                CompressionMethod::Deflated => true,
                _ => return refused("a zip archive with another compression than Deflate"),
            };
            let (packed, length) = (found.compressed_size(), found.size());
            if packed > archived || length > packed.saturating_mul(DENSEST) {
                return Err(damaged());
            }
            only = Some(Self {
                archive: path.to_owned(),
                name,
                start: found.data_start().ok_or_else(damaged)?,
                packed,
                length,
                checksum: found.crc32(),
                is_deflated,
            });
        }
        only.map_or_else(|| refused("an empty zip archive"), Ok)
    }

    /// Opens the file. Its last read checks the length and the checksum.
    pub(in crate::data) fn reader(&self) -> Result<impl Read + use<>, Error> {
        let failed = |error: IoError| Error::io(&self.archive, &error);
        let mut file = File::open(&self.archive).map_err(failed)?;
        file.seek(SeekFrom::Start(self.start)).map_err(failed)?;
        let packed = BufReader::new(file.take(self.packed));
        let reader: Box<dyn Read> =
            if self.is_deflated { Box::new(DeflateDecoder::new(packed)) } else { Box::new(packed) };
        Ok(Checked { reader, sum: Crc::new(), left: self.length, checksum: self.checksum })
    }
}

/// A reader that compares length and checksum with what the directory announces.
struct Checked {
    reader: Box<dyn Read>,
    sum: Crc,
    left: u64,
    checksum: u32,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.sum.update(&buffer[..count]);
        let damaged = || IoError::from(ErrorKind::InvalidData);
        self.left = self.left.checked_sub(count as u64).ok_or_else(damaged)?;
        if count == 0 && !buffer.is_empty() && (self.left > 0 || self.sum.sum() != self.checksum) {
            return Err(damaged());
        }
        Ok(count)
    }
}
