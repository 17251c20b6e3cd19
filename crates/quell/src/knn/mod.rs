//! Private-kNN: labels for public queries, voted on by the nearest of a sample of the private records.
//!
//! Here is the search. Votes are sensitive: what leaves goes through a mechanism of the trusted room.

mod candidates;
mod neighbors;

pub use neighbors::{Index, Metric, Neighbor, votes};
