//! One vector per record, held by someone who can measure and add them up.

use super::Clip;

/// What a learner gives to a mechanism: the mechanism names the records and says how much of each may be added, and never sees a vector.
///
/// # Contract
/// All that is left to trust in learning code; [`laws`](crate::laws) checks it.
/// 1. The length reported is the length of what is added at scale one, part by part, to a part in 2¹³. More than it is safe, less is not.
/// 2. A record's vector and its lengths depend on that record alone. Who else is in its block may change their last digits, by a part in 2²⁰ of
///    the length, and never whether they are finite.
/// 3. Scale zero adds nothing, even where the vector is not finite.
/// 4. Numbers are added in single precision only within a block, which may be cut further by position in it: each number of a sum of n terms errs by at
///    most n + 4 parts in 2²⁴ of the sum of their sizes, and by 2⁻¹⁴⁷ more for each term where numbers are too small for full precision: also where a scaled factor is
///    multiplied by a huge one. What a block or a piece of it comes to is added to `sum` in double precision, in any
///    order that threads happen to take, and follows from that block alone.
pub trait Contributions {
    /// Length of the vectors.
    fn dimension(&self) -> usize;

    /// `sum += Σ s · v(record)` over all records of all blocks, with the scales s that `clip` gives for the squared lengths of the parts of v,
    /// asked once per record. A block has at most 96 records, in increasing order.
    fn add_clipped(&mut self, blocks: &[&[usize]], clip: &Clip, sum: &mut [f64]);
}

/// Vectors that are simply there.
pub struct Vectors {
    dimension: usize,
    values: Vec<f32>,
}

impl Vectors {
    /// One row of `dimension` numbers per record; what is left over at the end is dropped.
    #[must_use]
    pub fn new(dimension: usize, values: Vec<f32>) -> Self {
        Self { dimension, values }
    }

    /// Number of rows.
    #[must_use]
    pub fn records(&self) -> usize {
        self.values.len().checked_div(self.dimension).unwrap_or(0)
    }

    fn row(&self, record: usize) -> &[f32] {
        self.values.get(record * self.dimension..(record + 1) * self.dimension).unwrap_or(&[])
    }
}

/// A row cut into parts; where it ends early the last ones are empty.
fn cut<'r>(row: &'r [f32], parts: &'r [usize]) -> impl Iterator<Item = &'r [f32]> {
    let mut rest = row;
    parts.iter().map(move |length| {
        let (part, after) = rest.split_at((*length).min(rest.len()));
        rest = after;
        part
    })
}

impl Contributions for Vectors {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clip: &Clip, sum: &mut [f64]) {
        let parts = clip.parts();
        let (mut squared, mut scales) = (vec![0.0; parts.len()], vec![0.0; parts.len()]);
        let mut total = vec![0.0_f32; self.dimension];
        for block in blocks {
            total.fill(0.0);
            for &record in *block {
                let row = self.row(record);
                for (square, part) in squared.iter_mut().zip(cut(row, parts)) {
                    *square = part.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
                }
                clip.scales(&squared, &mut scales);
                let mut totals = total.iter_mut();
                for (&scale, part) in scales.iter().zip(cut(row, parts)) {
                    for (total, x) in totals.by_ref().take(part.len()).zip(part) {
                        // Zero times infinity is no zero.
                        if scale != 0.0 {
                            *total += scale * x;
                        }
                    }
                }
            }
            for (sum, total) in sum.iter_mut().zip(&total) {
                *sum += f64::from(*total);
            }
        }
    }
}
