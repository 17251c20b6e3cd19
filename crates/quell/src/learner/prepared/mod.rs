//! Networks on records that were prepared privately, in the same plan and from the same budget.
//!
//! The first runs of the mechanism find what a [`Preparation`] asks for: principal components, or the mean and
//! spread or the quantiles of every column. Then every record is transformed by what was released, and DP-SGD
//! takes its steps on the transformed records. The last run may calibrate the fitted network
//! ([`Recalibration`]). The ledger is charged once, for all of it.

mod calibration;
mod columns;
mod method;
mod piecewise_linear;
mod plan;
mod recipe;
mod state;
mod transform;

pub use method::Prepared;
pub use piecewise_linear::PiecewiseLinear;
pub use plan::Plan;
pub use recipe::{Preparation, Recalibration};
pub use state::State;
pub use transform::Transform;
