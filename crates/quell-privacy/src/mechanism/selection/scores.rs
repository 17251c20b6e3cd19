//! Total scores of candidates: utilities whose sensitivity is exact.

use crate::{
    Neighbors,
    mechanism::{Bounds, Sensitive},
};

/// The total score of each candidate, of which one record moves each by at most [`TotalScores::SENSITIVITY`].
///
/// They are utilities for a [`Selection`](super::Selection) with that sensitivity.
///
/// # Theorem
/// Each score is clamped to the bounds, and rounded to a whole number of parts; sums of whole numbers are exact. A
/// record that is added moves a total by its score, which is at most as long as the farther bound. A record that is
/// replaced moves it by the difference of two scores, which is at most the width of the bounds. Either is
/// `SENSITIVITY` parts. A score that is no number counts as 0 where records are added, and else as the lowest.
///
/// ```
/// use quell_privacy::{Neighbors, mechanism::{Bounds, TotalScores}};
/// let mut scores = TotalScores::new(2, Bounds::new(0.0, 1.0)?, Neighbors::AddRemove);
/// scores.add(&[0.25, 1.0]);
/// let _utilities = scores.utilities();
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub struct TotalScores {
    bounds: Bounds,
    neighbors: Neighbors,
    totals: Vec<i64>,
}

impl TotalScores {
    /// The most that one record moves a total.
    pub const SENSITIVITY: f64 = 1_048_576.0;

    /// Totals of so many candidates, without a record.
    #[must_use]
    pub fn new(candidates: usize, bounds: Bounds, neighbors: Neighbors) -> Self {
        Self { bounds, neighbors, totals: vec![0; candidates] }
    }

    /// Adds the scores of one record: one for each candidate.
    pub fn add(&mut self, scores: &[f64]) {
        let (lower, upper) = (self.bounds.lower(), self.bounds.upper());
        let (origin, unit) = match self.neighbors {
            Neighbors::AddRemove => (0.0, lower.abs().max(upper.abs())),
            Neighbors::Replace => (lower, upper - lower),
        };
        for (total, score) in self.totals.iter_mut().zip(scores) {
            let score = if score.is_nan() { origin } else { score.clamp(lower, upper) };
            let parts = (((score - origin) / unit).clamp(-1.0, 1.0) * Self::SENSITIVITY).floor() as i64;
            *total = total.saturating_add(parts);
        }
    }

    /// The totals, as utilities.
    #[must_use]
    pub fn utilities(self) -> Sensitive<Vec<f64>> {
        Sensitive::new(self.totals.into_iter().map(|total| total as f64).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The totals of some records.
    fn totals(rows: &[[f64; 2]], bounds: (f64, f64), neighbors: Neighbors) -> Vec<i64> {
        let mut scores = TotalScores::new(2, Bounds::new(bounds.0, bounds.1).unwrap(), neighbors);
        for row in rows {
            scores.add(row);
        }
        scores.totals
    }

    #[test]
    fn one_record_moves_no_total_by_more_than_the_sensitivity() {
        let hostile = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e308,
            -1e308,
            5e-324,
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.1,
            3.0,
            7.5,
            10.0,
        ];
        for bounds in
            [(0.0, 1.0), (-3.0, 1.0), (5.0, 10.0), (-1e150, 1e150), (1.0, 1.0 + f64::EPSILON), (-9.0, -8.0)]
        {
            for one in hostile {
                let others = [[0.3, -0.7], [one, 1e9]];
                let with = |row: [f64; 2], neighbors| totals(&[others[0], others[1], row], bounds, neighbors);
                let without = totals(&others, bounds, Neighbors::AddRemove);
                for (more, less) in with([one, -one], Neighbors::AddRemove).iter().zip(&without) {
                    assert!(
                        (more - less).unsigned_abs() <= TotalScores::SENSITIVITY as u64,
                        "{bounds:?} {one}"
                    );
                }
                for other in hostile {
                    let (a, b) = (with([one; 2], Neighbors::Replace), with([other; 2], Neighbors::Replace));
                    let moved = a.iter().zip(&b).map(|(a, b)| (a - b).unsigned_abs()).max();
                    assert!(moved <= Some(TotalScores::SENSITIVITY as u64), "{bounds:?} {one} {other}");
                }
            }
        }
    }

    #[test]
    fn a_score_that_is_no_number_adds_nothing_where_records_are_added() {
        let some = [[0.5, 0.5]];
        let more = [some[0], [f64::NAN, f64::NAN]];
        assert_eq!(
            totals(&some, (0.2, 1.0), Neighbors::AddRemove),
            totals(&more, (0.2, 1.0), Neighbors::AddRemove)
        );
    }
}
