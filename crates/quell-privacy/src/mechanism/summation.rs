//! The sum of a batch of clipped vectors plus Gaussian noise: what a step and a batch of an epoch have in common.

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

/// Records that a learner adds up in single precision, at most.
pub(super) const BLOCK: usize = 64;

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
    /// (THEORY, Steps) A record touches one block (or the two halves of it) of at most n = 65 records, in one group (or the two halves of it) of at most
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
        let mut sum = vec![0.0; self.dimension];
        let indices = |from: usize, indices: &mut [i64]| total.indices(grid, from, indices);
        let values = |indices: &[i64], values: &mut [f32]| {
            for (value, index) in values.iter_mut().zip(indices) {
                *value = grid.single(*index);
            }
        };
        rounded::add_between(Noise::Gaussian.shape(), &key, &mut sum, indices, values);
        let count = clip
            .count()
            .zip(count_grid)
            .map(|(count, grid)| grid.release(Noise::Gaussian, i128::from(grid.nearest(count)), &mut key.stream(COUNT)));
        let (share_within, next_norm) = count.and_then(|count| self.clipping.follow(count)).unzip();
        Ok(Step { sum, share_within, next_norm })
    }
}

/// The sum of a batch, before noise.
struct Total {
    /// The last group, which is mostly the only one …
    last: Vec<f64>,
    /// … and those before it, in grid steps; nothing if there are none. Addition of integers is exact in any order; if it wraps, that is post-processing.
    before: Vec<i64>,
}

