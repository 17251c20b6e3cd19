//! The store: all ledgers of a project, in a file or on a server.

use std::path::{Path, PathBuf};

use quell_privacy::ledger::{Line, Note, Receipt};

#[cfg(feature = "postgres")]
use crate::postgres::Postgres;
use crate::{
    chain::{Body, Position, Row, Stored},
    database::Database,
    error::Error,
    export,
    finding::Problem,
    hexadecimal::hex,
    location::Location,
    signature::{self, Key, is_signed},
    sqlite::Sqlite,
    verify::{self, Evidence, Report},
    volume::Volume,
};

/// All ledgers of a project: one database, one key, several datasets.
pub struct Store {
    location: Location,
    key: PathBuf,
    database: Box<dyn Database>,
}

/// A dataset and the totals of its ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Name of the dataset.
    pub dataset: String,
    /// Number of lines.
    pub lines: u64,
    /// ε spent; infinite if there is no bound.
    pub spent: f64,
    /// The largest ε that the budget allows; infinite if there is no cap.
    pub cap: f64,
    /// Head of the chain, in hexadecimal.
    pub head: String,
}

/// A line together with its number, time, ε and head.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Number of the line; the first line has number 0.
    pub number: u64,
    /// When the line was written: RFC 3339, UTC.
    pub time: String,
    /// The line.
    pub line: Line,
    /// ε after the line; infinite if there is no bound.
    pub spent: f64,
    /// Head of the chain after the line, in hexadecimal.
    pub head: String,
    /// Words about the line; empty for lines of earlier versions.
    pub note: Note,
}

/// A ledger that passed all checks.
struct Checked {
    row: Row,
    stored: Vec<Stored>,
    entries: Vec<Entry>,
    public: [u8; 32],
}

impl Store {
    /// Opens the store of a project; creates the store and its key if missing.
    pub fn create(location: impl Into<Location>) -> Result<Self, Error> {
        let location = location.into();
        let key = location.key()?;
        Self::create_with_key(location, &key)
    }

    /// Opens or creates a store like [`Store::create`], with the key at the given path.
    pub fn create_with_key(location: impl Into<Location>, key: &Path) -> Result<Self, Error> {
        let location = location.into();
        let public_key = || Key::load_or_create(key).map(|key| key.public());
        let mut database: Box<dyn Database> = match &location {
            Location::File(path) => Box::new(Sqlite::create(path, &public_key)?),
            #[cfg(feature = "postgres")]
            Location::Server(server) => Box::new(Postgres::create(&server.url()?)?),
            #[cfg(not(feature = "postgres"))]
            Location::Server(_) => return Err(Error::NoPostgres { location: location.to_string() }),
        };
        // A ledger that has signed lines keeps its key: a lost key is never replaced by a new one.
        if database.public_key()?.is_none() && database.rows()?.is_empty() {
            database.set_public_key(&public_key()?)?;
        }
        Ok(Self { location, key: key.to_owned(), database })
    }

