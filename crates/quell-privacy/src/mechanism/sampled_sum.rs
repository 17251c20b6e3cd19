//! The step of DP-SGD: draw a batch, clip, sum, add Gaussian noise.

use super::{Contributions, Mechanism, Noise, Sealed, grid::Grid, unit_event};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{
        exact::bernoulli,
        random::Stream,
        rounded::{self, DISTANCE, GRID},
    },
    number::given,
    units::{ClipNorm, NoiseMultiplier, SamplingRate},
};

/// The sum over a Poisson sample of vectors clipped to a length, plus Gaussian noise.
///
/// Batch, clipping, noise and cost all come from this one value, so they cannot disagree. The noise is that of the ideal mechanism, times
/// [`SampledSum::inflation`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledSum {
    /// Probability that a record enters the batch.
    pub rate: SamplingRate,
    /// Longest that a vector may be.
    pub clip_norm: ClipNorm,
    /// Standard deviation of the noise over that length.
    pub noise_multiplier: NoiseMultiplier,
    /// Length of the vectors.
    pub dimension: usize,
}

/// Records that are summed by the learner at once. Their sum is put on the grid, where addition is exact.
const CHUNK: usize = 64;

/// How far a reported length may be from the true one: clause 1 of [`Contributions`].
const LENGTH_ERROR: f64 = 1.0 / (1 << 13) as f64;

/// Of what a learner adds up beside the terms themselves: the scaling and the vector, clause 2.
const TERM_ROUNDINGS: f64 = 4.0;

impl SampledSum {
    /// Standard deviation of the noise that is drawn over that of the ideal mechanism; none if the vector is too long for the grid.
    ///
    /// # Theorem
    /// (THEORY, Noise) Chunks are cut by record number, so a record touches the sum of one chunk (or the two halves of it), of at most 65 records. A sum of n terms in single
    /// precision errs by γ = (n + 4)/2²⁴ of the sum of sizes, so by at most 65γC for either neighbour, in L2; a length may be
    /// under-reported by a part in 2¹³; and rounding to the grid moves each neighbour by at most √d/2 steps per chunk, of which two differ. A
    /// record therefore moves the sum by at most C(1 + κ) + 2√d h, and the noise is z times that.
    #[must_use]
    pub fn inflation(&self) -> Option<f64> {
        let records = (CHUNK + 1) as f64;
        let rounding = 2.0 * records * (records + TERM_ROUNDINGS) / f64::from(1 << 24) * (1.0 + 1e-3);
        let kappa = rounding + LENGTH_ERROR * (1.0 + 1e-3);
        let grid = 1.0 - 2.0 * self.noise_multiplier.get() * (self.dimension as f64).sqrt() / GRID as f64;
        (grid > 0.5).then(|| (1.0 + kappa) / grid * (1.0 + 1e-12))
    }
}

impl Sealed for SampledSum {}

impl Mechanism for SampledSum {
    fn event(&self, _: Neighbors) -> Event {
        let event = Event::gaussian(self.noise_multiplier);
        let event = if self.rate.get() < 1.0 { event.poisson_sampled(self.rate) } else { event };
        unit_event(self.inflation().ok_or(Error::NoEntropy), |_| event)
    }

    fn distance(&self) -> f64 {
        self.dimension as f64 * DISTANCE
    }
}

impl std::fmt::Display for SampledSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "sum of vectors of {} numbers clipped to {} on a Poisson sample of rate {} with Gaussian noise of {} times that",
            self.dimension,
            given(self.clip_norm.get()),
            given(self.rate.get()),
            given(self.noise_multiplier.get())
        )
    }
}

/// Streams 0, 1, 2, … of a key make the noise; the coins of the batch come from one far from them.
const COINS: u64 = u64::MAX;

