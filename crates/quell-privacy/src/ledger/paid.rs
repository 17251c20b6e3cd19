//! The only thing in the system that can release.

use super::Receipt;
use crate::{
    Error, Neighbors,
    noise::random::{Key, Randomness},
};

/// A mechanism that has been paid for.
///
/// # Contract
/// Only a ledger makes one, after the debt is durable, and running it consumes it. Each run draws its own key from the operating system, so
/// neither a copy of the process nor a resumed run repeats noise.
#[must_use = "this has been charged to the budget; run it"]
pub struct Paid<M> {
    pub(crate) mechanism: M,
    pub(crate) neighbors: Neighbors,
    randomness: Randomness,
    receipt: Receipt,
}

impl<M> Paid<M> {
    pub(super) fn new(mechanism: M, neighbors: Neighbors, randomness: Randomness, receipt: Receipt) -> Self {
        Self { mechanism, neighbors, randomness, receipt }
    }

    /// The line of the ledger that paid, to be kept with what is released.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// The coins of this run. Taking them is the last thing that can fail: no entropy, no release.
    pub(crate) fn key(&mut self) -> Result<Key, Error> {
        #[cfg(feature = "exact-statistics")]
        if let Some(key) = crate::exact::key() {
            return Ok(key);
        }
        self.randomness.key()
    }
}
