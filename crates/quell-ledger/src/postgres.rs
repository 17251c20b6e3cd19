//! A ledger on a PostgreSQL server, for teams.

use std::collections::HashMap;

use postgres::{Client, GenericClient, IsolationLevel, NoTls, Statement};

use crate::{
    chain::{Row, Stored},
    database::{Database, Outcome, Step, why_not},
    error::Error,
    finding::{Finding, Problem},
};

/// The same tables and rules as in a file (`sqlite.rs`), in the first schema of the search path.
const SCHEMA: &str = "
CREATE TABLE quell_meta (name TEXT PRIMARY KEY, value BYTEA NOT NULL);
CREATE TABLE quell_datasets (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE CHECK (name <> ''),
    genesis BYTEA NOT NULL CHECK (length(genesis) = 32),
    lines BIGINT NOT NULL CHECK (lines >= 1),
    last BIGINT NOT NULL CHECK (last = lines - 1),
    head BYTEA NOT NULL CHECK (length(head) = 32),
    spent DOUBLE PRECISION NOT NULL CHECK (spent >= 0 AND spent <> 'NaN'),
    cap DOUBLE PRECISION NOT NULL CHECK (spent <= cap AND cap <> 'NaN'),
    signature BYTEA NOT NULL CHECK (length(signature) = 64)
);
CREATE TABLE quell_entries (
    dataset BIGINT NOT NULL REFERENCES quell_datasets (id),
    number BIGINT NOT NULL CHECK (number >= 0),
    body TEXT NOT NULL,
    previous BYTEA NOT NULL CHECK (length(previous) = 32),
    hash BYTEA NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (dataset, number)
);
ALTER TABLE quell_datasets ADD CONSTRAINT quell_datasets_last
    FOREIGN KEY (id, last) REFERENCES quell_entries (dataset, number) DEFERRABLE INITIALLY DEFERRED;

CREATE FUNCTION quell_never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'a ledger is never changed or removed'; END $$;
CREATE FUNCTION quell_entries_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM quell_datasets d WHERE d.id = NEW.dataset AND d.last = NEW.number AND d.head = NEW.hash
        AND NEW.previous = CASE NEW.number WHEN 0 THEN d.genesis
            ELSE (SELECT e.hash FROM quell_entries e WHERE e.dataset = NEW.dataset AND e.number = NEW.number - 1) END)
    THEN RAISE EXCEPTION 'an entry takes the next number, follows the head and becomes it'; END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION quell_datasets_grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.lines <> 1 OR NEW.spent <> 0
        THEN RAISE EXCEPTION 'a dataset begins with one line and nothing spent'; END IF;
    ELSIF NEW.id <> OLD.id OR NEW.name <> OLD.name OR NEW.genesis <> OLD.genesis OR NEW.lines <> OLD.lines + 1
        OR NOT EXISTS (SELECT 1 FROM quell_entries e WHERE e.dataset = OLD.id AND e.number = OLD.last AND e.hash = OLD.head)
    THEN RAISE EXCEPTION 'a dataset grows by one entry at a time'; END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER quell_entries_follow BEFORE INSERT ON quell_entries FOR EACH ROW EXECUTE FUNCTION quell_entries_follow();
CREATE TRIGGER quell_entries_stay BEFORE UPDATE OR DELETE ON quell_entries FOR EACH ROW EXECUTE FUNCTION quell_never();
CREATE TRIGGER quell_entries_remain BEFORE TRUNCATE ON quell_entries FOR EACH STATEMENT EXECUTE FUNCTION quell_never();
CREATE TRIGGER quell_datasets_grow BEFORE INSERT OR UPDATE ON quell_datasets FOR EACH ROW EXECUTE FUNCTION quell_datasets_grow();
CREATE TRIGGER quell_datasets_stay BEFORE DELETE ON quell_datasets FOR EACH ROW EXECUTE FUNCTION quell_never();
CREATE TRIGGER quell_datasets_remain BEFORE TRUNCATE ON quell_datasets FOR EACH STATEMENT EXECUTE FUNCTION quell_never();
CREATE TRIGGER quell_meta_stay BEFORE UPDATE OR DELETE ON quell_meta FOR EACH ROW EXECUTE FUNCTION quell_never();
CREATE TRIGGER quell_meta_remain BEFORE TRUNCATE ON quell_meta FOR EACH STATEMENT EXECUTE FUNCTION quell_never();
";

const TRIGGERS: [&str; 8] = [
    "quell_datasets_grow",
    "quell_datasets_remain",
    "quell_datasets_stay",
    "quell_entries_follow",
    "quell_entries_remain",
    "quell_entries_stay",
    "quell_meta_remain",
    "quell_meta_stay",
];

