//! Accountants, which turn events into bounds on ε and δ.
//!
//! The ledger relies on these:
//! - [`Pld`] composes privacy loss distributions and answers with an interval. Prefer this accountant.
//! - [`Renyi`] answers where no dominating pair is known. Adaptive filters are built on it.
//! - [`TradeOff`] bounds the power of an attacker.
//!
//! - [`distance`] bounds what the rounding of noise costs.
//! - [`last_iterate`] bounds what the last of many noisy steps reveals.
//!
//! The ledger does not use the rest. [`votes`] has bounds that depend on the votes that were cast.
//! [`Calibration`] searches for the parameter that meets a target. [`closed`] has exact and classical
//! theorems, [`fourier`] is an independent check, and [`Method`] names every accountant. [`best`] claims the
//! least of several bounds, some of which are in [`closed`].

mod calibrate;
mod compare;
pub mod distance;
mod hidden_state;
mod pld;
mod renyi;
mod search;
mod tradeoff;
pub mod votes;

pub use calibrate::{Calibration, Parameter, Target};
pub use compare::{Answer, Clt, DeltaAnswer, Method, best, best_by, best_delta_by, closed, fourier};
pub use hidden_state::last_iterate;
pub use pld::Pld;
pub(crate) use pld::gaussian_epsilon;
pub(crate) use renyi::convert as renyi_epsilon;
pub use renyi::{Conversion, Renyi};
pub use tradeoff::TradeOff;

/// An interval that contains the true value; only `upper` may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bound {
    /// Rounded down: shows how tight `upper` is.
    pub lower: f64,
    /// Rounded up: may be claimed.
    pub upper: f64,
}

impl Bound {
    /// The bound of the larger of two unknown values.
    ///
    /// `f64::max` would ignore NaN. Here NaN means that nothing is known.
    #[must_use]
    pub(crate) fn max(self, other: Self) -> Self {
        let known = |value: f64, unknown: f64| if value.is_nan() { unknown } else { value };
        Self {
            lower: known(self.lower, 0.0).max(known(other.lower, 0.0)),
            upper: known(self.upper, f64::INFINITY).max(known(other.upper, f64::INFINITY)),
        }
    }
}
