//! The vector of each record in each run, of length at most one.
//!
//! An example is in one node, and in one cell of each column. Its vector has one number for its class in each of
//! these cells, or two for a numeric target, which together have length one (THEORY, Trees). The mechanism clips
//! in any case, so privacy does not depend on it.

use quell_privacy::mechanism::{Clipper, Contributions};

use super::{
    cells::Cells,
    growth::{Growth, cell_scale, leaf_scale},
};
use crate::{
    learner::{
        Supervised,
        loss::Target,
        sums::{Sparse, add_sparse},
    },
    network::Task,
};

/// What one run of the mechanism sums: histograms of all columns, or the values of the leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage<'a> {
    pub(super) growth: &'a Growth,
    pub(super) cells: &'a Cells,
    pub(super) is_leaves: bool,
}

/// The vectors of all records in one run.
///
/// A record with several examples has the mean of their vectors.
pub struct Vectors<'a> {
    records: &'a Supervised<'a>,
    stage: Stage<'a>,
    /// Numbers of a vector in this run.
    length: usize,
    /// Numbers of a release of the mechanism, at least as many.
    dimension: usize,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(
        records: &'a Supervised<'a>,
        stage: Stage<'a>,
        length: usize,
        dimension: usize,
    ) -> Self {
        Self { records, stage, length, dimension }
    }

    /// Writes the vector of a record. Returns whether it has several examples, which may be in the same cells.
    fn write_record(&self, record: usize, vector: &mut Sparse, example: &mut [f32]) -> bool {
        let examples = self.records.examples(record);
        for number in 0..examples {
            self.records.gather(record, number, example);
            self.write(example, self.records.target_of(record, number), 1.0 / examples as f64, vector);
        }
        examples > 1
    }

    /// Adds the vector of an example, times a weight.
    fn write(&self, example: &[f32], target: Target, weight: f64, vector: &mut Sparse) {
        let Stage { growth, cells, is_leaves } = self.stage;
        let Some(node) = growth.place(example) else { return };
        let values = cells.values();
        let mut add = |cell: usize, scale: f64| match target {
            Target::Class(class) if (class as usize) < values => {
                vector.add(cell * values + class as usize, scale);
            }
            Target::Number(number) if cells.classes().is_none() => {
                vector.add(cell * values, scale);
                vector.add(cell * values + 1, scale * f64::from(number));
            }
            Target::Class(_) | Target::Number(_) => {}
        };
        if is_leaves {
            add(node, weight * leaf_scale(cells));
        } else {
            let scale = weight * cell_scale(cells);
            cells.find(example, |cell| add(node * cells.count() + cell, scale));
        }
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let buffer = || vec![0.0; self.stage.cells.width()];
        add_sparse(blocks, clipper, sum, self.length, buffer, |record, vector, example| {
            self.write_record(record, vector, example)
        });
    }
}

#[cfg(test)]
mod tests;
