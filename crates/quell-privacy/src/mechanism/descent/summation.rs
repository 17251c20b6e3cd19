//! The sum of a batch of clipped vectors, plus Gaussian noise.

use std::cell::Cell;

use super::{
    Clipper, Clipping, Contributions,
    clipping::count_error,
    sampling::{Drawn, pieces},
};
use crate::{
    Error, Event,
    mechanism::{Noise, grid::Grid},
    noise::{
        random::Key,
        rounded::{self, DISTANCE, GRID},
    },
    units::{ClipNorm, NoiseMultiplier},
};

/// The releases of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The noisy sum of the clipped vectors.
    ///
    /// It is not divided by the batch size, which is secret.
    pub sum: Vec<f32>,
    /// With adaptive clipping: the noisy share of vectors within the clip norm.
    ///
    /// It may lie outside of [0, 1].
    pub share_within: Option<f64>,
    /// With adaptive clipping: the clip norm of the next step.
    pub next_norm: Option<ClipNorm>,
}

/// The settings that matter once the batch is drawn.
#[derive(Clone, Copy)]
pub(super) struct Summation<'s> {
    pub(super) clipping: &'s Clipping,
    pub(super) noise_multiplier: NoiseMultiplier,
    pub(super) dimension: usize,
}

/// Largest number of records that a learner adds up in single precision.
///
/// Larger blocks are faster, but the noise that covers their rounding grows quadratically.
pub(crate) const BLOCK: usize = 96;

/// Largest number of records whose blocks are added up in double precision.
///
/// The sum of a group is rounded to the grid, where addition is exact.
const GROUP: usize = 1 << 18;

/// How much too small a reported length may be, relatively: clause 1 of [`Contributions`].
pub(crate) const LENGTH_ERROR: f64 = 1.0 / (1 << 13) as f64;

/// Largest relative change of a vector by other records of its block: clause 2.
///
/// The same bound holds for the change of its length.
pub(crate) const DRIFT: f64 = 1.0 / (1 << 20) as f64;

/// Roundings of a term beside those of the summation: clause 4.
///
/// They are for the scaling and the vector.
pub(crate) const TERM_ROUNDINGS: f64 = 4.0;

/// Stream numbers of a key for the noise on the count and for sampling.
///
/// Streams 0, 1, 2, … make the noise of the sum; these numbers are far from them.
const COUNT_STREAM: u64 = u64::MAX - 1;
pub(super) const SAMPLING_STREAM: u64 = u64::MAX;

