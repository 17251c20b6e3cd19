//! Centres and spreads of all columns of numbers.

use super::{Facts, Stage};
use crate::learner::{
    glm::{NORMAL, SPREADS, shrink},
    prepared::PiecewiseLinear,
};

/// Standardised numbers are clamped to this many spreads.
const LIMIT: f64 = 4.0;

/// The mean of every column, and the mean distance from it.
#[derive(Clone, Debug)]
pub(in crate::learner::prepared) struct Standard {
    pub(in crate::learner::prepared) facts: Facts,
    done: u64,
    centres: Vec<f64>,
    spreads: Vec<f64>,
}

impl Standard {
    /// Number of runs: means, then mean distances from them.
    pub(in crate::learner::prepared) const RUNS: u64 = 2;

    pub(in crate::learner::prepared) fn new(facts: Facts) -> Self {
        let columns = facts.numbers.len();
        Self { facts, done: 0, centres: vec![0.0; columns], spreads: vec![1.0; columns] }
    }

    /// Numbers of a release: a constant, and one number for each column.
    pub(in crate::learner::prepared) fn dimension(columns: usize) -> usize {
        1 + columns
    }

    /// What the next run sums; `None` if all runs are over.
    pub(in crate::learner::prepared) fn stage(&self) -> Option<Stage<'_>> {
        match self.done {
            0 => Some(Stage::Numbers),
            1 => Some(Stage::Distances { centres: &self.centres }),
            _ => None,
        }
    }

    /// Uses a release; `None` if it was lost.
    pub(in crate::learner::prepared) fn apply(&mut self, released: Option<&[f64]>) {
        if let Some([count, sums @ ..]) = released {
            // The constant counts the records, so that a rough public number of them does no harm. With few
            // records it is mostly noise.
            let scale = ((1 + sums.len()) as f64).sqrt();
            let count = (scale * count).max(0.5 * self.facts.records);
            let noise = scale * self.facts.noise / count;
            let mut means: Vec<f64> = sums.iter().map(|sum| scale * sum / count).collect();
            shrink(&mut means.iter_mut().collect::<Vec<_>>(), noise);
            if self.done == 0 {
                self.centres = means.iter().map(|mean| mean.clamp(-1.0, 1.0)).collect();
            } else {
                // A spread that noise alone could explain is raised to three times the noise, but to no more
                // than half the range.
                let floor = (3.0 * noise).min(0.5);
                let spread = |mean: &f64| (NORMAL * mean).max(floor).clamp(SPREADS[0], SPREADS[1]);
                self.spreads = means.iter().map(spread).collect();
            }
        }
        self.done += 1;
    }

    /// A line for each column, which ends at the declared bounds or at the limit.
    pub(in crate::learner::prepared) fn lines(&self) -> PiecewiseLinear {
        self.facts.lines(2, |column| {
            let (centre, spread) = (self.centres[column], self.spreads[column]);
            let ends = [(centre - LIMIT * spread).max(-1.0), (centre + LIMIT * spread).min(1.0)];
            ends.map(|end| (end, (end - centre) / spread)).to_vec()
        })
    }
}
