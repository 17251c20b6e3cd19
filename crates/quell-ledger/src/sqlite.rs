//! A ledger in a SQLite file: write-ahead log, forced to disk with every line.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, config::DbConfig, params};

use crate::{
    chain::{Row, Stored},
    database::{Database, Outcome, Step, why_not},
    error::Error,
    file::{Identity, must_be_regular},
    finding::{Finding, Problem},
    hexadecimal::hex,
    seal::{self, Mark},
    signature::sync_directory,
};

mod schema;
mod sealed;

/// How long a writer waits for others, and how long it sleeps between looks: far longer than any line takes, and far shorter.
const PATIENCE: Duration = Duration::from_mins(2);
const NAP: Duration = Duration::from_micros(500);

const ROW: &str = "SELECT name, lines, head, spent, cap, signature FROM datasets";
const ENTRY: &str = "SELECT number, body, previous, hash FROM entries WHERE dataset = (SELECT id FROM datasets WHERE name = ?1)";

/// A connection to a database file.
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    /// The file that was opened.
    identity: Option<Identity>,
    /// This connection wrote something since the last seal.
    wrote: bool,
}

impl Sqlite {
    /// Opens a ledger to read and write, making it with this public key if it does not exist.
    pub(crate) fn create(path: &Path, public_key: &dyn Fn() -> Result<[u8; 32], Error>) -> Result<Self, Error> {
        let mut sqlite = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        if sqlite.has_nothing()? {
            sqlite.settle()?;
            sqlite.lay_out(public_key)?;
            sync_directory(path).map_err(|source| Error::File { doing: "making a ledger", path: path.to_owned(), source })?;
        }
        sqlite.admit()
    }

