//! Checks that a ledger protects what a plan assumes.

use quell_privacy::{
    Neighbors,
    ledger::{Book, Lease, Ledger, Terms, Unit},
    mechanism::Mechanism,
};

use crate::Error;

/// Refuses a ledger with another privacy unit or other neighbours.
pub(crate) fn check<B: Book>(ledger: &mut Ledger<B>, unit: Unit, neighbors: Neighbors) -> Result<(), Error> {
    compare(ledger.state()?.terms(), unit, neighbors)
}

/// Refuses a lease of a ledger with another privacy unit or other neighbours.
///
/// The records were prepared for one unit and the planned relation.
pub(crate) fn check_lease<M: Mechanism, B: Book>(
    lease: &mut Lease<'_, M, B>,
    unit: Unit,
    neighbors: Neighbors,
) -> Result<(), Error> {
    compare(lease.terms()?, unit, neighbors)
}

fn compare(terms: &Terms, unit: Unit, neighbors: Neighbors) -> Result<(), Error> {
    if terms.unit == unit && terms.neighbors == neighbors {
        Ok(())
    } else {
        Err(Error::OtherTerms { dataset: terms.dataset.clone() })
    }
}
