//! Programs that the compiler must refuse. Each breaks one rule of this one, which it accepts:
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
//! To write a line that no ledger judged:
//!
//! ```compile_fail,E0061
//! use quell_ledger::{Error, Store, Volume};
//! use quell_privacy::ledger::{Book, Charge, Line, Receipt};
//! fn write(volume: &mut Volume, charge: Charge) -> Result<Option<Receipt>, Error> {
//!     volume.append(1, &Line::Charged(charge), 0.5, 1.0)
//! }
//! ```
//!
//! To go to the database behind it …
//!
//! ```compile_fail,E0616
//! use quell_ledger::Volume;
//! fn go(volume: &mut Volume) {
//!     let _ = &mut volume.database;
//! }
//! ```
//!
//! … or behind the store:
//!
//! ```compile_fail,E0616
//! use quell_ledger::Store;
//! fn go(store: &mut Store) {
//!     let _ = &mut store.database;
//! }
//! ```
//!
//! To sign a head of one's own making:
//!
//! ```compile_fail,E0603
//! use quell_ledger::signature::Key;
//! fn sign(key: &Key) -> [u8; 64] {
//!     key.sign("survey", 3, &[0; 32])
//! }
//! ```
//!
//! To tell a volume what its lines add up to:
//!
//! ```compile_fail,E0616
//! use quell_ledger::Volume;
//! fn forget(volume: &mut Volume) {
//!     volume.state = None;
//! }
//! ```
