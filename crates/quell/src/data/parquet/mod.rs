//! Parquet files, column by column through the format's own reader, without Arrow.
//!
//! A column is what its schema declares. Integers, floats and decimals are numbers (f64: integers beyond 2⁵³ are rounded);
//! strings, UUIDs, dates and times are text; booleans are either. A field of a group is named by its path, `home.city`.
//! Lists and maps are not read.

mod atom;
mod calendar;
mod guard;

use std::{
    borrow::Cow,
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use parquet::{
    basic::Compression,
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{ByteArray, DataType},
    errors::ParquetError,
    file::reader::{FileReader, RowGroupReader, SerializedFileReader},
};

use super::{
    header::{Column, Header, Kind, Reading, Use},
    row::{Cells, Row},
};
use crate::{Error, error::quoted};
use atom::{Atom, Meaning};

/// Rows decoded at a time: long enough that switching columns costs nothing, short enough to stay in cache.
const BATCH: usize = 4096;

/// A file whose footer was read.
pub(crate) struct Parquet {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    /// The same once more, with a cursor of its own.
    file: File,
    /// By column; none for those that are not read.
    meanings: Vec<Option<Meaning>>,
}

/// Cells of one column in one batch of rows.
pub(super) enum Values {
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<Text>>),
    Names(Vec<Option<Text>>),
}

/// A text: as it lies in the page that many rows may share, or written for this row.
pub(super) enum Text {
    Stored(ByteArray),
    Written(String),
}

impl Text {
    pub(super) fn show(&self) -> Cow<'_, str> {
        match self {
            Self::Stored(bytes) => String::from_utf8_lossy(bytes.data()),
            Self::Written(text) => Cow::Borrowed(text),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Stored(bytes) => bytes.data(),
            Self::Written(text) => text.as_bytes(),
        }
    }
}

impl Parquet {
    pub(crate) fn open(path: &Path) -> Result<(Self, Header), Error> {
        let open = || File::open(path).map_err(|error| Error::io(path, &error));
        let (file, own) = (open()?, open()?);
        guard::footer(&own).ok_or_else(|| damaged(path, "the footer".into()))?;
        let reader = decoded(|| SerializedFileReader::new(file)).ok_or_else(|| damaged(path, "the footer".into()))?;
        let leaves = reader.metadata().file_metadata().schema_descr().columns();
        let meanings: Vec<_> = leaves.iter().map(|leaf| Meaning::of(leaf)).collect();
        let columns = leaves
            .iter()
            .zip(&meanings)
            .map(|(leaf, meaning)| Column { name: leaf.path().string(), kind: meaning.map_or(Kind::Unreadable, Meaning::kind) });
        let header = Header::new(columns.collect(), path)?;
        Ok((Self { path: path.to_owned(), reader, file: own, meanings }, header))
    }

