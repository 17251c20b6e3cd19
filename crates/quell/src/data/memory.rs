//! How much may be held in memory, whatever a file's header says.

use std::{cell::Cell, path::Path};

use crate::Error;

/// Bytes that may still be taken. Nothing is given back: what is read stays.
pub(super) struct Memory {
    limit: u64,
    left: Cell<u64>,
}

impl Memory {
    /// Four gibibytes: the images of MNIST 80 times.
    pub(super) const USUAL: u64 = 4 << 30;

    pub(super) fn new(limit: u64) -> Self {
        Self { limit, left: Cell::new(limit) }
    }

    /// Pays for memory before it is allocated.
    pub(super) fn take(&self, bytes: u64, path: &Path) -> Result<(), Error> {
        let left = self.left.get().checked_sub(bytes);
        let left = left.ok_or_else(|| Error::TooLarge { path: path.to_owned(), limit: self.limit })?;
        self.left.set(left);
        Ok(())
    }

    /// The same for a number of things of some bytes each.
    pub(super) fn take_all(&self, count: u64, bytes: u64, path: &Path) -> Result<(), Error> {
        self.take(count.saturating_mul(bytes), path)
    }
}
