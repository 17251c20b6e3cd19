//! Everything that can go wrong with a store, and everything that can be wrong with a ledger.

use std::path::PathBuf;

use crate::finding::Finding;

/// Why a ledger cannot be used. Messages say what is, what was expected, and what to try.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no ledger.
    #[error(
        "there is no ledger at {location}\nhint: make one with `quell ledger create`, or name the directory that holds ledger.db"
    )]
    NotFound {
        /// Where one was expected.
        location: String,
    },
    /// There is something else.
    #[error("{location} is not a ledger of this version: {found}\nhint: name another file, or use a newer Quell")]
    NotALedger {
        /// Where a ledger was expected.
        location: String,
        /// What is there.
        found: String,
    },
    /// There is no ledger for this dataset.
    #[error(
        "there is no dataset {dataset:?} in this store, expected one of {known:?}\nhint: `quell ledger create` opens a new one"
    )]
    UnknownDataset {
        /// The name that was asked for.
        dataset: String,
        /// The names that are known.
        known: Vec<String>,
    },
    /// SQLite failed.
    #[error("{doing} failed in {path}: {source}{}", hint(.source))]
    Sqlite {
        /// What was tried.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// PostgreSQL failed.
    #[cfg(feature = "postgres")]
    #[error("{doing} failed: {}\nhint: is the server up, and may this user create tables there?", said(.cause))]
    Postgres {
        /// What was tried.
        doing: &'static str,
        /// What the server or the connection says.
        cause: postgres::Error,
    },
    /// The address of a server is not one, or not a safe one. No part of it is repeated, because it may hold a password.
    #[error(
        "the address of the server cannot be used: {because}\nhint: postgres://user@host/database, with ?sslmode=verify-full&sslrootcert=FILE for roots of your own, or ?sslmode=disable for plain text"
    )]
    Address {
        /// Why not.
        because: String,
    },
    /// A command that only a server understands.
    #[error("{location} is a file, expected a PostgreSQL server\nhint: rights to a file are those of the file system")]
    NotAServer {
        /// Where the ledger is.
        location: String,
    },
    /// The server may lose what it said it had stored.
    #[error(
        "the server runs with {setting} = {value}, expected {expected}: a power cut could lose debts\nhint: change it in postgresql.conf"
    )]
    NotDurable {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// This program was built without PostgreSQL.
    #[error(
        "{location} is a PostgreSQL server, and this program was built without the feature `postgres`\nhint: use a file, or build with it"
    )]
    NoPostgres {
        /// The address, without what comes before `@`.
        location: String,
    },
    /// A file could not be read or written.
    #[error("{doing} failed for {path}: {source}")]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A pipe, a device or a directory stands where a file should.
    #[error("{path} is not a regular file, expected one; nothing was read from it")]
    NotAFile {
        /// What stands there.
        path: PathBuf,
    },
    /// The file was removed or replaced while it was open.
    #[error(
        "{path} is not the file that was opened: the ledger was removed or replaced meanwhile, so what was charged may be lost and nothing is released\nhint: bring the ledger back and verify it; `quell ledger verify` compares it with the receipts of the project"
    )]
    Moved {
        /// Where the ledger was.
        path: PathBuf,
    },
    /// There is no place for the key of a server.
    #[error(
        "neither XDG_CONFIG_HOME nor HOME is set, so there is no place for the signing key\nhint: write the address of the server into a file named ledger.url; the key is kept beside it"
    )]
    NoHome,
    /// There is nothing to sign with, so nothing is written.
    #[error(
        "the signing key {path} is missing, expected the key that signed this ledger; nothing was charged\nhint: bring it back from a copy; everybody who writes to a shared server signs with the same key"
    )]
    KeyMissing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The key is not a key.
    #[error(
        "the signing key {path} is damaged, expected 64 hexadecimal digits; nothing was charged\nhint: bring it back from a copy"
    )]
    KeyDamaged {
        /// The file.
        path: PathBuf,
    },
    /// The key is another one.
    #[error(
        "the signing key {path} belongs to another ledger, expected the key with public part {expected}; nothing was charged\nhint: on a shared server everybody signs with the same key: copy it"
    )]
    KeyDiffers {
        /// The file.
        path: PathBuf,
        /// The public key in the ledger.
        expected: String,
    },
    /// The operating system gives no randomness for a key.
    #[error("the operating system gives no random numbers, so there is no signing key: {cause}")]
    NoEntropy {
        /// What it says.
        cause: String,
    },
    /// The ledger is not as it was written.
    #[error(
        "the ledger is damaged: {0}\nhint: `quell ledger verify` says what else is; restore a copy, and charge what was released since"
    )]
    Damaged(Box<Finding>),
    /// The line costs more than there is.
    #[error("epsilon would be {spent}, expected at most {cap}; nothing was charged")]
    OverCap {
        /// ε after the line.
        spent: f64,
        /// The most it may be.
        cap: f64,
    },
    /// The cap of a line is not the cap of the ledger.
    #[error(
        "the cap is {cap}, expected {expected}; nothing was charged\nhint: `quell ledger raise` changes a budget, and writes it down"
    )]
    CapDiffers {
        /// The cap given.
        cap: f64,
        /// The cap in force.
        expected: f64,
    },
    /// A line that cannot stand where it was put.
    #[error("line {number} of {dataset:?} {because}; nothing was charged")]
    Misplaced {
        /// Name of the dataset.
        dataset: String,
        /// Number of the line.
        number: u64,
        /// Why not.
        because: &'static str,
    },
}

impl From<Finding> for Error {
    fn from(finding: Finding) -> Self {
        Self::Damaged(Box::new(finding))
    }
}

fn hint(source: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "\nhint: make room; what was charged before is safe, and nothing was charged now",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "\nhint: another program holds the ledger; try again",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "\nhint: `quell ledger verify` says what is damaged",
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            "\nhint: the file and its directory must be writable"
        }
        _ => "",
    }
}

#[cfg(feature = "postgres")]
fn said(error: &postgres::Error) -> String {
    // `db error` alone says nothing, and what the system says is the cause of the error.
    let caused = || std::error::Error::source(error).map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    error.as_db_error().map_or_else(caused, |said| said.message().to_owned())
}
