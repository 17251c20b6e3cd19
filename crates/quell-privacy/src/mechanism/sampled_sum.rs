//! The step of DP-SGD: draw a batch, clip, sum, add Gaussian noise.

use super::{Contributions, Mechanism, Noise, Sealed, grid::Grid};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{
        exact::bernoulli,
        random::Stream,
        rounded::{self, DISTANCE, GRID},
    },
    number::brief,
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
    /// (THEORY, Noise) Chunks are cut by random tags, so a record touches the sum of one chunk (or the two halves of it), of at most 65 records. A sum of n terms in single
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
        // Vectors too long for the grid have no guarantee.
        self.inflation().map_or(Event::NonPrivate, |_| event)
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
            brief(self.clip_norm.get()),
            brief(self.rate.get()),
            brief(self.noise_multiplier.get())
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
        let mut batch = sample(records, step.rate, &mut key.stream(COINS));
        let mut sum = Sum { indices: vec![0; step.dimension], chunk: vec![0.0; step.dimension], clip_norm: step.clip_norm, grid };
        batch.sort_unstable();
        sum.add(&batch, u64::BITS, contributions);
        let mut indices = sum.indices;
        rounded::add(Noise::Gaussian.shape(), &key, &mut indices);
        Ok(indices.into_iter().map(|index| grid.value(i128::from(index)) as f32).collect())
    }
}

/// Coins are exact for multiples of one over this.
const DENOMINATOR: u128 = 1 << 63;

/// A record of a batch, behind a random tag by which it is put into a chunk.
type Drawn = (u64, usize);

/// Each record on its own coin, and a tag for each that is drawn. The coin is exact for rates that are multiples of 2⁻⁶³, and rounded down to
/// one otherwise: less is sampled than is charged for.
fn sample(records: usize, rate: SamplingRate, stream: &mut Stream) -> Vec<Drawn> {
    // 2⁶³ itself for a rate of one: a coin that always shows one.
    let numerator = (rate.get() * DENOMINATOR as f64) as u128;
    let mut batch = Vec::new();
    for record in 0..records {
        if bernoulli(numerator, DENOMINATOR, stream) {
            batch.push((stream.next_u64(), record));
        }
    }
    batch
}

struct Sum {
    /// The sum so far, in grid steps. Addition of integers is exact in any order; if it wraps, that is post-processing.
    indices: Vec<i64>,
    chunk: Vec<f32>,
    clip_norm: ClipNorm,
    grid: Grid,
}

impl Sum {
    /// Adds a batch, in order of tags that agree but for the last `bits` bits, halving it by the next bit until few enough records are left. Tags are independent of
    /// everything, so which records share a chunk depends on a record only in the chunk that it is in itself, however records are numbered.
    fn add(&mut self, batch: &[Drawn], bits: u32, contributions: &mut impl Contributions) {
        if batch.len() <= CHUNK {
            self.add_chunk(batch, contributions);
        } else if let Some(bit) = bits.checked_sub(1) {
            let (low, high) = batch.split_at(batch.partition_point(|(tag, _)| tag >> bit & 1 == 0));
            self.add(low, bit, contributions);
            self.add(high, bit, contributions);
        } else {
            // 65 equal tags: for fewer than 2⁵⁰ records the probability is below 2⁻⁸⁰⁰.
            batch.chunks(CHUNK).for_each(|chunk| self.add_chunk(chunk, contributions));
        }
    }

    fn add_chunk(&mut self, drawn: &[Drawn], contributions: &mut impl Contributions) {
        let mut batch = [0; CHUNK];
        let batch = &mut batch[..drawn.len()];
        for (record, (_, number)) in batch.iter_mut().zip(drawn) {
            *record = *number;
        }
        // In the order in which they lie in memory.
        batch.sort_unstable();
        if batch.is_empty() {
            return;
        }
        let mut squared = [f64::NAN; CHUNK];
        let squared = &mut squared[..batch.len()];
        let batch = &*batch;
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
            *index = index.wrapping_add(self.grid.near(held));
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
