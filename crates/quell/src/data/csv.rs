//! Comma-separated text.
//!
//! The first row holds the names. Cells are text, without the white space around them; an empty one is missing, and so is
//! one that a short row does not have. Extra cells are not looked at, blank lines are no records, bytes that are not UTF-8
//! are read as U+FFFD (in a user's name they stay as they are). A record of more than 16 MiB is skipped to its end, and is a
//! row without cells: memory is bounded, no record makes an error, and no other record is lost.
//!
//! Who writes the file must see to it that one person's cell cannot end a record or swallow other people's (SECURITY.md). In
//! CSV, an opening quote that is never closed makes one record of the rest of the file: cells must be quoted properly. In
//! `.tsv`, a quote is a letter like any other, and cells hold neither tabs nor line ends.
//!
//! A file whose name ends in `.gz` is unpacked while it is read.

use std::{
    borrow::Cow,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use csv_core::{ReadRecordResult, ReaderBuilder};
use flate2::read::MultiGzDecoder;

use super::{
    header::{Column, Header, Kind, Reading},
    row::{Cells, Row},
    stream::packed,
};
use crate::Error;

/// Bytes of a record: of its cells, and of where each of them ends.
const LONGEST_RECORD: usize = 1 << 24;

/// Bytes that are read at a time.
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
        let mut header = Record::default();
        if !file.reader()?.read(&mut header).map_err(|error| file.failed(&error))? {
            return Err(Error::NoTable { path: path.to_owned(), found: "empty" });
        }
        file.check(&header)?;
        let named = |name: &[u8]| String::from_utf8_lossy(name.trim_ascii()).into_owned();
        let columns = header.cells().map(|name| Column { name: named(name), kind: Kind::Undeclared }).collect();
        let header = Header::new(columns, path)?;
        Ok((file, header))
    }

    /// Looks at every record once, from the first to the last, and keeps none.
    pub(crate) fn scan(&self, readings: &[Reading], each: &mut dyn FnMut(&Row<'_>)) -> Result<(), Error> {
        let mut reader = self.reader()?;
        let mut record = Record::default();
        let mut next = |record: &mut Record| reader.read(record).map_err(|error| self.failed(&error));
        // The first are the names.
        next(&mut record)?;
        while next(&mut record)? {
            each(&Row(Cells::Csv { record: &record, readings }));
        }
        Ok(())
    }

    /// Names, as far as one can tell without showing them: a file without a header must not have its first record in an
    /// error message.
    fn check(&self, header: &Record) -> Result<(), Error> {
        let path = self.path.clone();
        if header.len() == 0 {
            return Err(Error::NoTable { path, found: "of a first row that is longer than 16 MiB" });
        }
        if header.cells().any(|name| name.contains(&0)) {
            return Err(Error::NoTable { path, found: "binary or UTF-16" });
        }
        if header.len() > MOST_COLUMNS {
            return Err(Error::NoTable { path, found: "of more than 65536 columns" });
        }
        if (0..header.len()).any(|column| number(header, column).is_some()) {
            return Err(Error::NoHeader { path });
        }
        let has = |separator: u8| header.len() == 1 && header.cells().any(|name| name.contains(&separator));
        let expected = if self.separator == b'\t' { "tabs" } else { "commas" };
        match [(b';', "semicolons"), (b'\t', "tabs"), (b',', "commas")].into_iter().find(|(separator, _)| has(*separator)) {
            Some((_, found)) => Err(Error::Separator { path, found, expected }),
            None => Ok(()),
        }
    }

    fn reader(&self) -> Result<Reader, Error> {
        let file = File::open(&self.path).map_err(|error| Error::io(&self.path, &error))?;
        let file: Box<dyn Read> =
            if packed(&self.path) { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(file) };
        let parser = ReaderBuilder::new().delimiter(self.separator).quoting(self.separator != b'\t').build();
        Ok(Reader { parser, file: BufReader::with_capacity(AHEAD, file) })
    }

    /// With records of any length and cells of any bytes, only reading itself can fail.
    fn failed(&self, error: &std::io::Error) -> Error {
        if packed(&self.path) && damage(error) {
            return Error::Packed { path: self.path.clone() };
        }
        Error::io(&self.path, error)
    }
}

/// The cells of a record, one behind the other.
#[derive(Default)]
pub(super) struct Record {
    bytes: Vec<u8>,
    /// Where each cell ends. Behind the last one is room.
    ends: Vec<usize>,
    count: usize,
}

impl Record {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn get(&self, column: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.count].get(column)?;
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    fn cells(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).filter_map(|column| self.get(column))
    }
}

/// A file that is read record by record.
struct Reader {
    parser: csv_core::Reader,
    file: BufReader<Box<dyn Read>>,
}

impl Reader {
    /// Reads the next record, if there is one. One that is too long has no cells: that depends on nothing around it.
    fn read(&mut self, record: &mut Record) -> std::io::Result<bool> {
        let (mut length, mut count, mut too_long) = (0, 0, false);
        loop {
            let input = match self.file.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                input => input?,
            };
            let (bytes, ends) = (&mut record.bytes[length..], &mut record.ends[count..]);
            let (result, taken, written, ended) = self.parser.read_record(input, bytes, ends);
            self.file.consume(taken);
            (length, count) = (length + written, count + ended);
            too_long |= length + size_of::<usize>() * count > LONGEST_RECORD;
            if too_long {
                // What comes is written over what was there.
                (length, count) = (0, 0);
            }
            match result {
                ReadRecordResult::OutputFull if length == record.bytes.len() => record.bytes.resize(2 * length + 1024, 0),
                ReadRecordResult::OutputEndsFull if count == record.ends.len() => record.ends.resize(2 * count + 64, 0),
                ReadRecordResult::InputEmpty | ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {}
                ReadRecordResult::Record => {
                    record.count = count;
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
            }
        }
    }
}

/// Whether an error is about what was packed, and not about reading it.
fn damage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}

/// A cell without the white space around it.
pub(super) fn bytes(record: &Record, column: usize) -> Option<&[u8]> {
    record.get(column).map(<[u8]>::trim_ascii)
}

/// A cell as a finite number, if it is one.
pub(super) fn number(record: &Record, column: usize) -> Option<f64> {
    std::str::from_utf8(bytes(record, column)?).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A cell as text, unless it is empty.
pub(super) fn text(record: &Record, column: usize) -> Option<Cow<'_, str>> {
    bytes(record, column).filter(|cell| !cell.is_empty()).map(String::from_utf8_lossy)
}
