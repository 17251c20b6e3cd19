//! How the runs are divided among the purposes that they serve.

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Counts the values of each column.
    Columns,
    /// Counts coarse groups of all pairs, to choose the pairs that are measured.
    Survey,
    /// Measures chosen pairs. The first round measures a tree.
    Round(usize),
    /// Counts coarse groups of all pairs again, to estimate errors. The model is not fitted to it.
    Check,
}

/// The purposes in order, each with its number of runs.
///
/// All runs have the same noise, so numbers of runs are shares of the privacy budget.
const PURPOSES: [(Purpose, u64); 6] = [
    (Purpose::Columns, 4),
    (Purpose::Survey, 2),
    (Purpose::Round(0), 7),
    (Purpose::Round(1), 4),
    (Purpose::Round(2), 2),
    (Purpose::Check, 1),
];

/// Number of runs for a number of columns. One column alone needs a single run.
pub(super) fn runs(columns: usize) -> u64 {
    if columns < 2 { 1 } else { PURPOSES.iter().map(|(_, runs)| runs).sum() }
}

/// Number of runs with a purpose.
pub(super) fn runs_for(purpose: Purpose) -> u64 {
    PURPOSES.iter().filter(|(other, _)| *other == purpose).map(|(_, runs)| runs).sum()
}

/// The purpose of a run, and whether the run is the first one with it; `None` if all runs are over.
pub(super) fn purpose(run: u64, columns: usize) -> Option<(Purpose, bool)> {
    if columns < 2 {
        return (run == 0).then_some((Purpose::Columns, true));
    }
    let mut first = 0;
    for (purpose, runs) in PURPOSES {
        if run < first + runs {
            return Some((purpose, run == first));
        }
        first += runs;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_purpose_and_begins_one_at_most_once() {
        for columns in [1, 2, 15] {
            let purposes: Vec<_> = (0..runs(columns)).map(|run| purpose(run, columns).unwrap()).collect();
            assert_eq!(purpose(runs(columns), columns), None);
            assert_eq!(purposes[0], (Purpose::Columns, true));
            let begun = purposes.iter().filter(|(_, is_first)| *is_first).count();
            assert_eq!(begun, if columns < 2 { 1 } else { PURPOSES.len() });
        }
        assert_eq!(runs_for(Purpose::Survey), 2);
    }
}
