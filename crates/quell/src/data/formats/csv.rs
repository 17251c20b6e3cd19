//! Reads text with commas, semicolons, tabs or another character between the cells.
//!
//! The first row holds the names of the columns, unless they are declared. Cells are text, without the white
//! space around them. An empty cell is missing, and so is a cell that a short row lacks. Extra cells are
//! ignored and blank lines are not records. Bytes that are not UTF-8 are read as U+FFFD (in a user's name they
//! are kept). A record of more than 16 MiB is skipped to its end, and is a row without cells: memory is bounded,
//! no record causes an error, and no other record is lost. If the cells of a row belong to different people, a
//! cell that is too long is missing, and all other cells are kept.
//!
//! The writer of the file must ensure that one person's cell cannot end a record or absorb other people's
//! cells (SECURITY.md). In CSV, an opening quote that is never closed makes one record of the rest of the
//! file: cells must be quoted properly. Where tabs separate cells, a quote is an ordinary character, and cells
//! hold neither tabs nor line ends.
//!
//! A file whose name ends in `.gz` is decompressed while it is read, and so is the only file of a `.zip`, which
//! may itself be named `.gz`.

use std::{
    borrow::Cow,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use csv_core::{ReadFieldResult, ReadRecordResult, ReaderBuilder};
use flate2::read::MultiGzDecoder;

use crate::Error;
use crate::data::{
    FormatError,
    formats::{
        stream::packed,
        zipped::{Member, is_zip},
    },
    table::{
        header::{Column, Header, Kind, Reading},
        layout::{Delimiter, Layout, Marks, Writing},
        row::{Cells, Row},
    },
};

/// The most bytes of a record: its cells, and the positions where they end.
const LONGEST_RECORD: usize = 1 << 24;

/// The least limit on the bytes of a cell in [`Csv::scan_apart`].
///
/// Each cell may have its share of the longest record, or this many bytes if that is more.
const LONGEST_CELL: usize = 1 << 12;

/// The number of bytes read at a time.
const AHEAD: usize = 1 << 17;

/// The most columns. No table that people use has more.
const MOST_COLUMNS: usize = 1 << 16;

/// A file, and how its cells are written.
#[derive(Debug)]
pub(crate) struct Csv {
    path: PathBuf,
    /// The file in the archive, if the file is a zip archive.
    member: Option<Member>,
    /// Whether the file, or the one in the archive, is compressed with gzip.
    is_packed: bool,
    delimiter: Delimiter,
    quotes: bool,
    /// Whether the first row holds the names of the columns.
    has_names: bool,
}

impl Csv {
    /// Reads the names of the columns, unless the layout declares them.
    ///
    /// The delimiter is the declared one. Otherwise it is a tab if the path ends in `.tsv` and a comma if not.
    /// If this one is not in the row of names, but a comma, a semicolon or a tab is, then it is that one.
    /// Where the names are declared, the delimiter must be, too, unless the path ends in `.tsv`.
    pub(crate) fn open(path: &Path, layout: &Layout) -> Result<(Self, Header), Error> {
        let member = if is_zip(path) { Some(Member::only(path)?) } else { None };
        let named = member.as_ref().map_or(path, |member| &member.name);
        let is_packed = packed(named);
        let unpacked = if is_packed { named.with_extension("") } else { named.to_owned() };
        let extension = unpacked.extension().unwrap_or_default().to_ascii_lowercase();
        let tabs = extension == "tsv";
        let other = match extension.to_str().filter(|_| member.is_some()) {
            Some("parquet" | "pq") => Some("Parquet in a zip archive"),
            Some("zip") => Some("a zip archive of a zip archive"),
            _ => None,
        };
        if let Some(found) = other {
            return Err(FormatError::NoTable { path: path.to_owned(), found }.into());
        }
        let usual = if tabs { Delimiter::TAB } else { Delimiter::COMMA };
        let has_names = layout.header.is_none();
        let with = |delimiter: Delimiter| Self {
            path: path.to_owned(),
            member: member.clone(),
            is_packed,
            delimiter,
            quotes: layout.quotes.unwrap_or(delimiter != Delimiter::TAB),
            has_names,
        };
        let mut file = with(layout.delimiter.unwrap_or(usual));
        if let Some(names) = &layout.header {
            // The first row is a record. Nothing may depend on it, not even whether the file opens. A wrong
            // delimiter would make every record one cell, without a word.
            if layout.delimiter.is_none() && !tabs {
                return Err(FormatError::NoDelimiter { path: path.to_owned() }.into());
            }
            let columns = names.iter().map(|name| Column { name: name.clone(), kind: Kind::Undeclared });
            return Ok((file, Header::new(columns.collect(), path)?));
        }
        let mut header = file.first_row()?;
        if layout.delimiter.is_none() && header.len() == 1 {
            for other in [Delimiter::COMMA, Delimiter::SEMICOLON, Delimiter::TAB] {
                let row = with(other).first_row()?;
                if row.len() > 1 {
                    (file, header) = (with(other), row);
                    break;
                }
            }
        }
        file.check(&header, layout.writing())?;
        let named = |name: &[u8]| layout.writing().text(name.trim_ascii()).into_owned();
        let columns =
            header.cells().map(|name| Column { name: named(name), kind: Kind::Undeclared }).collect();
        let header = Header::new(columns, path)?;
        Ok((file, header))
    }

    /// Reads the first row, which holds the names of the columns.
    fn first_row(&self) -> Result<Record, Error> {
        let mut row = Record::default();
        if self.reader()?.read(&mut row).map_err(|error| self.failed(&error))? {
            return Ok(row);
        }
        Err(FormatError::NoTable { path: self.path.clone(), found: "empty" }.into())
    }

    /// Visits every record once, from first to last, and keeps none.
    pub(crate) fn scan(
        &self,
        readings: &[Reading],
        marks: &Marks,
        each: &mut dyn FnMut(&Row<'_>),
    ) -> Result<(), Error> {
        self.visit(Reader::read, &mut |record| {
            each(&Row { cells: Cells::Csv { record, readings }, marks, declared: &[] });
        })
    }

    /// Visits every row, where the cells of a row belong to different people.
    ///
    /// A row has at most as many cells as there are names.
    pub(crate) fn scan_apart(
        &self,
        readings: &[Reading],
        columns: usize,
        marks: &Marks,
        each: &mut dyn FnMut(&Row<'_>),
    ) -> Result<(), Error> {
        self.visit(|reader, record| reader.read_apart(record, columns), &mut |record| {
            each(&Row { cells: Cells::Csv { record, readings }, marks, declared: &[] });
        })
    }

    /// Visits the records after the row of names, if there is one.
    fn visit(
        &self,
        next: impl Fn(&mut Reader, &mut Record) -> std::io::Result<bool>,
        each: &mut dyn FnMut(&Record),
    ) -> Result<(), Error> {
        let mut reader = self.reader()?;
        let mut record = Record::default();
        let mut next = |record: &mut Record| next(&mut reader, record).map_err(|error| self.failed(&error));
        if self.has_names {
            next(&mut record)?;
        }
        while next(&mut record)? {
            each(&record);
        }
        Ok(())
    }

    /// Checks the names without showing them.
    ///
    /// If a file has no header, its first record must not appear in an error message.
    fn check(&self, header: &Record, writing: Writing) -> Result<(), Error> {
        let path = self.path.clone();
        if header.len() == 0 {
            return Err(
                FormatError::NoTable { path, found: "a file with a first row of more than 16 MiB" }.into()
            );
        }
        if header.cells().any(|name| name.contains(&0)) {
            return Err(FormatError::NoTable { path, found: "binary or UTF-16" }.into());
        }
        if header.len() > MOST_COLUMNS {
            return Err(FormatError::NoTable { path, found: "a file with more than 65536 columns" }.into());
        }
        if (0..header.len()).any(|column| number(header, column, writing).is_some()) {
            return Err(FormatError::NoHeader { path }.into());
        }
        let has =
            |other: Delimiter| header.len() == 1 && header.cells().any(|name| name.contains(&other.byte()));
        match [Delimiter::SEMICOLON, Delimiter::TAB, Delimiter::COMMA].into_iter().find(|other| has(*other)) {
            Some(other) => {
                let (found, expected) = (other.name(), self.delimiter.name());
                Err(FormatError::Separator { path, found, expected }.into())
            }
            None => Ok(()),
        }
    }

    fn reader(&self) -> Result<Reader, Error> {
        let file: Box<dyn Read> = match &self.member {
            Some(member) => Box::new(member.reader()?),
            None => Box::new(File::open(&self.path).map_err(|error| Error::io(&self.path, &error))?),
        };
        let file: Box<dyn Read> =
            if self.is_packed { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { file };
        let parser = ReaderBuilder::new().delimiter(self.delimiter.byte()).quoting(self.quotes).build();
        Ok(Reader { parser, file: BufReader::with_capacity(AHEAD, file) })
    }

    /// Converts an error. Records of any length and cells of any bytes are valid, so only reading can fail.
    fn failed(&self, error: &std::io::Error) -> Error {
        if (self.is_packed || self.member.is_some()) && damage(error) {
            return FormatError::Packed { path: self.path.clone() }.into();
        }
        Error::io(&self.path, error)
    }
}

/// The cells of a record, stored one after another.
#[derive(Default)]
pub(in crate::data) struct Record {
    bytes: Vec<u8>,
    /// The position where each cell ends. Entries after the last cell are unused.
    ends: Vec<usize>,
    count: usize,
}

impl Record {
    pub(in crate::data) fn len(&self) -> usize {
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
    /// Reads the next record, if there is one.
    ///
    /// A record that is too long has no cells. Whether it is too long depends on that record alone.
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
                // The following cells overwrite the previous ones.
                (length, count) = (0, 0);
            }
            match result {
                ReadRecordResult::OutputFull if length == record.bytes.len() => {
                    record.bytes.resize(2 * length + 1024, 0);
                }
                ReadRecordResult::OutputEndsFull if count == record.ends.len() => {
                    record.ends.resize(2 * count + 64, 0);
                }
                ReadRecordResult::InputEmpty
                | ReadRecordResult::OutputFull
                | ReadRecordResult::OutputEndsFull => {}
                ReadRecordResult::Record => {
                    record.count = count;
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
            }
        }
    }
}

impl Reader {
    /// Reads the next record, cell by cell.
    ///
    /// A cell that is too long becomes empty. Whether it is too long depends on that cell and the number of
    /// columns, and on no other cell.
    fn read_apart(&mut self, record: &mut Record, columns: usize) -> std::io::Result<bool> {
        let longest = (LONGEST_RECORD / columns.max(1)).max(LONGEST_CELL);
        record.bytes.clear();
        record.ends.clear();
        let (mut start, mut too_long, mut part) = (0, false, [0; 1 << 10]);
        loop {
            let input = match self.file.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                input => input?,
            };
            let (result, taken, written) = self.parser.read_field(input, &mut part);
            self.file.consume(taken);
            too_long |= record.bytes.len() - start + written > longest;
            if too_long {
                record.bytes.truncate(start);
            } else if record.ends.len() < columns {
                record.bytes.extend_from_slice(&part[..written]);
            }
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { record_end } => {
                    if record.ends.len() < columns {
                        record.ends.push(record.bytes.len());
                    }
                    (start, too_long) = (record.bytes.len(), false);
                    if record_end {
                        record.count = record.ends.len();
                        return Ok(true);
                    }
                }
                ReadFieldResult::End => return Ok(false),
            }
        }
    }
}

/// Returns whether an error is about the compressed data and not about reading it.
fn damage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}

/// Returns a cell without the white space around it.
pub(in crate::data) fn bytes(record: &Record, column: usize) -> Option<&[u8]> {
    record.get(column).map(<[u8]>::trim_ascii)
}

/// Returns a cell as a number, if it is a finite number.
pub(in crate::data) fn number(record: &Record, column: usize, writing: Writing) -> Option<f64> {
    writing.number(bytes(record, column)?)
}

/// Returns a cell as text, unless it is empty.
pub(in crate::data) fn text(record: &Record, column: usize, writing: Writing) -> Option<Cow<'_, str>> {
    bytes(record, column).filter(|cell| !cell.is_empty()).map(|cell| writing.text(cell))
}

/// A cell as a CSV file writes it: quoted if necessary.
#[must_use]
pub fn csv_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_where_it_must_be() {
        assert_eq!(csv_cell("<=50K"), "<=50K");
        assert_eq!(csv_cell("a,b"), "\"a,b\"");
        assert_eq!(csv_cell("say \"a\""), "\"say \"\"a\"\"\"");
        assert_eq!(csv_cell(" a"), "\" a\"");
    }
}
