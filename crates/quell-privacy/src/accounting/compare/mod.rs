//! All accountants by name, and those that the ledger does not use.
//!
//! These are closed forms, classical theorems and estimates.
//!
//! The ledger uses nothing in this module, so an error here cannot change the promise of a ledger. But
//! [`best`] and `quell account` claim the least of several bounds, and some of these are computed here.
//! Estimates are never claimed.

mod central_limit;
mod classical;
pub mod closed;
pub mod fourier;
mod iterates;
mod method;
mod moments;

pub use central_limit::Clt;
pub use method::{Answer, DeltaAnswer, Method, best, best_by, best_delta_by};
