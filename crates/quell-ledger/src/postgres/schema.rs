//! Tables, functions and triggers of a ledger on a server, and their verification.

use postgres::{Client, GenericClient};

use super::failed;
use crate::error::Error;

/// The tables, the same as in a file (`sqlite/schema.rs`).
///
/// They are created in the first schema of the search path.
const TABLES: &str = "
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
REVOKE ALL ON quell_meta, quell_datasets, quell_entries FROM PUBLIC;
";

/// Trigger functions by name, with their exact bodies.
const FUNCTIONS: [(&str, &str); 3] = [
    (
        "quell_datasets_grow",
        "
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.lines <> 1 OR NEW.spent <> 0
        THEN RAISE EXCEPTION 'a dataset begins with one line and nothing spent'; END IF;
    ELSIF NEW.id <> OLD.id OR NEW.name <> OLD.name OR NEW.genesis <> OLD.genesis OR NEW.lines <> OLD.lines + 1
        OR NOT EXISTS (SELECT 1 FROM quell_entries e WHERE e.dataset = OLD.id AND e.number = OLD.last AND e.hash = OLD.head)
    THEN RAISE EXCEPTION 'a dataset grows by one entry at a time'; END IF;
    RETURN NEW;
END ",
    ),
    (
        "quell_entries_follow",
        "
BEGIN
    IF NOT EXISTS (SELECT 1 FROM quell_datasets d WHERE d.id = NEW.dataset AND d.last = NEW.number AND d.head = NEW.hash
        AND NEW.previous = CASE NEW.number WHEN 0 THEN d.genesis
            ELSE (SELECT e.hash FROM quell_entries e WHERE e.dataset = NEW.dataset AND e.number = NEW.number - 1) END)
    THEN RAISE EXCEPTION 'an entry takes the next number, follows the head and becomes it'; END IF;
    RETURN NEW;
END ",
    ),
    (
        "quell_never",
        "
BEGIN RAISE EXCEPTION 'a ledger is never changed or removed'; END ",
    ),
];

/// Triggers: name, table, function, type and definition.
///
/// The type is the sum that the server stores: for each row 1, before 2, on insert 4, delete 8, update 16,
/// truncate 32.
const TRIGGERS: [(&str, &str, &str, i16, &str); 8] = [
    (
        "quell_datasets_grow",
        "quell_datasets",
        "quell_datasets_grow",
        23,
        "BEFORE INSERT OR UPDATE ON quell_datasets FOR EACH ROW",
    ),
    (
        "quell_datasets_remain",
        "quell_datasets",
        "quell_never",
        34,
        "BEFORE TRUNCATE ON quell_datasets FOR EACH STATEMENT",
    ),
    (
        "quell_datasets_stay",
        "quell_datasets",
        "quell_never",
        11,
        "BEFORE DELETE ON quell_datasets FOR EACH ROW",
    ),
    (
        "quell_entries_follow",
        "quell_entries",
        "quell_entries_follow",
        7,
        "BEFORE INSERT ON quell_entries FOR EACH ROW",
    ),
    (
        "quell_entries_remain",
        "quell_entries",
        "quell_never",
        34,
        "BEFORE TRUNCATE ON quell_entries FOR EACH STATEMENT",
    ),
    (
        "quell_entries_stay",
        "quell_entries",
        "quell_never",
        27,
        "BEFORE UPDATE OR DELETE ON quell_entries FOR EACH ROW",
    ),
    (
        "quell_meta_remain",
        "quell_meta",
        "quell_never",
        34,
        "BEFORE TRUNCATE ON quell_meta FOR EACH STATEMENT",
    ),
    (
        "quell_meta_stay",
        "quell_meta",
        "quell_never",
        27,
        "BEFORE UPDATE OR DELETE ON quell_meta FOR EACH ROW",
    ),
];

/// Constraints that enforce the cap and the chain, by table.
///
/// They are written without spaces and parentheses, because versions of the server place these differently.
const CONSTRAINTS: [(&str, &str); 7] = [
    ("quell_datasets", "CHECKspent<=capANDcap<>'NaN'::doubleprecision"),
    ("quell_datasets", "CHECKspent>=0::doubleprecisionANDspent<>'NaN'::doubleprecision"),
    ("quell_datasets", "CHECKlast=lines-1"),
    ("quell_datasets", "UNIQUEname"),
    ("quell_datasets", "FOREIGNKEYid,lastREFERENCESquell_entriesdataset,numberDEFERRABLEINITIALLYDEFERRED"),
    ("quell_entries", "PRIMARYKEYdataset,number"),
    ("quell_meta", "PRIMARYKEYname"),
];

