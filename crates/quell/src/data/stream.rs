//! Binary files from the first byte to the last, unpacked on the way.
//!
//! A header can announce anything. What it announces is compared with what the file can hold before anything is allocated;
//! of a packed file that is known only roughly, so there memory grows with what has really come out.

use std::{
    fs::File,
    io::{BufReader, ErrorKind, Read},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;

use super::memory::Memory;
use crate::Error;

/// Deflate writes at most 258 bytes for two bits.
const DENSEST: u64 = 1032;

/// Bytes read at a time.
const CHUNK: usize = 1 << 16;

/// A file, or a file in an archive, being read.
pub(super) struct Stream<'a> {
    path: PathBuf,
    reader: Box<dyn Read + 'a>,
    /// Bytes in front of us, at most.
    most: u64,
    /// Whether `most` is what there is.
    exact: bool,
}

impl<'a> Stream<'a> {
    /// A file that is unpacked if its name ends in `.gz`.
    pub(super) fn open(path: &Path) -> Result<Stream<'static>, Error> {
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

    /// A file in an archive, packed into some bytes of it.
    pub(super) fn packed(path: PathBuf, reader: impl Read + 'a, packed: u64) -> Self {
        Self::new(path, reader, packed.saturating_mul(DENSEST), false)
    }

    fn new(path: PathBuf, reader: impl Read + 'a, most: u64, exact: bool) -> Self {
        Self { path, reader: Box::new(reader), most, exact }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An error about this file. Where in it is not said: that would tell how many records come before.
    pub(super) fn broken(&self, found: impl Into<String>, expected: impl Into<String>) -> Error {
        Error::Broken { path: self.path.clone(), found: found.into(), expected: expected.into() }
    }

    /// The next few bytes.
    pub(super) fn array<const N: usize>(&mut self, expected: &str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, expected)?;
        Ok(bytes)
    }

    /// Refuses what the file cannot hold.
    pub(super) fn announced(&self, count: u64, size: u64) -> Result<u64, Error> {
        match count.checked_mul(size) {
            Some(bytes) if bytes <= self.most => Ok(bytes),
            _ => Err(self.broken("a header that announces more bytes than there are", "as many as it announces")),
        }
    }

    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: u64, memory: &Memory) -> Result<Vec<u8>, Error> {
        self.announced(count, 1)?;
        memory.take(count, &self.path)?;
        let mut bytes = self.room(count);
        self.chunks(count, 1, |chunk| bytes.extend_from_slice(chunk))?;
        Ok(bytes)
    }

    /// An empty list for `count` things: with room for all of them if they are known to come.
    pub(super) fn room<T>(&self, count: u64) -> Vec<T> {
        Vec::with_capacity(usize::try_from(count).unwrap_or(0).min(if self.exact { usize::MAX } else { CHUNK }))
    }

    /// The next `count` elements of `size` bytes, some at a time.
    pub(super) fn chunks(&mut self, count: u64, size: usize, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
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

    /// Refuses bytes that are left over; of a packed file this also compares the checksum.
    pub(super) fn end(mut self) -> Result<(), Error> {
        match self.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(self.broken("more bytes", "the end, as the header announces")),
        }
    }

    /// As many bytes as there are, up to the length of the buffer.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
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

    /// What does not unpack is broken; all else is the operating system's.
    fn failed(&self, error: &std::io::Error) -> Error {
        match error.kind() {
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof | ErrorKind::Other => {
                self.broken("packed data that is damaged", "data that can be unpacked")
            }
            _ => Error::io(&self.path, error),
        }
    }
}

/// Whether a file's name says that it is packed with gzip.
pub(super) fn packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}
