//! Checks that a ledger protects what a plan assumes.

use quell_privacy::{
    Neighbors,
    ledger::{Book, Lease, Ledger, Unit},
    mechanism::Mechanism,
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

/// Refuses a lease of a ledger with other neighbours: the records were prepared for the planned relation.
pub(crate) fn check_lease<M: Mechanism, B: Book>(
    lease: &mut Lease<'_, M, B>,
    neighbors: Neighbors,
) -> Result<(), Error> {
    let terms = lease.terms()?;
    if terms.neighbors == neighbors {
        Ok(())
    } else {
        Err(Error::OtherTerms { dataset: terms.dataset.clone() })
    }
}
