//! Limits the memory that records take, whatever a file's header announces.

use std::{cell::Cell, path::Path};

use crate::{Error, data::FormatError};

/// The number of bytes that may still be allocated. Bytes are never given back, because records stay in
/// memory.
pub(in crate::data) struct Memory {
    limit: u64,
    left: Cell<u64>,
}

impl Memory {
    /// The default limit of four gibibytes: 80 times the images of MNIST.
    pub(in crate::data) const USUAL: u64 = 4 << 30;

    pub(in crate::data) fn new(limit: u64) -> Self {
        Self { limit, left: Cell::new(limit) }
    }

    /// Counts bytes against the limit. Call it before the allocation.
    pub(in crate::data) fn take(&self, bytes: u64, path: &Path) -> Result<(), Error> {
        let left = self.left.get().checked_sub(bytes);
        let left = left.ok_or_else(|| FormatError::TooLarge { path: path.to_owned(), limit: self.limit })?;
        self.left.set(left);
        Ok(())
    }

    /// Counts `count` elements of `bytes` bytes each against the limit.
    pub(in crate::data) fn take_all(&self, count: u64, bytes: u64, path: &Path) -> Result<(), Error> {
        self.take(count.saturating_mul(bytes), path)
    }
}
