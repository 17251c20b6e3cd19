//! Quantiles of all columns of numbers, by histograms whose cells become finer where the records are.

use super::{Facts, Stage};
use crate::learner::{prepared::PiecewiseLinear, sums::nearest_counts};

/// The most cells of a column.
const MOST_CELLS: f64 = 32.0;

/// Records in a cell, for each unit of noise, if the records were spread evenly over the cells.
const RECORDS_PER_NOISE: f64 = 4.0;

/// The cells of every column, and their estimated shares of the records.
#[derive(Clone, Debug)]
pub(in crate::learner::prepared) struct Quantiles {
    pub(in crate::learner::prepared) facts: Facts,
    done: u64,
    cells: usize,
    /// The inner bounds of the cells of the next run, for each column.
    bounds: Vec<Vec<f64>>,
    /// The distribution function of each column: bounds of cells from -1 to 1, and the share of records below.
    found: Vec<Vec<(f64, f64)>>,
}

impl Quantiles {
    /// Number of runs, each of which refines the cells of the one before.
    pub(in crate::learner::prepared) const RUNS: u64 = 3;

    pub(in crate::learner::prepared) fn new(facts: Facts) -> Self {
        let cells = cells(facts.numbers.len(), facts.records, facts.noise);
        let even: Vec<f64> = (0..=cells).map(|bound| bound as f64 / cells as f64).collect();
        let uniform: Vec<(f64, f64)> = even.iter().map(|share| (2.0 * share - 1.0, *share)).collect();
        let found = vec![uniform; facts.numbers.len()];
        let bounds = found.iter().map(|function| refined(function, cells)).collect();
        Self { facts, done: 0, cells, bounds, found }
    }

    /// Numbers of a release: the cells of all columns.
    pub(in crate::learner::prepared) fn dimension(columns: usize, records: f64, noise: f64) -> usize {
        columns * cells(columns, records, noise)
    }

    /// What the next run sums; `None` if all runs are over.
    pub(in crate::learner::prepared) fn stage(&self) -> Option<Stage<'_>> {
        (self.done < Self::RUNS).then_some(Stage::Cells { bounds: &self.bounds, cells: self.cells })
    }

    /// Uses a release; `None` if it was lost.
    pub(in crate::learner::prepared) fn apply(&mut self, released: Option<&[f64]>) {
        if let Some(released) = released {
            let columns = self.found.len() as f64;
            // Every column has the same number of records, up to noise. With few records it is mostly noise.
            let total = released.iter().sum::<f64>() / columns;
            let total = total.max(0.5 * self.facts.records / columns.sqrt());
            for (column, counts) in released.chunks_exact(self.cells).enumerate() {
                let inner = self.bounds[column].iter().copied();
                let ends = inner.chain([1.0]).zip(nearest_counts(counts, total));
                let mut below = 0.0;
                let function = ends.map(|(end, count)| {
                    below += count / total;
                    (end, below.min(1.0))
                });
                self.found[column] = std::iter::once((-1.0, 0.0)).chain(function).collect();
                self.bounds[column] = refined(&self.found[column], self.cells);
            }
        }
        self.done += 1;
    }

    /// The distribution function of each column, from -1 to 1.
    pub(in crate::learner::prepared) fn lines(&self) -> PiecewiseLinear {
        self.facts.lines(1 + self.cells, |column| {
            self.found[column].iter().map(|(bound, below)| (*bound, 2.0 * below - 1.0)).collect()
        })
    }
}

/// Number of cells of each column: the more records, the more cells.
fn cells(columns: usize, records: f64, noise: f64) -> usize {
    // The entries of a vector are 1/√columns long.
    (records / (RECORDS_PER_NOISE * noise * (columns.max(1) as f64).sqrt())).clamp(2.0, MOST_CELLS) as usize
}

/// The inner bounds of cells with equal shares, if each old cell is evenly filled.
fn refined(function: &[(f64, f64)], cells: usize) -> Vec<f64> {
    let bound = |number: usize| {
        let share = number as f64 / cells as f64;
        let after = function.partition_point(|(_, below)| *below < share).clamp(1, function.len() - 1);
        let ((low, before), (high, below)) = (function[after - 1], function[after]);
        if below > before {
            low + (high - low) * ((share - before) / (below - before)).min(1.0)
        } else {
            high
        }
    };
    (1..cells).map(bound).collect()
}