/// Whether the tables exist.
pub(super) fn has_tables(client: &mut impl GenericClient) -> Result<bool, Error> {
    let failed = failed("looking for the tables of a ledger");
    let row = client.query_one("SELECT to_regclass('quell_entries') IS NOT NULL", &[]).map_err(&failed)?;
    row.try_get(0).map_err(&failed)
}

/// Creates the tables, functions and triggers.
pub(super) fn create_tables(client: &mut impl GenericClient) -> Result<(), Error> {
    let failed = failed("making the tables of a ledger");
    client.batch_execute(TABLES).map_err(&failed)?;
    write_functions(client)?;
    for (name, _, function, _, when) in TRIGGERS {
        client
            .batch_execute(&format!("CREATE TRIGGER {name} {when} EXECUTE FUNCTION {function}()"))
            .map_err(&failed)?;
    }
    Ok(())
}

/// Creates or replaces the functions, with a fixed search path.
///
/// The functions find the tables of this schema, whatever the search path of the caller.
pub(super) fn write_functions(client: &mut impl GenericClient) -> Result<(), Error> {
    let failed = failed("writing the functions of a ledger");
    let schema = schema(client)?;
    for (name, body) in FUNCTIONS {
        let sql = format!(
            "CREATE OR REPLACE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, {schema}, pg_temp AS $${body}$$"
        );
        client.batch_execute(&sql).map_err(&failed)?;
    }
    Ok(())
}

/// The quoted name of the schema that contains the tables.
fn schema(client: &mut impl GenericClient) -> Result<String, Error> {
    let failed = failed("looking for the tables of a ledger");
    let sql = "SELECT quote_ident(nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('quell_entries')";
    client.query_one(sql, &[]).and_then(|row| row.try_get(0)).map_err(&failed)
}

/// Result of comparing the rules on the server with the expected rules.
pub(super) struct Rules {
    /// The first table, function or trigger that is missing, altered or added.
    pub(super) mismatch: Option<String>,
    /// Whether the functions trust the search path of the caller, as in the first version.
    pub(super) is_old: bool,
}

/// Compares the tables, functions and triggers on the server with those of a ledger.
pub(super) fn rules(client: &mut Client) -> Result<Rules, Error> {
    let (functions, is_old) = function_mismatch(client)?;
    let mismatch = match functions {
        Some(name) => Some(name),
        None => match trigger_mismatch(client)? {
            Some(name) => Some(name),
            None => table_mismatch(client)?,
        },
    };
    Ok(Rules { mismatch, is_old })
}

fn function_mismatch(client: &mut Client) -> Result<(Option<String>, bool), Error> {
    let failed = failed("reading the functions of a ledger");
    let expected = format!("search_path=pg_catalog, {}, pg_temp", schema(client)?);
    let sql = "SELECT p.prosrc, p.prosecdef OR l.lanname <> 'plpgsql' OR p.pronargs <> 0, coalesce(array_to_string(p.proconfig, ';'), '')
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
        WHERE p.proname = $1 AND p.pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('quell_entries'))";
    let mut is_old = false;
    for (name, body) in FUNCTIONS {
        let rows = client.query(sql, &[&name]).map_err(&failed)?;
        let [row] = rows.as_slice() else { return Ok((Some(name.into()), false)) };
        let (source, is_unusual, settings): (String, bool, String) = (
            row.try_get(0).map_err(&failed)?,
            row.try_get(1).map_err(&failed)?,
            row.try_get(2).map_err(&failed)?,
        );
        if source != body || is_unusual || !(settings == expected || settings.is_empty()) {
            return Ok((Some(name.into()), false));
        }
        is_old |= settings.is_empty();
    }
    Ok((None, is_old))
}

