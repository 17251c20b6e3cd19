//! Accountants for comparison: closed forms, classical theorems, estimates, and a list of all methods by
//! name.
//!
//! The ledger uses nothing in this module. An error here shows a researcher a wrong number; it cannot change
//! a promise.

mod central_limit;
mod classical;
pub mod closed;
pub mod fourier;
mod method;
mod moments;

pub use central_limit::Clt;
pub use method::{Answer, DeltaAnswer, Method, best, best_by, best_delta_by};
