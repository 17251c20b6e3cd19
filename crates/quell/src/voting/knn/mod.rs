//! Private-kNN: the nearest records of a private sample vote on public queries.
//!
//! This module searches for the nearest records. Neighbours are as private as the records: only a mechanism
//! of the privacy crate releases their votes.

mod candidates;
mod index;

pub use index::{Index, Neighbor};