/// So that two who make the tables at the same time make them once. Any number that others do not use.
const MAKING: i64 = 0x5175_656c_6c00_0001;

macro_rules! row {
    ($rest:literal) => {
        concat!("SELECT name, lines, head, spent, cap, signature FROM quell_datasets ", $rest)
    };
}

macro_rules! entry {
    ($rest:literal) => {
        concat!(
            "SELECT number, body, previous, hash FROM quell_entries WHERE dataset = (SELECT id FROM quell_datasets WHERE name = $1) AND ",
            $rest
        )
    };
}

const ROW: &str = row!("WHERE name = $1");
const BEGIN: &str = "INSERT INTO quell_datasets (name, genesis, lines, last, head, spent, cap, signature)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO NOTHING RETURNING id";
const GROW: &str = "UPDATE quell_datasets SET lines = $1, last = $2, head = $3, spent = $4, cap = $5, signature = $6
    WHERE name = $7 AND lines = $2 AND head = $8 AND (cap = $5 OR $9) RETURNING id";
const FOLLOW: &str = "INSERT INTO quell_entries (dataset, number, body, previous, hash) VALUES ($1, $2, $3, $4, $5)";

/// A connection to a server.
pub(crate) struct Postgres {
    client: Client,
    /// Preparing a statement is a journey to the server.
    prepared: HashMap<&'static str, Statement>,
}

impl Postgres {
    /// Connects, and makes the tables if they do not exist.
    pub(crate) fn create(url: &str) -> Result<Self, Error> {
        let mut postgres = Self::connect(url)?;
        let failed = failed("making the tables of a ledger");
        let mut transaction = postgres.client.transaction().map_err(&failed)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MAKING]).map_err(&failed)?;
        if !has_tables(&mut transaction)? {
            transaction.batch_execute(SCHEMA).map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)?;
        Ok(postgres)
    }

    /// Connects to tables that exist.
    pub(crate) fn open(url: &str) -> Result<Self, Error> {
        let mut postgres = Self::connect(url)?;
        if has_tables(&mut postgres.client)? {
            Ok(postgres)
        } else {
            Err(Error::NotFound { location: "this server and database".into() })
        }
    }

    fn connect(url: &str) -> Result<Self, Error> {
        let failed = failed("connecting to the server");
        let mut client = Client::connect(url, NoTls).map_err(&failed)?;
        let row = client.query_one("SELECT current_setting('fsync')", &[]).map_err(&failed)?;
        let fsync: String = row.try_get(0).map_err(&failed)?;
        if fsync != "on" {
            return Err(Error::NotDurable { setting: "fsync", value: fsync, expected: "on" });
        }
        client
            .batch_execute("SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'; SET client_min_messages = warning")
            .map_err(&failed)?;
        Ok(Self { client, prepared: HashMap::new() })
    }

    fn prepare(&mut self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).map_err(failed("preparing a statement"))?;
        self.prepared.insert(sql, statement.clone());
        Ok(statement)
    }
}

impl Database for Postgres {
    fn public_key(&mut self) -> Result<Option<[u8; 32]>, Error> {
        let failed = failed("reading the public key");
        let row = self.client.query_opt("SELECT value FROM quell_meta WHERE name = 'public_key'", &[]).map_err(&failed)?;
        let key: Option<Vec<u8>> = row.map(|row| row.try_get(0)).transpose().map_err(&failed)?;
        key.map(|key| sized("the public key", key)).transpose()
    }

    fn adopt(&mut self, public_key: &[u8; 32]) -> Result<(), Error> {
        let sql = "INSERT INTO quell_meta (name, value) VALUES ('public_key', $1) ON CONFLICT DO NOTHING";
        self.client.execute(sql, &[&public_key.as_slice()]).map_err(failed("writing the public key"))?;
        Ok(())
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let rows = self.client.query(row!("ORDER BY name"), &[]).map_err(failed("reading the datasets"))?;
        rows.iter().map(dataset).collect()
    }

    fn row(&mut self, name: &str) -> Result<Option<Row>, Error> {
        let statement = self.prepare(ROW)?;
        row(&mut self.client, &statement, name)
    }

    fn entry(&mut self, dataset: &str, number: u64) -> Result<Option<Stored>, Error> {
        let row =
            self.client.query_opt(entry!("number = $2"), &[&dataset, &number.cast_signed()]).map_err(failed("reading a line"))?;
        row.as_ref().map(stored).transpose()
    }

