//! The contributions of records: one vector per record, which the learner measures, scales and sums.

use super::Clipper;

/// The vectors of all records, as a learner provides them to a mechanism.
///
/// The mechanism selects the records and the scale of each one, and never sees a vector.
///
/// # Contract
/// This contract is all that the proof assumes about learning code; [`laws`](crate::laws) checks it.
/// 1. The reported length is the length of the vector that is added at scale one, part by part, to a part in
///    2¹³. A larger length is safe, a smaller one is not.
/// 2. A record's vector and its lengths depend on that record alone. The other records of its block may
///    change their last digits, by a part in 2²⁰ of the length, and never whether they are finite.
/// 3. Scale zero adds nothing, even where the vector is not finite.
/// 4. Numbers are added in single precision only within a block, which may be cut further by position in it.
///    Each number of a sum of n terms has an error of at most n + 4 parts in 2²⁴ of the sum of their absolute
///    values, and of 2⁻¹⁴⁷ more for each term where numbers are too small for full precision, also where a
///    scaled factor is multiplied by a huge one. The sum of a block, or of a piece of it, depends on
///    that block alone. It is added to `sum` in double precision, in an order that follows from the blocks of
///    the call and the number of threads.
/// 5. A number means the same record in all batches of one run: with shuffling, each record is in one of
///    them.
pub trait Contributions {
    /// Length of the vectors.
    fn dimension(&self) -> usize;

    /// Adds the scaled vectors of all records of all blocks: `sum += Σ s · v(record)`.
    ///
    /// `clipper` computes the scales s from the squared lengths of the parts of v; it is asked once per
    /// record. A block has at most 96 records, in increasing order.
    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]);
}

/// Vectors stored as the rows of a matrix.
pub struct Vectors {
    dimension: usize,
    values: Vec<f32>,
}

impl Vectors {
    /// One row of `dimension` numbers per record; an incomplete last row is dropped.
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

/// Cuts a row into parts; a short row has short or empty last parts.
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

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let mut adder = Adder::new(self.dimension, clipper);
        adder.add(blocks, sum, |record, adder| adder.add_row(self.row(record)));
    }
}

/// Vectors that a function computes, one record at a time.
///
/// This is the simplest way to use your own model. The function gets the number of a record and a vector of
/// zeros to fill in. It must depend on that record alone.
///
/// ```
/// use quell_privacy::{laws, mechanism::PerRecord};
/// // Gradients of (w·x - y)²/2 at w = 1, for three records (x, y).
/// let data = [(1.0, 2.0), (3.0, -1.0), (0.5, 0.0)];
/// let mut gradients = PerRecord::new(1, |record: usize, out: &mut [f32]| {
///     let (x, y) = data[record];
///     out[0] = (x - y) * x;
/// });
/// assert_eq!(laws::check_contributions(&mut gradients, &[0, 1, 2]), Ok(()));
/// ```
pub struct PerRecord<F> {
    dimension: usize,
    vector: F,
}

impl<F: FnMut(usize, &mut [f32])> PerRecord<F> {
    /// Vectors of `dimension` numbers, written by `vector`.
    pub fn new(dimension: usize, vector: F) -> Self {
        Self { dimension, vector }
    }
}

impl<F: FnMut(usize, &mut [f32])> Contributions for PerRecord<F> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let mut row = vec![0.0; self.dimension];
        let mut adder = Adder::new(self.dimension, clipper);
        adder.add(blocks, sum, |record, adder| {
            row.fill(0.0);
            (self.vector)(record, &mut row);
            adder.add_row(&row);
        });
    }
}

/// Adds rows, scaled by the clipping, block by block.
struct Adder<'c> {
    clipper: &'c Clipper,
    squared: Vec<f64>,
    scales: Vec<f32>,
    total: Vec<f32>,
}

impl<'c> Adder<'c> {
    fn new(dimension: usize, clipper: &'c Clipper) -> Self {
        let parts = clipper.parts().len();
        Self { clipper, squared: vec![0.0; parts], scales: vec![0.0; parts], total: vec![0.0; dimension] }
    }

    /// Sums a block in single precision, and the blocks in double precision.
    fn add(&mut self, blocks: &[&[usize]], sum: &mut [f64], mut add_record: impl FnMut(usize, &mut Self)) {
        for block in blocks {
            self.total.fill(0.0);
            block.iter().for_each(|record| add_record(*record, self));
            for (sum, total) in sum.iter_mut().zip(&self.total) {
                *sum += f64::from(*total);
            }
        }
    }

    fn add_row(&mut self, row: &[f32]) {
        let parts = self.clipper.parts();
        for (square, part) in self.squared.iter_mut().zip(cut(row, parts)) {
            *square = part.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        }
        self.clipper.scales(&self.squared, &mut self.scales);
        let mut totals = self.total.iter_mut();
        for (&scale, part) in self.scales.iter().zip(cut(row, parts)) {
            for (total, x) in totals.by_ref().take(part.len()).zip(part) {
                // Zero times infinity is not zero.
                if scale != 0.0 {
                    *total += scale * x;
                }
            }
        }
    }
}
