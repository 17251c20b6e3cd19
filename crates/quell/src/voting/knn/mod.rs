//! Private-kNN: the nearest records of a private sample vote on public queries.
//!
//! This module holds the search. Votes are sensitive: they leave only through a mechanism of the privacy
//! crate.

mod candidates;
mod neighbors;

pub use neighbors::{Index, Metric, Neighbor, votes};
