//! The learning room of Quell. It handles people's data and can be wrong without leaking: what leaves goes through a
//! mechanism of the trusted room, which pays for it.
//!
//! So far there is [`data`]: tables of records, and rows selected from them.
#![deny(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

pub mod data;
mod error;

pub use error::{Error, Place};
