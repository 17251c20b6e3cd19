//! A file of records with named columns.

use std::{
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    Predicate, Selection,
    csv::Csv,
    header::{Column, Header, Reading},
    parquet::Parquet,
    predicate::Filter,
    row::Row,
    stream::packed,
};
use crate::Error;

/// A file of records with named columns. Opening reads the names only; each question reads the file once, from the first
/// record to the last, and keeps nothing but the answer.
pub struct Table {
    path: PathBuf,
    header: Header,
    source: Source,
}

enum Source {
    Csv(Csv),
    Parquet(Parquet),
}

impl Table {
    /// Reads the names and types of the columns of a CSV file (`.tsv`: separated by tabs; `.csv.gz` and `.tsv.gz`: unpacked
    /// while it is read) or a Parquet file. A file is
    /// Parquet if its name ends in `.parquet` or `.pq`, or if its first bytes say so and its name does not end in `.csv` or
    /// `.tsv`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let (source, header) = match Format::of(path)? {
            Format::Csv => Csv::open(path).map(|(file, header)| (Source::Csv(file), header))?,
            Format::Parquet => Parquet::open(path).map(|(file, header)| (Source::Parquet(file), header))?,
        };
        Ok(Self { path: path.to_owned(), header, source })
    }

    /// Names and types of the columns, in the order of the file. They are public.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.header.columns
    }

    /// Every record.
    #[must_use]
    pub fn all(&self) -> Selection<'_> {
        Selection::new(self, Filter::everything())
    }

    /// The records for which a predicate holds. An error is about a name or a type, and points into the expression.
    pub fn select(&self, predicate: &Predicate) -> Result<Selection<'_>, Error> {
        Ok(Selection::new(self, Filter::new(predicate, &self.header)?))
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn scan(&self, readings: &[Reading], each: &mut dyn FnMut(&Row<'_>)) -> Result<(), Error> {
        match &self.source {
            Source::Csv(file) => file.scan(readings, each),
            Source::Parquet(file) => file.scan(readings, each),
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("path", &self.path).field("columns", &self.header.columns).finish_non_exhaustive()
    }
}

/// How a table is written.
#[derive(Clone, Copy)]
enum Format {
    Csv,
    Parquet,
}

impl Format {
    fn of(path: &Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::io(path, &error);
        let mut first = Vec::new();
        File::open(path).map_err(failed)?.take(4).read_to_end(&mut first).map_err(failed)?;
        let inside = if packed(path) { path.with_extension("") } else { path.to_owned() };
        let extension = inside.extension().unwrap_or_default().to_ascii_lowercase();
        let text = extension == "csv" || extension == "tsv";
        // Not by the last bytes too, where Parquet has the same four: in text they are a record's.
        if packed(path) && (extension == "parquet" || extension == "pq") {
            return Err(Error::NoTable { path: path.to_owned(), found: "Parquet in gzip" });
        }
        if extension == "parquet" || extension == "pq" || (first == b"PAR1" && !text) {
            return Ok(Self::Parquet);
        }
        let found = match *first.as_slice() {
            [0x1f, 0x8b, ..] if packed(path) => return Ok(Self::Csv),
            _ if packed(path) => "named .gz and not compressed with gzip",
            [0x1f, 0x8b, ..] => "compressed with gzip",
            [b'P', b'K', 3, 4] => "a zip archive or a spreadsheet",
            [0x28, 0xb5, 0x2f, 0xfd] => "compressed with zstd",
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "binary or UTF-16",
            _ => return Ok(Self::Csv),
        };
        Err(Error::NoTable { path: path.to_owned(), found })
    }
}
