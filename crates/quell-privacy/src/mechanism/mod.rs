//! Everything that can be released, each with its event, its contract and its theorem.
//!
//! A mechanism is a value with public settings. What it does with people's data is a method of [`Paid`](crate::ledger::Paid), so nothing here runs
//! before it was paid for. The trait is sealed: a mechanism written elsewhere would be a hole in the proof.

mod count;

pub use count::Count;

use crate::{Event, Neighbors};

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// A way to release something, and what it costs.
///
/// # Contract
/// One run is within `distance` in total variation of a mechanism to which `event` applies, for every dataset. Its words say what is done, for
/// the reader of the ledger, and hold nothing but public settings.
pub trait Mechanism: Sealed + Clone + std::fmt::Display {
    /// What one run costs.
    fn event(&self, neighbors: Neighbors) -> Event;

    /// How far the noise that is drawn is from the noise that is accounted for. Zero for noise drawn in exact arithmetic.
    fn distance(&self) -> f64 {
        0.0
    }
}