    fn snapshot(&mut self, dataset: &str, from: u64) -> Result<Option<(Row, Vec<Stored>)>, Error> {
        let failed = failed("reading the lines");
        let statement = self.prepare(ROW)?;
        let mut transaction = self
            .client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .map_err(&failed)?;
        let Some(row) = row(&mut transaction, &statement, dataset)? else { return Ok(None) };
        let rows =
            transaction.query(entry!("number >= $2 ORDER BY number"), &[&dataset, &from.cast_signed()]).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(Some((row, rows.iter().map(stored).collect::<Result<_, _>>()?)))
    }

    fn append(&mut self, step: &Step) -> Result<Outcome, Error> {
        let failed = failed("writing a line");
        let (new, entry) = (step.row, step.entry);
        let (number, lines) = (entry.number.cast_signed(), new.lines.cast_signed());
        let (old, head, signature) = (step.old.as_slice(), new.head.as_slice(), new.signature.as_slice());
        let (look, grow, follow) =
            (self.prepare(ROW)?, self.prepare(if number == 0 { BEGIN } else { GROW })?, self.prepare(FOLLOW)?);
        let mut transaction = self.client.transaction().map_err(&failed)?;
        // Waits for whoever holds the row, and then looks at it again: of several writers with the same number, one finds it.
        let updated = if number == 0 {
            transaction.query_opt(&grow, &[&new.dataset, &old, &lines, &number, &head, &new.spent, &new.cap, &signature])
        } else {
            let sets_cap = step.sets_cap;
            transaction
                .query_opt(&grow, &[&lines, &number, &head, &new.spent, &new.cap, &signature, &new.dataset, &old, &sets_cap])
        };
        let Some(updated) = updated.map_err(&failed)? else {
            return Ok(why_not(row(&mut transaction, &look, &new.dataset)?.as_ref(), step));
        };
        let id: i64 = updated.try_get(0).map_err(&failed)?;
        let (previous, hash) = (entry.previous.as_slice(), entry.hash.as_slice());
        transaction.execute(&follow, &[&id, &number, &entry.body, &previous, &hash]).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(Outcome::Written)
    }

    fn inspect(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error> {
        let sql = "SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A')
            AND tgrelid IN (to_regclass('quell_meta'), to_regclass('quell_datasets'), to_regclass('quell_entries'))";
        let rows = self.client.query(sql, &[]).map_err(failed("reading the triggers"))?;
        let names: Vec<String> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
        let missing = TRIGGERS.iter().filter(|trigger| !names.iter().any(|name| name == *trigger));
        Ok((missing.map(|name| Problem::Schema { name: (*name).to_owned() }.in_store()).collect(), Vec::new()))
    }

    fn seal(&mut self) -> Result<bool, Error> {
        Ok(false)
    }
}

fn has_tables(client: &mut impl GenericClient) -> Result<bool, Error> {
    let failed = failed("looking for the tables of a ledger");
    let row = client.query_one("SELECT to_regclass('quell_entries') IS NOT NULL", &[]).map_err(&failed)?;
    row.try_get(0).map_err(&failed)
}

fn row(client: &mut impl GenericClient, statement: &Statement, name: &str) -> Result<Option<Row>, Error> {
    let row = client.query_opt(statement, &[&name]).map_err(failed("reading a dataset"))?;
    row.as_ref().map(dataset).transpose()
}

fn dataset(row: &postgres::Row) -> Result<Row, Error> {
    let failed = failed("reading a dataset");
    Ok(Row {
        dataset: row.try_get(0).map_err(&failed)?,
        lines: natural(row.try_get(1).map_err(&failed)?)?,
        head: sized("a head", row.try_get(2).map_err(&failed)?)?,
        spent: row.try_get(3).map_err(&failed)?,
        cap: row.try_get(4).map_err(&failed)?,
        signature: sized("a signature", row.try_get(5).map_err(&failed)?)?,
    })
}

fn stored(row: &postgres::Row) -> Result<Stored, Error> {
    let failed = failed("reading a line");
    Ok(Stored {
        number: natural(row.try_get(0).map_err(&failed)?)?,
        body: row.try_get(1).map_err(&failed)?,
        previous: sized("a hash", row.try_get(2).map_err(&failed)?)?,
        hash: sized("a hash", row.try_get(3).map_err(&failed)?)?,
    })
}

fn natural(number: i64) -> Result<u64, Error> {
    let cause = format!("a number of lines is {number}, expected none below zero");
    u64::try_from(number).map_err(|_| Problem::Unreadable { cause }.in_store().into())
}

fn sized<const N: usize>(what: &str, bytes: Vec<u8>) -> Result<[u8; N], Error> {
    let cause = format!("{what} has {} bytes, expected {N}", bytes.len());
    bytes.try_into().map_err(|_| Problem::Unreadable { cause }.in_store().into())
}

fn failed(doing: &'static str) -> impl Fn(postgres::Error) -> Error {
    move |source| Error::Postgres { doing, source }
}
