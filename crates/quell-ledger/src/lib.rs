//! Durable storage for privacy ledgers: SQLite by default, PostgreSQL for teams.
//!
//! A [`Store`] holds the ledgers of a project. [`Store::book`] returns the [`Volume`] of one dataset. A
//! [`Ledger`](quell_privacy::ledger::Ledger) writes each charge to the volume before anything is released. A
//! hash chain links the lines, a key signs the head of each chain, and [`Store::verify`] finds edits,
//! deletions and truncation. This crate does not decide what a release costs and never sees a record.
//!
//! ```
//! use quell_ledger::Store;
//! use quell_privacy::{
//!     Neighbors,
//!     ledger::{Budget, Composition, Ledger, Terms, Unit},
//!     mechanism::{Count, IntegerNoise, Noise},
//!     units::{Delta, Epsilon, Scale},
//! };
//!
//! let project = tempfile::tempdir()?;
//! let mut store = Store::create(project.path())?;
//! let budget = Budget { epsilon: Some(Epsilon::new(1.0)?), delta: Delta::new(1e-6)? };
//! let terms = Terms {
//!     dataset: "survey".into(),
//!     unit: Unit::Example,
//!     neighbors: Neighbors::AddRemove,
//!     budget,
//!     composition: Composition::Addition,
//! };
//! let mut ledger = Ledger::create(store.book("survey")?, terms)?;
//! let count = Count { noise: IntegerNoise::new(Noise::Laplace, Scale::new(1.5)?) };
//! let paid = ledger.charge(count)?;                 // ε = 2/3 is durable now
//! assert!(ledger.charge(count).is_err());           // 4/3 would exceed the budget
//! let report = store.verify(&[paid.receipt().clone()], &[]);
//! assert!(report.is_good(), "{:?}", report.findings);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod chain;
mod database;
mod error;
mod export;
mod file;
mod finding;
mod hexadecimal;
mod judge;
mod location;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod seal;
mod signature;
mod sqlite;
mod store;
mod verify;
mod volume;
mod witness;

pub use error::Error;
pub use export::{Export, verify_export};
pub use finding::{Finding, Problem};
pub use location::{Location, Server};
pub use memory::InMemory;
pub use store::{Entry, Store, Summary, verify, verify_with};
pub use verify::{Evidence, Report};
pub use volume::Volume;
pub use witness::{Witnesses, receipts, witnesses};

#[cfg(doctest)]
mod refused;

/// The program of the guide's page for users of OpenDP runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/coming-from-opendp.md")]
struct OpendpPage;
