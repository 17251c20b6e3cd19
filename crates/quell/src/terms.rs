//! Checks that a ledger protects what a plan assumes.

use quell_privacy::{
    Neighbors,
    ledger::{Book, Ledger, Unit},
};

use crate::Error;

/// Refuses a ledger with another privacy unit or other neighbours.
pub(crate) fn check<B: Book>(ledger: &mut Ledger<B>, unit: Unit, neighbors: Neighbors) -> Result<(), Error> {
    let terms = ledger.state()?.terms();
    if terms.unit == unit && terms.neighbors == neighbors {
        Ok(())
    } else {
        Err(Error::OtherTerms { dataset: terms.dataset.clone() })
    }
}
