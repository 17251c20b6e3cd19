//! The vector of each record in each run, of length at most one.
//!
//! Every column of numbers has one entry, and so has the constant if there is one. All are at most 1/√entries
//! (THEORY, Steps: Stages). The mechanism clips in any case, so privacy does not depend on it.

use quell_privacy::mechanism::{Clipper, Contributions};

use super::Facts;
use crate::{
    learner::{
        Supervised,
        sums::{Sparse, add_sparse},
    },
    network::Task,
};

/// What one run of the mechanism sums.
#[derive(Clone, Copy, Debug)]
pub(in crate::learner::prepared) enum Stage<'a> {
    /// A constant, and every number.
    Numbers,
    /// A constant, and the distance of every number from the centre of its column, at most one.
    Distances { centres: &'a [f64] },
    /// An indicator of the cell of every number.
    Cells { bounds: &'a [Vec<f64>], cells: usize },
}

/// The vectors of all records in one run.
///
/// A record with several examples has the mean of their vectors.
pub(in crate::learner::prepared) struct Vectors<'a> {
    records: &'a Supervised<'a>,
    facts: &'a Facts,
    stage: Stage<'a>,
    /// Numbers of a vector in this run.
    length: usize,
    /// Numbers of a release of the mechanism, at least as many.
    dimension: usize,
}

impl Stage<'_> {
    /// Number of numbers in the vector of an example with `columns` columns of numbers.
    pub(in crate::learner::prepared) fn length(&self, columns: usize) -> usize {
        match self {
            Self::Numbers | Self::Distances { .. } => 1 + columns,
            Self::Cells { cells, .. } => columns * cells,
        }
    }
}

impl<'a> Vectors<'a> {
    pub(in crate::learner::prepared) fn new(
        records: &'a Supervised<'a>,
        facts: &'a Facts,
        stage: Stage<'a>,
        dimension: usize,
    ) -> Self {
        Self { records, facts, stage, length: stage.length(facts.numbers.len()), dimension }
    }

    /// Writes the vector of a record. Returns whether it has several examples, which may be in the same cells.
    fn write_record(&self, record: usize, vector: &mut Sparse, example: &mut [f32]) -> bool {
        let examples = self.records.examples(record);
        for number in 0..examples {
            self.records.gather(record, number, example);
            self.write(example, 1.0 / examples as f64, vector);
        }
        examples > 1
    }

    /// Adds the vector of an example, times a weight.
    fn write(&self, example: &[f32], weight: f64, vector: &mut Sparse) {
        let columns = self.facts.numbers.len();
        let with_constant = weight / ((1 + columns) as f64).sqrt();
        let numbers = self.facts.numbers.iter().map(|feature| f64::from(example[*feature].clamp(-1.0, 1.0)));
        if !matches!(self.stage, Stage::Cells { .. }) {
            vector.add(0, with_constant);
        }
        for (column, x) in numbers.enumerate() {
            match self.stage {
                Stage::Numbers => vector.add(1 + column, with_constant * x),
                Stage::Distances { centres } => {
                    // `min` would take one for the distance of a number that is NaN.
                    vector.add(1 + column, with_constant * (x - centres[column]).abs().clamp(0.0, 1.0));
                }
                Stage::Cells { bounds, cells } => {
                    let cell = bounds[column].partition_point(|bound| *bound <= x);
                    vector.add(column * cells + cell, weight / (columns as f64).sqrt());
                }
            }
        }
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let buffer = || vec![0.0; self.facts.width];
        add_sparse(blocks, clipper, sum, self.length, buffer, |record, vector, example| {
            self.write_record(record, vector, example)
        });
    }
}

#[cfg(test)]
mod tests;
