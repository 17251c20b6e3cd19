//! Tests of the ledger crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod book;
mod faults;
mod fixture;
mod hostile;
#[cfg(feature = "postgres")]
mod server;
