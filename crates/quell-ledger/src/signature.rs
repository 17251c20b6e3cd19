//! The signing key of a project, which signs the head of each chain.
//!
//! Someone who can write to the database but does not hold the key cannot sign a new head. So they can
//! neither change a charge nor remove the last lines, unless they kept a past head with its signature.
//! Receipts and exports detect a restored past head.

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::{
    chain::Hash,
    error::Error,
    file,
    hexadecimal::{bytes, hex},
};

/// A signing key.
pub(crate) struct Key(SigningKey);

impl Key {
    /// Reads a key from its file.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        match file::read_at_most(path, 1024) {
            Ok(text) => {
                let seed = std::str::from_utf8(&text).ok().and_then(|text| bytes(text.trim_end()));
                let seed = seed.ok_or_else(|| Error::KeyDamaged { path: path.to_owned() })?;
                Ok(Self(SigningKey::from_bytes(&seed)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Error::KeyMissing { path: path.to_owned() })
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(Error::KeyDamaged { path: path.to_owned() })
            }
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                Err(Error::NotAFile { path: path.to_owned() })
            }
            Err(source) => {
                Err(Error::File { doing: "reading the signing key", path: path.to_owned(), source })
            }
        }
    }

    /// Reads a key, or creates one.
    ///
    /// If several processes create a key at the same time, one of them succeeds and all of them read the same
    /// key.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self, Error> {
        match Self::load(path) {
            Err(Error::KeyMissing { .. }) => {}
            other => return other,
        }
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| Error::NoEntropy { cause: error.to_string() })?;
        let failed = |source| Error::File { doing: "writing the signing key", path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let temporary = temporary_path(path)?;
        write_private(&temporary, &format!("{}\n", hex(&seed))).map_err(failed)?;
        // Unlike a rename, a hard link fails if another process has created the key in the meantime.
        let written = fs::hard_link(&temporary, path);
        let _ = fs::remove_file(&temporary);
        match written {
            Ok(()) => sync_directory(path).map_err(failed)?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(failed(source)),
        }
        Self::load(path)
    }

    /// The public key.
    pub(crate) fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// Signs the head of a dataset and its number of lines.
    pub(crate) fn sign(&self, dataset: &str, lines: u64, head: &Hash) -> [u8; 64] {
        self.0.sign(&message(dataset, lines, head)).to_bytes()
    }
}

/// Refuses a ledger whose public key does not match the signing key of the project.
///
/// Accepts the ledger if the signing key is missing or not readable by this user; receipts and exports
/// protect such users.
pub(crate) fn check_public_key(path: &Path, public: &[u8; 32]) -> Result<(), Error> {
    match Key::load(path) {
        Ok(key) if key.public() == *public => Ok(()),
        Ok(_) => Err(Error::KeyDiffers { path: path.to_owned(), expected: hex(public) }),
        Err(Error::KeyMissing { .. }) => Ok(()),
        Err(Error::File { source, .. }) if source.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(other) => Err(other),
    }
}

/// Whether the signature of a head is valid for a public key.
pub(crate) fn is_signed(
    public: &[u8; 32],
    dataset: &str,
    lines: u64,
    head: &Hash,
    signature: &[u8; 64],
) -> bool {
    VerifyingKey::from_bytes(public).is_ok_and(|key| {
        key.verify_strict(&message(dataset, lines, head), &Signature::from_bytes(signature)).is_ok()
    })
}

/// The bytes to sign.
///
/// The length of the name comes first, which makes the encoding unambiguous.
fn message(dataset: &str, lines: u64, head: &Hash) -> Vec<u8> {
    let mut message = b"quell-ledger 1 head\0".to_vec();
    message.extend((dataset.len() as u64).to_le_bytes());
    message.extend(dataset.as_bytes());
    message.extend(lines.to_le_bytes());
    message.extend(head);
    message
}

/// An unpredictable path for a temporary file beside `path`.
fn temporary_path(path: &Path) -> Result<PathBuf, Error> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| Error::NoEntropy { cause: error.to_string() })?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", hex(&salt)));
    Ok(path.with_file_name(name))
}

/// Creates a file that only its owner may read.
///
/// It never touches an existing file or link.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Syncs the directory of a new file, so that the file survives a power cut.
pub(crate) fn sync_directory(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        fs::File::open(directory)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_head_in_one_place() {
        let directory = tempfile::tempdir().unwrap();
        let key = Key::load_or_create(&directory.path().join("signing.key")).unwrap();
        let (public, head) = (key.public(), [7; 32]);
        let signature = key.sign("a", 3, &head);
        assert!(is_signed(&public, "a", 3, &head, &signature));
        assert!(!is_signed(&public, "b", 3, &head, &signature));
        assert!(!is_signed(&public, "a", 2, &head, &signature));
        assert!(!is_signed(&public, "a", 3, &[8; 32], &signature));
        assert!(!is_signed(&[0; 32], "a", 3, &head, &signature));
    }

    #[cfg(unix)]
    #[test]
    fn a_draft_is_new_and_follows_no_link() {
        let directory = tempfile::tempdir().unwrap();
        let (victim, link) = (directory.path().join("victim"), directory.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(write_private(&link, "key").is_err() && write_private(&victim, "key").is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        let path = directory.path().join("signing.key");
        assert_ne!(temporary_path(&path).unwrap(), temporary_path(&path).unwrap());
    }

    #[test]
    fn a_key_is_made_once_is_private_and_is_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signing.key");
        let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| Key::load_or_create(&path).unwrap().public())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "no drafts are left");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap()) & 0o777, 0o600);
        fs::write(&path, "not a key").unwrap();
        assert!(matches!(Key::load_or_create(&path), Err(Error::KeyDamaged { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "not a key");
    }
}