impl Paid<SampledSum> {
    /// The batch and the sum are born and die in here; only the noisy sum comes back. An empty batch is a batch, and a vector that is not finite adds
    /// nothing.
    pub fn run(mut self, records: usize, contributions: &mut impl Contributions) -> Result<Vec<f32>, Error> {
        let step = self.mechanism;
        let wrong = Error::OutOfRange { what: "dimension", value: contributions.dimension() as f64, range: "what was paid for" };
        let inflation = step.inflation().filter(|_| contributions.dimension() == step.dimension).ok_or(wrong)?;
        let grid = Grid::new(step.noise_multiplier.get() * step.clip_norm.get() * inflation)?;
        let key = self.key()?;
        let batch = sample(records, step.rate, &mut key.stream(COINS));
        let mut sum = Sum { indices: vec![0; step.dimension], chunk: vec![0.0; step.dimension], clip_norm: step.clip_norm, grid };
        sum.add(&batch, (0, records), contributions);
        let mut indices = sum.indices;
        rounded::add(Noise::Gaussian.shape(), &key, &mut indices);
        Ok(indices.into_iter().map(|index| grid.value(i128::from(index)) as f32).collect())
    }
}

/// Coins are exact for multiples of one over this.
const DENOMINATOR: u128 = 1 << 63;

/// Each record on its own coin. The coin is exact for rates that are multiples of 2⁻⁶³, and rounded down to one otherwise: less is
/// sampled than is charged for.
fn sample(records: usize, rate: SamplingRate, stream: &mut Stream) -> Vec<usize> {
    if rate.get() >= 1.0 {
        return (0..records).collect();
    }
    let numerator = (rate.get() * DENOMINATOR as f64) as u128;
    (0..records).filter(|_| bernoulli(numerator, DENOMINATOR, stream)).collect()
}

struct Sum {
    /// The sum so far, in grid steps. Addition of integers is exact in any order; if it wraps, that is post-processing.
    indices: Vec<i64>,
    chunk: Vec<f32>,
    clip_norm: ClipNorm,
    grid: Grid,
}

impl Sum {
    /// Adds the records of a batch whose numbers lie in a range, halving the range until few enough are left. Which records share a chunk then
    /// depends on a record only in the chunk that it is in itself.
    fn add(&mut self, batch: &[usize], range: (usize, usize), contributions: &mut impl Contributions) {
        if batch.is_empty() {
            return;
        }
        if batch.len() > CHUNK {
            let middle = range.0.midpoint(range.1);
            let (low, high) = batch.split_at(batch.partition_point(|&record| record < middle));
            self.add(low, (range.0, middle), contributions);
            self.add(high, (middle, range.1), contributions);
            return;
        }
        let mut squared = [f64::NAN; CHUNK];
        let squared = &mut squared[..batch.len()];
        contributions.squared_norms(batch, squared);
        let mut scales = [0.0; CHUNK];
        for (scale, square) in scales.iter_mut().zip(squared.iter()) {
            *scale = clip_scale(*square, self.clip_norm);
        }
        self.chunk.fill(0.0);
        contributions.add_scaled(batch, &scales[..batch.len()], &mut self.chunk);
        // No number of an honest sum is larger than this; holding it there never moves neighbours apart.
        let most = 2.0 * CHUNK as f64 * self.clip_norm.get();
        for (index, value) in self.indices.iter_mut().zip(&self.chunk) {
            let value = f64::from(*value);
            let held = if value.is_nan() { 0.0 } else { value.clamp(-most, most) };
            *index = index.wrapping_add(self.grid.nearest(held));
        }
    }
}

/// min(1, C/‖v‖), rounded down; zero for a vector that is not finite, because an error would tell.
fn clip_scale(squared_norm: f64, clip_norm: ClipNorm) -> f32 {
    // Written so that NaN is refused.
    if !(squared_norm >= 0.0 && squared_norm.is_finite()) {
        return 0.0;
    }
    let length = squared_norm.sqrt();
    if length <= clip_norm.get() {
        return 1.0;
    }
    // One part in 2²³ is more than the cast can add.
    let scale = clip_norm.get() / length * (1.0 - 1.0 / f64::from(1 << 23));
    let cast = scale as f32;
    // A scale too small for a normal number would round without proportion.
    if cast.is_normal() { cast } else { 0.0 }
}
