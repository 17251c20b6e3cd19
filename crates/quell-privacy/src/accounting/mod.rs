//! From events to numbers.
//!
//! [`Pld`] answers with an interval and is the one to use; [`Renyi`] answers where no dominating pair is known, and is what
//! adaptive filters are made of; [`closed`] has the exact and the classical theorems; [`fourier`] is an independent check;
//! [`TradeOff`] speaks of attacks; [`Calibration`] goes the other way; [`votes`] has bounds that depend on the votes that were cast. [`Method`] names them all for side-by-side tables.

mod calibrate;
mod classical;
pub mod closed;
pub mod fourier;
mod method;
mod pld;
mod renyi;
mod tradeoff;
pub mod votes;

pub use calibrate::{Calibration, Parameter, Target};
pub use method::{Answer, DeltaAnswer, Method, best, best_by, best_delta_by};
pub use pld::Pld;
pub(crate) use renyi::convert as renyi_epsilon;
pub use renyi::{Conversion, Renyi};
pub use tradeoff::{Clt, TradeOff};

/// The truth lies in [lower, upper]; only `upper` may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bound {
    /// Rounded down: shows how tight `upper` is.
    pub lower: f64,
    /// Rounded up: may be claimed.
    pub upper: f64,
}

impl Bound {
    /// The bound of the larger of two unknowns. `f64::max` would forget a NaN; here it means that nothing is known.
    #[must_use]
    pub(crate) fn max(self, other: Self) -> Self {
        let known = |value: f64, unknown: f64| if value.is_nan() { unknown } else { value };
        Self {
            lower: known(self.lower, 0.0).max(known(other.lower, 0.0)),
            upper: known(self.upper, f64::INFINITY).max(known(other.upper, f64::INFINITY)),
        }
    }
}
