//! Tables of a ledger in a SQLite file, and the triggers that enforce its rules.

use rusqlite::TransactionBehavior;

use super::Sqlite;
use crate::error::Error;

/// The SQLite application id, "Qull", which identifies the file as a ledger.
const APPLICATION: i64 = 0x5175_6c6c;
/// Version of new ledgers.
///
/// Version 1 lacks the trigger that forbids replacing the key. Opening such a ledger for writing adds the
/// trigger.
const VERSION: i64 = 2;
const FIRST_VERSION: i64 = 1;

/// Tables and triggers by name.
///
/// The triggers repeat the rules of a book for every other program that writes to the file: a dataset grows
/// by one entry at a time, which takes the next number and becomes the head; nothing is changed or removed;
/// nothing exceeds the cap.
const SCHEMA: [(&str, &str); 12] = [
    ("meta", "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID"),
    (
        "datasets",
        "CREATE TABLE datasets (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE CHECK (name <> ''),
            genesis BLOB NOT NULL CHECK (length(genesis) = 32),
            lines INTEGER NOT NULL CHECK (lines >= 1),
            last INTEGER NOT NULL CHECK (last = lines - 1),
            head BLOB NOT NULL CHECK (length(head) = 32),
            spent REAL NOT NULL CHECK (spent >= 0),
            cap REAL NOT NULL CHECK (spent <= cap),
            signature BLOB NOT NULL CHECK (length(signature) = 64),
            FOREIGN KEY (id, last) REFERENCES entries (dataset, number) DEFERRABLE INITIALLY DEFERRED
        ) STRICT",
    ),
    (
        "entries",
        "CREATE TABLE entries (
            dataset INTEGER NOT NULL REFERENCES datasets (id),
            number INTEGER NOT NULL CHECK (number >= 0),
            body TEXT NOT NULL,
            previous BLOB NOT NULL CHECK (length(previous) = 32),
            hash BLOB NOT NULL CHECK (length(hash) = 32),
            PRIMARY KEY (dataset, number)
        ) STRICT, WITHOUT ROWID",
    ),
    (
        "entries_follow",
        "CREATE TRIGGER entries_follow BEFORE INSERT ON entries
        WHEN EXISTS (SELECT 1 FROM entries WHERE dataset = NEW.dataset AND number = NEW.number)
            OR NOT EXISTS (SELECT 1 FROM datasets WHERE id = NEW.dataset AND last = NEW.number AND head = NEW.hash
                AND NEW.previous IS CASE NEW.number WHEN 0 THEN genesis
                    ELSE (SELECT hash FROM entries WHERE dataset = NEW.dataset AND number = NEW.number - 1) END)
        BEGIN SELECT RAISE(ABORT, 'an entry takes the next number, follows the head and becomes it'); END",
    ),
    (
        "entries_stay",
        "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'an entry is never changed'); END",
    ),
    (
        "entries_remain",
        "CREATE TRIGGER entries_remain BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'an entry is never removed'); END",
    ),
    (
        "datasets_begin",
        "CREATE TRIGGER datasets_begin BEFORE INSERT ON datasets
        WHEN NEW.lines <> 1 OR NEW.spent <> 0 OR EXISTS (SELECT 1 FROM datasets WHERE name = NEW.name OR id = NEW.id)
        BEGIN SELECT RAISE(ABORT, 'a dataset begins with one line, once, and nothing spent'); END",
    ),
    (
        "datasets_grow",
        "CREATE TRIGGER datasets_grow BEFORE UPDATE ON datasets
        WHEN NEW.id <> OLD.id OR NEW.name <> OLD.name OR NEW.genesis <> OLD.genesis OR NEW.lines <> OLD.lines + 1
            OR NOT EXISTS (SELECT 1 FROM entries WHERE dataset = OLD.id AND number = OLD.last AND hash = OLD.head)
        BEGIN SELECT RAISE(ABORT, 'a dataset grows by one entry at a time'); END",
    ),
    (
        "datasets_remain",
        "CREATE TRIGGER datasets_remain BEFORE DELETE ON datasets BEGIN SELECT RAISE(ABORT, 'a dataset is never removed'); END",
    ),
    ("meta_stay", "CREATE TRIGGER meta_stay BEFORE UPDATE ON meta BEGIN SELECT RAISE(ABORT, 'the key is never changed'); END"),
    (
        "meta_remain",
        "CREATE TRIGGER meta_remain BEFORE DELETE ON meta BEGIN SELECT RAISE(ABORT, 'the key is never removed'); END",
    ),
    (
        "meta_begin",
        "CREATE TRIGGER meta_begin BEFORE INSERT ON meta WHEN NEW.name <> 'public_key' OR EXISTS (SELECT 1 FROM meta)
        BEGIN SELECT RAISE(ABORT, 'there is one key, and it is never replaced'); END",
    ),
];

