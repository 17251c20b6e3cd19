//! The vector of each record in each run, of length at most one.
//!
//! Why no vector is longer is in THEORY, Clusters and components. The mechanism clips in any case, so privacy
//! does not depend on it.

use quell_privacy::mechanism::{Clipper, Contributions};

use super::{lloyd::Lloyd, survey::Distance, tree::Tree};
use crate::{
    kernel::{
        fast,
        numbers::{add_scaled, add_wide, squared_length},
    },
    learner::{Supervised, blocks::add_blocks},
    network::Task,
};

/// What one run of the mechanism sums.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage<'a> {
    /// The examples themselves, times `scale`.
    Mean { scale: f64 },
    /// The logarithm of the distance from the centre.
    Distance { centre: &'a [f64], range: Distance },
    /// The deviation from the centre, in parts of the radius.
    Shift { centre: &'a [f64], radius: f64 },
    /// The products of all pairs of deviations, in parts of the radius.
    Moments { centre: &'a [f64], radius: f64 },
    /// Count, deviation and squared deviation in the leaf of the example.
    Leaves { centre: &'a [f64], tree: &'a Tree },
    /// Count and deviation in the cluster of the example.
    Clusters { centre: &'a [f64], lloyd: &'a Lloyd },
}

impl Stage<'_> {
    /// Number of numbers in the vector of an example of `width` features.
    pub(super) fn length(&self, width: usize) -> usize {
        match self {
            Self::Mean { .. } | Self::Shift { .. } => width,
            Self::Distance { .. } => 1,
            Self::Moments { .. } => width * (width + 1) / 2,
            Self::Leaves { tree, .. } => tree.leaves() * (1 + 2 * width),
            Self::Clusters { lloyd, .. } => lloyd.clusters() * (1 + lloyd.dimension()),
        }
    }
}

/// The vectors of all records in one run.
///
/// A record with several examples has the mean of their vectors.
pub struct Vectors<'a> {
    records: &'a Supervised<'a>,
    stage: Stage<'a>,
    width: usize,
    /// Numbers of a vector in this stage.
    length: usize,
    /// Numbers of a release of the mechanism, at least as many.
    dimension: usize,
}

/// The buffers of one thread.
pub(super) struct Buffers {
    raw: Vec<f32>,
    /// The deviation from the centre.
    pub(super) deviation: Vec<f64>,
    /// Coordinates in which clusters are sought.
    pub(super) point: Vec<f64>,
    /// The vector of an example: the numbers of all pieces, one piece after the other.
    pub(super) values: Vec<f32>,
    /// The place and the length of each piece. All other numbers of the vector are zero.
    pub(super) pieces: Vec<(usize, usize)>,
    /// The vector of a record with several examples.
    own: Vec<f32>,
    /// The sum of a block, in single precision.
    block: Vec<f32>,
    /// The sum of all blocks, in double precision.
    total: Vec<f64>,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(records: &'a Supervised<'a>, stage: Stage<'a>, width: usize, dimension: usize) -> Self {
        Self { records, stage, width, length: stage.length(width), dimension }
    }

    fn buffers(&self) -> Buffers {
        Buffers {
            raw: vec![0.0; self.width],
            deviation: vec![0.0; self.width],
            point: Vec::new(),
            values: Vec::new(),
            pieces: Vec::new(),
            own: vec![0.0; if self.records.is_grouped() { self.length } else { 0 }],
            block: vec![0.0; self.length],
            total: vec![0.0; self.length],
        }
    }

    /// Adds the clipped vectors of a block to the total of a thread.
    fn add_block(&self, block: &[usize], clipper: &Clipper, buffers: &mut Buffers) {
        buffers.block.fill(0.0);
        fast(
            #[inline(always)]
            || {
                for record in block {
                    self.add_record(*record, clipper, buffers);
                }
            },
        );
        add_wide(&mut buffers.total, &buffers.block);
    }

