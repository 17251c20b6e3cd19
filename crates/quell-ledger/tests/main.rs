//! Tests of the ledger crate, in one binary.

mod book;
mod faults;
mod fixture;
mod hostile;
#[cfg(feature = "postgres")]
mod server;
