//! Reads binary files sequentially, and decompresses them on the way.
//!
//! A header can announce any length. Each announced length is compared with what the file can hold before
//! anything is allocated. For a gzipped file that is known only roughly, so memory grows with the bytes that
//! were actually decompressed.

use std::{
    fs::File,
    io::{BufReader, ErrorKind, Read},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;

use crate::data::examples::memory::Memory;
use crate::{Error, data::FormatError};

/// The highest compression ratio of Deflate, which writes at most 258 bytes for two bits.
pub(in crate::data) const DENSEST: u64 = 1032;

/// The number of bytes read at a time.
const CHUNK: usize = 1 << 16;

/// A file, or a file in an archive, that is being read.
pub(in crate::data) struct Stream<'a> {
    path: PathBuf,
    reader: Box<dyn Read + 'a>,
    /// The most bytes that may still follow.
    most: u64,
    /// Whether exactly `most` bytes follow.
    exact: bool,
}

impl<'a> Stream<'a> {
    /// Opens a file, and decompresses it if its name ends in `.gz`.
    pub(in crate::data) fn open(path: &Path) -> Result<Stream<'static>, Error> {
        let failed = |error: std::io::Error| Error::io(path, &error);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let file = BufReader::with_capacity(CHUNK, file);
        Ok(if packed(path) {
            Stream::new(path.to_owned(), MultiGzDecoder::new(file), length.saturating_mul(DENSEST), false)
        } else {
            Stream::new(path.to_owned(), file, length, true)
        })
    }

    /// Reads a file in an archive that takes `packed` compressed bytes there.
    pub(in crate::data) fn packed(path: PathBuf, reader: impl Read + 'a, packed: u64) -> Self {
        Self::new(path, reader, packed.saturating_mul(DENSEST), false)
    }

    /// Returns the decompressed bytes, without limit: the caller bounds what it keeps.
    pub(in crate::data) fn into_reader(self) -> Box<dyn Read + 'a> {
        self.reader
    }

    fn new(path: PathBuf, reader: impl Read + 'a, most: u64, exact: bool) -> Self {
        Self { path, reader: Box::new(reader), most, exact }
    }

    pub(in crate::data) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an error about this file.
    ///
    /// The error does not give a position, which would reveal how many records come before.
    pub(in crate::data) fn broken(&self, found: impl Into<String>, expected: impl Into<String>) -> Error {
        FormatError::Broken { path: self.path.clone(), found: found.into(), expected: expected.into() }.into()
    }

    /// Reads the next `N` bytes.
    pub(in crate::data) fn array<const N: usize>(&mut self, expected: &str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, expected)?;
        Ok(bytes)
    }

    /// Checks that the file can hold `count` elements of `size` bytes.
    pub(in crate::data) fn announced(&self, count: u64, size: u64) -> Result<u64, Error> {
        match count.checked_mul(size) {
            Some(bytes) if bytes <= self.most => Ok(bytes),
            _ => {
                Err(self
                    .broken("a header that announces more bytes than the file has", "the announced number"))
            }
        }
    }

    /// Reads the next `count` bytes.
    pub(in crate::data) fn bytes(&mut self, count: u64, memory: &Memory) -> Result<Vec<u8>, Error> {
        self.announced(count, 1)?;
        memory.take(count, &self.path)?;
        let mut bytes = self.room(count);
        self.chunks(count, 1, |chunk| bytes.extend_from_slice(chunk))?;
        Ok(bytes)
    }

    /// Creates an empty list with capacity for `count` elements if they are known to follow.
    pub(in crate::data) fn room<T>(&self, count: u64) -> Vec<T> {
        Vec::with_capacity(usize::try_from(count).unwrap_or(0).min(if self.exact {
            usize::MAX
        } else {
            CHUNK
        }))
    }

    /// Reads the next `count` elements of `size` bytes, in chunks.
    pub(in crate::data) fn chunks(
        &mut self,
        count: u64,
        size: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        let mut buffer = vec![0; CHUNK];
        let mut left = self.announced(count, size as u64)?;
        while left > 0 {
            let length = left.min((CHUNK / size * size) as u64);
            let chunk = &mut buffer[..length as usize];
            self.fill(chunk, "as many bytes as the header announces")?;
            each(chunk);
            left -= length;
        }
        Ok(())
    }

    /// Refuses left-over bytes. For a gzipped file this also compares the checksum.
    pub(in crate::data) fn end(mut self) -> Result<(), Error> {
        match self.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(self.broken("more bytes", "the end, as the header announces")),
        }
    }

    /// Reads as many bytes as there are, up to the length of the buffer.
    pub(in crate::data) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => {
                    filled += count;
                    self.most = self.most.saturating_sub(count as u64);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Ok(filled)
    }

    fn fill(&mut self, buffer: &mut [u8], expected: &str) -> Result<(), Error> {
        let filled = self.read(buffer)?;
        if filled == buffer.len() { Ok(()) } else { Err(self.broken("its end", expected)) }
    }

    /// Converts an error: data that does not decompress is broken, other errors come from the system.
    fn failed(&self, error: &std::io::Error) -> Error {
        match error.kind() {
            ErrorKind::InvalidData
            | ErrorKind::InvalidInput
            | ErrorKind::UnexpectedEof
            | ErrorKind::Other => self.broken("damaged compressed data", "data that can be decompressed"),
            _ => Error::io(&self.path, error),
        }
    }
}

/// Returns whether a file's name says that it is compressed with gzip.
pub(in crate::data) fn packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}
