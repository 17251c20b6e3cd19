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
    kernel::numbers::add_wide,
    learner::{Supervised, blocks::add_blocks, loss::Target},
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

/// The buffers of one thread.
struct Buffers {
    raw: Vec<f32>,
    /// The vector of a record: places in increasing order, each once, and their numbers.
    entries: Vec<(usize, f32)>,
    /// The sum of a block, in single precision.
    block: Vec<f32>,
    /// The sum of all blocks, in double precision.
    total: Vec<f64>,
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

    /// Adds the clipped vector of a record to the sum of its block.
    fn add_record(&self, record: usize, clipper: &Clipper, buffers: &mut Buffers) {
        let Buffers { raw, entries, block, .. } = buffers;
        entries.clear();
        let examples = self.records.examples(record);
        for number in 0..examples {
            self.records.gather(record, number, raw);
            self.write(raw, self.records.target_of(record, number), 1.0 / examples as f32, entries);
        }
        // Examples of one record may be in the same cells.
        entries.sort_by_key(|(place, _)| *place);
        entries.dedup_by(|other, first| {
            let is_same = other.0 == first.0;
            if is_same {
                first.1 += other.1;
            }
            is_same
        });
        let squared: f64 = entries.iter().map(|(_, x)| f64::from(*x) * f64::from(*x)).sum();
        let mut scale = [0.0];
        clipper.scales(&[squared], &mut scale);
        // Zero times a number that is not finite is not zero.
        if scale[0] != 0.0 {
            for (place, x) in entries.iter() {
                block[*place] += scale[0] * x;
            }
        }
    }

    /// Appends the vector of an example, times its share of the record.
    fn write(&self, example: &[f32], target: Target, share: f32, entries: &mut Vec<(usize, f32)>) {
        let Stage { growth, cells, is_leaves } = self.stage;
        let Some(node) = growth.place(example) else { return };
        let values = cells.values();
        let mut push = |cell: usize, scale: f32| match target {
            Target::Class(class) if (class as usize) < values => {
                entries.push((cell * values + class as usize, scale));
            }
            Target::Number(number) if cells.classes().is_none() => {
                entries.extend([(cell * values, scale), (cell * values + 1, scale * number)]);
            }
            Target::Class(_) | Target::Number(_) => {}
        };
        if is_leaves {
            push(node, share * leaf_scale(cells) as f32);
        } else {
            let scale = share * cell_scale(cells) as f32;
            cells.find(example, |cell| push(node * cells.count() + cell, scale));
        }
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        add_blocks(blocks, sum, |blocks| {
            let mut buffers = Buffers {
                raw: vec![0.0; self.stage.cells.width()],
                entries: Vec::new(),
                block: vec![0.0; self.length],
                total: vec![0.0; self.length],
            };
            for block in blocks {
                buffers.block.fill(0.0);
                for record in *block {
                    self.add_record(*record, clipper, &mut buffers);
                }
                add_wide(&mut buffers.total, &buffers.block);
            }
            buffers.total
        });
    }
}

#[cfg(test)]
mod tests;