impl Summation<'_> {
    /// Standard deviation of the noise drawn on the sum, over that of the ideal mechanism.
    ///
    /// `None` if the vector is too long for the grid.
    ///
    /// # Theorem
    /// (THEORY, Steps) A record touches one block (or the two halves of it) of at most n = 97 records, in one
    /// group (or the two halves of it) of at most m = 2¹⁸ + 1. Sums in single precision have an error of
    /// γ = (n + 4)/2²⁴ of the sum of absolute values, so of at most nγC for either neighbour, in L2; n
    /// vectors drift by a part in 2²⁰, and their scales by another; at most m sums in double precision have
    /// an error of m/2⁵³ of the sum of absolute values, so of m²C/2⁵³ for either neighbour; the record's own
    /// length may be under-reported by a part in 2¹³; and rounding to the grid moves three sums by √d/2 steps
    /// each. A record therefore moves the sum by at most C(1 + κ) + 2√d h, and the noise is z times that.
    pub(super) fn inflation(self) -> Option<f64> {
        let (sum, _) = self.clipping.multipliers(self.noise_multiplier)?;
        let (block, group) = ((BLOCK + 1) as f64, (GROUP + 1) as f64);
        let single = 2.0 * block * (block + TERM_ROUNDINGS) / f64::from(1 << 24);
        let drift = 2.0 * block * DRIFT;
        let double = 2.0 * group * group * f64::EPSILON / 2.0;
        // The remaining terms: products of these, quotients by the grid step (2⁻³³), numbers too small for
        // full precision.
        let kappa = (single + drift + double + LENGTH_ERROR) * (1.0 + 1e-3) + 1e-6;
        let grid = 1.0 - 2.0 * sum * (self.dimension as f64).sqrt() / GRID as f64;
        (grid > 0.5).then(|| (1.0 + kappa) / grid * (1.0 + 1e-12))
    }

    /// Standard deviation of the noise on the count.
    ///
    /// `None` if there is no count, or if the grid is too coarse for it.
    fn count_scale(self) -> Option<f64> {
        let (_, count) = self.clipping.multipliers(self.noise_multiplier)?;
        let count = count?;
        // Two neighbours are rounded by half a step each; this takes twice that.
        let grid = 1.0 - 2.0 * count / GRID as f64;
        let kappa = count_error((BLOCK + 1) as f64, DRIFT);
        (grid > 0.5).then(|| 0.5 * count * (1.0 + kappa) / grid * (1.0 + 1e-12))
    }

    /// Checks whether a theorem covers the settings.
    pub(super) fn check(self) -> Result<(), Error> {
        self.clipping.check(self.dimension)?;
        let adaptive = matches!(self.clipping, Clipping::Adaptive { .. });
        if adaptive && self.count_scale().is_none() {
            return Err(Error::Unfit {
                what: "adaptive clipping",
                because: "the noise on its count must be more than half the noise multiplier and below 1e8; a twentieth of a batch is usual",
            });
        }
        let value = self.dimension as f64;
        let range = "the range where noise_multiplier times its square root is below 2^28";
        self.inflation().map(drop).ok_or(Error::OutOfRange { what: "dimension", value, range })?;
        self.grid().map(drop)
    }

    /// The cost for the records in the batch.
    pub(super) fn event(self) -> Event {
        self.check().map_or(Event::NonPrivate, |()| Event::gaussian(self.noise_multiplier))
    }

    /// Total variation: one number for each coordinate, and one for the count.
    pub(super) fn distance(self) -> f64 {
        (self.dimension as f64 + 1.0) * DISTANCE
    }

    fn grid(self) -> Result<Grid, Error> {
        let (sum, _) = self.clipping.multipliers(self.noise_multiplier).unwrap_or((f64::NAN, None));
        Grid::new(sum * self.clipping.norm() * self.inflation().unwrap_or(f64::NAN))
    }

    /// Releases the noisy sum over a batch that is ordered by tags.
    ///
    /// Requesting the key is the last operation that can fail.
    pub(super) fn run(
        self,
        key: impl FnOnce() -> Result<Key, Error>,
        batch: impl FnOnce(&Key) -> Vec<Drawn>,
        contributions: &mut impl Contributions,
    ) -> Result<Step, Error> {
        self.check()?;
        if contributions.dimension() != self.dimension {
            let value = contributions.dimension() as f64;
            return Err(Error::OutOfRange {
                what: "dimension",
                value,
                range: "[d, d] for the paid dimension d",
            });
        }
        let grid = self.grid()?;
        let count_grid = self.count_scale().map(Grid::new).transpose()?;
        let key = key()?;
        let clipper = self.clipping.clipper(self.dimension);
        let total = Total::new(&batch(&key), grid, &clipper, self.dimension, contributions);
        let count = clipper.count();
        #[cfg(feature = "exact-statistics")]
        let (total, count) = self.withheld(total, count, grid);
        let sum = total.release(grid, &key);
        let count = count.zip(count_grid).map(|(count, grid)| {
            grid.release(Noise::Gaussian, i128::from(grid.nearest(count)), &mut key.stream(COUNT_STREAM))
        });
        let (share_within, next_norm) = count.and_then(|count| self.clipping.adapt(count)).unzip();
        Ok(Step { sum, share_within, next_norm })
    }
}

