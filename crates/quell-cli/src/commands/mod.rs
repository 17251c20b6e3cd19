//! The subcommands, one module each.

pub(crate) mod account;
pub(crate) mod calibrate;
pub(crate) mod curve;
pub(crate) mod evaluate;
pub(crate) mod export;
pub(crate) mod init;
pub(crate) mod label;
pub(crate) mod ledger;
pub(crate) mod models;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod query;
mod recommend;
pub(crate) mod report;
pub(crate) mod schema;
pub(crate) mod shell;
pub(crate) mod synthesize;
pub(crate) mod train;
pub(crate) mod tune;
