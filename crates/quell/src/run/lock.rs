//! One process at a time works on a run.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::Path,
};

use crate::Error;

/// A lock on the folder of a run. The system ends it with the process, so a kill leaves nothing behind that would stop the next one.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// The file that is locked. It is empty, and stays.
const FILE: &str = ".lock";

impl Lock {
    /// Locks a folder, or says that another process works on it.
    pub(super) fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let failed = |error: std::io::Error| Error::unwritable(&path, &error);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::RunBusy { path: folder.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}
