//! From events to numbers.

mod pld;

pub use pld::Pld;

/// The truth lies in [lower, upper]; only `upper` may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Bound {
    /// Rounded down: shows how tight `upper` is.
    pub lower: f64,
    /// Rounded up: may be claimed.
    pub upper: f64,
}

impl Bound {
    /// The bound of the larger of two unknowns.
    #[must_use]
    pub(crate) fn max(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: self.upper.max(other.upper) }
    }
}
