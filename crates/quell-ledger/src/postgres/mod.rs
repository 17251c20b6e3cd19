//! A ledger on a PostgreSQL server, for teams.

mod address;
mod schema;

use std::collections::HashMap;

use postgres::{Client, GenericClient, IsolationLevel, Statement};

use address::Address;

use crate::{
    chain::{Row, Stored},
    database::{Database, Outcome, PendingLine, rejection},
    error::Error,
    finding::{Finding, Problem},
};

/// Advisory lock that serializes the creation of the tables.
///
/// It may be any number that no other program uses.
const CREATION_LOCK: i64 = 0x5175_656c_6c00_0001;

macro_rules! select_dataset {
    ($rest:literal) => {
        concat!("SELECT name, lines, head, spent, cap, signature FROM quell_datasets ", $rest)
    };
}

macro_rules! select_entry {
    ($rest:literal) => {
        concat!(
            "SELECT number, body, previous, hash FROM quell_entries WHERE dataset = (SELECT id FROM quell_datasets WHERE name = $1) AND ",
            $rest
        )
    };
}

const SELECT_DATASET: &str = select_dataset!("WHERE name = $1");
const INSERT_DATASET: &str =
    "INSERT INTO quell_datasets (name, genesis, lines, last, head, spent, cap, signature)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO NOTHING RETURNING id";
const UPDATE_DATASET: &str =
    "UPDATE quell_datasets SET lines = $1, last = $2, head = $3, spent = $4, cap = $5, signature = $6
    WHERE name = $7 AND lines = $2 AND head = $8 AND (cap = $5 OR $9) RETURNING id";
const INSERT_ENTRY: &str =
    "INSERT INTO quell_entries (dataset, number, body, previous, hash) VALUES ($1, $2, $3, $4, $5)";

/// A connection to a server.
pub(crate) struct Postgres {
    client: Client,
    /// Prepared statements, because each preparation is a round trip to the server.
    prepared: HashMap<&'static str, Statement>,
}

