//! What is found about single columns of numbers: centres and spreads, or quantiles.
//!
//! Each run sums one vector for each record, with an entry for each column. What a run sums depends on earlier
//! releases alone. Everything here but [`Vectors`] is computed from releases, so it is public.

mod quantiles;
mod standard;
mod vectors;

pub(super) use quantiles::Quantiles;
pub(super) use standard::Standard;
pub(super) use vectors::{Stage, Vectors};

use super::PiecewiseLinear;

/// Public numbers that estimates of columns are made with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// Number of features, numbers and indicators alike.
    pub(super) width: usize,
    /// The features that are numbers.
    pub(super) numbers: Vec<usize>,
    /// The public number of records.
    pub(super) records: f64,
    /// Standard deviation of the noise in each number of a release.
    pub(super) noise: f64,
}

impl Facts {
    /// The lines of all features, from the knots of the numbers. Indicators stay as they are.
    fn lines(&self, knots: usize, of_column: impl Fn(usize) -> Vec<(f64, f64)>) -> PiecewiseLinear {
        let even = |knot: usize| 2.0 * knot as f64 / (knots - 1) as f64 - 1.0;
        let mut points = vec![(0..knots).map(|knot| (even(knot), even(knot))).collect(); self.width];
        for (column, feature) in self.numbers.iter().enumerate() {
            points[*feature] = of_column(column);
        }
        let single = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect();
        let (inputs, outputs): (Vec<f64>, Vec<f64>) = points.into_iter().flatten().unzip();
        PiecewiseLinear { knots, inputs: single(inputs), outputs: single(outputs) }
    }
}
