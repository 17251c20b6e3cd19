//! Networks on records that were prepared privately, in the same plan and from the same budget.
//!
//! The first runs of the mechanism find what a [`Preparation`] asks for, such as principal components. Then
//! every record is transformed by what was released, and DP-SGD takes its steps on the transformed records.
//! The ledger is charged once, for all of it.

mod method;
mod recipe;
mod state;
mod transform;

pub use method::Prepared;
pub use recipe::Preparation;
pub use state::State;
pub use transform::Transform;