/// The tables and triggers of a version.
fn schema(version: i64) -> &'static [(&'static str, &'static str)] {
    if version == FIRST_VERSION { &SCHEMA[..SCHEMA.len() - 1] } else { &SCHEMA }
}

impl Sqlite {
    /// Whether the database has no tables.
    pub(super) fn is_empty(&self) -> Result<bool, Error> {
        let objects =
            self.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
        Ok(objects.map_err(self.failed("opening the ledger"))? == 0)
    }

    /// Creates the tables and writes the public key in one transaction, unless they exist.
    pub(super) fn create_tables(
        &mut self,
        public_key: &dyn Fn() -> Result<[u8; 32], Error>,
    ) -> Result<(), Error> {
        let failed = self.failed("making a ledger");
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let objects = transaction
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
            .map_err(&failed)?;
        if objects == 0 {
            for (_, sql) in SCHEMA {
                transaction.execute_batch(sql).map_err(&failed)?;
            }
            transaction
                .execute("INSERT INTO meta (name, value) VALUES ('public_key', ?1)", [public_key()?])
                .map_err(&failed)?;
            transaction.pragma_update(None, "application_id", APPLICATION).map_err(&failed)?;
            transaction.pragma_update(None, "user_version", VERSION).map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)
    }

    /// The version of the ledger. Refuses other databases and later versions.
    pub(super) fn version(&self) -> Result<i64, Error> {
        let number = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let application = number("application_id").map_err(self.failed("opening the ledger"))?;
        let version = number("user_version").map_err(self.failed("opening the ledger"))?;
        if application == APPLICATION && (FIRST_VERSION..=VERSION).contains(&version) {
            return Ok(version);
        }
        let found = if application == APPLICATION {
            format!("it has version {version}, expected {VERSION}")
        } else if self.is_empty()? {
            "nothing was written into it: its creation was interrupted; `quell ledger create` completes it"
                .into()
        } else {
            "it is another database".into()
        };
        Err(Error::NotALedger { location: self.path.display().to_string(), found })
    }

    /// Adds the triggers that a ledger of the first version lacks.
    ///
    /// A read-only file stays unchanged.
    pub(super) fn upgrade(&mut self) -> Result<(), Error> {
        if self.version()? == VERSION || self.connection.is_readonly("main").unwrap_or(true) {
            return Ok(());
        }
        let failed = self.failed("upgrading the ledger");
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let version: i64 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(&failed)?;
        if version == FIRST_VERSION {
            for (_, sql) in &SCHEMA[schema(FIRST_VERSION).len()..] {
                transaction.execute_batch(sql).map_err(&failed)?;
            }
            transaction.pragma_update(None, "user_version", VERSION).map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)?;
        self.has_unsealed_writes = true;
        Ok(())
    }

    /// The first table or trigger that is missing, altered or added.
    pub(super) fn find_schema_mismatch(&self) -> Result<Option<String>, Error> {
        let schema = schema(self.version()?);
        let failed = self.failed("reading the schema");
        let mut statement = self
            .connection
            .prepare("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid")
            .map_err(&failed)?;
        let found: Vec<(String, Option<String>)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(&failed)?;
        let same = |(found, expected): &(&(String, Option<String>), &(&str, &str))| {
            found.0 == expected.0 && found.1.as_deref() == Some(expected.1)
        };
        if let Some((_, (name, _))) = found.iter().zip(schema).find(|pair| !same(pair)) {
            return Ok(Some((*name).to_owned()));
        }
        let missing = schema.get(found.len()).map(|(name, _)| (*name).to_owned());
        Ok(missing.or_else(|| found.get(schema.len()).map(|(name, _)| name.clone())))
    }
}
