//! A ledger in a SQLite file: write-ahead log, forced to disk with every line.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, config::DbConfig, params};

use crate::{
    chain::{self, Row, Stored},
    database::{Database, Outcome, Step, why_not},
    error::Error,
    finding::{Finding, Problem},
    hexadecimal::hex,
    seal::{self, Mark, Record},
    signature::sync_directory,
};

/// "Qull", so that `file` and we ourselves know what it is.
const APPLICATION: i64 = 0x5175_6c6c;
const VERSION: i64 = 1;

/// Tables and triggers by name. The rules of a book once more, for whoever comes with another program: a dataset grows by one entry at a time, which
/// takes the next number and becomes the head; nothing is changed or removed; nothing exceeds the cap.
const SCHEMA: [(&str, &str); 11] = [
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
];

/// How long a writer waits for others, and how long it sleeps between looks: far longer than any line takes, and far shorter.
const PATIENCE: Duration = Duration::from_secs(120);
const NAP: Duration = Duration::from_micros(500);

const ROW: &str = "SELECT name, lines, head, spent, cap, signature FROM datasets";
const ENTRY: &str = "SELECT number, body, previous, hash FROM entries WHERE dataset = (SELECT id FROM datasets WHERE name = ?1)";

/// A connection to a database file.
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    /// This connection wrote something since the last seal.
    wrote: bool,
}

