//! Paid mechanisms, the only values that can release anything.

use super::{Receipt, Unit};
use crate::{
    Error, Neighbors,
    noise::random::{Key, Randomness},
};

/// A mechanism that has been paid for.
///
/// # Contract
/// Only a ledger creates this value, after the charge is durable, and running it consumes it. Each run draws
/// its own key from the operating system, so neither a copy of the process nor a resumed run repeats noise.
#[must_use = "this has been charged to the budget; run it"]
pub struct Paid<M> {
    pub(crate) mechanism: M,
    pub(crate) unit: Unit,
    pub(crate) neighbors: Neighbors,
    randomness: Randomness,
    receipt: Receipt,
}

impl<M> Paid<M> {
    pub(super) fn new(
        mechanism: M,
        (unit, neighbors): (Unit, Neighbors),
        randomness: Randomness,
        receipt: Receipt,
    ) -> Self {
        Self { mechanism, unit, neighbors, randomness, receipt }
    }

    /// The same payment for the part of the mechanism that this run is.
    pub(crate) fn map<N>(self, part: impl FnOnce(M) -> N) -> Paid<N> {
        let Self { mechanism, unit, neighbors, randomness, receipt } = self;
        Paid { mechanism: part(mechanism), unit, neighbors, randomness, receipt }
    }

    /// A payment for a part of the mechanism, with random numbers of its own.
    ///
    /// The caller makes sure that every part is split off at most once.
    pub(crate) fn split<N>(&mut self, part: N) -> Paid<N> {
        let (randomness, receipt) = (self.randomness.split(), self.receipt.clone());
        Paid { mechanism: part, unit: self.unit, neighbors: self.neighbors, randomness, receipt }
    }

    /// The receipt of the charge, to be kept with the release.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// A source of randomness for a part of this run.
    pub(crate) fn split_randomness(&mut self) -> Randomness {
        self.randomness.split()
    }

    /// Draws the random key of this run, the last operation that can fail.
    ///
    /// Without entropy there is no release.
    pub(crate) fn key(&mut self) -> Result<Key, Error> {
        #[cfg(feature = "exact-statistics")]
        if let Some(key) = crate::exact::key() {
            return Ok(key);
        }
        self.randomness.key()
    }
}
