//! Where the records lie: their mean, their usual distance from it, and their moments.
//!
//! Everything here is computed from releases, so it is public.

use super::{Facts, vectors::Stage};
use crate::learner::sums::{Moments, Spectrum};

/// The range in which the usual distance from the mean is sought, on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Distance {
    low: f64,
}

/// The largest distance of the range, relative to the smallest one.
const RANGE: f64 = 64.0;

impl Distance {
    fn new(facts: &Facts) -> Self {
        Self { low: 2.0 * facts.columns.sqrt() / RANGE }
    }

    /// The position of a distance in the range: a number in [-1, 1], or not a number.
    pub(super) fn position(self, distance: f64) -> f64 {
        2.0 * (distance.clamp(self.low, RANGE * self.low) / self.low).ln() / RANGE.ln() - 1.0
    }

    /// The distance at a position.
    fn at(self, position: f64) -> f64 {
        self.low * (0.5 * (position.clamp(-1.0, 1.0) + 1.0) * RANGE.ln()).exp()
    }
}

/// The estimates so far, and the runs that are left.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    facts: Facts,
    /// Number of runs, of which the last ones find moments.
    runs: u64,
    /// Number of runs that are over.
    done: u64,
    /// Whether the mean is measured once more if the records are spread widely.
    repeats_mean: bool,
    /// The radius of the moments, in usual distances.
    reach: f64,
    /// The sum of released sums of examples, and their number.
    means: (Vec<f64>, u64),
    /// The mean of all records.
    pub(super) centre: Vec<f64>,
    /// The usual distance of a record from the mean: a geometric mean.
    pub(super) distance: f64,
    /// Whether the records are so close together that a second look at the mean is worth its cost.
    is_narrow: bool,
    moments: Moments,
}

/// Records are close together if their usual distance is below this share of the largest length.
const NARROW: f64 = 0.45;
/// The radius within which deviations count in full, in usual distances.
pub(super) const WIDE: f64 = 1.5;

impl Survey {
    pub(super) fn new(facts: Facts, runs: u64, repeats_mean: bool, reach: f64) -> Self {
        Self {
            facts,
            runs,
            done: 0,
            repeats_mean,
            reach,
            means: (vec![0.0; facts.width], 0),
            centre: vec![0.0; facts.width],
            distance: facts.columns.sqrt(),
            is_narrow: false,
            moments: Moments::default(),
        }
    }

    /// What the next run sums; `None` if all runs are over.
    pub(super) fn stage(&self) -> Option<Stage<'_>> {
        let centre = &*self.centre;
        let range = Distance::new(&self.facts);
        Some(match (self.done, self.is_narrow) {
            (done, _) if done >= self.runs => return None,
            (0, _) => Stage::Mean { scale: self.scale() },
            (1, _) | (3, true) => Stage::Distance { centre, range },
            (2, true) => Stage::Shift { centre, radius: WIDE * self.distance },
            (2, false) if self.repeats_mean => Stage::Mean { scale: self.scale() },
            _ => Stage::Moments { centre, radius: self.reach * self.distance },
        })
    }

    /// The factor that makes an example at most one long.
    fn scale(&self) -> f64 {
        self.facts.columns.sqrt().recip()
    }

    /// Uses a release; `None` if it was lost.
    pub(super) fn apply(&mut self, released: Option<&[f64]>) {
        let Facts { columns, records, .. } = self.facts;
        if let Some(released) = released {
            match self.stage() {
                Some(Stage::Mean { scale }) => {
                    let (sum, count) = &mut self.means;
                    sum.iter_mut().zip(released).for_each(|(sum, x)| *sum += x / scale);
                    *count += 1;
                    let divisor = *count as f64 * records;
                    self.centre = sum.iter().map(|sum| (sum / divisor).clamp(-1.0, 1.0)).collect();
                }
                Some(Stage::Distance { range, .. }) => self.distance = range.at(released[0] / records),
                Some(Stage::Shift { radius, .. }) => {
                    // Both estimates, weighted by their precision.
                    let (first, second) = (self.means.1 as f64 / columns, radius.powi(-2));
                    for (centre, sum) in self.centre.iter_mut().zip(released) {
                        let shifted = *centre + radius / records * sum;
                        *centre = (first * *centre + second * shifted) / (first + second);
                        *centre = centre.clamp(-1.0, 1.0);
                    }
                }
                Some(Stage::Moments { .. }) => self.moments.add(released),
                _ => {}
            }
        }
        self.done += 1;
        if self.done == 2 {
            self.is_narrow = self.distance < NARROW * columns.sqrt() && self.runs > 4;
        }
    }

    /// The leading eigenvectors of the moments, at least `wanted` of them; all of them if they are few.
    ///
    /// Eigenvalues are sums of squares along the eigenvectors.
    pub(super) fn spectrum(&self, wanted: usize) -> Spectrum {
        let radius = self.reach * self.distance;
        self.moments.spectrum(self.facts.width, wanted, (self.facts.noise, radius * radius))
    }
}