    /// Looks at every record once, from the first to the last; a batch of them is in memory at a time.
    pub(crate) fn scan(&self, readings: &[Reading], each: &mut dyn FnMut(&Row<'_>)) -> Result<(), Error> {
        for Reading { column, .. } in readings.iter().filter(|reading| reading.usage == Use::Name) {
            // Fractions are rounded, and one may be written in several ways: equal users could be two, and two could be equal.
            if self.meanings[*column].is_some_and(Meaning::has_fractions) {
                let leaf = self.reader.metadata().file_metadata().schema_descr().column(*column);
                return Err(Error::FractionsAsUsers { name: leaf.path().string() });
            }
        }
        // To count, something must be read: how many rows there are is only announced.
        let narrowest = if readings.is_empty() { self.narrowest() } else { None };
        let readings = narrowest.as_slice().iter().chain(readings);
        let length = self.file.metadata().map_err(|error| Error::io(&self.path, &error))?.len();
        for group in 0..self.reader.num_row_groups() {
            let group = decoded(|| self.reader.get_row_group(group)).ok_or_else(|| damaged(&self.path, "a row group".into()))?;
            guard::rows(group.metadata().num_rows(), length).ok_or_else(|| damaged(&self.path, "a row group".into()))?;
            let mut columns =
                readings.clone().map(|reading| self.leaf(group.as_ref(), *reading)).collect::<Result<Vec<_>, Error>>()?;
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            while left > 0 {
                let rows = left.min(BATCH);
                let cells = columns.iter_mut().map(|leaf| leaf.read(rows, &self.path)).collect::<Result<Vec<_>, Error>>()?;
                for index in 0..rows {
                    each(&Row(Cells::Parquet { columns: &cells, index }));
                }
                left -= rows;
            }
        }
        Ok(())
    }

    /// The column that takes the fewest bytes, of those that are read.
    fn narrowest(&self) -> Option<Reading> {
        let groups = self.reader.metadata().row_groups();
        let bytes =
            |column: usize| groups.iter().map(|group| group.column(column).compressed_size()).fold(0, i64::saturating_add);
        let column =
            (0..self.meanings.len()).filter(|column| self.meanings[*column].is_some()).min_by_key(|column| bytes(*column))?;
        let kind = self.meanings[column].map(Meaning::kind)?;
        Some(Reading { column, usage: if kind == Kind::Text { Use::Text } else { Use::Number } })
    }

    fn leaf(&self, group: &dyn RowGroupReader, reading: Reading) -> Result<Leaf, Error> {
        let chunk = group.metadata().column(reading.column);
        let part = || format!("column {}", quoted(&chunk.column_descr().path().string()));
        let unread = match chunk.compression() {
            Compression::BROTLI(_) => Some("brotli"),
            Compression::LZO => Some("LZO"),
            _ => None,
        };
        if let Some(codec) = unread {
            return Err(Error::Codec { path: self.path.clone(), codec });
        }
        let full = chunk.column_descr().max_def_level();
        let sound = decoded(|| Ok(chunk.byte_range()))
            .and_then(|(start, length)| guard::pages(&self.file, start, length, chunk.compression()));
        sound.ok_or_else(|| damaged(&self.path, part()))?;
        let reader = decoded(|| group.get_column_reader(reading.column)).ok_or_else(|| damaged(&self.path, part()))?;
        // The schema has no reading for a column without a meaning.
        let meaning = self.meanings[reading.column].unwrap_or(Meaning::Nothing);
        Ok(Leaf { reader, shape: Shape { meaning, usage: reading.usage, full }, part: part() })
    }
}

/// What the decoder makes of the file. Why it makes nothing of it is dropped, because that may quote what it read; and it
/// asserts of a damaged file what is not so, hence the net. What it was working on is dropped after a fall.
fn decoded<T>(step: impl FnOnce() -> Result<T, ParquetError>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(step)).ok()?.ok()
}

fn damaged(path: &Path, part: String) -> Error {
    Error::Damaged { path: path.to_owned(), part }
}

/// A column of a row group, being read.
struct Leaf {
    reader: ColumnReader,
    shape: Shape,
    /// Its name, for an error.
    part: String,
}

/// What is to be made of the values of a column.
#[derive(Clone, Copy)]
struct Shape {
    meaning: Meaning,
    usage: Use,
    /// The definition level of a value that is there.
    full: i16,
}

impl Leaf {
    fn read(&mut self, rows: usize, path: &Path) -> Result<Values, Error> {
        let shape = self.shape;
        match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => shape.read(reader, rows),
            ColumnReader::Int32ColumnReader(reader) => shape.read(reader, rows),
            ColumnReader::Int64ColumnReader(reader) => shape.read(reader, rows),
            ColumnReader::Int96ColumnReader(reader) => shape.read(reader, rows),
            ColumnReader::FloatColumnReader(reader) => shape.read(reader, rows),
            ColumnReader::DoubleColumnReader(reader) => shape.read(reader, rows),
            ColumnReader::ByteArrayColumnReader(reader) => shape.read(reader, rows),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => shape.read(reader, rows),
        }
        .ok_or_else(|| damaged(path, self.part.clone()))
    }
}

impl Shape {
    /// The next rows of a column; none if it does not have as many, or cannot be decoded.
    fn read<T: DataType<T: Atom>>(self, reader: &mut ColumnReaderImpl<T>, rows: usize) -> Option<Values> {
        let (mut stored, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let (records, ..) = decoded(|| reader.read_records(rows, Some(&mut levels), None, &mut stored))?;
        if records != rows || (self.full > 0 && levels.len() != rows) {
            return None;
        }
        // Only values that are there are stored; a column without levels has them all.
        let mut stored = stored.iter();
        let mut next = |row: usize| if self.full == 0 || levels[row] == self.full { stored.next() } else { None };
        Some(match self.usage {
            Use::Number => Values::Numbers((0..rows).map(|row| next(row)?.number(self.meaning)).collect()),
            Use::Text => Values::Texts((0..rows).map(|row| next(row)?.text(self.meaning)).collect()),
            Use::Name => Values::Names((0..rows).map(|row| next(row)?.name(self.meaning)).collect()),
        })
    }
}
