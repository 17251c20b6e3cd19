//! A file of records with named columns.

pub(super) mod date;
mod embedding;
pub(super) mod encoder;
pub(super) mod error;
pub(super) mod feature;
pub(super) mod fit;
pub(super) mod header;
pub(super) mod layout;
pub(super) mod predicate;
pub(super) mod row;
pub(super) mod rows;
pub(super) mod schema;
pub(super) mod selection;
pub(super) mod text;

use std::{
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use crate::Error;
use crate::data::{
    FormatError, Predicate, Selection,
    formats::{csv::Csv, parquet::Parquet, stream::packed, zipped::is_zip},
    table::{
        header::{Column, Header, Reading, Use},
        layout::{Layout, Marks},
        predicate::Filter,
        row::Row,
    },
};

/// A file of records with named columns.
///
/// Opening a table reads the names only. Each question reads the file once, from the first record to the
/// last, and keeps only the answer.
pub struct Table {
    path: PathBuf,
    header: Header,
    source: Source,
    marks: Marks,
}

enum Source {
    Csv(Csv),
    Parquet(Parquet),
}

impl Table {
    /// Reads the names and types of the columns of a CSV or Parquet file.
    ///
    /// Commas, semicolons or tabs separate the cells. Files named `.gz` are decompressed while they are read,
    /// and so is the only file of a `.zip` archive. A file is Parquet if its name ends in `.parquet` or `.pq`,
    /// or if its first bytes say so and its name does not end in `.csv` or `.tsv`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_as(path, &Layout::default())
    }

    /// Opens a table like [`Table::open`], written as the layout declares.
    pub fn open_as(path: impl AsRef<Path>, layout: &Layout) -> Result<Self, Error> {
        let path = path.as_ref();
        layout.check()?;
        let (source, header) = match Format::of(path, layout)? {
            Format::Csv => Csv::open(path, layout).map(|(file, header)| (Source::Csv(file), header))?,
            Format::Parquet => Parquet::open(path).map(|(file, header)| (Source::Parquet(file), header))?,
        };
        Ok(Self { path: path.to_owned(), header, source, marks: layout.marks() })
    }

    /// Returns names and types of the columns, in file order. They are public.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.header.columns
    }

    /// Whether the table is a text file, whose names of columns are declared or in its first row.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.source, Source::Csv(_))
    }

    /// Selects every record.
    #[must_use]
    pub fn all(&self) -> Selection<'_> {
        Selection::new(self, Filter::everything())
    }

    /// Selects the records for which a predicate holds.
    ///
    /// An error is about a name or a type, and points into the expression.
    pub fn select(&self, predicate: &Predicate) -> Result<Selection<'_>, Error> {
        Ok(Selection::new(self, Filter::new(predicate, &self.header)?))
    }

    /// Visits all columns of every row, where the cells belong to different people.
    ///
    /// Whatever one cell holds, the other cells are unchanged.
    pub(crate) fn scan_apart(&self, usage: Use, mut each: impl FnMut(&Row<'_>)) -> Result<(), Error> {
        let columns = self.columns();
        let readings = columns
            .iter()
            .map(|column| self.header.reading(&column.name, usage))
            .collect::<Result<Vec<_>, _>>()?;
        match &self.source {
            Source::Csv(file) => file.scan_apart(&readings, columns.len(), &self.marks, &mut each),
            // Parquet stores cells column by column.
            Source::Parquet(file) => file.scan(&readings, &self.marks, &mut each),
        }
    }

    pub(in crate::data) fn header(&self) -> &Header {
        &self.header
    }

    pub(in crate::data) fn scan(
        &self,
        readings: &[Reading],
        each: &mut dyn FnMut(&Row<'_>),
    ) -> Result<(), Error> {
        match &self.source {
            Source::Csv(file) => file.scan(readings, &self.marks, each),
            Source::Parquet(file) => file.scan(readings, &self.marks, each),
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("path", &self.path)
            .field("columns", &self.header.columns)
            .finish_non_exhaustive()
    }
}

/// The file format of a table.
#[derive(Clone, Copy)]
enum Format {
    Csv,
    Parquet,
}

impl Format {
    fn of(path: &Path, layout: &Layout) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::io(path, &error);
        let mut first = Vec::new();
        File::open(path).map_err(failed)?.take(4).read_to_end(&mut first).map_err(failed)?;
        let inside = if packed(path) { path.with_extension("") } else { path.to_owned() };
        let extension = inside.extension().unwrap_or_default().to_ascii_lowercase();
        let text = extension == "csv" || extension == "tsv";
        if packed(path) && (extension == "parquet" || extension == "pq") {
            return Err(FormatError::NoTable { path: path.to_owned(), found: "Parquet in gzip" }.into());
        }
        // With a declared header, the first bytes of a text file belong to a record: they decide nothing. Nor do
        // the last four bytes, which also tell Parquet.
        let is_record = text || (layout.header.is_some() && !packed(path) && !is_zip(path));
        if extension == "parquet" || extension == "pq" || (first == b"PAR1" && !is_record) {
            return Ok(Self::Parquet);
        }
        if is_record && layout.header.is_some() && !packed(path) {
            return Ok(Self::Csv);
        }
        let found = match *first.as_slice() {
            [0x1f, 0x8b, ..] if packed(path) => return Ok(Self::Csv),
            _ if packed(path) => "named .gz and not compressed with gzip",
            [0x1f, 0x8b, ..] => "compressed with gzip",
            [b'P', b'K', 3, 4] if is_zip(path) => return Ok(Self::Csv),
            _ if is_zip(path) => "named .zip and not a zip archive",
            [b'P', b'K', 3, 4] => "a zip archive or a spreadsheet",
            [0x28, 0xb5, 0x2f, 0xfd] => "compressed with zstd",
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "binary or UTF-16",
            _ => return Ok(Self::Csv),
        };
        Err(FormatError::NoTable { path: path.to_owned(), found }.into())
    }
}
