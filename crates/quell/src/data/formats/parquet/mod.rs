//! Reads Parquet files column by column with the `parquet` crate's reader, without Arrow.
//!
//! The file's schema declares the type of a column. Integers, floats and decimals are numbers (f64: integers
//! beyond 2⁵³ are rounded). Strings, UUIDs, dates and times are text. Booleans can be read as either. A field
//! of a group is named by its path, `home.city`. Lists and maps are not read.

mod atom;
mod guard;

use std::{
    borrow::Cow,
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::Compression,
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{ByteArray, DataType},
    errors::ParquetError,
    file::reader::{FileReader, RowGroupReader, SerializedFileReader},
};

use crate::data::table::{
    header::{Column, Header, Kind, Reading, Use},
    layout::Marks,
    row::{Cells, Row},
};
use crate::{
    Error,
    data::{FormatError, TableError},
    error::quoted,
};
use atom::{Atom, Meaning};

/// Rows decoded at a time: enough to make switching columns cheap, few enough to stay in cache.
const BATCH: usize = 4096;

/// A Parquet file whose footer was read.
pub(crate) struct Parquet {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    /// A second handle to the same file, with its own cursor.
    file: File,
    /// The meaning of each column; `None` for columns that are not read.
    meanings: Vec<Option<Meaning>>,
}

/// The cells of one column in one batch of rows.
pub(in crate::data) enum Values {
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<Text>>),
    Names(Vec<Option<Text>>),
}

/// A text: a slice of a page that many rows may share, a string made for this row, or one of several strings.
pub(in crate::data) enum Text {
    Stored(ByteArray),
    Written(String),
    Shared(Arc<str>),
}

impl Text {
    pub(in crate::data) fn show(&self) -> Cow<'_, str> {
        match self {
            Self::Stored(bytes) => String::from_utf8_lossy(bytes.data()),
            Self::Written(text) => Cow::Borrowed(text),
            Self::Shared(text) => Cow::Borrowed(text),
        }
    }

    pub(in crate::data) fn bytes(&self) -> &[u8] {
        match self {
            Self::Stored(bytes) => bytes.data(),
            Self::Written(text) => text.as_bytes(),
            Self::Shared(text) => text.as_bytes(),
        }
    }
}

impl Parquet {
    pub(crate) fn open(path: &Path) -> Result<(Self, Header), Error> {
        let open = || File::open(path).map_err(|error| Error::io(path, &error));
        let (file, own) = (open()?, open()?);
        guard::footer(&own).ok_or_else(|| damaged(path, "the footer".into()))?;
        let reader =
            decoded(|| SerializedFileReader::new(file)).ok_or_else(|| damaged(path, "the footer".into()))?;
        let leaves = reader.metadata().file_metadata().schema_descr().columns();
        let meanings: Vec<_> = leaves.iter().map(|leaf| Meaning::of(leaf)).collect();
        let columns = leaves.iter().zip(&meanings).map(|(leaf, meaning)| Column {
            name: leaf.path().string(),
            kind: meaning.map_or(Kind::Unreadable, Meaning::kind),
        });
        let header = Header::new(columns.collect(), path)?;
        Ok((Self { path: path.to_owned(), reader, file: own, meanings }, header))
    }

