//! Which question divides the records of a node best, judged by noisy histograms.
//!
//! Let L be the records for which the answer is yes, of N in all, and let D be the vector of deviations: for
//! each class, its records in L less its share of N times L; for numbers, the sum of the target in L less L
//! times its mean. The gain is |D|² (1/L + 1/(N - L)): the decrease of the Gini impurity, or of the squared
//! error. Noise of variance v in each number adds its own variance to |D|², which is subtracted.

use super::cells::{Cells, Question};

/// The noisy histograms of one node: the values of cell after cell, with their noise.
pub(super) struct Histograms<'a> {
    pub(super) cells: &'a Cells,
    /// For each cell, the records of each class, or their number and the sum of their targets.
    pub(super) counts: &'a [f64],
    /// Standard deviation of the noise in each of them.
    pub(super) noise: f64,
}

/// How far |D|² must be above its mean under noise alone, in standard deviations.
///
/// A larger number refuses more splits that are good (docs/evidence.md). A split by noise alone does little harm:
/// its leaves get about the same values.
const SURE: f64 = 4.0;

impl Histograms<'_> {
    /// The question with the largest gain that noise does not explain; `None` if there is none.
    ///
    /// `path` holds the questions above the node, with their answers. Ties are resolved by the order of the
    /// candidates.
    pub(super) fn best(&self, path: &[(Question, bool)]) -> Option<Question> {
        let totals = self.totals();
        let mut best: Option<(f64, Question)> = None;
        for candidate in self.cells.candidates().filter(|one| self.cells.is_open(one.question, path)) {
            // Counts of yes come from the cells of yes, or from those of no, whichever are fewer.
            let (yes, all) = (candidate.cells.len(), candidate.column.len());
            let is_fewer = 2 * yes <= all;
            let (cells, column) = (&candidate.cells, &candidate.column);
            let counted = if is_fewer {
                [cells.clone(), 0..0]
            } else {
                [column.start..cells.start, cells.end..column.end]
            };
            let mut part = vec![0.0; totals.len()];
            for cell in counted.into_iter().flatten() {
                part.iter_mut().zip(self.cell(cell)).for_each(|(part, count)| *part += count);
            }
            if !is_fewer {
                part.iter_mut().zip(&totals).for_each(|(part, total)| *part = total - *part);
            }
            let variance = self.noise * self.noise * if is_fewer { yes } else { all - yes } as f64;
            let gain = self.gain(&part, &totals, variance);
            if gain.is_some_and(|gain| best.is_none_or(|(most, _)| gain > most)) {
                best = gain.map(|gain| (gain, candidate.question));
            }
        }
        best.map(|(_, question)| question)
    }

    fn cell(&self, cell: usize) -> &[f64] {
        let values = self.cells.values();
        &self.counts[cell * values..][..values]
    }

    /// The values of all records of the node: each column has its own estimate, and this is their mean.
    fn totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.cells.values()];
        for cell in self.cells.ranges().flatten() {
            totals.iter_mut().zip(self.cell(cell)).for_each(|(total, count)| *total += count);
        }
        let columns = self.cells.columns() as f64;
        for total in &mut totals {
            *total /= columns;
        }
        totals
    }

    /// The gain of a question, corrected for noise; `None` where noise could explain it.
    fn gain(&self, part: &[f64], totals: &[f64], variance: f64) -> Option<f64> {
        let (records, yes, squares, expected, spread) = if self.cells.classes().is_some() {
            let (records, yes) = (totals.iter().sum::<f64>().max(1.0), part.iter().sum::<f64>());
            let classes = totals.len() as f64;
            let shares: Vec<f64> = totals.iter().map(|total| (total / records).clamp(0.0, 1.0)).collect();
            let squares: f64 =
                part.iter().zip(&shares).map(|(part, share)| (part - share * yes).powi(2)).sum();
            // The noise in a deviation is e_k - p_k Σ e_j, of variance v (1 - 2 p_k + K p_k²).
            let lengths: f64 = shares.iter().map(|share| share * share).sum();
            let expected = variance * (classes - 2.0 + classes * lengths);
            (records, yes, squares, expected, variance * (2.0 * (classes - 1.0)).sqrt())
        } else {
            let (records, yes) = (totals[0].max(1.0), part[0]);
            let mean = (totals[1] / records).clamp(-1.0, 1.0);
            let expected = variance * (1.0 + mean * mean);
            let squares = (part[1] - mean * yes).powi(2);
            (records, yes, squares, expected, expected * std::f64::consts::SQRT_2)
        };
        let no = records - yes;
        let least = 2.0 * (variance * self.cells.classes().unwrap_or(1) as f64).sqrt().max(0.5);
        let is_sure = yes > least && no > least && squares - expected > SURE * spread;
        is_sure.then(|| (squares - expected) * (1.0 / yes + 1.0 / no))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without noise, the gain is the decrease of the Gini impurity, times the number of records.
    #[test]
    fn gains_are_decreases_of_impurity() {
        let cells = Cells::new(None, 1, Some(3));
        let histograms = Histograms { cells: &cells, counts: &[], noise: 0.0 };
        let (part, rest): ([f64; 3], [f64; 3]) = ([10.0, 2.0, 0.0], [3.0, 5.0, 20.0]);
        let totals: Vec<f64> = part.iter().zip(rest).map(|(a, b)| a + b).collect();
        let impurity = |counts: &[f64]| {
            let all: f64 = counts.iter().sum();
            all - counts.iter().map(|count| count * count).sum::<f64>() / all
        };
        let decrease = impurity(&totals) - impurity(&part) - impurity(&rest);
        assert!((histograms.gain(&part, &totals, 0.0).unwrap() - decrease).abs() < 1e-9);
        // The same for squared errors: count and sum.
        let cells = Cells::new(None, 1, None);
        let histograms = Histograms { cells: &cells, counts: &[], noise: 0.0 };
        let error = |[count, sum]: [f64; 2]| -sum * sum / count;
        let decrease = error([40.0, 8.0]) - error([10.0, 7.0]) - error([30.0, 1.0]);
        assert!((histograms.gain(&[10.0, 7.0], &[40.0, 8.0], 0.0).unwrap() - decrease).abs() < 1e-9);
    }

    /// Where the classes are the same in all cells, the best of 120 candidates is refused every other time.
    #[test]
    fn noise_alone_is_often_refused() {
        let cells = Cells::new(None, 8, Some(2));
        let mut chance = crate::random::PublicRandom::of(2, 3);
        let mut splits = 0;
        for _ in 0..200 {
            let noisy = |_| 100.0 + 20.0 * f64::from(chance.normal());
            let counts: Vec<f64> = (0..2 * cells.count()).map(noisy).collect();
            splits +=
                u32::from(Histograms { cells: &cells, counts: &counts, noise: 20.0 }.best(&[]).is_some());
        }
        // Six standard deviations above half of them.
        assert!(splits < 142, "{splits}");
        // A column that separates the classes is found.
        let mut counts = [75.0, 125.0].repeat(cells.count());
        for cell in 0..16 {
            (counts[2 * cell], counts[2 * cell + 1]) = if cell < 6 { (200.0, 0.0) } else { (0.0, 200.0) };
        }
        let found = Histograms { cells: &cells, counts: &counts, noise: 20.0 }.best(&[]).unwrap();
        assert_eq!((found.feature, found.threshold), (0, -0.25));
    }
}
