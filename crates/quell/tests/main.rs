//! Tests of the learning crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests make files and run commands")]

mod adjacency;
mod calibrated;
mod data;
mod defaults;
mod examples;
#[path = "excess_risk/main.rs"]
mod excess_risk;
mod features;
mod forged;
mod formats;
#[path = "layers/main.rs"]
mod layers;
mod layouts;
#[path = "learn/main.rs"]
mod learn;
mod linear;
mod made;
mod measures;
mod neighbors;
mod parquet;
mod plans;
mod predicate;
mod prepared;
mod programs;
mod ratings;
mod schema;
mod scratch;
mod statistics;
mod student;
mod synthesis;
mod training;
mod tuning;
mod unsupervised;
mod voting;
