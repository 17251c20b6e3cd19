//! The trusted core of Quell: privacy accounting, mechanisms and the ledger.
//!
//! An [`Event`] says what was done to the data; an accountant turns it into a [`Bound`] on ε or δ. Nothing in
//! this crate reads a file, a clock or the network, or prints. Only `noise` draws random numbers.
//!
//! ```
//! use quell_privacy::{Event, Neighbors, accounting::Pld, units::{Delta, NoiseMultiplier, SamplingRate}};
//! let run = Event::dp_sgd(NoiseMultiplier::new(1.1)?, SamplingRate::new(0.01)?, 10_000);
//! let epsilon = Pld::default().epsilon(&run, Neighbors::AddRemove, Delta::new(1e-5)?)?;
//! assert!(epsilon.lower <= epsilon.upper && epsilon.upper - epsilon.lower <= 1e-3 * epsilon.upper);
//! # Ok::<(), quell_privacy::Error>(())
//! ```
#![forbid(unsafe_code)]
// [KEY, place] cites a theorem (THEORY.md) and Pr[…] is a probability; neither is a link.
#![allow(rustdoc::broken_intra_doc_links)]
// This crate uses no file, network, clock, environment or print (clippy.toml names the types and functions).
#![deny(clippy::disallowed_types, clippy::disallowed_methods, clippy::disallowed_macros)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

#[cfg(all(feature = "exact-statistics", not(debug_assertions)))]
compile_error!(
    "the feature exact-statistics exposes private statistics: it is for tests only, never for a released program"
);

pub mod accounting;
mod error;
pub mod event;
#[cfg(feature = "exact-statistics")]
pub mod exact;
pub mod laws;
pub mod ledger;
pub mod mechanism;
mod neighbors;
mod noise;
pub mod number;
mod special;
mod statement;
pub mod units;

pub use accounting::Bound;
pub use error::Error;
pub use event::Event;
pub use neighbors::Neighbors;
#[doc(hidden)]
pub use noise::bench;
pub use statement::Statement;

#[cfg(doctest)]
mod refused;

/// Runs the README's program as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The programs of the guide's page about the accountant run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/accountant.md")]
struct AccountantPage;

/// The programs of the page for users of autodp and dp-accounting run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/coming-from-autodp-and-dp-accounting.md")]
struct DpAccountingPage;