    /// Adds the clipped vector of a record to the sum of its block.
    #[inline(always)]
    fn add_record(&self, record: usize, clipper: &Clipper, buffers: &mut Buffers) {
        let mut scale = [0.0];
        let examples = self.records.examples(record);
        if self.records.is_grouped() {
            buffers.own.fill(0.0);
            for number in 0..examples {
                self.write(record, number, buffers);
                let Buffers { values, pieces, own, .. } = buffers;
                add_pieces(own, 1.0 / examples as f32, values, pieces);
            }
            clipper.scales(&[squared_length(&buffers.own)], &mut scale);
            // Zero times a number that is not finite is not zero.
            if scale[0] != 0.0 {
                add_scaled(&mut buffers.block, scale[0], &buffers.own);
            }
        } else if examples == 0 {
            clipper.scales(&[0.0], &mut scale);
        } else {
            self.write(record, 0, buffers);
            let Buffers { values, pieces, block, .. } = buffers;
            clipper.scales(&[squared_length(values)], &mut scale);
            if scale[0] != 0.0 {
                add_pieces(block, scale[0], values, pieces);
            }
        }
    }

    /// Writes the vector of an example.
    #[inline(always)]
    fn write(&self, record: usize, number: usize, buffers: &mut Buffers) {
        self.records.gather(record, number, &mut buffers.raw);
        buffers.values.clear();
        buffers.pieces.clear();
        match self.stage {
            Stage::Mean { scale } => {
                buffers.values.extend(buffers.raw.iter().map(|x| (scale * f64::from(*x)) as f32));
            }
            Stage::Distance { centre, range } => {
                let squared = deviate(buffers, centre);
                buffers.values.push(range.position(squared.sqrt()) as f32);
            }
            Stage::Shift { centre, radius } => {
                let factor = shortened(deviate(buffers, centre), radius);
                let Buffers { deviation, values, .. } = buffers;
                values.extend(deviation.iter().map(|y| (factor * y) as f32));
            }
            Stage::Moments { centre, radius } => {
                let factor = shortened(deviate(buffers, centre), radius);
                let Buffers { deviation, values, .. } = buffers;
                for y in &mut *deviation {
                    *y *= factor;
                }
                for (place, y) in deviation.iter().enumerate() {
                    values.push((y * y) as f32);
                    let twice = std::f64::consts::SQRT_2 * y;
                    values.extend(deviation[place + 1..].iter().map(|other| (twice * other) as f32));
                }
            }
            Stage::Leaves { centre, tree } => {
                deviate(buffers, centre);
                tree.write(buffers);
            }
            Stage::Clusters { centre, lloyd } => {
                deviate(buffers, centre);
                lloyd.write(buffers);
            }
        }
        if buffers.pieces.is_empty() {
            buffers.pieces.push((0, buffers.values.len()));
        }
    }
}

/// Writes the deviation of an example from a centre, and returns its squared length.
#[inline(always)]
fn deviate(buffers: &mut Buffers, centre: &[f64]) -> f64 {
    let Buffers { raw, deviation, .. } = buffers;
    let mut squared = 0.0;
    for ((to, x), centre) in deviation.iter_mut().zip(raw).zip(centre) {
        *to = f64::from(*x) - centre;
        squared += *to * *to;
    }
    squared
}

/// The factor that makes a vector a part of the radius, at most one long.
///
/// It is not a number where the length is not.
#[inline(always)]
pub(super) fn shortened(squared_length: f64, radius: f64) -> f64 {
    let length = squared_length.sqrt();
    if length > radius { length.recip() } else { radius.recip() + 0.0 * length }
}

/// Adds the scaled pieces of a vector to a sum.
#[inline(always)]
fn add_pieces(sum: &mut [f32], scale: f32, mut values: &[f32], pieces: &[(usize, usize)]) {
    for (place, length) in pieces {
        let (piece, rest) = values.split_at(*length);
        add_scaled(&mut sum[*place..][..*length], scale, piece);
        values = rest;
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        add_blocks(blocks, sum, |blocks| {
            let mut buffers = self.buffers();
            for block in blocks {
                self.add_block(block, clipper, &mut buffers);
            }
            buffers.total
        });
    }
}

#[cfg(test)]
mod tests;
