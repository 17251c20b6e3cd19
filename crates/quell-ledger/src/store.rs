//! All ledgers of a project, wherever they are.

use std::path::{Path, PathBuf};

use quell_privacy::ledger::{Line, Receipt};

#[cfg(feature = "postgres")]
use crate::postgres::Postgres;
use crate::{
    chain::{Body, Place, Row, Stored},
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

/// A dataset and what its ledger says in sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Name of the dataset.
    pub dataset: String,
    /// Number of lines.
    pub lines: u64,
    /// ε spent, infinite where there is no bound.
    pub spent: f64,
    /// The most it may be, infinite where there is no cap.
    pub cap: f64,
    /// Head of the chain, in hexadecimal.
    pub head: String,
}

/// A line with all that was written about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Number of the line, the first being 0.
    pub number: u64,
    /// When it was written: RFC 3339, UTC.
    pub time: String,
    /// The line.
    pub line: Line,
    /// ε after it, infinite where there is no bound.
    pub spent: f64,
    /// Head of the chain after it, in hexadecimal.
    pub head: String,
}

/// What is known of a ledger after it was checked.
struct Checked {
    row: Row,
    stored: Vec<Stored>,
    entries: Vec<Entry>,
    public: [u8; 32],
}

impl Store {
    /// Opens the store of a project, making it and its key if they do not exist.
    pub fn create(location: impl Into<Location>) -> Result<Self, Error> {
        let location = location.into();
        let key = location.key()?;
        Self::create_with_key(location, &key)
    }

