//! A ledger in a SQLite file. Every line syncs the write-ahead log to disk.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, config::DbConfig, params};

use crate::{
    chain::{Row, Stored},
    database::{Database, Outcome, PendingLine, rejection},
    error::Error,
    file::{Identity, must_be_regular},
    finding::{Finding, Problem},
    hexadecimal::hex,
    seal::{self, Mark},
    signature::sync_directory,
};

mod schema;
mod sealed;

/// Longest wait for the lock of another writer: far longer than writing a line.
const LOCK_TIMEOUT: Duration = Duration::from_mins(2);
/// Time between two attempts to get the lock: far shorter than writing a line takes.
const RETRY_INTERVAL: Duration = Duration::from_micros(500);

const ROW: &str = "SELECT name, lines, head, spent, cap, signature FROM datasets";
const ENTRY: &str = "SELECT number, body, previous, hash FROM entries WHERE dataset = (SELECT id FROM datasets WHERE name = ?1)";

/// A connection to a database file.
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    /// Identity of the file that was opened.
    identity: Option<Identity>,
    /// Whether this connection has written since the last seal.
    has_unsealed_writes: bool,
}

impl Sqlite {
    /// Opens a ledger for reading and writing; creates it with this public key if missing.
    pub(crate) fn create(
        path: &Path,
        public_key: &dyn Fn() -> Result<[u8; 32], Error>,
    ) -> Result<Self, Error> {
        let mut sqlite =
            Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        if sqlite.is_empty()? {
            sqlite.enable_write_ahead_log()?;
            sqlite.create_tables(public_key)?;
            sync_directory(path).map_err(|source| Error::File {
                doing: "making a ledger",
                path: path.to_owned(),
                source,
            })?;
        }
        sqlite.validate()
    }

    /// Opens an existing ledger for reading and writing.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::NotFound { location: path.display().to_string() });
        }
        Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?.validate()
    }

    /// Opens a ledger read-only and without checks, so that damaged ledgers can be examined.
    pub(crate) fn open_read_only(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::NotFound { location: path.display().to_string() });
        }
        let sqlite = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // SQLite cannot create its lock files in a read-only directory. With `immutable=1` it reads without
        // locks.
        let unlockable = sqlite
            .connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
            .is_err_and(|error| {
                matches!(
                    error.sqlite_error_code(),
                    Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly)
                )
            });
        if !unlockable || sqlite.has_log() {
            return Ok(sqlite);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let opened =
            Connection::open_with_flags(immutable(&sqlite.path), flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        Self::prepare(opened, path, sqlite.identity)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        // SQLite treats some names as in-memory databases; no absolute path is such a name.
        let path = &std::path::absolute(path).map_err(|source| Error::File {
            doing: "opening the ledger",
            path: path.to_owned(),
            source,
        })?;
        // SQLite would wait forever for data from a pipe.
        for suffix in ["", "-wal", "-shm", "-journal", ".seal"] {
            must_be_regular(&with_suffix(path, suffix))?;
        }
        let before = Identity::of(path);
        let opened = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let identity = Identity::of(path);
        if before.is_some() && before != identity {
            return Err(Error::Moved { path: path.clone() });
        }
        Self::prepare(opened, path, identity)
    }

    fn prepare(
        opened: rusqlite::Result<Connection>,
        path: &Path,
        identity: Option<Identity>,
    ) -> Result<Self, Error> {
        let failed = failed("opening the ledger", path);
        let mut connection = opened.map_err(&failed)?;
        // SQLite's own busy handler sleeps up to 100 ms, but writing a line takes a few milliseconds.
        connection.busy_handler(Some(wait)).map_err(&failed)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(&failed)?;
        connection
            .execute_batch(
                "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON;",
            )
            .map_err(&failed)?;
        Ok(Self { connection, path: path.to_owned(), identity, has_unsealed_writes: false })
    }

    /// Whether the write-ahead log has data.
    fn has_log(&self) -> bool {
        std::fs::metadata(with_suffix(&self.path, "-wal")).is_ok_and(|log| log.len() > 0)
    }

    fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> Error + use<> {
        failed(doing, &self.path)
    }

    /// Turns on the write-ahead log and syncs it with each commit.
    fn enable_write_ahead_log(&self) -> Result<(), Error> {
        let failed = self.failed("opening the ledger");
        // When two connections switch the journal mode at the same time, SQLite reports busy without calling
        // the busy handler.
        let mut attempts = 0;
        let mode = loop {
            match self.connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
                Err(error) if is_busy(&error) && wait(attempts) => attempts += 1,
                other => break other.map_err(&failed)?,
            }
        };
        if mode != "wal" {
            let found = format!("journal mode {mode}, expected wal; the file system may not support it");
            return Err(Error::NotALedger { location: self.path.display().to_string(), found });
        }
        self.connection
            .execute_batch(
                "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;",
            )
            .map_err(&failed)
    }

    /// Refuses a file that is not a ledger or does not match its seal.
    fn validate(mut self) -> Result<Self, Error> {
        self.version()?;
        if let Some(name) = self.find_schema_mismatch()? {
            return Err(Problem::Schema { name }.in_store().into());
        }
        let (findings, _) = self.compare_with_seal()?;
        // A damaged seal does not mean a damaged ledger. `verify` reports the seal, and the next line
        // rewrites it.
        if let Some(finding) =
            findings.into_iter().find(|finding| !matches!(finding.problem, Problem::SealDamaged { .. }))
        {
            return Err(finding.into());
        }
        self.enable_write_ahead_log()?;
        self.upgrade()?;
        Ok(self)
    }

    fn write(transaction: &rusqlite::Transaction, pending: &PendingLine) -> rusqlite::Result<Option<i64>> {
        let (row, entry) = (pending.row, pending.entry);
        let (number, lines) = (entry.number.cast_signed(), row.lines.cast_signed());
        let id = if entry.number == 0 {
            let sql = "INSERT INTO datasets (name, genesis, lines, last, head, spent, cap, signature)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (SELECT 1 FROM datasets WHERE name = ?1) RETURNING id";
            transaction.prepare_cached(sql)?.query_row(
                params![
                    row.dataset,
                    pending.previous_head,
                    lines,
                    number,
                    row.head,
                    row.spent,
                    row.cap,
                    row.signature
                ],
                |row| row.get::<_, i64>(0),
            )
        } else {
            let sql =
                "UPDATE datasets SET lines = ?1, last = ?2, head = ?3, spent = ?4, cap = ?5, signature = ?6
                WHERE name = ?7 AND lines = ?2 AND head = ?8 AND (cap = ?5 OR ?9) RETURNING id";
            transaction.prepare_cached(sql)?.query_row(
                params![
                    lines,
                    number,
                    row.head,
                    row.spent,
                    row.cap,
                    row.signature,
                    row.dataset,
                    pending.previous_head,
                    pending.sets_cap
                ],
                |row| row.get::<_, i64>(0),
            )
        };
        let Some(id) = id.optional()? else { return Ok(None) };
        transaction
            .prepare_cached(
                "INSERT INTO entries (dataset, number, body, previous, hash) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![id, number, entry.body, entry.previous, entry.hash])?;
        Ok(Some(id))
    }
}

