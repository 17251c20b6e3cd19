//! One vector per record, held by someone who can measure and add them up.

/// What a learner gives to a mechanism: the mechanism asks, and never sees a vector.
///
/// # Contract
/// All that is left to trust in learning code; [`laws`](crate::laws) checks it.
/// 1. The length reported is the length of the vector added, to a part in 2¹³.
/// 2. A record's vector depends on that record alone, whoever else is measured or added with it.
/// 3. Scale zero adds nothing, even where the vector is not finite.
///
/// Sums may be in single precision, in any order: each number of a sum of n terms errs by at most n + 2 parts in 2²⁴ of the sum of their sizes.
pub trait Contributions {
    /// Length of the vectors.
    fn dimension(&self) -> usize;

    /// `squared[k] = ‖v‖²` for `records[k]`.
    fn squared_norms(&mut self, records: &[usize], squared: &mut [f64]);

    /// `sum += Σₖ scales[k] v(records[k])`, for the records just measured; `sum` comes as zeros.
    fn add_scaled(&mut self, records: &[usize], scales: &[f32], sum: &mut [f32]);
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

    #[cfg(test)]
    pub(crate) fn row_for_tests(&self, record: usize) -> &[f32] {
        self.row(record)
    }

    fn row(&self, record: usize) -> &[f32] {
        self.values.get(record * self.dimension..(record + 1) * self.dimension).unwrap_or(&[])
    }
}

impl Contributions for Vectors {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn squared_norms(&mut self, records: &[usize], squared: &mut [f64]) {
        for (square, &record) in squared.iter_mut().zip(records) {
            *square = self.row(record).iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        }
    }

    fn add_scaled(&mut self, records: &[usize], scales: &[f32], sum: &mut [f32]) {
        for (&record, &scale) in records.iter().zip(scales).filter(|(_, scale)| **scale != 0.0) {
            for (total, x) in sum.iter_mut().zip(self.row(record)) {
                *total += scale * x;
            }
        }
    }
}
