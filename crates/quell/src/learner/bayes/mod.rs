//! Bayesian learning and finite classes of hypotheses: the exponential mechanism as a learner.
//!
//! [`FiniteClass`] chooses a hypothesis by its empirical error, and [`FinitePosterior`] draws a parameter from
//! a posterior distribution on finitely many points. [`Thresholds`] learns a threshold on an ordered domain in
//! two ways. Linear regression by one sample from its posterior is a method of `quell train`: see
//! [`PosteriorSample`](quell_privacy::mechanism::PosteriorSample).
//!
//! The ledger decides which datasets are neighbours, and the learner takes the sensitivity from the ledger.

mod finite;
mod likelihood;
mod posterior;
mod threshold;

use quell_privacy::{
    Neighbors,
    ledger::{Book, Ledger, Unit},
};

pub use finite::FiniteClass;
pub use likelihood::FinitePosterior;
pub use threshold::{LabelledPoint, Thresholds, Tree};

use crate::Error;

/// The neighbouring relation of a ledger that protects single records.
fn neighbors_of<B: Book>(ledger: &mut Ledger<B>) -> Result<Neighbors, Error> {
    let terms = ledger.state()?.terms();
    if terms.unit == Unit::User {
        return Err(Error::Setting {
            name: "unit",
            found: "user".into(),
            expected: "example: this learner protects single records",
        });
    }
    Ok(terms.neighbors)
}
