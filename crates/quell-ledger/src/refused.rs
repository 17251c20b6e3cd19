//! Programs that the compiler must reject.
//!
//! Each one breaks one rule that this valid program obeys:
//!
//! ```
//! use quell_ledger::{Error, Store, Volume};
//! use quell_privacy::ledger::{Book, Line};
//! fn lines(store: &Store) -> Result<Vec<Line>, Error> {
//!     let mut volume: Volume = store.book("survey")?;
//!     volume.read(0)
//! }
//! ```
//!
//! Writing a line that no ledger approved:
//!
//! ```compile_fail,E0061
//! use quell_ledger::{Error, Store, Volume};
//! use quell_privacy::ledger::{Book, Charge, Line, Receipt};
//! fn write(volume: &mut Volume, charge: Charge) -> Result<Option<Receipt>, Error> {
//!     volume.append(1, &Line::Charged(charge), 0.5, 1.0)
//! }
//! ```
//!
//! Accessing the database of a volume:
//!
//! ```compile_fail,E0616
//! use quell_ledger::Volume;
//! fn go(volume: &mut Volume) {
//!     let _ = &mut volume.database;
//! }
//! ```
//!
//! Accessing the database of a store:
//!
//! ```compile_fail,E0616
//! use quell_ledger::Store;
//! fn go(store: &mut Store) {
//!     let _ = &mut store.database;
//! }
//! ```
//!
//! Signing an invented head:
//!
//! ```compile_fail,E0603
//! use quell_ledger::signature::Key;
//! fn sign(key: &Key) -> [u8; 64] {
//!     key.sign("survey", 3, &[0; 32])
//! }
//! ```
//!
//! Overwriting the state that a volume computed from its lines:
//!
//! ```compile_fail,E0616
//! use quell_ledger::Volume;
//! fn forget(volume: &mut Volume) {
//!     volume.state = None;
//! }
//! ```