impl Postgres {
    /// Connects, and creates the tables if they do not exist.
    pub(crate) fn create(url: &str) -> Result<Self, Error> {
        let mut postgres = Self::connect(url)?;
        let failed = failed("making the tables of a ledger");
        let mut transaction = postgres.client.transaction().map_err(&failed)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&CREATION_LOCK]).map_err(&failed)?;
        if !schema::has_tables(&mut transaction)? {
            schema::create_tables(&mut transaction)?;
        }
        transaction.commit().map_err(&failed)?;
        let rules = postgres.check_rules()?;
        if rules.is_old && schema::may_remove_rules(&mut postgres.client)? {
            schema::write_functions(&mut postgres.client)?;
        }
        Ok(postgres)
    }

    /// Connects to an existing ledger and checks its tables, functions and triggers.
    pub(crate) fn open(url: &str) -> Result<Self, Error> {
        let mut postgres = Self::open_read_only(url)?;
        postgres.check_rules()?;
        Ok(postgres)
    }

    /// Connects to an existing ledger without checks, so that damaged ledgers can be examined.
    pub(crate) fn open_read_only(url: &str) -> Result<Self, Error> {
        let mut postgres = Self::connect(url)?;
        if schema::has_tables(&mut postgres.client)? {
            Ok(postgres)
        } else {
            Err(Error::NotFound { location: "this server and database".into() })
        }
    }

    /// Lets a role append to all ledgers, and do nothing else.
    pub(crate) fn grant(url: &str, role: &str) -> Result<(), Error> {
        schema::grant(&mut Self::open(url)?.client, role)
    }

    /// Refuses tables with missing or altered constraints, functions or triggers.
    fn check_rules(&mut self) -> Result<schema::Rules, Error> {
        let rules = schema::rules(&mut self.client)?;
        match rules.mismatch {
            Some(name) => Err(Problem::Schema { name }.in_store().into()),
            None => Ok(rules),
        }
    }

    fn connect(url: &str) -> Result<Self, Error> {
        let failed = failed("connecting to the server");
        let mut client = Address::new(url)?.connect()?;
        for (setting, expected) in
            [("fsync", "on"), ("full_page_writes", "on"), ("session_replication_role", "origin")]
        {
            let row = client.query_one("SELECT current_setting($1)", &[&setting]).map_err(&failed)?;
            let value: String = row.try_get(0).map_err(&failed)?;
            if value != expected {
                return Err(Error::NotDurable { setting, value, expected });
            }
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
        let row = self
            .client
            .query_opt("SELECT value FROM quell_meta WHERE name = 'public_key'", &[])
            .map_err(&failed)?;
        let key: Option<Vec<u8>> = row.map(|row| row.try_get(0)).transpose().map_err(&failed)?;
        key.map(|key| sized("the public key", key)).transpose()
    }

    fn set_public_key(&mut self, public_key: &[u8; 32]) -> Result<(), Error> {
        let sql = "INSERT INTO quell_meta (name, value) VALUES ('public_key', $1) ON CONFLICT DO NOTHING";
        self.client.execute(sql, &[&public_key.as_slice()]).map_err(failed("writing the public key"))?;
        Ok(())
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let rows = self
            .client
            .query(select_dataset!("ORDER BY name"), &[])
            .map_err(failed("reading the datasets"))?;
        rows.iter().map(dataset).collect()
    }

    fn row(&mut self, name: &str) -> Result<Option<Row>, Error> {
        let statement = self.prepare(SELECT_DATASET)?;
        row(&mut self.client, &statement, name)
    }

    fn entry(&mut self, dataset: &str, number: u64) -> Result<Option<Stored>, Error> {
        let row = self
            .client
            .query_opt(select_entry!("number = $2"), &[&dataset, &number.cast_signed()])
            .map_err(failed("reading a line"))?;
        row.as_ref().map(stored).transpose()
    }

    fn snapshot(&mut self, dataset: &str, from: u64) -> Result<Option<(Row, Vec<Stored>)>, Error> {
        let failed = failed("reading the lines");
        let statement = self.prepare(SELECT_DATASET)?;
        let mut transaction = self
            .client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .map_err(&failed)?;
        let Some(row) = row(&mut transaction, &statement, dataset)? else { return Ok(None) };
        let rows = transaction
            .query(select_entry!("number >= $2 ORDER BY number"), &[&dataset, &from.cast_signed()])
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(Some((row, rows.iter().map(stored).collect::<Result<_, _>>()?)))
    }

    fn append(&mut self, pending: &PendingLine) -> Result<Outcome, Error> {
        let failed = failed("writing a line");
        let (new, entry) = (pending.row, pending.entry);
        let (number, lines) = (entry.number.cast_signed(), new.lines.cast_signed());
        let (previous_head, head, signature) =
            (pending.previous_head.as_slice(), new.head.as_slice(), new.signature.as_slice());
        let (select, update, insert) = (
            self.prepare(SELECT_DATASET)?,
            self.prepare(if number == 0 { INSERT_DATASET } else { UPDATE_DATASET })?,
            self.prepare(INSERT_ENTRY)?,
        );
        let mut transaction = self.client.transaction().map_err(&failed)?;
        // PostgreSQL waits for the row lock and then checks the condition again: of several writers with the
        // same number, only one updates the row.
        let updated = if number == 0 {
            transaction.query_opt(
                &update,
                &[&new.dataset, &previous_head, &lines, &number, &head, &new.spent, &new.cap, &signature],
            )
        } else {
            let sets_cap = pending.sets_cap;
            transaction.query_opt(
                &update,
                &[
                    &lines,
                    &number,
                    &head,
                    &new.spent,
                    &new.cap,
                    &signature,
                    &new.dataset,
                    &previous_head,
                    &sets_cap,
                ],
            )
        };
        let Some(updated) = updated.map_err(&failed)? else {
            return Ok(rejection(row(&mut transaction, &select, &new.dataset)?.as_ref(), pending));
        };
        let id: i64 = updated.try_get(0).map_err(&failed)?;
        let (previous, hash) = (entry.previous.as_slice(), entry.hash.as_slice());
        transaction.execute(&insert, &[&id, &number, &entry.body, &previous, &hash]).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(Outcome::Written)
    }

    fn inspect(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error> {
        let rules = schema::rules(&mut self.client)?;
        let mut notes = Vec::new();
        if rules.is_old {
            notes.push(
                "the functions of the ledger trust the search path of the caller; `quell ledger create`, run by the owner of the tables, updates them"
                    .into(),
            );
        }
        if schema::may_remove_rules(&mut self.client)? {
            notes.push("this user owns the tables or is a superuser, and could remove their rules; let others connect with a role that was set up by `quell ledger grant`".into());
        }
        Ok((rules.mismatch.map(|name| Problem::Schema { name }.in_store()).into_iter().collect(), notes))
    }

    fn seal(&mut self) -> Result<bool, Error> {
        Ok(false)
    }
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
    let cause = format!("a number of lines is {number}, expected a number that is not negative");
    u64::try_from(number).map_err(|_| Problem::Unreadable { cause }.in_store().into())
}

fn sized<const N: usize>(what: &str, bytes: Vec<u8>) -> Result<[u8; N], Error> {
    let cause = format!("{what} has {} bytes, expected {N}", bytes.len());
    bytes.try_into().map_err(|_| Problem::Unreadable { cause }.in_store().into())
}

fn failed(doing: &'static str) -> impl Fn(postgres::Error) -> Error {
    move |cause| Error::Postgres { doing, cause }
}
