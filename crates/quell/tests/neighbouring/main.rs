//! Runs whole pipelines on neighbouring datasets, including hostile datasets.
//!
//! The feature `exact-statistics` records each statistic before noise is added, and adds the noise to zeros
//! instead. One record may move the statistic by the distance that was charged for, and no farther.
//! Everything else that a run writes, counts, names or prints must be the same to the last bit.
//! `QUELL_NEIGHBOUR_CASES` multiplies the number of cases.
#![allow(missing_docs, clippy::unwrap_used)]
#![allow(
    clippy::needless_for_each,
    clippy::format_collect,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "short records of made-up data read better in one line, and all file names are ours"
)]

mod ballots;
mod compare;
mod datasets;
mod faults;
#[path = "../made/mod.rs"]
mod made;
mod ratings;
mod training;
mod voting;

/// The number of cases of a kind: the usual number, times `QUELL_NEIGHBOUR_CASES` if it is set.
fn cases(usual: usize) -> usize {
    let times = std::env::var("QUELL_NEIGHBOUR_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    usual * times
}
