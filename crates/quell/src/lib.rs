//! The learning room of Quell. It handles people's data and can be wrong without leaking: what leaves goes through a
//! mechanism of the trusted room, which pays for it.
#![deny(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

pub mod average;
pub mod chance;
pub mod convex;
pub mod data;
pub mod dp_sgd;
mod error;
pub mod features;
mod kernel;
pub mod knn;
pub mod layer;
pub mod loss;
pub mod network;
pub mod optimizer;
pub mod pate;
mod price;
mod range;
pub mod run;
pub mod schedule;
pub mod student;
mod toml_error;
pub mod voting;

pub use error::{Error, Place};
