//! A pass over the data in batches, each record in one of them.

use super::{
    Clipping, Contributions, Mechanism, Sealed, Step,
    sampling::tagged,
    summation::{COINS, Summation},
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    number::brief,
    units::{ClipNorm, NoiseMultiplier},
};

/// Noisy sums over batches, into exactly one of which each record is put by its own coin. What is done between two of them may depend on those
/// before. No amplification is claimed.
///
/// # Theorem
/// (THEORY, Steps) An epoch costs as much as one of its sums.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// How many batches there are.
    pub batches: u32,
    /// How long a vector may be.
    pub clipping: Clipping,
    /// Standard deviation of the noise over that length.
    pub noise_multiplier: NoiseMultiplier,
    /// Length of the vectors, in numbers.
    pub dimension: usize,
}

impl Epoch {
    fn summation(&self) -> Summation<'_> {
        Summation { clipping: &self.clipping, noise_multiplier: self.noise_multiplier, dimension: self.dimension }
    }

    /// Standard deviation of the noise that is drawn over that of the ideal mechanism, as for a [`ClippedSum`](super::ClippedSum).
    #[must_use]
    pub fn inflation(&self) -> Option<f64> {
        self.summation().inflation()
    }
}

impl Sealed for Epoch {}

impl Mechanism for Epoch {
    fn event(&self, neighbors: Neighbors) -> Event {
        self.check(neighbors).map_or(Event::NonPrivate, |()| self.summation().event())
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        if self.batches == 0 {
            return Err(Error::OutOfRange { what: "batches", value: 0.0, range: "[1, 2^32)" });
        }
        self.summation().check()
    }

    fn distance(&self) -> f64 {
        f64::from(self.batches) * self.summation().distance()
    }
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { batches, clipping, noise_multiplier, dimension } = self;
        let noise = brief(noise_multiplier.get());
        write!(
            f,
            "sums of vectors of {dimension} numbers {clipping} over {batches} batches, each record in one, with Gaussian noise of {noise} times that"
        )
    }
}

impl Paid<Epoch> {
    /// The same with another clip norm, which may depend on everything released so far.
    pub fn with_clip_norm(mut self, norm: ClipNorm) -> Self {
        self.mechanism.clipping = self.mechanism.clipping.with_norm(norm);
        self
    }

    /// Puts each record into a batch.
    pub fn start(mut self, records: usize) -> Result<Running, Error> {
        self.mechanism.check(self.neighbors)?;
        let mut coins = self.key()?.stream(COINS);
        let batches = self.mechanism.batches;
        let batch_of: Vec<u32> = (0..records).map(|_| coins.below(u128::from(batches)) as u32).collect();
        #[cfg(feature = "exact-statistics")]
        let batch_of = match crate::exact::coins(records) {
            Some(coins) => coins.into_iter().map(|coin| (coin % u64::from(batches)) as u32).collect(),
            None => batch_of,
        };
        // In order of batches, and of records within one.
        let mut order: Vec<usize> = (0..records).collect();
        order.sort_by_key(|record| batch_of[*record]);
        let cuts = (0..=batches).map(|batch| order.partition_point(|record| batch_of[*record] < batch));
        let cuts: Vec<usize> = cuts.collect();
        Ok(Running { paid: self, order, cuts, next: 0 })
    }
}

/// An epoch that has been paid for and is under way: each batch once, in order. If it is lost, what is left of it is spent all the same.
pub struct Running {
    paid: Paid<Epoch>,
    /// All records, batch after batch …
    order: Vec<usize>,
    /// … and where each batch begins and ends.
    cuts: Vec<usize>,
    next: usize,
}

impl Running {
    /// The noisy sum of the next batch, or nothing after the last one. A batch that ended in an error is not tried again. Where clipping is adaptive, the
    /// next batch is clipped to the norm that this one found.
    pub fn next(&mut self, contributions: &mut impl Contributions) -> Option<Result<Step, Error>> {
        let batch = self.order.get(*self.cuts.get(self.next)?..*self.cuts.get(self.next + 1)?)?;
        self.next += 1;
        let epoch = self.paid.mechanism.clone();
        let tags = |key: &crate::noise::random::Key| tagged(batch.iter().copied(), &mut key.stream(COINS));
        let step = epoch.summation().run(|| self.paid.key(), tags, contributions);
        if let Ok(Step { next_norm: Some(norm), .. }) = &step {
            self.paid.mechanism.clipping = epoch.clipping.with_norm(*norm);
        }
        Some(step)
    }

    /// Number of the batch that comes next.
    #[must_use]
    pub fn position(&self) -> usize {
        self.next
    }

    /// The same with another clip norm from the next batch on, which may depend on everything released so far.
    #[must_use]
    pub fn with_clip_norm(mut self, norm: ClipNorm) -> Self {
        self.paid = self.paid.with_clip_norm(norm);
        self
    }
}
