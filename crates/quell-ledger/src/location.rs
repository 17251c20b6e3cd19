//! Locations of the ledgers of a project and of their signing key.

use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use crate::file::read_at_most;
use crate::{error::Error, hexadecimal::hex};

/// Name of the database file in the directory of a project.
const DATABASE: &str = "ledger.db";
/// Name of the file that contains the address of a server, in the same directory.
const ADDRESS: &str = "ledger.url";
/// Name of the signing key, in the same directory.
const KEY: &str = "signing.key";

/// Location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file. A directory stands for the `ledger.db` in it, unless it contains a `ledger.url`.
    File(PathBuf),
    /// A PostgreSQL server.
    Server(Server),
}

/// A PostgreSQL server, by its address or by a file that holds the address.
///
/// The address is a URL that begins with `postgres://` or `postgresql://`. The connection uses TLS and checks
/// the certificate, unless the server is on this machine or the URL contains `sslmode=disable`. `sslrootcert`
/// gives a file of root certificates.
#[derive(Clone, PartialEq, Eq)]
pub struct Server(Address);

#[derive(Clone, PartialEq, Eq)]
enum Address {
    Url(String),
    /// A file whose first line is the URL. The key is in the same directory.
    File(PathBuf),
}

impl Server {
    /// The full address, including any password.
    #[cfg(feature = "postgres")]
    pub(crate) fn url(&self) -> Result<String, Error> {
        match &self.0 {
            Address::Url(url) => Ok(url.clone()),
            Address::File(path) => {
                let failed = |source| Error::File {
                    doing: "reading the address of the server",
                    path: path.clone(),
                    source,
                };
                let text = read_at_most(path, 1 << 16).map_err(failed)?;
                let text = String::from_utf8_lossy(&text);
                Ok(text.lines().next().unwrap_or_default().trim().to_owned())
            }
        }
    }
}

impl From<&str> for Location {
    fn from(text: &str) -> Self {
        if is_url(text) {
            Self::Server(Server(Address::Url(text.to_owned())))
        } else {
            Path::new(text).into()
        }
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        let address = path.join(ADDRESS);
        if path.extension().is_some_and(|end| end == "url") {
            Self::Server(Server(Address::File(path.to_owned())))
        } else if path.is_dir() && address.is_file() {
            Self::Server(Server(Address::File(address)))
        } else {
            Self::File(if path.is_dir() { path.join(DATABASE) } else { path.to_owned() })
        }
    }
}

impl Location {
    /// Path of the signing key.
    ///
    /// The key is in the directory of the database, in the directory of the file with the server's address,
    /// or in the configuration directory of the user. It is never in the working directory by accident.
    pub(crate) fn key(&self) -> Result<PathBuf, Error> {
        match self {
            Self::File(path) | Self::Server(Server(Address::File(path))) => Ok(path.with_file_name(KEY)),
            Self::Server(Server(Address::Url(url))) => {
                let variable =
                    |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
                let home =
                    variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
                let folder = home.ok_or(Error::NoHome)?.join("quell");
                // One key for each server and database.
                let name = hex(&blake3::hash(without_secrets(url).as_bytes()).as_bytes()[..16]);
                Ok(folder.join(format!("{name}.key")))
            }
        }
    }
}

impl std::fmt::Display for Location {
    /// Writes the location without user, password and settings.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(server) => write!(f, "{server}"),
        }
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Address::Url(url) => f.write_str(&without_secrets(url)),
            Address::File(path) => write!(f, "the server named in {}", path.display()),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({self})")
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// Host and database of a URL, without user, password and settings.
///
/// If the parts cannot be told apart, the result contains none of them.
fn without_secrets(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (authority, settings) = rest.split_once('?').unwrap_or((rest, ""));
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => host,
        // A question mark in a password moves the `@` into the settings.
        None if settings.contains('@') => "…",
        None => authority,
    };
    format!("postgres://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_of_an_address_is_shown() {
        for (url, expected) in [
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://user:secret@host:5433/db", "postgres://host:5433/db"),
            ("postgresql://user@host/db?password=secret", "postgres://host/db"),
            ("postgres://user@host/db?password=sec@ret", "postgres://host/db"),
            ("postgres://host/db?user=u&password=secret", "postgres://host/db"),
            ("postgres://user:sec@ret@host/db", "postgres://host/db"),
            ("postgres://user:sec?ret@host/db", "postgres://…"),
        ] {
            let location = Location::from(url);
            assert_eq!(location.to_string(), expected);
            assert!(!format!("{location:?}").contains("sec"), "{location:?}");
        }
    }

    #[test]
    fn the_key_of_a_server_is_beside_its_address_or_in_the_configuration_of_the_user() {
        let directory = tempfile::tempdir().unwrap();
        let address = directory.path().join("ledger.url");
        std::fs::write(&address, "postgres://user:secret@host/db\n").unwrap();
        for location in [Location::from(directory.path()), Location::from(address.as_path())] {
            assert_eq!(location.key().unwrap(), directory.path().join("signing.key"));
            let Location::Server(server) = &location else { panic!("{location:?}") };
            assert_eq!(server.url().unwrap(), "postgres://user:secret@host/db");
            assert!(!location.to_string().contains("secret"));
        }
        let (one, two) = (
            Location::from("postgres://u:p@host/db"),
            Location::from("postgres://u:q@host/db?sslmode=disable"),
        );
        // Without a home directory there is no key.
        if let (Ok(one), Ok(two)) = (one.key(), two.key()) {
            assert!(
                one.is_absolute() && one == two,
                "one key per database, whoever connects: {one:?} {two:?}"
            );
        }
    }
}
