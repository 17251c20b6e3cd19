//! The sum of a batch of clipped vectors plus Gaussian noise: what a step and a batch of an epoch have in common.

use std::cell::Cell;

use super::{
    Clip, Clipping, Contributions, Noise,
    clipping::count_error,
    grid::Grid,
    sampling::{Drawn, pieces},
};
use crate::{
    Error, Event,
    noise::{
        random::Key,
        rounded::{self, DISTANCE, GRID},
    },
    units::{ClipNorm, NoiseMultiplier},
};

/// What a step releases.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The noisy sum of the clipped vectors. Not divided by anything: the size of the batch is a secret.
    pub sum: Vec<f32>,
    /// Where clipping is adaptive: the noisy share of vectors that were no longer than the length they were clipped to. It may lie outside of [0, 1].
    pub share_within: Option<f64>,
    /// Where clipping is adaptive: the length to clip to from now on.
    pub next_norm: Option<ClipNorm>,
}

/// The settings that matter once it is known who takes part.
#[derive(Clone, Copy)]
pub(super) struct Summation<'s> {
    pub(super) clipping: &'s Clipping,
    pub(super) noise_multiplier: NoiseMultiplier,
    pub(super) dimension: usize,
}

/// Records that a learner adds up in single precision, at most. What the noise grows by for it grows with its square, what a step takes falls with it.
pub(crate) const BLOCK: usize = 96;

/// Records whose blocks are added up in double precision, at most. The sum of a group is put on the grid, where addition is exact.
const GROUP: usize = 1 << 18;

/// How far a reported length may be below the true one: clause 1 of [`Contributions`].
pub(crate) const LENGTH_ERROR: f64 = 1.0 / (1 << 13) as f64;

/// How far the others in a block may move a record's vector and its length, over that length: clause 2.
pub(crate) const DRIFT: f64 = 1.0 / (1 << 20) as f64;

/// Of what a learner adds up beside the terms themselves: the scaling and the vector, clause 4.
pub(crate) const TERM_ROUNDINGS: f64 = 4.0;

/// Streams 0, 1, 2, … of a key make the noise of the sum; that of the count and the coins come from others far from them.
const COUNT: u64 = u64::MAX - 1;
pub(super) const COINS: u64 = u64::MAX;

impl Summation<'_> {
    /// Standard deviation of the noise that is drawn on the sum over that of the ideal mechanism; none if the vector is too long for the grid.
    ///
    /// # Theorem
    /// (THEORY, Steps) A record touches one block (or the two halves of it) of at most n = 97 records, in one group (or the two halves of it) of at most
    /// m = 2¹⁸ + 1. Sums in single precision err by γ = (n + 4)/2²⁴ of the sum of sizes, so by at most nγC for either neighbour, in L2; n vectors drift by a part in
    /// 2²⁰, and their scales by another; at most m sums in double precision err by m/2⁵³ of the sum of sizes, so by m²C/2⁵³ for either
    /// neighbour; the record's own length may be under-reported by a part in 2¹³; and rounding to the grid moves three sums by √d/2 steps each. A record
    /// therefore moves the sum by at most C(1 + κ) + 2√d h, and the noise is z times that.
    pub(super) fn inflation(self) -> Option<f64> {
        let (sum, _) = self.clipping.multipliers(self.noise_multiplier)?;
        let (block, group) = ((BLOCK + 1) as f64, (GROUP + 1) as f64);
        let single = 2.0 * block * (block + TERM_ROUNDINGS) / f64::from(1 << 24);
        let drift = 2.0 * block * DRIFT;
        let double = 2.0 * group * group * f64::EPSILON / 2.0;
        // What is beside: products of these, quotients by the grid step (2⁻³³), numbers too small for full precision.
        let kappa = (single + drift + double + LENGTH_ERROR) * (1.0 + 1e-3) + 1e-6;
        let grid = 1.0 - 2.0 * sum * (self.dimension as f64).sqrt() / GRID as f64;
        (grid > 0.5).then(|| (1.0 + kappa) / grid * (1.0 + 1e-12))
    }

    /// Standard deviation of the noise on the count, where there is one; an error if the grid is too coarse for it.
    fn count_scale(self) -> Option<f64> {
        let (_, count) = self.clipping.multipliers(self.noise_multiplier)?;
        let count = count?;
        // Two neighbours are rounded by half a step each; twice that is taken.
        let grid = 1.0 - 2.0 * count / GRID as f64;
        let kappa = count_error((BLOCK + 1) as f64, DRIFT);
        (grid > 0.5).then(|| 0.5 * count * (1.0 + kappa) / grid * (1.0 + 1e-12))
    }

    /// Whether there is a theorem for it.
    pub(super) fn check(self) -> Result<(), Error> {
        self.clipping.check(self.dimension)?;
        let adaptive = matches!(self.clipping, Clipping::Adaptive { .. });
        if adaptive && self.count_scale().is_none() {
            return Err(Error::Unfit {
                what: "adaptive clipping",
                because: "the noise on its count must be more than half the noise multiplier and below 1e8; hint: take a twentieth of a batch",
            });
        }
        let value = self.dimension as f64;
        let range = "what leaves noise_multiplier times its root below 2^28";
        self.inflation().map(drop).ok_or(Error::OutOfRange { what: "dimension", value, range })?;
        self.grid().map(drop)
    }

    /// What it costs to whoever takes part.
    pub(super) fn event(self) -> Event {
        self.check().map_or(Event::NonPrivate, |()| Event::gaussian(self.noise_multiplier))
    }

    /// One number for each coordinate, and one for the count.
    pub(super) fn distance(self) -> f64 {
        (self.dimension as f64 + 1.0) * DISTANCE
    }

    fn grid(self) -> Result<Grid, Error> {
        let (sum, _) = self.clipping.multipliers(self.noise_multiplier).unwrap_or((f64::NAN, None));
        Grid::new(sum * self.clipping.norm() * self.inflation().unwrap_or(f64::NAN))
    }

    /// The noisy sum over a batch that lies in order of its tags. The last thing that can fail is asking for the key.
    pub(super) fn run(
        self,
        key: impl FnOnce() -> Result<Key, Error>,
        batch: impl FnOnce(&Key) -> Vec<Drawn>,
        contributions: &mut impl Contributions,
    ) -> Result<Step, Error> {
        self.check()?;
        if contributions.dimension() != self.dimension {
            let value = contributions.dimension() as f64;
            return Err(Error::OutOfRange { what: "dimension", value, range: "what was paid for" });
        }
        let grid = self.grid()?;
        let count_grid = self.count_scale().map(Grid::new).transpose()?;
        let key = key()?;
        let clip = self.clipping.clip(self.dimension);
        let total = Total::new(&batch(&key), grid, &clip, self.dimension, contributions);
        let count = clip.count();
        #[cfg(feature = "exact-statistics")]
        let (total, count) = self.withheld(total, count, grid);
        let sum = total.release(grid, &key);
        let count = count
            .zip(count_grid)
            .map(|(count, grid)| grid.release(Noise::Gaussian, i128::from(grid.nearest(count)), &mut key.stream(COUNT)));
        let (share_within, next_norm) = count.and_then(|count| self.clipping.follow(count)).unzip();
        Ok(Step { sum, share_within, next_norm })
    }
}

