//! The tables of a ledger in a file, and the rules that SQLite keeps by itself.

use rusqlite::TransactionBehavior;

use super::Sqlite;
use crate::error::Error;

/// "Qull", so that `file` and we ourselves know what it is.
const APPLICATION: i64 = 0x5175_6c6c;
/// The version that is written. The first one has no rule against replacing the key, and is given it when it is opened to write.
const VERSION: i64 = 2;
const FIRST: i64 = 1;

/// Tables and triggers by name. The rules of a book once more, for whoever comes with another program: a dataset grows by one entry at a time, which
/// takes the next number and becomes the head; nothing is changed or removed; nothing exceeds the cap.
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
    if version == FIRST { &SCHEMA[..SCHEMA.len() - 1] } else { &SCHEMA }
}

impl Sqlite {
    /// Nothing is in the file.
    pub(super) fn has_nothing(&self) -> Result<bool, Error> {
        let things = self.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
        Ok(things.map_err(self.failed("opening the ledger"))? == 0)
    }

    /// Makes the tables and writes the public key, both or neither, unless somebody else just did.
    pub(super) fn lay_out(&mut self, public_key: &dyn Fn() -> Result<[u8; 32], Error>) -> Result<(), Error> {
        let failed = self.failed("making a ledger");
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let things =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)).map_err(&failed)?;
        if things == 0 {
            for (_, sql) in SCHEMA {
                transaction.execute_batch(sql).map_err(&failed)?;
            }
            transaction.execute("INSERT INTO meta (name, value) VALUES ('public_key', ?1)", [public_key()?]).map_err(&failed)?;
            transaction.pragma_update(None, "application_id", APPLICATION).map_err(&failed)?;
            transaction.pragma_update(None, "user_version", VERSION).map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)
    }

    /// The version of the ledger. Refuses what is no ledger, or one of a later version.
    pub(super) fn version(&self) -> Result<i64, Error> {
        let number = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let application = number("application_id").map_err(self.failed("opening the ledger"))?;
        let version = number("user_version").map_err(self.failed("opening the ledger"))?;
        if application == APPLICATION && (FIRST..=VERSION).contains(&version) {
            return Ok(version);
        }
        let found = if application == APPLICATION {
            format!("it has version {version}, expected {VERSION}")
        } else if self.has_nothing()? {
            "nothing was written into it: making it was interrupted, and `quell ledger create` goes on with it".into()
        } else {
            "it is another database".into()
        };
        Err(Error::NotALedger { location: self.path.display().to_string(), found })
    }

    /// Adds the rules that a ledger of the first version lacks. A file that cannot be written stays as it is.
    pub(super) fn bring_up_to_date(&mut self) -> Result<(), Error> {
        if self.version()? == VERSION || self.connection.is_readonly("main").unwrap_or(true) {
            return Ok(());
        }
        let failed = self.failed("bringing the ledger up to date");
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(&failed)?;
        if version == FIRST {
            for (_, sql) in &SCHEMA[schema(FIRST).len()..] {
                transaction.execute_batch(sql).map_err(&failed)?;
            }
            transaction.pragma_update(None, "user_version", VERSION).map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)?;
        self.wrote = true;
        Ok(())
    }

    /// The first table or trigger that is missing, altered or added.
    pub(super) fn strange_schema(&self) -> Result<Option<String>, Error> {
        let schema = schema(self.version()?);
        let failed = self.failed("reading the schema");
        let mut statement = self
            .connection
            .prepare("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid")
            .map_err(&failed)?;
        let found: Vec<(String, Option<String>)> =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).and_then(Iterator::collect).map_err(&failed)?;
        let same =
            |(have, want): &(&(String, Option<String>), &(&str, &str))| have.0 == want.0 && have.1.as_deref() == Some(want.1);
        if let Some((_, (name, _))) = found.iter().zip(schema).find(|pair| !same(pair)) {
            return Ok(Some((*name).to_owned()));
        }
        let missing = schema.get(found.len()).map(|(name, _)| (*name).to_owned());
        Ok(missing.or_else(|| found.get(schema.len()).map(|(name, _)| name.clone())))
    }
}
