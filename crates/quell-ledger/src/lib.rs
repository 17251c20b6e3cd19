//! Where debts are written down: SQLite by default, PostgreSQL for teams.
//!
//! A [`Store`] holds the ledgers of a project. [`Store::book`] gives the [`Volume`] of one dataset, which a
//! [`Ledger`](quell_privacy::ledger::Ledger) writes in before anything is released. Lines are chained by hashes, heads are signed, and
//! [`Store::verify`] finds edits, deletions and truncation. Nothing here decides what a release costs, or sees a record.
//!
//! ```
//! use quell_ledger::Store;
//! use quell_privacy::{Neighbors, ledger::{Budget, Composition, Ledger, Terms, Unit}, mechanism::{Count, IntegerNoise, Noise}, units::{Delta, Epsilon, Scale}};
//!
//! let project = tempfile::tempdir()?;
//! let mut store = Store::create(project.path())?;
//! let budget = Budget { epsilon: Some(Epsilon::new(1.0)?), delta: Delta::new(1e-6)? };
//! let terms = Terms {
//!     dataset: "survey".into(), unit: Unit::Example, neighbors: Neighbors::AddRemove, budget, composition: Composition::Addition,
//! };
//! let mut ledger = Ledger::create(store.book("survey")?, terms)?;
//! let count = Count { noise: IntegerNoise::new(Noise::Laplace, Scale::new(1.5)?) };
//! let paid = ledger.charge(count)?;                 // ε = 2/3 is durable now
//! assert!(ledger.charge(count).is_err());           // and 4/3 is more than there is
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
pub use store::{Entry, Store, Summary, verify, verify_with};
pub use verify::{Evidence, Report};
pub use volume::Volume;
pub use witness::{Witnesses, receipts, witnesses};

#[cfg(doctest)]
mod refused;
