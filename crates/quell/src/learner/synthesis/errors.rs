//! Estimates of how far the pairs of columns of a model are from those of the records.

use serde::Serialize;

/// The estimated error of the model on one pair of columns, in coarse groups.
///
/// It comes from a release that the model was not fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairError {
    /// The columns.
    pub columns: (usize, usize),
    /// Whether the model was fitted to counts of this pair.
    pub was_measured: bool,
    /// Number of cells.
    pub cells: usize,
    /// Sum of squared errors of the cells, in shares of the records: unbiased, and negative at times.
    pub squared: f64,
    /// Variance of the noise in the share of each cell.
    pub variance: f64,
}

/// The error of several pairs together: the root of the mean squared error of a cell.
///
/// All numbers are shares of the records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ErrorSummary {
    /// Number of pairs.
    pub pairs: usize,
    /// The estimate.
    pub error: f64,
    /// The least error within two standard deviations of the noise.
    pub lower: f64,
    /// The largest error within two standard deviations of the noise.
    pub upper: f64,
}

impl ErrorSummary {
    /// Sums up the errors of some pairs; `None` if there are none.
    #[must_use]
    pub fn of<'a>(errors: impl Iterator<Item = &'a PairError>) -> Option<Self> {
        let (mut pairs, mut cells, mut squared, mut variance) = (0, 0.0, 0.0, 0.0);
        for error in errors {
            let own = error.cells as f64;
            (pairs, cells, squared) = (pairs + 1, cells + own, squared + error.squared);
            // Var Σ (e + σx)² = Σ 2σ⁴ + 4σ²e², for standard normal x.
            variance += 2.0 * own * error.variance.powi(2) + 4.0 * error.variance * error.squared.max(0.0);
        }
        // No cell is wrong by more than all records.
        let root = |square: f64| (square.max(0.0) / cells).sqrt().min(1.0);
        let two = 2.0 * f64::sqrt(variance);
        (pairs > 0).then(|| Self {
            pairs,
            error: root(squared),
            lower: root(squared - two),
            upper: root(squared + two),
        })
    }

    /// Describes the errors of some pairs in words.
    #[must_use]
    pub fn describe(&self, which: &str) -> String {
        let percent = |share: f64| format!("{:.2}", 100.0 * share);
        let pairs = if self.pairs == 1 { "pair" } else { "pairs" };
        let error = if self.lower > 0.0 {
            let [lower, upper] = [self.lower, self.upper].map(percent);
            format!("{} % of the records in a cell (noise allows {lower} to {upper})", percent(self.error))
        } else {
            format!("at most {} % of the records in a cell; noise hides the rest", percent(self.upper))
        };
        format!("error of {} {pairs} of columns {which}: {error}", self.pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::PublicRandom;

    /// The estimate is unbiased, and the interval holds the truth in about 95 % of all cases.
    #[test]
    fn the_interval_holds_the_truth() {
        let mut random = PublicRandom::new(9);
        for truth in [0.0, 0.01, 0.05] {
            let noise = 0.02;
            let (mut held, mut sum) = (0, 0.0);
            for _ in 0..500 {
                let errors: Vec<PairError> = (0..10)
                    .map(|b| {
                        let cell = |_| (truth + noise * f64::from(random.normal())).powi(2);
                        let squared = (0..16).map(cell).sum::<f64>() - 16.0 * noise * noise;
                        let columns = (0, b);
                        PairError {
                            columns,
                            was_measured: false,
                            cells: 16,
                            squared,
                            variance: noise * noise,
                        }
                    })
                    .collect();
                let summary = ErrorSummary::of(errors.iter()).unwrap();
                held += usize::from((summary.lower..=summary.upper).contains(&truth));
                sum += errors.iter().map(|error| error.squared).sum::<f64>() / 160.0;
            }
            assert!(held > 450, "{truth}: {held}");
            assert!((sum / 500.0 - truth * truth).abs() < 1e-5, "{truth}: {}", sum / 500.0);
        }
        assert_eq!(ErrorSummary::of([].iter()), None);
    }
}