impl Total {
    fn new(batch: &[Drawn], grid: Grid, clip: &Clip, dimension: usize, contributions: &mut impl Contributions) -> Self {
        let mut total = Self { last: vec![0.0; dimension], before: Vec::new() };
        for (number, group) in pieces(batch, GROUP).into_iter().enumerate() {
            if number > 0 {
                let mut before = vec![0; dimension];
                total.indices(grid, 0, &mut before);
                total.before = before;
                total.last.fill(0.0);
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

    /// In grid steps, from one coordinate on. A coordinate that is no number, which an honest learner never makes, is zero.
    fn indices(&self, grid: Grid, from: usize, indices: &mut [i64]) {
        for (index, value) in indices.iter_mut().zip(&self.last[from..]) {
            *index = grid.near(*value);
        }
        for (index, before) in indices.iter_mut().zip(self.before.get(from..).unwrap_or(&[])) {
            *index = index.wrapping_add(*before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{laws, mechanism::Vectors, noise::random::Randomness};

    fn step(clip_norm: f64, noise_multiplier: f64, dimension: usize) -> SampledSum {
        SampledSum {
            rate: SamplingRate::new(1.0).unwrap(),
            clip_norm: ClipNorm::new(clip_norm).unwrap(),
            noise_multiplier: NoiseMultiplier::new(noise_multiplier).unwrap(),
            dimension,
        }
    }

    /// The sum before noise, in units of the clip norm.
    fn clipped_sum(step: &SampledSum, batch: &[Drawn], vectors: &mut Vectors) -> Vec<f64> {
        let grid = Grid::new(step.noise_multiplier.get() * step.clip_norm.get() * step.inflation().unwrap()).unwrap();
        let mut sum = Sum { indices: vec![0; step.dimension], chunk: vec![0.0; step.dimension], clip_norm: step.clip_norm, grid };
        sum.add(batch, u64::BITS, vectors);
        sum.indices.iter().map(|index| grid.value(i128::from(*index)) / step.clip_norm.get()).collect()
    }

    /// Everyone, with tags, in order of tags.
    fn tagged(records: usize, stream: &mut Stream) -> Vec<Drawn> {
        let mut batch: Vec<Drawn> = (0..records).map(|record| (stream.next_u64(), record)).collect();
        batch.sort_unstable();
        batch
    }

    /// The batch without a record, whose successors are all numbered one lower.
    fn without(batch: &[Drawn], leaver: usize) -> Vec<Drawn> {
        let stay = batch.iter().filter(|(_, record)| *record != leaver);
        stay.map(|&(tag, record)| (tag, if record > leaver { record - 1 } else { record })).collect()
    }

    /// A number that a careless program would stumble over.
    fn adversarial(stream: &mut Stream) -> f32 {
        let sign = if stream.bits(1) == 0 { 1.0 } else { -1.0 };
        sign * match stream.below(12) {
            0 => f32::NAN,
            1 => f32::INFINITY,
            2 => f32::MIN_POSITIVE / 8.0,
            3 => f32::MAX,
            4 => 0.0,
            5 => 1.0,
            6 => f32::from_bits(1),
            7 => 1e19,
            _ => f32::from_bits(stream.bits(31) as u32),
        }
    }

    #[test]
    fn no_record_however_adversarial_moves_the_sum_by_more_than_the_noise_is_made_for() {
        let mut stream = Randomness::seeded(11).key().unwrap().stream(0);
        let (mut contributions, mut most) = (0, 0.0_f64);
        while contributions < 1_000_000 {
            let dimension = 1 + stream.below(4) as usize;
            let records = 2 + stream.below(140) as usize;
            let step = step([1.0, 1e-20, 3e20][stream.below(3) as usize], [0.3, 1.0, 50.0][stream.below(3) as usize], dimension);
            let values: Vec<f32> = (0..records * dimension).map(|_| adversarial(&mut stream)).collect();
            contributions += records;
            let everyone = tagged(records, &mut stream);
            let whole = clipped_sum(&step, &everyone, &mut Vectors::new(dimension, values.clone()));
            let bound = step.inflation().unwrap();
            for _ in 0..3 {
                let leaver = stream.below(records as u128) as usize;
                let mut rows = values.clone();
                rows.drain(leaver * dimension..(leaver + 1) * dimension);
                let without = clipped_sum(&step, &without(&everyone, leaver), &mut Vectors::new(dimension, rows));
                let moved = whole.iter().zip(&without).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                assert!(moved <= bound, "record {leaver} of {records} moves the sum by {moved}, the noise is for {bound}");
                most = most.max(moved);
            }
        }
        assert!(most > 0.999, "clipping takes too much: {most}");
    }

    #[test]
    fn a_record_that_leaves_a_long_batch_moves_the_sum_by_no_more_than_a_short_one() {
        // At 32 a number this small is lost in single precision, at 31 it is not. Chunks of 64 from the first record on begin with -1 and keep the small ones; if
        // the first record left and every chunk began one record later, all of them would lose theirs.
        let small = 0.99 / f32::from(1_u16 << 10) / 512.0;
        let value = |i: usize| match i % 64 {
            0 if i > 0 => -1.0,
            0..=32 => 1.0,
            _ => small,
        };
        let values: Vec<f32> = (0..65_536).map(value).collect();
        let step = step(1.0, 1.0, 1);
        // Tags in the order of the records: the worst that chance can do.
        let everyone: Vec<Drawn> = (0..values.len()).map(|record| ((record as u64) << 48, record)).collect();
        let whole = clipped_sum(&step, &everyone, &mut Vectors::new(1, values.clone()));
        for leaver in [0, 7, 40_000, 65_535] {
            let mut rows = values.clone();
            rows.remove(leaver);
            let rest = clipped_sum(&step, &without(&everyone, leaver), &mut Vectors::new(1, rows));
            let moved = (whole[0] - rest[0]).abs();
            assert!(moved <= step.inflation().unwrap(), "{moved}");
        }
    }

    /// A learner that shows which records it was asked for together.
    struct Watched(Vec<Vec<usize>>);

    impl Contributions for Watched {
        fn dimension(&self) -> usize {
            1
        }
        fn squared_norms(&mut self, records: &[usize], squared: &mut [f64]) {
            self.0.push(records.to_vec());
            squared.fill(1.0);
        }
        fn add_scaled(&mut self, _: &[usize], _: &[f32], _: &mut [f32]) {}
    }

    #[test]
    fn chunks_depend_on_a_record_only_where_it_is() {
        let chunks = |batch: &[Drawn]| {
            let grid = Grid::new(1.0).unwrap();
            let mut sum = Sum { indices: vec![0], chunk: vec![0.0], clip_norm: ClipNorm::new(1.0).unwrap(), grid };
            let mut watched = Watched(Vec::new());
            sum.add(batch, u64::BITS, &mut watched);
            watched.0
        };
        let mut stream = Randomness::seeded(3).key().unwrap().stream(0);
        for _ in 0..300 {
            let records = 1 + stream.below(500) as usize;
            let batch = tagged(records, &mut stream);
            let leaver = stream.below(records as u128) as usize;
            let rest: Vec<Drawn> = batch.iter().copied().filter(|(_, record)| *record != leaver).collect();
            let (with, without) = (chunks(&batch), chunks(&rest));
            assert!(with.iter().all(|chunk| chunk.len() <= CHUNK) && with.iter().map(Vec::len).sum::<usize>() == records);
            let changed: Vec<_> = with.iter().filter(|chunk| !without.contains(chunk)).collect();
            let affected: usize = changed.iter().map(|chunk| chunk.len()).sum();
            assert!(changed.len() <= 2 && affected <= CHUNK + 1, "{changed:?}");
        }
        // Equal tags are summed all the same.
        let equal: Vec<Drawn> = (0..200).map(|record| (7, record)).collect();
        assert_eq!(chunks(&equal).iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 64, 8]);
    }

    #[test]
    fn inflation_of_a_million_numbers_is_below_half_a_percent() {
        for z in [0.3, 1.0, 10.0, 100.0] {
            let inflation = step(1.0, z, 1_000_000).inflation().unwrap();
            assert!(inflation > 1.0 && inflation < 1.005, "{inflation} at {z}");
        }
    }

    /// Breaks one law each.
    struct Liar(Vectors, u8);
    impl Contributions for Liar {
        fn dimension(&self) -> usize {
            self.0.dimension()
        }
        fn squared_norms(&mut self, records: &[usize], squared: &mut [f64]) {
            self.0.squared_norms(records, squared);
            match self.1 {
                0 => squared.iter_mut().for_each(|s| *s *= 0.9),
                1 if records.len() > 1 => squared[0] *= 1.1,
                _ => {}
            }
        }
        fn add_scaled(&mut self, records: &[usize], scales: &[f32], sum: &mut [f32]) {
            match self.1 {
                // Zero times infinity.
                2 => records.iter().zip(scales).for_each(|(r, s)| sum[0] += s * self.0.row_for_tests(*r)[0]),
                3 if records.len() > 1 => self.0.add_scaled(&records[1..], &scales[1..], sum),
                _ => self.0.add_scaled(records, scales, sum),
            }
        }
    }

    #[test]
    fn vectors_that_are_there_obey_the_laws_and_liars_do_not() {
        let values = vec![1.0, 2.0, f32::NAN, 0.0, 1e-40, -3.0, f32::INFINITY, 1.0, 0.0, 0.0];
        let mut honest = Vectors::new(2, values);
        assert_eq!(laws::broken_by(&mut honest, &[0, 1, 2, 3, 4]), None);

        for lie in 0..4 {
            let values = vec![1.0, 2.0, f32::INFINITY, 0.0, 1e-3, -3.0];
            assert!(laws::broken_by(&mut Liar(Vectors::new(2, values), lie), &[0, 1, 2]).is_some(), "lie {lie}");
        }
    }
}