#[cfg(feature = "exact-statistics")]
impl Summation<'_> {
    /// Replaces sum and count by zeros if a test observes them.
    ///
    /// Both are reported together, in units of one record's contribution.
    fn withheld(self, mut total: Total, count: Option<f64>, grid: Grid) -> (Total, Option<f64>) {
        use crate::exact::{Norm, withhold};
        let mut indices = vec![0; self.dimension];
        let mut kept = Total { last: total.last.clone(), before: total.before.clone() };
        take(grid, &mut kept.last, &kept.before, &mut indices);
        let steps = self.count_scale().and_then(|scale| Grid::new(scale).ok()).zip(count);
        indices.extend(steps.map(|(grid, count)| grid.nearest(count)));
        let unit = self.noise_multiplier.get() / GRID as f64;
        let values = || indices.iter().map(|index| *index as f64 * unit).collect();
        let is_observed = withhold(&format!("sum {}", self.clipping), Norm::L2, (1.0, 2.0), values);
        if is_observed {
            total.last.fill(0.0);
            total.before.clear();
        }
        (total, count.map(|count| if is_observed { 0.0 } else { count }))
    }
}

/// The sum of a batch, before noise.
struct Total {
    /// The sum of the last group, which is mostly the only one …
    last: Vec<f64>,
    /// … and the sum of the earlier groups in grid steps, empty if there are none.
    ///
    /// Addition of integers is exact in any order; if it wraps, that is post-processing.
    before: Vec<i64>,
}

thread_local! {
    /// A zeroed buffer for the next step's sum.
    ///
    /// Allocating it anew takes a tenth of a step.
    static ZEROS: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

impl Total {
    fn new(
        batch: &[Drawn],
        grid: Grid,
        clipper: &Clipper,
        dimension: usize,
        contributions: &mut impl Contributions,
    ) -> Self {
        let mut last = ZEROS.take();
        last.resize(dimension, 0.0);
        debug_assert!(last.iter().all(|x| *x == 0.0), "a sum begins at zero");
        let mut total = Self { last, before: Vec::new() };
        for (number, group) in pieces(batch, GROUP).into_iter().enumerate() {
            if number > 0 {
                let mut indices = vec![0; dimension];
                take(grid, &mut total.last, &total.before, &mut indices);
                total.before = indices;
            }
            let blocks = pieces(group, BLOCK);
            let mut records: Vec<usize> = group.iter().map(|(_, record)| *record).collect();
            let (mut rest, mut parts) = (records.as_mut_slice(), Vec::with_capacity(blocks.len()));
            for block in blocks {
                let (part, after) = rest.split_at_mut(block.len());
                // In the order in which they lie in memory.
                part.sort_unstable();
                parts.push(&*part);
                rest = after;
            }
            contributions.add_clipped(&parts, clipper, &mut total.last);
        }
        total
    }

    /// Releases the noisy sum, and keeps only the zeroed buffer for the next step.
    fn release(self, grid: Grid, key: &Key) -> Vec<f32> {
        let Self { mut last, before } = self;
        let mut sum = vec![0.0; last.len()];
        let indices = |place: usize, last: &mut [f64], indices: &mut [i64]| {
            take(grid, last, before.get(place..).unwrap_or(&[]), indices);
        };
        let values = |indices: &[i64], values: &mut [f32]| grid.singles(indices, values);
        rounded::add_between(Noise::Gaussian.shape(), key, &mut last, &mut sum, indices, values);
        ZEROS.set(last);
        sum
    }
}

/// Moves some coordinates to grid steps and leaves zeros behind.
///
/// A coordinate that is not a number, which an honest learner never produces, becomes zero.
fn take(grid: Grid, last: &mut [f64], before: &[i64], indices: &mut [i64]) {
    grid.near(last, indices);
    last.fill(0.0);
    for (index, before) in indices.iter_mut().zip(before) {
        *index = index.wrapping_add(*before);
    }
}

#[cfg(test)]
mod tests;