    /// Opens a ledger that exists to read and write.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::NotFound { location: path.display().to_string() });
        }
        Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?.admit()
    }

    /// Opens a ledger to look at, as it is, damaged or not.
    pub(crate) fn look(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::NotFound { location: path.display().to_string() });
        }
        let sqlite = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // Where nothing can be written SQLite cannot lock either; it has to be told that nobody else writes.
        let unlockable = sqlite.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).is_err_and(|error| {
            matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly))
        });
        if !unlockable || sqlite.has_log() {
            return Ok(sqlite);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let opened = Connection::open_with_flags(immutable(&sqlite.path), flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        Self::prepare(opened, path, sqlite.identity)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        // SQLite takes some names for databases in memory; none of those begins at the root.
        let path = &std::path::absolute(path).map_err(|source| Error::File {
            doing: "opening the ledger",
            path: path.to_owned(),
            source,
        })?;
        // SQLite would wait for ever for what a pipe has to say.
        for end in ["", "-wal", "-shm", "-journal", ".seal"] {
            must_be_regular(&beside(path, end))?;
        }
        let before = Identity::of(path);
        let opened = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let identity = Identity::of(path);
        if before.is_some() && before != identity {
            return Err(Error::Moved { path: path.clone() });
        }
        Self::prepare(opened, path, identity)
    }

    fn prepare(opened: rusqlite::Result<Connection>, path: &Path, identity: Option<Identity>) -> Result<Self, Error> {
        let failed = failed("opening the ledger", path);
        let mut connection = opened.map_err(&failed)?;
        // SQLite's own handler sleeps up to a tenth of a second, while a line takes a few thousandths.
        connection.busy_handler(Some(wait)).map_err(&failed)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(&failed)?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON;")
            .map_err(&failed)?;
        Ok(Self { connection, path: path.to_owned(), identity, wrote: false })
    }

    /// There is something in the write-ahead log.
    fn has_log(&self) -> bool {
        std::fs::metadata(beside(&self.path, "-wal")).is_ok_and(|log| log.len() > 0)
    }

    fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> Error + use<> {
        failed(doing, &self.path)
    }

    /// Write-ahead log, forced to disk with each commit.
    fn settle(&self) -> Result<(), Error> {
        let failed = self.failed("opening the ledger");
        // Two that switch at the same time make each other wait in a way that the handler is not asked about.
        let mut looks = 0;
        let mode = loop {
            match self.connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
                Err(error) if is_busy(&error) && wait(looks) => looks += 1,
                other => break other.map_err(&failed)?,
            }
        };
        if mode != "wal" {
            let found = format!("journal mode {mode}, expected wal; the file system may not support it");
            return Err(Error::NotALedger { location: self.path.display().to_string(), found });
        }
        self.connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;")
            .map_err(&failed)
    }

    /// Refuses what is not a ledger, or not the ledger that was last seen here.
    fn admit(mut self) -> Result<Self, Error> {
        self.version()?;
        if let Some(name) = self.strange_schema()? {
            return Err(Problem::Schema { name }.in_store().into());
        }
        let (findings, _) = self.against_seal()?;
        // A damaged seal says nothing about the ledger; `verify` reports it and the next line mends it.
        if let Some(finding) = findings.into_iter().find(|finding| !matches!(finding.problem, Problem::SealDamaged { .. })) {
            return Err(finding.into());
        }
        self.settle()?;
        self.bring_up_to_date()?;
        Ok(self)
    }

    fn write(transaction: &rusqlite::Transaction, step: &Step) -> rusqlite::Result<Option<i64>> {
        let (row, entry) = (step.row, step.entry);
        let (number, lines) = (entry.number.cast_signed(), row.lines.cast_signed());
        let id = if entry.number == 0 {
            let sql = "INSERT INTO datasets (name, genesis, lines, last, head, spent, cap, signature)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (SELECT 1 FROM datasets WHERE name = ?1) RETURNING id";
            transaction
                .prepare_cached(sql)?
                .query_row(params![row.dataset, step.old, lines, number, row.head, row.spent, row.cap, row.signature], |row| {
                    row.get::<_, i64>(0)
                })
        } else {
            let sql = "UPDATE datasets SET lines = ?1, last = ?2, head = ?3, spent = ?4, cap = ?5, signature = ?6
                WHERE name = ?7 AND lines = ?2 AND head = ?8 AND (cap = ?5 OR ?9) RETURNING id";
            transaction.prepare_cached(sql)?.query_row(
                params![lines, number, row.head, row.spent, row.cap, row.signature, row.dataset, step.old, step.sets_cap],
                |row| row.get::<_, i64>(0),
            )
        };
        let Some(id) = id.optional()? else { return Ok(None) };
        transaction
            .prepare_cached("INSERT INTO entries (dataset, number, body, previous, hash) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![id, number, entry.body, entry.previous, entry.hash])?;
        Ok(Some(id))
    }
}

impl Database for Sqlite {
    fn public_key(&mut self) -> Result<Option<[u8; 32]>, Error> {
        let sql = "SELECT value FROM meta WHERE name = 'public_key'";
        self.connection.query_row(sql, [], |row| row.get(0)).optional().map_err(self.failed("reading the public key"))
    }

    fn is_blank(&mut self) -> Result<bool, Error> {
        self.has_nothing()
    }

    fn is_in_place(&mut self) -> Result<(), Error> {
        if self.identity.is_some() && Identity::of(&self.path) == self.identity {
            return Ok(());
        }
        Err(Error::Moved { path: self.path.clone() })
    }

    fn adopt(&mut self, public_key: &[u8; 32]) -> Result<(), Error> {
        let sql = "INSERT INTO meta (name, value) SELECT 'public_key', ?1 WHERE NOT EXISTS (SELECT 1 FROM meta WHERE name = 'public_key')";
        self.connection.execute(sql, [public_key]).map_err(self.failed("writing the public key"))?;
        Ok(())
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let failed = self.failed("reading the datasets");
        let mut statement = self.connection.prepare_cached(&format!("{ROW} ORDER BY name")).map_err(&failed)?;
        statement.query_map([], dataset).and_then(Iterator::collect).map_err(&failed)
    }

    fn row(&mut self, name: &str) -> Result<Option<Row>, Error> {
        row(&self.connection, name).map_err(self.failed("reading a dataset"))
    }