    /// Visits every record once, from first to last, with one batch of records in memory.
    pub(crate) fn scan(
        &self,
        readings: &[Reading],
        marks: &Marks,
        each: &mut dyn FnMut(&Row<'_>),
    ) -> Result<(), Error> {
        for Reading { column, .. } in readings.iter().filter(|reading| reading.usage == Use::Name) {
            // Fractions are rounded and can be written in several ways: one user could become two, and two
            // users could become one.
            if self.meanings[*column].is_some_and(Meaning::has_fractions) {
                let leaf = self.reader.metadata().file_metadata().schema_descr().column(*column);
                return Err(TableError::FractionsAsUsers { name: leaf.path().string() }.into());
            }
        }
        // To count rows, some column must be read: the footer only announces a number of rows.
        let narrowest = if readings.is_empty() { self.narrowest() } else { None };
        let readings = narrowest.as_slice().iter().chain(readings);
        let length = self.file.metadata().map_err(|error| Error::io(&self.path, &error))?.len();
        for group in 0..self.reader.num_row_groups() {
            let group = decoded(|| self.reader.get_row_group(group))
                .ok_or_else(|| damaged(&self.path, "a row group".into()))?;
            guard::rows(group.metadata().num_rows(), length)
                .ok_or_else(|| damaged(&self.path, "a row group".into()))?;
            let mut columns = readings
                .clone()
                .map(|reading| self.leaf(group.as_ref(), *reading))
                .collect::<Result<Vec<_>, Error>>()?;
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            while left > 0 {
                let rows = left.min(BATCH);
                let cells = columns
                    .iter_mut()
                    .map(|leaf| leaf.read(rows, &self.path))
                    .collect::<Result<Vec<_>, Error>>()?;
                for index in 0..rows {
                    each(&Row { cells: Cells::Columns { columns: &cells, index }, marks, declared: &[] });
                }
                left -= rows;
            }
        }
        Ok(())
    }

    /// Finds the readable column that takes the fewest bytes.
    fn narrowest(&self) -> Option<Reading> {
        let groups = self.reader.metadata().row_groups();
        let bytes = |column: usize| {
            groups.iter().map(|group| group.column(column).compressed_size()).fold(0, i64::saturating_add)
        };
        let column = (0..self.meanings.len())
            .filter(|column| self.meanings[*column].is_some())
            .min_by_key(|column| bytes(*column))?;
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
            return Err(FormatError::Codec { path: self.path.clone(), codec }.into());
        }
        let full = chunk.column_descr().max_def_level();
        let sound = decoded(|| Ok(chunk.byte_range()))
            .and_then(|(start, length)| guard::pages(&self.file, start, length, chunk.compression()));
        sound.ok_or_else(|| damaged(&self.path, part()))?;
        let reader =
            decoded(|| group.get_column_reader(reading.column)).ok_or_else(|| damaged(&self.path, part()))?;
        // The header returns no reading for a column without a meaning.
        let meaning = self.meanings[reading.column].unwrap_or(Meaning::Nothing);
        Ok(Leaf { reader, shape: Shape { meaning, usage: reading.usage, full }, part: part() })
    }
}

/// Runs a step of the decoder, and turns its errors and panics into `None`.
///
/// The reason for a failure is dropped, because it may quote what the decoder read. The decoder's assertions
/// can fail on a damaged file, so panics are caught. The caller drops the decoder's state after a panic.
fn decoded<T>(step: impl FnOnce() -> Result<T, ParquetError>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(step)).ok()?.ok()
}

fn damaged(path: &Path, part: String) -> Error {
    FormatError::Damaged { path: path.to_owned(), part }.into()
}

/// A column of a row group that is being read.
struct Leaf {
    reader: ColumnReader,
    shape: Shape,
    /// The name of the column, for error messages.
    part: String,
}

/// How the values of a column are to be read.
#[derive(Clone, Copy)]
struct Shape {
    meaning: Meaning,
    usage: Use,
    /// The definition level of a value that is present.
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
    /// Reads the next rows of a column.
    ///
    /// Returns `None` if the column has fewer rows or cannot be decoded.
    fn read<T: DataType<T: Atom>>(self, reader: &mut ColumnReaderImpl<T>, rows: usize) -> Option<Values> {
        let (mut stored, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let (records, ..) = decoded(|| reader.read_records(rows, Some(&mut levels), None, &mut stored))?;
        if records != rows || (self.full > 0 && levels.len() != rows) {
            return None;
        }
        // Only values that are present are stored. A column without definition levels has all of them.
        let mut stored = stored.iter();
        let mut next =
            |row: usize| if self.full == 0 || levels[row] == self.full { stored.next() } else { None };
        Some(match self.usage {
            Use::Number => Values::Numbers((0..rows).map(|row| next(row)?.number(self.meaning)).collect()),
            Use::Text => Values::Texts((0..rows).map(|row| next(row)?.text(self.meaning)).collect()),
            Use::Name => Values::Names((0..rows).map(|row| next(row)?.name(self.meaning)).collect()),
        })
    }
}