#[cfg(feature = "exact-statistics")]
impl Summation<'_> {
    /// Zeros in place of sum and count, if they are watched: together, in units of one record's contribution.
    fn withheld(self, mut total: Total, count: Option<f64>, grid: Grid) -> (Total, Option<f64>) {
        use crate::exact::{Norm, withhold};
        let mut indices = vec![0; self.dimension];
        let mut kept = Total { last: total.last.clone(), before: total.before.clone() };
        take(grid, &mut kept.last, &kept.before, &mut indices);
        let steps = self.count_scale().and_then(|scale| Grid::new(scale).ok()).zip(count);
        indices.extend(steps.map(|(grid, count)| grid.nearest(count)));
        let unit = self.noise_multiplier.get() / GRID as f64;
        let values = || indices.iter().map(|index| *index as f64 * unit).collect();
        let seen = withhold(&format!("sum {}", self.clipping), Norm::L2, (1.0, 2.0), values);
        if seen {
            total.last.fill(0.0);
            total.before.clear();
        }
        (total, count.map(|count| if seen { 0.0 } else { count }))
    }
}

/// The sum of a batch, before noise.
struct Total {
    /// The last group, which is mostly the only one …
    last: Vec<f64>,
    /// … and those before it, in grid steps; nothing if there are none. Addition of integers is exact in any order; if it wraps, that is post-processing.
    before: Vec<i64>,
}

thread_local! {
    /// Zeros for the sum of the next step: pages that are asked for anew in every step cost a tenth of a step.
    static ZEROS: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

impl Total {
    fn new(batch: &[Drawn], grid: Grid, clip: &Clip, dimension: usize, contributions: &mut impl Contributions) -> Self {
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
            contributions.add_clipped(&parts, clip, &mut total.last);
        }
        total
    }

    /// The noisy sum. Only zeros are kept for the next step.
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

/// Reads some coordinates in grid steps and leaves zeros. A coordinate that is no number, which an honest learner never makes, is zero.
fn take(grid: Grid, last: &mut [f64], before: &[i64], indices: &mut [i64]) {
    grid.near(last, indices);
    last.fill(0.0);
    for (index, before) in indices.iter_mut().zip(before) {
        *index = index.wrapping_add(*before);
    }
}

#[cfg(test)]
mod tests;
