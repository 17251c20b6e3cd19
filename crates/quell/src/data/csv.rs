//! Comma-separated text.
//!
//! The first row holds the names. Cells are text, without the white space around them; an empty one is missing, and so is
//! one that a short row does not have. Extra cells are not looked at, blank lines are no records, bytes that are not UTF-8
//! are read as U+FFFD. An opening quote that is never closed makes one record of the rest of the file: who writes the
//! file must quote cells properly, or one person's cell could swallow other people's records. A record ends at the latest
//! after 16 MiB, and with it the file, so that memory is bounded and still no record makes an error.
//!
//! A file whose name ends in `.gz` is unpacked while it is read.

use std::{
    borrow::Cow,
    cell::Cell,
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
    rc::Rc,
};

use csv::{ByteRecord, Reader, ReaderBuilder};
use flate2::read::MultiGzDecoder;

use super::{
    header::{Column, Header, Kind, Reading},
    row::{Cells, Row},
    stream::packed,
};
use crate::Error;

/// Bytes of a record, and what is read ahead of it.
const LONGEST_RECORD: usize = 1 << 24;
const AHEAD: usize = 1 << 17;

/// More columns than a table has that people look at.
const MOST_COLUMNS: usize = 1 << 16;

/// A file and what separates its cells.
#[derive(Debug)]
pub(crate) struct Csv {
    path: PathBuf,
    separator: u8,
}

impl Csv {
    /// Reads the names of the columns. Cells are separated by tabs if the path says `.tsv`, otherwise by commas.
    pub(crate) fn open(path: &Path) -> Result<(Self, Header), Error> {
        let unpacked = if packed(path) { path.with_extension("") } else { path.to_owned() };
        let tabs = unpacked.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
        let file = Self { path: path.to_owned(), separator: if tabs { b'\t' } else { b',' } };
        let mut header = ByteRecord::new();
        if !file.reader()?.0.read_byte_record(&mut header).map_err(|error| file.failed(&error))? {
            return Err(Error::NoTable { path: path.to_owned(), found: "empty" });
        }
        file.check(&header)?;
        let named = |name: &[u8]| String::from_utf8_lossy(name.trim_ascii()).into_owned();
        let columns = header.iter().map(|name| Column { name: named(name), kind: Kind::Undeclared }).collect();
        let header = Header::new(columns, path)?;
        Ok((file, header))
    }

    /// Looks at every record once, from the first to the last, and keeps none.
    pub(crate) fn scan(&self, readings: &[Reading], each: &mut dyn FnMut(&Row<'_>)) -> Result<(), Error> {
        let (mut reader, ahead) = self.reader()?;
        let mut record = ByteRecord::new();
        let mut next = |record: &mut ByteRecord| {
            ahead.set(0);
            reader.read_byte_record(record).map_err(|error| self.failed(&error))
        };
        let mut more = next(&mut record)?;
        while more {
            more = next(&mut record)?;
            if more {
                each(&Row(Cells::Csv { record: &record, readings }));
            }
        }
        Ok(())
    }

    /// Names, as far as one can tell without showing them: a file without a header must not have its first record in an
    /// error message.
    fn check(&self, header: &ByteRecord) -> Result<(), Error> {
        let path = self.path.clone();
        if header.as_slice().contains(&0) {
            return Err(Error::NoTable { path, found: "binary or UTF-16" });
        }
        if header.len() > MOST_COLUMNS {
            return Err(Error::NoTable { path, found: "of more than 65536 columns" });
        }
        if (0..header.len()).any(|column| number(header, column).is_some()) {
            return Err(Error::NoHeader { path });
        }
        let has = |separator: u8| header.len() == 1 && header[0].contains(&separator);
        let expected = if self.separator == b'\t' { "tabs" } else { "commas" };
        match [(b';', "semicolons"), (b'\t', "tabs"), (b',', "commas")].into_iter().find(|(separator, _)| has(*separator)) {
            Some((_, found)) => Err(Error::Separator { path, found, expected }),
            None => Ok(()),
        }
    }

    /// A reader, and the count of bytes that it took for the record it is at.
    fn reader(&self) -> Result<(Reader<Bounded>, Rc<Cell<usize>>), Error> {
        let file = File::open(&self.path).map_err(|error| Error::io(&self.path, &error))?;
        let file: Box<dyn Read> =
            if packed(&self.path) { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(file) };
        let taken = Rc::new(Cell::new(0));
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(self.separator).buffer_capacity(AHEAD);
        Ok((builder.from_reader(Bounded { file, taken: Rc::clone(&taken), ended: false }), taken))
    }

    /// With records of any length and cells of any bytes, only reading itself can fail.
    fn failed(&self, error: &csv::Error) -> Error {
        match error.kind() {
            csv::ErrorKind::Io(error) if packed(&self.path) && damage(error) => Error::Packed { path: self.path.clone() },
            csv::ErrorKind::Io(error) => Error::io(&self.path, error),
            _ => Error::Unreadable { path: self.path.clone(), because: std::io::ErrorKind::InvalidData },
        }
    }
}

/// A file that ends where a record becomes too long.
struct Bounded {
    file: Box<dyn Read>,
    /// Bytes taken since the last record ended.
    taken: Rc<Cell<usize>>,
    ended: bool,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.ended |= self.taken.get() > LONGEST_RECORD;
        if self.ended {
            return Ok(0);
        }
        let count = self.file.read(buffer)?;
        self.taken.set(self.taken.get() + count);
        Ok(count)
    }
}

/// Whether an error is about what was packed, and not about reading it.
fn damage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}

/// A cell as a finite number, if it is one.
pub(super) fn number(record: &ByteRecord, column: usize) -> Option<f64> {
    let cell = record.get(column)?.trim_ascii();
    std::str::from_utf8(cell).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A cell as text, unless it is empty.
pub(super) fn text(record: &ByteRecord, column: usize) -> Option<Cow<'_, str>> {
    let cell = record.get(column)?.trim_ascii();
    (!cell.is_empty()).then(|| String::from_utf8_lossy(cell))
}
