//! Errors of a store and of its ledgers.

use std::path::PathBuf;

use crate::finding::Finding;

/// Why a ledger cannot be used.
///
/// Each message says what was found and what was expected. Most end with a line `hint:` that says what to try
/// next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No ledger exists at the location.
    #[error(
        "there is no ledger at {location}\nhint: create one with `quell ledger create`, or give the directory that contains ledger.db"
    )]
    NotFound {
        /// Where a ledger was expected.
        location: String,
    },
    /// The location holds something that is not a ledger of this version.
    #[error(
        "{location} is not a ledger of this version: {found}\nhint: give another file, or use a newer version of Quell"
    )]
    NotALedger {
        /// Where a ledger was expected.
        location: String,
        /// What was found instead.
        found: String,
    },
    /// The store has no ledger for this dataset.
    #[error(
        "there is no dataset {dataset:?} in this store, expected {}\nhint: {}",
        listed(known),
        similar(dataset, known)
    )]
    UnknownDataset {
        /// The requested name.
        dataset: String,
        /// The names of the datasets in the store.
        known: Vec<String>,
    },
    /// SQLite failed.
    #[error("{doing} failed in {path}: {source}{}", hint(.source))]
    Sqlite {
        /// The operation that failed.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// The error that SQLite returned.
        source: rusqlite::Error,
    },
    /// PostgreSQL failed.
    #[cfg(feature = "postgres")]
    #[error("{doing} failed: {}\nhint: check that the server is running and that this user may create tables", describe(.cause))]
    Postgres {
        /// The operation that failed.
        doing: &'static str,
        /// The error that the server or the connection returned.
        cause: postgres::Error,
    },
    /// The address of the server is malformed or unsafe.
    ///
    /// The message repeats no part of the address, because the address may contain a password.
    #[error(
        "the address of the server cannot be used: {because}\nhint: postgres://user@host/database, with ?sslmode=verify-full&sslrootcert=FILE for your own root certificates, or ?sslmode=disable for plain text"
    )]
    Address {
        /// Why the address was refused.
        because: String,
    },
    /// The command works only on a PostgreSQL server, but the ledger is a file.
    #[error(
        "{location} is a file, expected a PostgreSQL server\nhint: the permissions of the file control who may write to it"
    )]
    NotAServer {
        /// Where the ledger is.
        location: String,
    },
    /// A server setting allows the server to lose committed lines.
    #[error(
        "the server runs with {setting} = {value}, expected {expected}: a power cut could lose charges\nhint: change it in postgresql.conf"
    )]
    NotDurable {
        /// Name of the setting.
        setting: &'static str,
        /// Current value of the setting.
        value: String,
        /// The required value.
        expected: &'static str,
    },
    /// This program was built without the feature `postgres`.
    #[error(
        "{location} is a PostgreSQL server, and this program was built without the feature `postgres`\nhint: use a file, or build with that feature"
    )]
    NoPostgres {
        /// The address, without the user and password before `@`.
        location: String,
    },
    /// A file could not be read or written.
    #[error("{doing} failed for {path}: {source}")]
    File {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error that the operating system returned.
        source: std::io::Error,
    },
    /// The path names a pipe, a device or a directory instead of a regular file.
    #[error("{path} is not a regular file; nothing was read from it")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file was removed or replaced while it was open.
    #[error(
        "{path} is not the file that was opened: the ledger was removed or replaced in the meantime, so charges may be lost and nothing is released\nhint: restore the ledger and run `quell ledger verify`, which compares it with the receipts of the project"
    )]
    Moved {
        /// Where the ledger was.
        path: PathBuf,
    },
    /// No directory is available for the signing key of a server.
    #[error(
        "neither XDG_CONFIG_HOME nor HOME is set, so there is no directory for the signing key\nhint: write the address of the server into a file named ledger.url; the key is stored in the same directory"
    )]
    NoHome,
    /// The signing key is missing, so no line can be written.
    #[error(
        "the signing key {path} is missing, expected the key that signed this ledger; nothing was charged\nhint: restore it from a backup; everyone who writes to a shared server signs with the same key"
    )]
    KeyMissing {
        /// The expected path of the key.
        path: PathBuf,
    },
    /// The file of the signing key does not contain a key.
    #[error(
        "the signing key {path} is damaged, expected 64 hexadecimal digits; nothing was charged\nhint: restore it from a backup"
    )]
    KeyDamaged {
        /// The file.
        path: PathBuf,
    },
    /// The signing key does not match the public key in the ledger.
    #[error(
        "the signing key {path} belongs to another ledger, expected the key with public part {expected}; nothing was charged\nhint: on a shared server everyone signs with the same key; copy that key"
    )]
    KeyDiffers {
        /// The file.
        path: PathBuf,
        /// The public key in the ledger.
        expected: String,
    },
    /// The operating system provided no random numbers for a key.
    #[error("the operating system provided no random numbers, so no signing key was created: {cause}")]
    NoEntropy {
        /// The error that the operating system returned.
        cause: String,
    },
    /// The contents of the ledger are not what was written.
    #[error(
        "the ledger is damaged: {0}\nhint: `quell ledger verify` lists all problems; restore a backup, and charge everything that was released since then"
    )]
    Damaged(Box<Finding>),
    /// The line would raise ε above the cap.
    #[error("epsilon would be {spent}, expected at most {cap}; nothing was charged")]
    OverCap {
        /// ε after the line.
        spent: f64,
        /// The largest ε that the budget allows.
        cap: f64,
    },
    /// The cap of a line is not the cap of the ledger.
    #[error(
        "the cap is {cap}, expected {expected}; nothing was charged\nhint: `quell ledger raise` changes the budget and records the change"
    )]
    CapDiffers {
        /// The cap given.
        cap: f64,
        /// The cap in force.
        expected: f64,
    },
    /// The line is not valid at its position in the ledger.
    #[error("line {number} of {dataset:?} {because}; nothing was charged")]
    Misplaced {
        /// Name of the dataset.
        dataset: String,
        /// Number of the line.
        number: u64,
        /// Why the line was refused.
        because: &'static str,
    },
}