impl Sqlite {
    /// Opens a ledger to read and write, making it if it does not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let mut sqlite = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        if sqlite.is_blank()? {
            sqlite.settle()?;
            sqlite.lay_out()?;
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
        Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        let failed = failed("opening the ledger", path);
        let mut connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(&failed)?;
        // SQLite's own handler sleeps up to a tenth of a second, while a line takes a few thousandths.
        connection.busy_handler(Some(wait)).map_err(&failed)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(&failed)?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON;")
            .map_err(&failed)?;
        Ok(Self { connection, path: path.to_owned(), wrote: false })
    }

    fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> Error + use<> {
        failed(doing, &self.path)
    }

    /// Nothing is in the file.
    fn is_blank(&self) -> Result<bool, Error> {
        let things = self.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
        Ok(things.map_err(self.failed("opening the ledger"))? == 0)
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

    fn lay_out(&mut self) -> Result<(), Error> {
        let failed = self.failed("making a ledger");
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let things =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)).map_err(&failed)?;
        if things == 0 {
            for (_, sql) in SCHEMA {
                transaction.execute_batch(sql).map_err(&failed)?;
            }
            transaction.pragma_update(None, "application_id", APPLICATION).map_err(&failed)?;
            transaction.pragma_update(None, "user_version", VERSION).map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)
    }

    /// Refuses what is not a ledger, or not the ledger that was last seen here.
    fn admit(mut self) -> Result<Self, Error> {
        self.is_ledger()?;
        if let Some(name) = self.strange_schema()? {
            return Err(Problem::Schema { name }.in_store().into());
        }
        let (findings, _) = self.against_seal()?;
        // A damaged seal says nothing about the ledger; `verify` reports it and the next line mends it.
        if let Some(finding) = findings.into_iter().find(|finding| !matches!(finding.problem, Problem::SealDamaged { .. })) {
            return Err(finding.into());
        }
        self.settle()?;
        Ok(self)
    }

    fn is_ledger(&self) -> Result<(), Error> {
        let number = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let application = number("application_id").map_err(self.failed("opening the ledger"))?;
        let version = number("user_version").map_err(self.failed("opening the ledger"))?;
        if (application, version) == (APPLICATION, VERSION) {
            return Ok(());
        }
        let found = if application == APPLICATION {
            format!("it has version {version}, expected {VERSION}")
        } else {
            "it is another database, or an empty one".into()
        };
        Err(Error::NotALedger { location: self.path.display().to_string(), found })
    }

    /// The first table or trigger that is missing, altered or added.
    fn strange_schema(&self) -> Result<Option<String>, Error> {
        let failed = self.failed("reading the schema");
        let mut statement = self
            .connection
            .prepare("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid")
            .map_err(&failed)?;
        let found: Vec<(String, Option<String>)> =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).and_then(Iterator::collect).map_err(&failed)?;
        let same =
            |(have, want): &(&(String, Option<String>), &(&str, &str))| have.0 == want.0 && have.1.as_deref() == Some(want.1);
        if let Some((_, (name, _))) = found.iter().zip(&SCHEMA).find(|pair| !same(pair)) {
            return Ok(Some((*name).to_owned()));
        }
        let missing = SCHEMA.get(found.len()).map(|(name, _)| (*name).to_owned());
        Ok(missing.or_else(|| found.get(SCHEMA.len()).map(|(name, _)| name.clone())))
    }

    /// Compares the file with its seal.
    fn against_seal(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error> {
        let sealed = seal::path(&self.path);
        // Read before the database, so that what others write meanwhile makes the seal older, not newer.
        let records = seal::read(&self.path).map_err(|source| Error::File { doing: "reading the seal", path: sealed, source })?;
        let mut findings: Vec<Finding> = seal::damages(&records).map(Problem::in_store).collect();
        let mut notes = Vec::new();
        let failed = self.failed("comparing the ledger with its seal");
        self.connection.execute_batch("BEGIN").map_err(&failed)?;
        let compared = self.compare(&records, &mut findings, &mut notes);
        self.connection.execute_batch("COMMIT").map_err(&failed)?;
        compared.map(|()| (findings, notes))
    }

    fn compare(&mut self, records: &[Record], findings: &mut Vec<Finding>, notes: &mut Vec<String>) -> Result<(), Error> {
        let failed = self.failed("comparing the ledger with its seal");
        let mut statement = self.connection.prepare_cached("SELECT id, name, lines FROM datasets").map_err(&failed)?;
        let datasets: Vec<(i64, String, i64)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .and_then(Iterator::collect)
            .map_err(&failed)?;
        drop(statement);
        let total: u64 = datasets.iter().map(|(_, _, lines)| lines.unsigned_abs()).sum();
        match records.first() {
            Some(Record::Mark(mark)) if mark.lines > total => {
                findings.push(Problem::Truncated { lines: total, expected: mark.lines }.in_store());
            }
            Some(Record::Mark(mark)) if mark.lines == total => {
                let length = std::fs::metadata(&self.path).map_or(0, |file| file.len());
                if mark.length != length || mark.hash != self.hash()?.1 {
                    findings.push(Problem::Seal.in_store());
                }
            }
            Some(Record::Mark(mark)) => {
                let newer = total - mark.lines;
                notes
                    .push(format!("{newer} lines are newer than the seal: the last program to write was stopped, or still runs"));
            }
            Some(Record::Damaged) => {}
            None | Some(Record::Empty) => notes.push("there is no seal yet: bytes outside the lines are not checked".into()),
        }
        for (number, record) in records.iter().enumerate().skip(1) {
            let Record::Mark(mark) = record else { continue };
            let Some((_, name, lines)) = datasets.iter().find(|(id, ..)| usize::try_from(*id) == Ok(number)) else {
                findings.push(Problem::Truncated { lines: 0, expected: mark.lines }.in_store());
                continue;
            };
            if lines.unsigned_abs() < mark.lines {
                findings.push(Problem::Truncated { lines: lines.unsigned_abs(), expected: mark.lines }.of(name));
                continue;
            }
            let last = mark.lines.saturating_sub(1);
            let found = self.entry(name, last)?.map_or([0; 32], |entry| entry.hash);
            if found != mark.hash {
                findings.push(Problem::Forked { found: hex(&found), expected: hex(&mark.hash) }.at(name, last));
            }
        }
        Ok(())
    }

    /// Length and hash of all bytes of the database. Through SQLite: another file handle on the database would, when closed, take the
    /// locks of this process away.
    fn hash(&mut self) -> Result<(u64, chain::Hash), Error> {
        let failed = self.failed("reading the whole file");
        let bytes = self.connection.serialize("main").map_err(failed)?;
        Ok((bytes.len() as u64, blake3::hash(&bytes).into()))
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
        self.wrote = true;
        let mark = Mark { lines: step.row.lines, length: 0, hash: step.row.head };
        // The debt is safe; a mark that could not be written is an older mark.
        let _ = seal::write(&self.path, id.unsigned_abs(), &mark);
        Ok(Outcome::Written)
    }

    fn inspect(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error> {
        self.is_ledger()?;
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

impl Sqlite {
    fn seal_still(&mut self) -> Result<bool, Error> {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
            return Ok(false);
        }
        let total = self.connection.query_row("SELECT coalesce(sum(lines), 0) FROM datasets", [], |row| row.get::<_, i64>(0));
        let lines = total.map_err(self.failed("sealing the ledger"))?.unsigned_abs();
        let (length, hash) = self.hash()?;
        seal::write(&self.path, 0, &Mark { lines, length, hash }).map_err(|source| Error::File {
            doing: "sealing the ledger",
            path: seal::path(&self.path),
            source,
        })?;
        self.wrote = false;
        Ok(true)
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
        lines: row.get::<_, i64>(1)?.unsigned_abs(),
        head: row.get(2)?,
        spent: row.get(3)?,
        cap: row.get(4)?,
        signature: row.get(5)?,
    })
}

fn stored(row: &rusqlite::Row) -> rusqlite::Result<Stored> {
    Ok(Stored { number: row.get::<_, i64>(0)?.unsigned_abs(), body: row.get(1)?, previous: row.get(2)?, hash: row.get(3)? })
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