    fn entry(&mut self, dataset: &str, number: u64) -> Result<Option<Stored>, Error> {
        let sql = format!("{ENTRY} AND number = ?2");
        let mut statement = self.connection.prepare_cached(&sql).map_err(self.failed("reading a line"))?;
        statement.query_row(params![dataset, number.cast_signed()], stored).optional().map_err(self.failed("reading a line"))
    }

    fn snapshot(&mut self, dataset: &str, from: u64) -> Result<Option<(Row, Vec<Stored>)>, Error> {
        let failed = self.failed("reading the lines");
        let transaction = self.connection.transaction().map_err(&failed)?;
        let Some(row) = row(&transaction, dataset).map_err(&failed)? else { return Ok(None) };
        let sql = format!("{ENTRY} AND number >= ?2 ORDER BY number");
        let mut statement = transaction.prepare_cached(&sql).map_err(&failed)?;
        let lines =
            statement.query_map(params![dataset, from.cast_signed()], stored).and_then(Iterator::collect).map_err(&failed)?;
        Ok(Some((row, lines)))
    }

    fn append(&mut self, step: &Step) -> Result<Outcome, Error> {
        let failed = self.failed("writing a line");
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let Some(id) = Self::write(&transaction, step).map_err(&failed)? else {
            return Ok(why_not(row(&transaction, &step.row.dataset).map_err(&failed)?.as_ref(), step));
        };
        transaction.commit().map_err(&failed)?;
        // A line in a file that nobody finds again is no debt. The seal beside another file is not ours either.
        self.is_in_place()?;
        self.wrote = true;
        let mark = Mark { lines: step.row.lines, length: 0, hash: step.row.head };
        // The debt is safe; a mark that could not be written is an older mark.
        let _ = seal::write(&self.path, id.unsigned_abs(), &mark);
        Ok(Outcome::Written)
    }

    fn inspect(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error> {
        if self.has_nothing()? {
            return self.blank_against_seal();
        }
        self.version()?;
        let (mut findings, notes) = self.against_seal()?;
        if let Some(name) = self.strange_schema()? {
            findings.push(Problem::Schema { name }.in_store());
        }
        let failed = self.failed("checking the file");
        let mut statement = self.connection.prepare("PRAGMA integrity_check").map_err(&failed)?;
        let said: Vec<String> = statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(&failed)?;
        findings.extend(said.into_iter().filter(|said| said != "ok").map(|said| Problem::Unsound { said }.in_store()));
        let mut statement = self.connection.prepare("PRAGMA foreign_key_check").map_err(&failed)?;
        let orphans: Vec<String> = statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(&failed)?;
        let orphan = |table| Problem::Unsound { said: format!("a row of {table} refers to nothing") }.in_store();
        findings.extend(orphans.into_iter().map(orphan));
        Ok((findings, notes))
    }

    fn seal(&mut self) -> Result<bool, Error> {
        let failed = self.failed("sealing the ledger");
        if self.is_in_place().is_err() {
            return Ok(false);
        }
        let busy =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).map_err(&failed)?;
        if busy != 0 {
            return Ok(false);
        }
        // Holding the lock of a writer, so that the file stands still.
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(&failed)?;
        let done = self.seal_still();
        self.connection.execute_batch("ROLLBACK").map_err(&failed)?;
        done
    }
}

impl Drop for Sqlite {
    /// Seals what this connection wrote, if nobody else is at it; otherwise the seal stays older, which `verify` says.
    fn drop(&mut self) {
        if self.wrote && self.connection.is_autocommit() && self.connection.busy_timeout(Duration::ZERO).is_ok() {
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

/// The address of a file of which SQLite believes that nobody writes it.
fn immutable(path: &Path) -> String {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            _ => {
                address.push('%');
                address.push_str(&hex(&[*byte]));
            }
        }
    }
    address + "?immutable=1"
}

/// A file that belongs to the database, by the end of its name.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// A number that is not negative.
fn natural(row: &rusqlite::Row, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn wait(looks: i32) -> bool {
    std::thread::sleep(NAP);
    NAP * looks.unsigned_abs() < PATIENCE
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked))
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(rusqlite::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Sqlite { doing, path: path.clone(), source }
}
