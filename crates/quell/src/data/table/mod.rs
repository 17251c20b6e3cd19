//! A file of records with named columns.

pub(super) mod date;
pub(super) mod declared;
mod embedding;
pub(super) mod encoder;
pub(super) mod error;
pub(super) mod feature;
pub(super) mod fit;
pub(super) mod header;
pub(super) mod layout;
pub(super) mod memory;
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
    sync::Arc,
};

use crate::Error;
use crate::data::{
    FormatError, Predicate, Schema, Selection,
    formats::{csv::Csv, parquet::Parquet, stream::packed, zipped::is_zip},
    table::{
        header::{Column, Header, Reading, Use},
        layout::{Layout, Marks},
        memory::{ColumnCells, Memory},
        predicate::Filter,
        row::Row,
    },
};

/// The path of a table in memory, for messages.
const IN_MEMORY: &str = "the table in memory";

/// A file of records with named columns, or such columns in memory.
///
/// Opening a table reads the names only. Each question reads the file once, from the first record to the
/// last, and keeps only the answer. Clones share the file or the columns.
#[derive(Clone)]
pub struct Table {
    path: PathBuf,
    header: Header,
    source: Arc<Source>,
    marks: Marks,
}

enum Source {
    Csv(Csv),
    Parquet(Parquet),
    Memory(Memory),
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
        Ok(Self { path: path.to_owned(), header, source: Arc::new(source), marks: layout.marks() })
    }

    /// Creates a table from columns in memory, each with its name. All columns have the same number of cells.
    ///
    /// ```
    /// use quell::data::{ColumnCells, Table};
    /// let ages = ColumnCells::Numbers(vec![36.0, f64::NAN, 17.0]);
    /// let people = Table::in_memory(vec![("age".into(), ages)])?;
    /// assert_eq!(people.all().numbers("age")?, [Some(36.0), None, Some(17.0)]);
    /// # Ok::<(), quell::Error>(())
    /// ```
    pub fn in_memory(columns: Vec<(String, ColumnCells)>) -> Result<Self, Error> {
        let (memory, header) = Memory::new(columns)?;
        let marks = Layout::default().marks();
        Ok(Self { path: IN_MEMORY.into(), header, source: Arc::new(Source::Memory(memory)), marks })
    }

    /// Reads the cells as a schema declares them.
    ///
    /// A date is its day as `2024-12-31`, true and false are `true` and `false` or 1 and 0, and a category is its
    /// name, however the file writes them. A cell that is no date, or neither true nor false, is missing.
    ///
    /// ```
    /// use quell::data::{Schema, Table};
    /// # let path = std::env::temp_dir().join(format!("quell-declared-{}.csv", std::process::id()));
    /// std::fs::write(&path, "admitted,smoker\n02.07.2018,no\n19.06.2020,Yes\n")?;
    /// let schema = Schema::parse("[[column]]\nname = 'smoker'\nboolean = true\n[[column]]\nname = 'admitted'\n\
    ///     date = { from = '2018-01-01', to = '2025-12-31', order = 'day-month-year' }\n")?;
    /// let table = Table::open(&path)?.declared_by(&schema);
    /// assert_eq!(table.select(&"admitted >= '2020-01-01' and smoker = 'true'".parse()?)?.count()?, 1);
    /// assert_eq!(table.all().numbers("smoker")?, [Some(0.0), Some(1.0)]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn declared_by(mut self, schema: &Schema) -> Self {
        self.header.declare(schema);
        self
    }

    /// Returns the key of a column as this table writes it, and refuses one that the schema excludes.
    ///
    /// Keys of a column that no schema declares are returned as they are.
    pub fn key(&self, column: &str, text: &str) -> Result<String, Error> {
        Ok(self.header.key(column, text)?)
    }

    /// Returns names and types of the columns, in file order. They are public.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.header.columns
    }

    /// Whether the table is a text file, whose names of columns are declared or in its first row.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(*self.source, Source::Csv(_))
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
        match &*self.source {
            Source::Csv(file) => file.scan_apart(&readings, columns.len(), &self.marks, &mut each),
            // These store cells column by column.
            Source::Parquet(file) => file.scan(&readings, &self.marks, &mut each),
            Source::Memory(columns) => columns.scan(&readings, &self.marks, &mut each),
        }
    }

    pub(in crate::data) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::data) fn header(&self) -> &Header {
        &self.header
    }

    pub(in crate::data) fn scan(
        &self,
        readings: &[Reading],
        each: &mut dyn FnMut(&Row<'_>),
    ) -> Result<(), Error> {
        let declared: Vec<_> = readings.iter().map(|reading| self.header.declared(reading.column)).collect();
        let mut each = |row: &Row<'_>| each(&Row { declared: &declared, cells: row.cells, marks: row.marks });
        match &*self.source {
            Source::Csv(file) => file.scan(readings, &self.marks, &mut each),
            Source::Parquet(file) => file.scan(readings, &self.marks, &mut each),
            Source::Memory(columns) => columns.scan(readings, &self.marks, &mut each),
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
