//! The learning room of Quell. It handles people's data and can be wrong without leaking: what leaves goes through a
//! mechanism of the trusted room, which pays for it.
//!
//! So far there are [`data`], tables of records, and rows selected from them; and the parts of a learner that are plain
//! functions of numbers: [`loss`], [`optimizer`], [`schedule`], [`average`] and [`convex`].
#![deny(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

pub mod average;
pub mod convex;
pub mod data;
mod error;
pub mod loss;
pub mod optimizer;
mod range;
pub mod schedule;

pub use error::{Error, Place};