fn trigger_mismatch(client: &mut Client) -> Result<Option<String>, Error> {
    let failed = failed("reading the triggers of a ledger");
    let sql = "SELECT t.tgname::text, c.relname::text, p.proname::text, t.tgtype,
            t.tgenabled IN ('O', 'A') AND t.tgqual IS NULL AND t.tgnargs = 0 AND t.tgattr::text = '' AND p.pronamespace = c.relnamespace
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE NOT t.tgisinternal AND t.tgrelid IN (to_regclass('quell_meta'), to_regclass('quell_datasets'), to_regclass('quell_entries'))";
    let mut found = Vec::new();
    for row in client.query(sql, &[]).map_err(&failed)? {
        let text = |column: usize| row.try_get::<_, String>(column).map_err(&failed);
        let (kind, plain): (i16, bool) = (row.try_get(3).map_err(&failed)?, row.try_get(4).map_err(&failed)?);
        found.push((text(0)?, text(1)?, text(2)?, kind, plain));
    }
    let exists = |(name, table, function, kind, _): &(&str, &str, &str, i16, &str)| {
        found.iter().any(|candidate| {
            candidate.0 == *name
                && candidate.1 == *table
                && candidate.2 == *function
                && candidate.3 == *kind
                && candidate.4
        })
    };
    if let Some((name, ..)) = TRIGGERS.iter().find(|trigger| !exists(trigger)) {
        return Ok(Some((*name).to_owned()));
    }
    // An additional trigger could undo the effect of the others.
    Ok(found
        .into_iter()
        .map(|candidate| candidate.0)
        .find(|name| !TRIGGERS.iter().any(|trigger| trigger.0 == name)))
}

fn table_mismatch(client: &mut Client) -> Result<Option<String>, Error> {
    let failed = failed("reading the tables of a ledger");
    for table in ["quell_meta", "quell_datasets", "quell_entries"] {
        // A crash loses unlogged tables. A rule or a row security policy can hide or divert lines.
        let sql =
            "SELECT c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity AND NOT c.relhasrules
            FROM pg_class c WHERE c.oid = to_regclass($1)";
        let plain = client.query_opt(sql, &[&table]).map_err(&failed)?;
        if !plain.is_some_and(|row| row.try_get(0).unwrap_or(false)) {
            return Ok(Some(table.into()));
        }
        let sql = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass($1) AND convalidated";
        let rows = client.query(sql, &[&table]).map_err(&failed)?;
        let stripped = |text: String| {
            text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '(' | ')')).collect::<String>()
        };
        let found: Vec<String> = rows.iter().filter_map(|row| row.try_get(0).ok()).map(stripped).collect();
        // The server may prefix the referenced table with its schema.
        let has = |expected: &str| {
            found.iter().any(|candidate| candidate == expected || without_schema(candidate) == expected)
        };
        if CONSTRAINTS.iter().any(|(owner, expected)| *owner == table && !has(expected)) {
            return Ok(Some(table.into()));
        }
    }
    Ok(None)
}

/// A foreign key definition without the schema of the referenced table.
fn without_schema(definition: &str) -> String {
    match definition.split_once("REFERENCES") {
        Some((before, after)) => {
            let table = after.find("quell_entries").map_or(after, |at| &after[at..]);
            format!("{before}REFERENCES{table}")
        }
        None => definition.to_owned(),
    }
}

/// Lets a role append to all ledgers, and do nothing else.
pub(super) fn grant(client: &mut Client, role: &str) -> Result<(), Error> {
    let failed = failed("granting a role the right to append");
    let role: String = client
        .query_one("SELECT quote_ident($1)", &[&role])
        .and_then(|row| row.try_get(0))
        .map_err(&failed)?;
    let schema = schema(client)?;
    client
        .batch_execute(&format!(
            "BEGIN;
            REVOKE ALL ON quell_meta, quell_datasets, quell_entries FROM PUBLIC, {role};
            GRANT USAGE ON SCHEMA {schema} TO {role};
            GRANT SELECT ON quell_meta, quell_datasets, quell_entries TO {role};
            GRANT INSERT ON quell_datasets, quell_entries TO {role};
            GRANT UPDATE (lines, last, head, spent, cap, signature) ON quell_datasets TO {role};
            COMMIT"
        ))
        .map_err(&failed)
}

/// Whether the connected user could remove the rules: an owner or a superuser.
pub(super) fn may_remove_rules(client: &mut Client) -> Result<bool, Error> {
    let failed = failed("reading the rights of this user");
    let sql = "SELECT current_setting('is_superuser') = 'on' OR pg_has_role(current_user, relowner, 'USAGE')
        FROM pg_class WHERE oid = to_regclass('quell_entries')";
    client.query_one(sql, &[]).and_then(|row| row.try_get(0)).map_err(&failed)
}
