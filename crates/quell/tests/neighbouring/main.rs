//! Whole pipelines on neighbouring datasets, hostile ones included.
//!
//! The feature `exact-statistics` shows what noise is added to, and adds it to zeros instead. So one record may move the statistic by what is charged for and no farther, and everything else,
//! whatever a run writes, counts, names or says, must be the same to the last bit. `QUELL_NEIGHBOUR_CASES` runs more cases than the usual ones.
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
mod training;
mod voting;

/// How many cases of a kind to run: so many, or a multiple of them.
fn cases(usual: usize) -> usize {
    let times = std::env::var("QUELL_NEIGHBOUR_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    usual * times
}
