//! The batches of a run that has been paid for, one after the other.

use super::{
    Contributions, Descent, Step,
    sampling::{Order, tagged},
    summation::{BLOCK, SAMPLING_STREAM},
};
use crate::{Error, ledger::Paid, noise::random::Key, units::ClipNorm};

/// A run that has been paid for and started.
///
/// Each batch is released once, in order. Dropping the run refunds nothing: batches that were not taken
/// are spent.
pub struct Batches {
    paid: Paid<Descent>,
    order: Order,
    next: usize,
}

impl Batches {
    pub(super) fn new(paid: Paid<Descent>, order: Order) -> Self {
        Self { paid, order, next: 0 }
    }

    /// Releases the noisy sum of the next batch; `None` after the last one.
    ///
    /// The batch and the sum without noise never leave this function. An empty batch is a valid batch. A
    /// vector that is not finite adds nothing. A batch that ended in an error is not tried again. With
    /// adaptive clipping, the next batch is clipped to the norm that this batch found.
    pub fn next(&mut self, contributions: &mut impl Contributions) -> Option<Result<Step, Error>> {
        if self.next >= self.order.batches() {
            return None;
        }
        let descent = self.paid.mechanism.clone();
        let (order, number) = (&self.order, self.next);
        self.next += 1;
        let batch = |key: &Key| {
            let mut stream = key.stream(SAMPLING_STREAM);
            let records = order.draw(number, descent.sampling, &mut stream);
            tagged(records, BLOCK, &mut stream)
        };
        let step = descent.summation().run(|| self.paid.key(), batch, contributions);
        if let Ok(Step { next_norm: Some(norm), .. }) = &step {
            self.paid.mechanism.clipping = descent.clipping.with_norm(*norm);
        }
        Some(step)
    }

    /// Number of the next batch, counted from 0.
    #[must_use]
    pub fn position(&self) -> usize {
        self.next
    }

    /// Clips to another norm from the next batch on.
    ///
    /// The norm may depend on everything released so far: noise is relative to it, so the cost stays the
    /// same. Parts that are clipped separately keep their proportions.
    #[must_use]
    pub fn with_clip_norm(mut self, norm: ClipNorm) -> Self {
        self.paid.mechanism.clipping = self.paid.mechanism.clipping.with_norm(norm);
        self
    }
}
