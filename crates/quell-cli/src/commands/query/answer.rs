//! Formats answers for printing.

use quell::statistics::Answer;
use serde::Serialize;

use crate::print;

/// An answer. Bins are printed as a table.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Shown(pub(super) Answer);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Answer::Bins(bins) = &self.0 else { return self.0.fmt(f) };
        let rows: Vec<Vec<String>> =
            bins.iter().map(|(key, release)| vec![key.clone(), Answer::describe(release)]).collect();
        f.write_str(&print::table(&rows, &[]))
    }
}