impl From<Finding> for Error {
    fn from(finding: Finding) -> Self {
        Self::Damaged(Box::new(finding))
    }
}

/// The first of the datasets of a store.
fn listed(known: &[String]) -> String {
    const MOST: usize = 10;
    let shown: Vec<String> = known.iter().take(MOST).map(|name| format!("{name:?}")).collect();
    match known.len() {
        0 => "one of its datasets, of which there are none".into(),
        count if count > MOST => format!("one of its {count} datasets: {}, …", shown.join(", ")),
        _ => format!("one of {}", shown.join(", ")),
    }
}

/// What to try for an unknown dataset: a similar name, or a new ledger.
fn similar(dataset: &str, known: &[String]) -> String {
    let lower = dataset.to_lowercase();
    let distance = |name: &String| strsim::levenshtein(&name.to_lowercase(), &lower);
    let near = known.iter().map(|name| (distance(name), name)).min();
    if let Some((_, name)) = near.filter(|(distance, _)| distance * 3 <= dataset.chars().count()) {
        return format!("did you mean {name:?}? `quell ledger list` lists all");
    }
    let is_plain = dataset.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let name = if is_plain { dataset.to_owned() } else { format!("{dataset:?}") };
    format!("create it with `quell ledger create {name} --epsilon E --delta D`")
}

fn hint(source: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            "\nhint: free some disk space; earlier charges are safe, and nothing was charged now"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "\nhint: another program holds the ledger; try again"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "\nhint: `quell ledger verify` lists what is damaged"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            "\nhint: the file and its directory must be writable"
        }
        _ => "",
    }
}

#[cfg(feature = "postgres")]
fn describe(error: &postgres::Error) -> String {
    // The text of the error is often only `db error`; its source holds the actual cause.
    let with_source = || {
        std::error::Error::source(error)
            .map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
    };
    error.as_db_error().map_or_else(with_source, |reply| reply.message().to_owned())
}