impl Database for Sqlite {
    fn public_key(&mut self) -> Result<Option<[u8; 32]>, Error> {
        let sql = "SELECT value FROM meta WHERE name = 'public_key'";
        self.connection
            .query_row(sql, [], |row| row.get(0))
            .optional()
            .map_err(self.failed("reading the public key"))
    }

    fn is_blank(&mut self) -> Result<bool, Error> {
        self.is_empty()
    }

    fn check_in_place(&mut self) -> Result<(), Error> {
        if self.identity.is_some() && Identity::of(&self.path) == self.identity {
            return Ok(());
        }
        Err(Error::Moved { path: self.path.clone() })
    }

    fn set_public_key(&mut self, public_key: &[u8; 32]) -> Result<(), Error> {
        let sql = "INSERT INTO meta (name, value) SELECT 'public_key', ?1 WHERE NOT EXISTS (SELECT 1 FROM meta WHERE name = 'public_key')";
        self.connection.execute(sql, [public_key]).map_err(self.failed("writing the public key"))?;
        Ok(())
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let failed = self.failed("reading the datasets");
        let mut statement =
            self.connection.prepare_cached(&format!("{ROW} ORDER BY name")).map_err(&failed)?;
        statement.query_map([], dataset).and_then(Iterator::collect).map_err(&failed)
    }

    fn row(&mut self, name: &str) -> Result<Option<Row>, Error> {
        row(&self.connection, name).map_err(self.failed("reading a dataset"))
    }

    fn entry(&mut self, dataset: &str, number: u64) -> Result<Option<Stored>, Error> {
        let sql = format!("{ENTRY} AND number = ?2");
        let mut statement = self.connection.prepare_cached(&sql).map_err(self.failed("reading a line"))?;
        statement
            .query_row(params![dataset, number.cast_signed()], stored)
            .optional()
            .map_err(self.failed("reading a line"))
    }