    /// The same with a key that is kept elsewhere.
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
        // A ledger that has been signed keeps its key: a lost one is not replaced.
        if database.public_key()?.is_none() && database.rows()?.is_empty() {
            database.adopt(&public_key()?)?;
        }
        Ok(Self { location, key: key.to_owned(), database })
    }

    /// Opens a store that exists.
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        let location = location.into();
        let key = location.key()?;
        Self::open_with_key(location, &key)
    }

    /// The same with a key that is kept elsewhere.
    pub fn open_with_key(location: impl Into<Location>, key: &Path) -> Result<Self, Error> {
        let location = location.into();
        let database = connect(&location)?;
        Ok(Self { location, key: key.to_owned(), database })
    }

    /// Where this is.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The file of the key that signs.
    #[must_use]
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// The public key of this store, in hexadecimal: what an auditor compares exports with.
    pub fn public_key(&mut self) -> Result<Option<String>, Error> {
        Ok(self.database.public_key()?.map(|key| hex(&key)))
    }

    /// The book of a dataset, on a connection of its own, for a [`Ledger`](quell_privacy::ledger::Ledger) to write in.
    pub fn book(&self, dataset: &str) -> Result<Volume, Error> {
        Ok(Volume::new(connect(&self.location)?, dataset, self.key.clone()))
    }

    /// Whether there is a ledger for a dataset.
    pub fn has(&mut self, dataset: &str) -> Result<bool, Error> {
        Ok(self.database.row(dataset)?.is_some())
    }

    /// All datasets, by name, each checked from its first line on.
    pub fn datasets(&mut self) -> Result<Vec<Summary>, Error> {
        let names: Vec<String> = self.database.rows()?.into_iter().map(|row| row.dataset).collect();
        let summary =
            |row: Row| Summary { head: hex(&row.head), dataset: row.dataset, lines: row.lines, spent: row.spent, cap: row.cap };
        names.iter().map(|name| Ok(summary(self.checked(name)?.row))).collect()
    }

    /// All lines of a dataset, checked.
    pub fn entries(&mut self, dataset: &str) -> Result<Vec<Entry>, Error> {
        Ok(self.checked(dataset)?.entries)
    }

    /// A ledger whose lines follow from each other, whose row says what they say, and whose head is signed by the key of the project.
    fn checked(&mut self, dataset: &str) -> Result<Checked, Error> {
        let Some((row, stored)) = self.database.snapshot(dataset, 0)? else { return Err(self.unknown(dataset)?) };
        let mut place = Place::start(dataset);
        let bodies = stored.iter().map(|stored| Ok((place.follow(dataset, stored)?, hex(&place.head))));
        let bodies = bodies.collect::<Result<Vec<(Body, String)>, Error>>()?;
        let Some((last, _)) = bodies.last() else { return Err(Problem::NoDataset.of(dataset).into()) };
        place.check(&row, last)?;
        let cap = bodies.iter().rev().find_map(|(body, _)| body.cap());
        if cap != Some(row.cap) {
            let (found, expected) = (row.cap.to_string(), cap.map_or_else(|| "none".into(), |cap| cap.to_string()));
            return Err(Problem::Row { what: "the cap", found, expected }.of(dataset).into());
        }
        let public = self.database.public_key()?.unwrap_or_default();
        signature::belongs(&self.key, &public)?;
        if !is_signed(&public, &row.dataset, row.lines, &row.head, &row.signature) {
            return Err(Problem::Signature.of(dataset).into());
        }
        let entry = |(body, head): (Body, String)| {
            let spent = body.spent();
            Entry { number: body.number, time: body.time, line: body.line, spent, head }
        };
        let entries = bodies.into_iter().map(entry).collect();
        Ok(Checked { row, stored, entries, public })
    }

    /// A ledger as a JSON document with chain, signature and checksum. [`verify_export`](crate::verify_export) reads it.
    pub fn export(&mut self, dataset: &str) -> Result<String, Error> {
        let Checked { row, stored, public, .. } = self.checked(dataset)?;
        let cause = |error: serde_json::Error| Error::from(Problem::Export { cause: error.to_string() }.of(dataset));
        export::write(&row, &stored, &public).map_err(cause)
    }

    /// Checks everything there is to check, with the receipts of artifacts and with earlier exports.
    #[must_use]
    pub fn verify(&mut self, receipts: &[Receipt], exports: &[&str]) -> Report {
        verify::verify(&mut *self.database, &self.key, &Evidence { receipts, exports, ..Evidence::default() })
    }

    /// Records the bytes of a database file, so that any later change can be seen. Done on closing, too. False if others are writing; a
    /// server has no such file, and keeps its own checksums.
    pub fn seal(&mut self) -> Result<bool, Error> {
        self.database.seal()
    }

    /// Lets a role of the server append to all ledgers here, and nothing else: neither change nor remove a line, nor the rules that forbid it. Needs the owner of the tables.
    pub fn grant(&mut self, role: &str) -> Result<(), Error> {
        match &self.location {
            #[cfg(feature = "postgres")]
            Location::Server(server) => Postgres::grant(&server.url()?, role),
            #[cfg(not(feature = "postgres"))]
            Location::Server(_) => Err(Error::NoPostgres { location: format!("{}, for {role}", self.location) }),
            Location::File(_) => Err(Error::NotAServer { location: self.location.to_string() }),
        }
    }

    fn unknown(&mut self, dataset: &str) -> Result<Error, Error> {
        let known = self.database.rows()?.into_iter().map(|row| row.dataset).collect();
        Ok(Error::UnknownDataset { dataset: dataset.to_owned(), known })
    }
}

/// Checks a store as [`Store::verify`] does, also one that is so damaged that it does not open. Nothing is written.
pub fn verify(location: impl Into<Location>, receipts: &[Receipt], exports: &[&str]) -> Result<Report, Error> {
    verify_with(location, &Evidence { receipts, exports, ..Evidence::default() })
}

/// The same with everything that was kept outside of the store.
pub fn verify_with(location: impl Into<Location>, evidence: &Evidence<'_>) -> Result<Report, Error> {
    let location = location.into();
    let key = location.key()?;
    match look(&location) {
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

/// To look at a store as it is, damaged or not.
fn look(location: &Location) -> Result<Box<dyn Database>, Error> {
    match location {
        Location::File(path) => Ok(Box::new(Sqlite::look(path)?)),
        #[cfg(feature = "postgres")]
        Location::Server(server) => Ok(Box::new(Postgres::look(&server.url()?)?)),
        #[cfg(not(feature = "postgres"))]
        Location::Server(_) => Err(Error::NoPostgres { location: location.to_string() }),
    }
}
