//! Steps of a plan, handed out in blocks.

use super::{Book, Decision, Ledger, Line, Paid, Receipt};
use crate::{Error, mechanism::Mechanism};

/// The steps of a plan that has been paid for, one [`Paid`] after the other.
///
/// # Contract
/// A step is handed out only after a line in the book says so, and no step twice, whoever resumes: a run that is killed loses at most the
/// block it was in. If the book cannot be written, the lease ends with the error.
pub struct Lease<'l, M, B> {
    ledger: &'l mut Ledger<B>,
    mechanism: M,
    receipt: Receipt,
    steps: u64,
    /// The steps [next, end) are ours.
    next: u64,
    end: u64,
    block: u64,
    failed: bool,
    witness: Option<Witness<'l>>,
}

/// Who is told of each block that is leased, before its first step.
type Witness<'l> = Box<dyn FnMut(&Receipt) -> Result<(), Error> + 'l>;

/// Blocks that a plan is leased in, unless told otherwise.
const BLOCKS: u64 = 64;

impl<'l, M: Mechanism, B: Book> Lease<'l, M, B> {
    pub(super) fn new(ledger: &'l mut Ledger<B>, mechanism: M, receipt: Receipt, steps: u64, ours: (u64, u64)) -> Self {
        let (next, end) = ours;
        Self { ledger, mechanism, receipt, steps, next, end, block: steps.div_ceil(BLOCKS), failed: false, witness: None }
    }

    /// Leases so many steps at a time: the fewer, the less is lost when a run is killed, and the more often it waits for the book.
    #[must_use]
    pub fn in_blocks_of(self, steps: u64) -> Self {
        Self { block: steps.max(1), ..self }
    }

    /// Tells `witness` the receipt of each block that is leased, before the first step of the block is handed out. If `witness` fails, the lease ends with its error.
    #[must_use]
    pub fn witnessed(self, witness: impl FnMut(&Receipt) -> Result<(), Error> + 'l) -> Self {
        Self { witness: Some(Box::new(witness)), ..self }
    }

    /// Number of the line that paid, by which the run can be resumed.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.receipt.entry
    }

    /// The line that paid.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Number of the step that comes next.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Says that the results of all steps so far are safe. For the reader of the ledger: it changes no debt.
    pub fn confirm(&mut self) -> Result<(), Error> {
        let (charge, until) = (self.receipt.entry, self.next);
        self.ledger.append(|_| Ok(Decision { line: Line::Confirmed { charge, until }, spent: None }))?;
        Ok(())
    }

    /// Takes the next block, if there is one.
    fn lease(&mut self) -> Result<bool, Error> {
        let (charge, steps, block) = (self.receipt.entry, self.steps, self.block);
        let leased = |ledger: &mut Ledger<B>| Ok(ledger.state()?.account(charge).map_or(steps, |account| account.leased));
        if leased(self.ledger)? >= steps {
            return Ok(false);
        }
        let from = std::cell::Cell::new(0);
        let done = self.ledger.append(|state| {
            from.set(state.account(charge).map_or(steps, |account| account.leased));
            let until = from.get().saturating_add(block).min(steps);
            Ok(Decision { line: Line::Leased { charge, until }, spent: None })
        });
        match done {
            Ok(receipt) => {
                if let Some(witness) = &mut self.witness {
                    witness(&receipt)?;
                }
                (self.next, self.end) = (from.get(), from.get().saturating_add(block).min(steps));
                Ok(true)
            }
            // Somebody else took the last block.
            Err(Error::Book { .. }) if leased(self.ledger)? >= steps => Ok(false),
            Err(other) => Err(other),
        }
    }
}

impl<M: Mechanism, B: Book> Iterator for Lease<'_, M, B> {
    type Item = Result<Paid<M>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if self.next == self.end {
            match self.lease() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        self.next += 1;
        Some(Ok(self.ledger.hand_out(self.mechanism.clone(), self.receipt.clone())))
    }
}
