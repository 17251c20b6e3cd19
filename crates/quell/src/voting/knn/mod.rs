//! Private-kNN: the nearest records of a private sample vote on public queries.
//!
//! This module searches for the nearest records, and lets them vote. Neighbours and votes are as private as the
//! records: only a mechanism of the privacy crate releases the winner.

mod candidates;
mod index;
mod voters;

pub use index::{Index, Neighbor};
pub use voters::NearestVoters;
