//! The lock that lets one process at a time work on a run.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::Path,
};

use crate::{Error, run};

/// A lock on the folder of a run.
/// The operating system releases the lock when the process ends, so a killed process does not block the next
/// one.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// The locked file. It is empty and is never removed.
const FILE: &str = ".lock";

impl Lock {
    /// Locks a folder; an error if another process works on it.
    pub(super) fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let failed = |error: std::io::Error| Error::unwritable(&path, &error);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(run::Error::Busy { path: folder.to_owned() }.into()),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}
