//! Leases: the steps of a plan, handed out in blocks.

use super::{Book, Decision, Ledger, Line, Paid, Receipt, Terms};
use crate::{Error, mechanism::Mechanism};

/// The steps of a plan that has been paid for, one [`Paid`] after the other.
///
/// # Contract
/// A step is handed out only after a line in the book records its lease, and no step is handed out twice,
/// whoever resumes: a run that is killed loses at most the block it was in. If the book cannot be written,
/// the lease ends with the error.
pub struct Lease<'l, M, B> {
    ledger: &'l mut Ledger<B>,
    mechanism: M,
    receipt: Receipt,
    steps: u64,
    /// The steps [next, end) are leased to this value.
    next: u64,
    end: u64,
    block: u64,
    failed: bool,
    witness: Option<Witness<'l>>,
}

/// A callback that receives the receipt of each leased block, before its first step.
type Witness<'l> = Box<dyn FnMut(&Receipt) -> Result<(), Error> + 'l>;

/// The default number of blocks in which a plan is leased.
const BLOCKS: u64 = 64;

impl<'l, M: Mechanism, B: Book> Lease<'l, M, B> {
    pub(super) fn new(
        ledger: &'l mut Ledger<B>,
        mechanism: M,
        receipt: Receipt,
        steps: u64,
        (next, end): (u64, u64),
    ) -> Self {
        Self {
            ledger,
            mechanism,
            receipt,
            steps,
            next,
            end,
            block: steps.div_ceil(BLOCKS),
            failed: false,
            witness: None,
        }
    }

    /// Leases the given number of steps at a time.
    ///
    /// Smaller blocks lose less when a run is killed, but wait for the book more often.
    #[must_use]
    pub fn in_blocks_of(self, steps: u64) -> Self {
        Self { block: steps.max(1), ..self }
    }

    /// Passes the receipt of each leased block to `witness`, before the block's first step.
    ///
    /// If `witness` fails, the lease ends with its error.
    #[must_use]
    pub fn witnessed(self, witness: impl FnMut(&Receipt) -> Result<(), Error> + 'l) -> Self {
        Self { witness: Some(Box::new(witness)), ..self }
    }

    /// The terms of the ledger that was charged.
    pub fn terms(&mut self) -> Result<&Terms, Error> {
        Ok(self.ledger.state()?.terms())
    }

    /// Number of the line with the charge, by which the run can be resumed.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.receipt.entry
    }

    /// The receipt of the charge.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Number of the next step.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Records that the results of all steps so far are saved.
    ///
    /// This informs the reader of the ledger. It changes no charge.
    pub fn confirm(&mut self) -> Result<(), Error> {
        let (charge, until) = (self.receipt.entry, self.next);
        self.ledger.append(|_| Ok(Decision { line: Line::Confirmed { charge, until }, spent: None }))?;
        Ok(())
    }

    /// Leases the next block, if there is one.
    fn lease(&mut self) -> Result<bool, Error> {
        let (charge, steps, block) = (self.receipt.entry, self.steps, self.block);
        let leased = |ledger: &mut Ledger<B>| {
            Ok(ledger.state()?.account(charge).map_or(steps, |account| account.leased))
        };
        if leased(self.ledger)? >= steps {
            return Ok(false);
        }
        let from = std::cell::Cell::new(0);
        let appended = self.ledger.append(|state| {
            from.set(state.account(charge).map_or(steps, |account| account.leased));
            let until = from.get().saturating_add(block).min(steps);
            Ok(Decision { line: Line::Leased { charge, until }, spent: None })
        });
        match appended {
            Ok(receipt) => {
                if let Some(witness) = &mut self.witness {
                    witness(&receipt)?;
                }
                (self.next, self.end) = (from.get(), from.get().saturating_add(block).min(steps));
                Ok(true)
            }
            // Another process took the last block.
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
        let mechanism = self.mechanism.clone().at_run(self.next);
        self.next += 1;
        Some(Ok(self.ledger.hand_out(mechanism, self.receipt.clone())))
    }
}
