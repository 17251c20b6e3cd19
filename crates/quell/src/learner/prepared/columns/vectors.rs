//! The vector of each record in each run, of length at most one.
//!
//! Every column of numbers has one entry, of size at most one before all are divided by the square root of their
//! number (THEORY, Networks on prepared records). The mechanism clips in any case, so privacy does not depend
//! on it.

use quell_privacy::mechanism::{Clipper, Contributions};

use super::Facts;
use crate::{
    kernel::numbers::add_wide,
    learner::{Supervised, blocks::add_blocks},
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

impl Stage<'_> {
    /// Number of numbers in the vector of an example with so many columns of numbers.
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

    /// Adds the clipped vector of a record to the sum of its block.
    fn add_record(&self, record: usize, clipper: &Clipper, buffers: &mut Buffers) {
        let Buffers { raw, entries, block, .. } = buffers;
        entries.clear();
        let examples = self.records.examples(record);
        for number in 0..examples {
            self.records.gather(record, number, raw);
            self.write(raw, 1.0 / examples as f32, entries);
        }
        // Examples of one record may have entries at the same places.
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
    fn write(&self, example: &[f32], share: f32, entries: &mut Vec<(usize, f32)>) {
        let columns = self.facts.numbers.len();
        let numbers = self.facts.numbers.iter().map(|feature| example[*feature].clamp(-1.0, 1.0)).enumerate();
        let with_constant = share / ((1 + columns) as f32).sqrt();
        match self.stage {
            Stage::Numbers => {
                entries.push((0, with_constant));
                entries.extend(numbers.map(|(column, x)| (1 + column, with_constant * x)));
            }
            Stage::Distances { centres } => {
                entries.push((0, with_constant));
                entries.extend(numbers.map(|(column, x)| {
                    // `min` would take one for the distance of a number that is NaN.
                    let distance = (x - centres[column] as f32).abs().clamp(0.0, 1.0);
                    (1 + column, with_constant * distance)
                }));
            }
            Stage::Cells { bounds, cells } => {
                let length = share / (columns as f32).sqrt();
                entries.extend(numbers.map(|(column, x)| {
                    let cell = bounds[column].partition_point(|bound| *bound <= f64::from(x));
                    (column * cells + cell, length)
                }));
            }
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
                raw: vec![0.0; self.facts.width],
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
