//! Tests of the trusted crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "accountants/main.rs"]
mod accountants;
mod book;
mod cashier;
mod convex;
mod edges;
mod extremes;
mod golden;
mod hidden_descent;
mod hidden_state;
mod laws;
mod lectures;
mod mechanisms;
mod once;
mod peer_failures;
mod polls;
mod promises;
mod renyi_sampling;
mod sampled_compositions;
mod search;
mod surveys;
mod theory;
mod tightness;
mod together;
mod votes;