    fn snapshot(&mut self, dataset: &str, from: u64) -> Result<Option<(Row, Vec<Stored>)>, Error> {
        let failed = self.failed("reading the lines");
        let transaction = self.connection.transaction().map_err(&failed)?;
        let Some(row) = row(&transaction, dataset).map_err(&failed)? else { return Ok(None) };
        let sql = format!("{ENTRY} AND number >= ?2 ORDER BY number");
        let mut statement = transaction.prepare_cached(&sql).map_err(&failed)?;
        let lines = statement
            .query_map(params![dataset, from.cast_signed()], stored)
            .and_then(Iterator::collect)
            .map_err(&failed)?;
        Ok(Some((row, lines)))
    }

    fn append(&mut self, pending: &PendingLine) -> Result<Outcome, Error> {
        let failed = self.failed("writing a line");
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let Some(id) = Self::write(&transaction, pending).map_err(&failed)? else {
            return Ok(rejection(
                row(&transaction, &pending.row.dataset).map_err(&failed)?.as_ref(),
                pending,
            ));
        };
        transaction.commit().map_err(&failed)?;
        // A line in a removed or replaced file is not a durable charge, and the seal now belongs to another
        // file.
        self.check_in_place()?;
        self.has_unsealed_writes = true;
        let mark = Mark { lines: pending.row.lines, length: 0, hash: pending.row.head };
        // The charge is already durable. If this write fails, the seal only holds an older record.
        let _ = seal::write(&self.path, id.unsigned_abs(), &mark);
        Ok(Outcome::Written)
    }

    fn inspect(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error> {
        if self.is_empty()? {
            return self.compare_blank_with_seal();
        }
        self.version()?;
        let (mut findings, notes) = self.compare_with_seal()?;
        if let Some(name) = self.find_schema_mismatch()? {
            findings.push(Problem::Schema { name }.in_store());
        }
        let failed = self.failed("checking the file");
        let mut statement = self.connection.prepare("PRAGMA integrity_check").map_err(&failed)?;
        let messages: Vec<String> =
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(&failed)?;
        findings.extend(
            messages
                .into_iter()
                .filter(|message| message != "ok")
                .map(|message| Problem::Unsound { message }.in_store()),
        );
        let mut statement = self.connection.prepare("PRAGMA foreign_key_check").map_err(&failed)?;
        let orphans: Vec<String> =
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(&failed)?;
        let orphan = |table| {
            Problem::Unsound { message: format!("a row of {table} refers to a row that does not exist") }
                .in_store()
        };
        findings.extend(orphans.into_iter().map(orphan));
        Ok((findings, notes))
    }

    fn seal(&mut self) -> Result<bool, Error> {
        let failed = self.failed("sealing the ledger");
        if self.check_in_place().is_err() {
            return Ok(false);
        }
        let busy = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            .map_err(&failed)?;
        if busy != 0 {
            return Ok(false);
        }
        // Hold the write lock, so that the file does not change.
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(&failed)?;
        let sealed = self.write_seal();
        self.connection.execute_batch("ROLLBACK").map_err(&failed)?;
        sealed
    }
}

impl Drop for Sqlite {
    /// Seals the lines that this connection wrote, unless another connection holds the lock.
    ///
    /// If it does, the seal stays older than the file, and `verify` reports that in a note.
    fn drop(&mut self) {
        if self.has_unsealed_writes
            && self.connection.is_autocommit()
            && self.connection.busy_timeout(Duration::ZERO).is_ok()
        {
            let _ = self.seal();
        }
    }
}

fn row(connection: &Connection, name: &str) -> rusqlite::Result<Option<Row>> {
    connection.prepare_cached(&format!("{ROW} WHERE name = ?1"))?.query_row([name], dataset).optional()
}

fn dataset(row: &rusqlite::Row) -> rusqlite::Result<Row> {
    Ok(Row {
        dataset: row.get(0)?,
        lines: natural(row, 1)?,
        head: row.get(2)?,
        spent: row.get(3)?,
        cap: row.get(4)?,
        signature: row.get(5)?,
    })
}

fn stored(row: &rusqlite::Row) -> rusqlite::Result<Stored> {
    Ok(Stored { number: natural(row, 0)?, body: row.get(1)?, previous: row.get(2)?, hash: row.get(3)? })
}

/// A SQLite URI that opens a file as immutable, without locks.
fn immutable(path: &Path) -> String {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            _ => {
                address.push('%');
                address.push_str(&hex(&[*byte]));
            }
        }
    }
    address + "?immutable=1"
}

/// The path of a database with a suffix, as SQLite names its companion files.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Reads a column as a number that is not negative.
fn natural(row: &rusqlite::Row, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn wait(attempts: i32) -> bool {
    std::thread::sleep(RETRY_INTERVAL);
    RETRY_INTERVAL * attempts.unsigned_abs() < LOCK_TIMEOUT
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(rusqlite::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Sqlite { doing, path: path.clone(), source }
}
