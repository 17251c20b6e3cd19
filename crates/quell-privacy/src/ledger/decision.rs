//! Decisions: lines that fit the budget, and how they are written beside other writers.

use super::{Book, Ledger, Line, Permit, Receipt, Spent, State, storage};
use crate::Error;

/// How often a writer tries again when others were faster.
///
/// Some writer succeeds each time.
const ATTEMPTS: usize = 10_000;

/// How often a book may report a taken line number without returning that line.
const STALLS: usize = 10;

/// A line, and ε after it; `None` if the line does not change ε.
pub(super) struct Decision {
    pub(super) line: Line,
    pub(super) spent: Option<Spent>,
}

impl<B: Book> Ledger<B> {
    /// Writes the line that `decide` returns for the newest state.
    ///
    /// Decides again if another writer was faster.
    pub(super) fn append(
        &mut self,
        decide: impl Fn(&State) -> Result<Decision, Error>,
    ) -> Result<Receipt, Error> {
        let mut stalls = 0;
        for _ in 0..ATTEMPTS {
            self.state()?;
            let Decision { line, spent } = decide(&self.state)?;
            self.state.check(&line)?;
            let cap = if let Line::Raised { budget, .. } = &line {
                budget.cap()
            } else {
                self.state.budget().cap()
            };
            let epsilon = match spent {
                Some(spent) => spent.epsilon,
                // Handing out granted steps costs nothing. Today's accountant may find a slightly larger ε
                // than at the time of the grant.
                None => self.within_cap()?.epsilon.min(cap),
            };
            // NaN does not fit.
            let fits = epsilon <= cap;
            if !fits {
                return Err(Error::Refused { would_be: epsilon, spent: self.spent().epsilon, budget: cap });
            }
            let permit = Permit::new(Some(&self.state), &line, epsilon, cap);
            if let Some(receipt) = self.book.append(&permit).map_err(storage)? {
                self.state.apply(&line)?;
                if let Some(spent) = spent {
                    self.cached_spent = Some((self.state.charges().len(), self.state.budget(), spent));
                }
                return Ok(receipt);
            }
            // The faster writer left a line.
            let lines = self.state.lines();
            stalls = if self.state()?.lines() > lines { 0 } else { stalls + 1 };
            if stalls == STALLS {
                return Err(Error::Book {
                    cause: "the book reports that a line number is taken but returns no such line".into(),
                });
            }
        }
        Err(Error::Book { cause: "other processes kept writing to the ledger; nothing was charged".into() })
    }

    /// The spent ε, or an error if it exceeds the cap.
    ///
    /// Lines that exceed the cap were not written by a ledger, so nothing is handed out.
    pub(super) fn within_cap(&mut self) -> Result<Spent, Error> {
        let spent = self.spent();
        if self.state.fits(spent) {
            return Ok(spent);
        }
        let (epsilon, cap) = (spent.epsilon, self.state.budget().cap());
        Err(Error::Book {
            cause: format!("its charges add up to epsilon {epsilon}, expected at most the budget of {cap}"),
        })
    }

    /// The ε that is spent now.
    ///
    /// It is cached, because accounting for a first plan as a whole takes a while. Leases do not change it.
    fn spent(&mut self) -> Spent {
        let (charges, budget) = (self.state.charges().len(), self.state.budget());
        match self.cached_spent {
            Some((count, at, spent)) if count == charges && at == budget => spent,
            _ => {
                let spent = self.state.spent();
                self.cached_spent = Some((charges, budget, spent));
                spent
            }
        }
    }
}
