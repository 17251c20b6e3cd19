//! Tests of the command, in one binary.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod account;
mod answers;
mod calibrate;
mod command;
mod conventions;
mod curve;
mod documents;
mod export;
mod former_names;
mod groups;
mod hostile_text;
mod kills;
mod labels;
mod ledger;
mod model;
mod models;
mod naive_bayes;
mod plan;
mod plans;
mod promises;
mod public_network;
mod questions;
mod ratings;
mod refusals;
mod schema;
mod screenshots;
mod shell;
mod snapshots;
mod surveys;
mod synthesize;
mod tables;
mod train;
mod trained;
mod trees;
mod unsupervised;
