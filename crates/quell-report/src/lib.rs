//! Reports and figures of runs: settings, guarantee and results, for people and programs.
//!
//! All content of a report is public: it follows from settings, from releases that were paid for, and from
//! data that was declared public. This crate reads no private record, writes no file and prints nothing.
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod columns;
pub mod escape;
mod facts;
mod figures;
mod html;
mod interval;
mod labelled;
mod learned;
mod markdown;
mod measures;
mod pictures;
pub mod plot;
mod prepared;
mod promise;
mod synthetic;
mod trained;
mod trials;

pub use facts::Report;
pub use interval::Interval;