    /// Opens an existing store.
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        let location = location.into();
        let key = location.key()?;
        Self::open_with_key(location, &key)
    }

    /// Opens a store like [`Store::open`], with the key at the given path.
    pub fn open_with_key(location: impl Into<Location>, key: &Path) -> Result<Self, Error> {
        let location = location.into();
        let database = connect(&location)?;
        Ok(Self { location, key: key.to_owned(), database })
    }

    /// Location of the store.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Path of the signing key.
    #[must_use]
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// The public key of this store, in hexadecimal. Auditors compare exports with it.
    pub fn public_key(&mut self) -> Result<Option<String>, Error> {
        Ok(self.database.public_key()?.map(|key| hex(&key)))
    }

    /// Opens the volume of a dataset on its own database connection.
    ///
    /// A [`Ledger`](quell_privacy::ledger::Ledger) writes its lines to the volume.
    pub fn book(&self, dataset: &str) -> Result<Volume, Error> {
        Ok(Volume::new(connect(&self.location)?, dataset, self.key.clone()))
    }

    /// Whether the store has a ledger for a dataset.
    pub fn has(&mut self, dataset: &str) -> Result<bool, Error> {
        Ok(self.database.row(dataset)?.is_some())
    }

    /// All datasets, sorted by name. Every ledger is checked from its first line on.
    pub fn datasets(&mut self) -> Result<Vec<Summary>, Error> {
        let names: Vec<String> = self.database.rows()?.into_iter().map(|row| row.dataset).collect();
        let summary = |row: Row| Summary {
            head: hex(&row.head),
            dataset: row.dataset,
            lines: row.lines,
            spent: row.spent,
            cap: row.cap,
        };
        names.iter().map(|name| Ok(summary(self.checked(name)?.row))).collect()
    }

    /// All lines of a dataset, after checking the whole ledger.
    pub fn entries(&mut self, dataset: &str) -> Result<Vec<Entry>, Error> {
        Ok(self.checked(dataset)?.entries)
    }

    /// Reads a ledger and checks its chain, its row and its signature.
    ///
    /// The hash chain must be unbroken, the row must agree with the lines, and the key of the project must
    /// have signed the head.
    fn checked(&mut self, dataset: &str) -> Result<Checked, Error> {
        let Some((row, stored)) = self.database.snapshot(dataset, 0)? else {
            return Err(self.unknown_dataset(dataset)?);
        };
        let mut position = Position::start(dataset);
        let bodies =
            stored.iter().map(|stored| Ok((position.advance(dataset, stored)?, hex(&position.head))));
        let bodies = bodies.collect::<Result<Vec<(Body, String)>, Error>>()?;
        let Some((last, _)) = bodies.last() else { return Err(Problem::NoDataset.of(dataset).into()) };
        position.check(&row, last)?;
        let cap = bodies.iter().rev().find_map(|(body, _)| body.cap());
        if cap != Some(row.cap) {
            let (found, expected) =
                (row.cap.to_string(), cap.map_or_else(|| "none".into(), |cap| cap.to_string()));
            return Err(Problem::Row { what: "the cap", found, expected }.of(dataset).into());
        }
        let public = self.database.public_key()?.unwrap_or_default();
        signature::check_public_key(&self.key, &public)?;
        if !is_signed(&public, &row.dataset, row.lines, &row.head, &row.signature) {
            return Err(Problem::Signature.of(dataset).into());
        }
        let entry = |(body, head): (Body, String)| {
            let spent = body.spent();
            Entry { number: body.number, time: body.time, line: body.line, spent, head, note: body.note }
        };
        let entries = bodies.into_iter().map(entry).collect();
        Ok(Checked { row, stored, entries, public })
    }

    /// Exports a ledger as a JSON document with chain, signature and checksum.
    ///
    /// [`verify_export`](crate::verify_export) reads the document.
    pub fn export(&mut self, dataset: &str) -> Result<String, Error> {
        let Checked { row, stored, public, .. } = self.checked(dataset)?;
        let cause =
            |error: serde_json::Error| Error::from(Problem::Export { cause: error.to_string() }.of(dataset));
        export::write(&row, &stored, &public).map_err(cause)
    }

    /// Checks the whole store, also against receipts of artifacts and earlier exports.
    #[must_use]
    pub fn verify(&mut self, receipts: &[Receipt], exports: &[&str]) -> Report {
        verify::verify(&mut *self.database, &self.key, &Evidence { receipts, exports, ..Evidence::default() })
    }

    /// Records a hash of the database file, so that any later change is detected.
    ///
    /// Closing the store also seals it. Returns false if other connections are writing, or if the store is on
    /// a server: a server has no such file and keeps its own checksums.
    pub fn seal(&mut self) -> Result<bool, Error> {
        self.database.seal()
    }

    /// Lets a role of the server append to all ledgers, and do nothing else.
    ///
    /// The role can neither change nor remove a line, nor change the rules that forbid it. The caller must be
    /// the owner of the tables.
    pub fn grant(&mut self, role: &str) -> Result<(), Error> {
        match &self.location {
            #[cfg(feature = "postgres")]
            Location::Server(server) => Postgres::grant(&server.url()?, role),
            #[cfg(not(feature = "postgres"))]
            Location::Server(_) => {
                Err(Error::NoPostgres { location: format!("{}, for {role}", self.location) })
            }
            Location::File(_) => Err(Error::NotAServer { location: self.location.to_string() }),
        }
    }

    fn unknown_dataset(&mut self, dataset: &str) -> Result<Error, Error> {
        let known = self.database.rows()?.into_iter().map(|row| row.dataset).collect();
        Ok(Error::UnknownDataset { dataset: dataset.to_owned(), known })
    }
}

/// Checks a store like [`Store::verify`], even if it is too damaged to open. Writes nothing.
pub fn verify(
    location: impl Into<Location>,
    receipts: &[Receipt],
    exports: &[&str],
) -> Result<Report, Error> {
    verify_with(location, &Evidence { receipts, exports, ..Evidence::default() })
}

/// Checks a store like [`verify()`], against all evidence that was kept outside of the store.
pub fn verify_with(location: impl Into<Location>, evidence: &Evidence<'_>) -> Result<Report, Error> {
    let location = location.into();
    let key = location.key()?;
    match open_read_only(&location) {
        Ok(mut database) => Ok(verify::verify(&mut *database, &key, evidence)),
        Err(error @ Error::Sqlite { .. }) => {
            let finding = Problem::Unreadable { cause: error.to_string() }.in_store();
            Ok(Report { findings: vec![finding], ..Report::default() })
        }
        Err(other) => Err(other),
    }
}

fn connect(location: &Location) -> Result<Box<dyn Database>, Error> {
    match location {
        Location::File(path) => Ok(Box::new(Sqlite::open(path)?)),
        #[cfg(feature = "postgres")]
        Location::Server(server) => Ok(Box::new(Postgres::open(&server.url()?)?)),
        #[cfg(not(feature = "postgres"))]
        Location::Server(_) => Err(Error::NoPostgres { location: location.to_string() }),
    }
}

/// Connects read-only, without checks, so that damaged stores can be examined.
fn open_read_only(location: &Location) -> Result<Box<dyn Database>, Error> {
    match location {
        Location::File(path) => Ok(Box::new(Sqlite::open_read_only(path)?)),
        #[cfg(feature = "postgres")]
        Location::Server(server) => Ok(Box::new(Postgres::open_read_only(&server.url()?)?)),
        #[cfg(not(feature = "postgres"))]
        Location::Server(_) => Err(Error::NoPostgres { location: location.to_string() }),
    }
}
