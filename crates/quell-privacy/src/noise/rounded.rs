//! Gaussian and Laplace noise rounded to a fine grid, for vectors of any length.
//!
//! Let a sum lie on the grid hℤ with h = scale/2³⁰. Rounding sum + N to the grid is post-processing of sum +
//! N, and it equals sum plus h times the integer round(N/h). So only that integer must be drawn, the
//! guarantee is that of the continuous distribution, and no floating-point number appears (THEORY.md, Noise).
//!
//! The sampler cuts the positive half of the density into blocks of width 1/64 scale (`blocks`). It proposes
//! a block a with probability ∝ e^-g(a/64) and a place u in it uniformly, and accepts both with probability
//! e^-t where t = g((a+u)/64) - g(a/64) < 1. One word of 64 bits is enough for 98 draws of 100; the others
//! read more bits. Every decision is exact however few bits it reads, see [`settle`].

use std::{
    hint::select_unpredictable,
    num::NonZero,
    sync::{LazyLock, Mutex, PoisonError},
    thread,
};

use super::{
    blocks::{
        COLUMN_BITS, COLUMNS, GAUSSIAN_BLOCKS, LAPLACE_BLOCKS, LEADING_BITS, TRAILING_BITS, Table,
        gaussian_tickets, laplace_tickets,
    },
    random::{Key, Stream},
};

/// Grid steps per standard deviation, or per scale of the Laplace distribution.
pub(crate) const GRID: i64 = 1 << 30;

/// Grid steps per unit of the values to which noise of this scale is added.
///
/// This is 2³⁰/scale, rounded up, so that the noise is slightly smaller relative to the values.
pub(crate) fn steps_per_unit(scale: f64) -> u64 {
    (GRID as f64 / scale).ceil() as u64
}

/// Bound on the total variation between one drawn number and the rounded distribution: 2⁻¹¹⁵.
///
/// # Theorem
/// If two measures differ by D in all, and one has mass M, then normalised they differ by at most D/M. Here
/// the measures are those of accepted proposals, in tickets; M is 64/80.72 · 64√(π/2) · 2¹²⁰ > 63 · 2¹²⁰ for
/// the Gaussian, 64/64.51 · 64 · 2¹²⁰ > 63 · 2¹²⁰ for Laplace.
/// - *Weights*: the error of a block's tickets is [`super::fixed::ERROR`] · 2⁻⁷ = 1/2 and less than 1 for
///   rounding down: 832 · 1.5 < 1248 tickets for the Gaussian; 512 · 1.5 + 32 + 1 < 802 for Laplace, whose
///   rest beyond 8 has an error of 64 · 1/2 and 1. Over M: below 19.9 · 2⁻¹²⁰ and 12.8 · 2⁻¹²⁰.
/// - *Tail*: the Gaussian ends at 13 standard deviations, 2Φ(-13) < 2⁻¹²⁵. Laplace has no end; the draws that
///   continue beyond 8, e^-8 of them, have the error once more: a factor 1/(1 - e^-8).
/// - *Acceptance, comparison of tickets, sign, place*: exact.
///
/// Both sums are below 20 · 2⁻¹²⁰ + 2⁻¹²⁵ < 2⁻¹¹⁵.
pub(crate) const DISTANCE: f64 = 1.0 / (1_u128 << 115) as f64;

/// How many numbers share a stream.
///
/// Another value would give other noise from the same key.
const CHUNK: usize = 1 << 14;
/// How many words are drawn at once.
///
/// They are few enough to fit into the L1 cache together with the table.
const WORDS: usize = 512;

/// Numbers of bits of the parts of a word.
///
/// The parts are a trial, a place, a sign, a column and the leading bits of a ticket.
const PLACE_BITS: u32 = 25;
const TRIAL_BITS: u32 = 13;
const _: () = assert!(TRIAL_BITS + PLACE_BITS + 1 + COLUMN_BITS + LEADING_BITS == 64);

/// The shape of the noise density.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Density ∝ e^(-x²/2).
    Gaussian,
    /// Density ∝ e^-|x|.
    Laplace,
}

/// Adds to each index an integer, round(2³⁰X) for independent X of the given shape.
///
/// The result depends on the key alone, not on the number of threads. Addition wraps. Indices within ±2⁶² do
/// not overflow, and a wrap would still be post-processing.
pub(crate) fn add(shape: Shape, key: &Key, indices: &mut [i64]) {
    add_on(threads(indices.len()), shape, key, indices);
}

/// [`add`] on the given number of threads.
pub(crate) fn add_on(threads: usize, shape: Shape, key: &Key, indices: &mut [i64]) {
    for_chunks(threads, indices.chunks_mut(CHUNK), |number, chunk| {
        let mut draws = Draws::new(shape, key.stream(number));
        chunk.chunks_mut(WORDS).for_each(|part| draws.add(part));
    });
}

/// Adds the same noise to indices that exist only in small buffers.
///
/// This needs only one pass over memory. `indices` converts some numbers, which begin at the given position,
/// to indices; `values` converts the noisy indices to the output.
///
/// # Contract
/// `numbers` and `noisy` have the same length.
pub(crate) fn add_between<T: Send>(
    shape: Shape,
    key: &Key,
    numbers: &mut [T],
    noisy: &mut [f32],
    indices: impl Fn(usize, &mut [T], &mut [i64]) + Sync,
    values: impl Fn(&[i64], &mut [f32]) + Sync,
) {
    assert_eq!(numbers.len(), noisy.len(), "numbers and noisy have the same length");
    let threads = threads(numbers.len());
    for_chunks(
        threads,
        numbers.chunks_mut(CHUNK).zip(noisy.chunks_mut(CHUNK)),
        |number, (numbers, noisy)| {
            let mut draws = Draws::new(shape, key.stream(number));
            let mut between = [0; WORDS];
            let places = (number as usize * CHUNK..).step_by(WORDS);
            for (place, (numbers, noisy)) in
                places.zip(numbers.chunks_mut(WORDS).zip(noisy.chunks_mut(WORDS)))
            {
                let between = &mut between[..numbers.len()];
                indices(place, numbers, between);
                draws.add(between);
                values(between, noisy);
            }
        },
    );
}

/// How many threads are worthwhile for so many numbers.
fn threads(numbers: usize) -> usize {
    static THREADS: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
    // A thread takes some 50 µs to start; a running thread draws a chunk in that time.
    (*THREADS).min(numbers / (2 * CHUNK))
}

/// Distributes the numbered chunks over the given number of threads.
fn for_chunks<T>(threads: usize, chunks: impl Iterator<Item = T> + Send, work_on: impl Fn(u64, T) + Sync) {
    let chunks = Mutex::new((0..).zip(chunks));
    let work = || {
        // The lock ends with this statement; a `while let` would hold it during the work.
        let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((number, chunk)) = next() {
            work_on(number, chunk);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
}

/// Draws one integer, round(2³⁰X).
pub(crate) fn sample(shape: Shape, stream: &mut Stream) -> i64 {
    match shape {
        Shape::Gaussian => sample_density::<Gaussian>(stream),
        Shape::Laplace => sample_density::<Laplace>(stream),
    }
}

fn sample_density<D: Density>(stream: &mut Stream) -> i64 {
    let word = stream.next_u64();
    let guess = guess::<D>(D::table(), word);
    if guess.doubtful { settle::<D>(word, stream) } else { guess.noise }
}

/// Draws the numbers of one stream in small groups.
struct Draws {
    shape: Shape,
    stream: Stream,
    bytes: [u8; 8 * WORDS],
    doubtful: [u16; WORDS],
}

impl Draws {
    fn new(shape: Shape, stream: Stream) -> Self {
        Self { shape, stream, bytes: [0; 8 * WORDS], doubtful: [0; WORDS] }
    }

    /// Adds the next numbers of the stream to at most `WORDS` indices.
    fn add(&mut self, indices: &mut [i64]) {
        match self.shape {
            Shape::Gaussian => self.add_of::<Gaussian>(indices),
            Shape::Laplace => self.add_of::<Laplace>(indices),
        }
    }

    /// Guesses all words without a branch, then settles the doubtful ones.
    ///
    /// Without branches the processor can vectorise the guesses.
    fn add_of<D: Density>(&mut self, indices: &mut [i64]) {
        let table = D::table();
        self.stream.fill(&mut self.bytes[..8 * indices.len()]);
        let words = self.bytes.as_chunks().0;
        let mut doubts = 0;
        for (position, (index, word)) in (0..).zip(indices.iter_mut().zip(words)) {
            let guess = guess::<D>(table, u64::from_le_bytes(*word));
            *index = index.wrapping_add(guess.noise);
            if guess.doubtful {
                self.doubtful[doubts % WORDS] = position;
                doubts += 1;
            }
        }
        for &position in &self.doubtful[..doubts] {
            let position = usize::from(position);
            let word = u64::from_le_bytes(words[position]);
            let correction = settle::<D>(word, &mut self.stream).wrapping_sub(guess::<D>(table, word).noise);
            indices[position] = indices[position].wrapping_add(correction);
        }
    }
}

/// A distribution on the half-line, cut into blocks.
pub(super) trait Density {
    /// The number of blocks; items from this number on are not blocks.
    const BLOCKS: usize;

    fn table() -> &'static Table;

    /// The largest trial whose acceptance still depends on the place.
    ///
    /// A trial above this limit fails whatever the place is, and so settles acceptance. For an item that is
    /// not a block, no trial is above the limit.
    fn limit(item: u64) -> u64;

    /// Draws true with probability t, given 13 random bits.
    fn trial(block: u64, bits: u64, place: &mut Place, stream: &mut Stream) -> bool;
}

pub(super) struct Gaussian;

impl Density for Gaussian {
    const BLOCKS: usize = GAUSSIAN_BLOCKS;

    fn table() -> &'static Table {
        static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(gaussian_tickets()));
        &TABLE
    }

    fn limit(item: u64) -> u64 {
        // Only a comparison of whole tickets finds the item that is not a block, never the quick comparison.
        2 * item
    }

    /// t = ((a+u)² - a²)/2¹³ = u (2a+u)/2¹³.
    ///
    /// So the trial is one draw below u, and one number of 13 bits, with further bits behind it, below
    /// 2a + u.
    fn trial(block: u64, bits: u64, place: &mut Place, stream: &mut Stream) -> bool {
        (bits < 2 * block || (bits == 2 * block && place.bernoulli(stream))) && place.bernoulli(stream)
    }
}

pub(super) struct Laplace;

impl Density for Laplace {
    const BLOCKS: usize = LAPLACE_BLOCKS;

    fn table() -> &'static Table {
        static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(laplace_tickets()));
        &TABLE
    }

    fn limit(item: u64) -> u64 {
        const { assert!(LAPLACE_BLOCKS == 1 << 9) };
        (item >> 9) << TRIAL_BITS | 127
    }

    /// t = u/64, and 64 = 2¹³/128.
    fn trial(_: u64, bits: u64, place: &mut Place, stream: &mut Stream) -> bool {
        bits < 128 && place.bernoulli(stream)
    }
}

/// The parts of a word, from the lowest bit.
///
/// The lowest bits of a ticket are the column.
struct Parts {
    trial: u64,
    place: u64,
    /// 0 or -1.
    sign: i64,
    ticket: u32,
}

#[inline]
fn parts(word: u64) -> Parts {
    Parts {
        trial: word % (1 << TRIAL_BITS),
        place: (word >> TRIAL_BITS) % (1 << PLACE_BITS),
        sign: (word << (63 - TRIAL_BITS - PLACE_BITS)) as i64 >> 63,
        ticket: (word >> (TRIAL_BITS + PLACE_BITS + 1)) as u32,
    }
}

/// The noise that a word suggests, and whether the suggestion is doubtful.
///
/// It is doubtful if the boundary or the acceptance may depend on bits that were not drawn.
pub(super) struct Guess {
    pub(super) noise: i64,
    pub(super) doubtful: bool,
}

#[inline]
pub(super) fn guess<D: Density>(table: &Table, word: u64) -> Guess {
    let Parts { trial, place, sign, ticket } = parts(word);
    let column = ticket as usize % COLUMNS;
    let (boundary, other) = table.leading[column];
    // The outcome is unpredictable: a branch would be mispredicted every other time.
    let item = select_unpredictable(ticket < boundary, column as u64, u64::from(other));
    let doubtful = ticket.wrapping_sub(boundary) < COLUMNS as u32 || trial <= D::limit(item);
    Guess { noise: rounded(sign, half_steps(item, place)), doubtful }
}

/// Distance from zero in halves of a grid step, rounded down.
#[inline]
pub(super) fn half_steps(block: u64, place: u64) -> i64 {
    (block << PLACE_BITS | place) as i64
}

/// Rounds to the nearest grid step.
///
/// On the positive side this is ⌊(n + 1)/2⌋. On the negative side -n - 1, the complement of n, stands for n:
/// ⌊-n/2⌋ = -⌊(n + 1)/2⌋.
#[inline]
pub(super) fn rounded(sign: i64, half_steps: i64) -> i64 {
    ((half_steps ^ sign) + 1) >> 1
}

/// Draws the number that begins with this word, reading more words as needed.
///
/// # Theorem
/// [Neu51]: make Bernoulli draws of probability t, t/2, t/3, …; the first failure is the (n+1)st with
/// probability tⁿ/n! - tⁿ⁺¹/(n+1)!, so n is even with probability 1 - t + t²/2! - t³/3! + … = e^-t. The first
/// draw is the trial within the word.
#[cold]
#[inline(never)]
pub(super) fn settle<D: Density>(word: u64, stream: &mut Stream) -> i64 {
    let Settled { sign, beyond, block, place } = settled::<D>(word, stream);
    rounded(sign, beyond.wrapping_add(half_steps(block, place.first)))
}

/// An accepted proposal.
struct Settled {
    /// 0 or -1.
    sign: i64,
    /// Distance from zero at which the blocks begin, in halves of a grid step.
    beyond: i64,
    block: u64,
    place: Place,
}

fn settled<D: Density>(mut word: u64, stream: &mut Stream) -> Settled {
    let table = D::table();
    let mut beyond: i64 = 0;
    loop {
        let Parts { trial, place, sign, ticket } = parts(word);
        let column = ticket as usize % COLUMNS;
        let (boundary, other) = table.leading[column];
        let is_own = if ticket.wrapping_sub(boundary) < COLUMNS as u32 {
            stream.next_u128() >> (128 - TRAILING_BITS) < table.boundary[column] % (1 << TRAILING_BITS)
        } else {
            ticket < boundary
        };
        let item = if is_own { column } else { other as usize };
        if item < D::BLOCKS {
            let mut place = Place { first: place, more: Vec::new() };
            if accept::<D>(item as u64, trial, &mut place, stream) {
                return Settled { sign, beyond, block: item as u64, place };
            }
        } else if item == LAPLACE_BLOCKS {
            // Only Laplace has an item of this number that is not a block. It stands for a draw beyond 8: 8
            // plus another draw.
            beyond = beyond.wrapping_add(2 * 8 * GRID);
        }
        word = stream.next_u64();
    }
}

/// Bits after the point of [`precise_gaussian`].
pub(crate) const PRECISE_BITS: u32 = 6 + PLACE_BITS + 64;

/// Draws a standard Gaussian number as a sign and its size, rounded down to multiples of 2⁻⁹⁵.
///
/// # Theorem
/// The number is within [`DISTANCE`] of that distribution: only weights of blocks and the end at 13 are not
/// exact. Bits of the place that no decision needed are drawn here, and they are uniform.
pub(crate) fn precise_gaussian(stream: &mut Stream) -> (bool, u128) {
    let word = stream.next_u64();
    let Settled { sign, block, place, .. } = settled::<Gaussian>(word, stream);
    let more = place.more.first().copied().unwrap_or_else(|| stream.next_u64());
    let size = u128::from(block << PLACE_BITS | place.first) << 64 | u128::from(more);
    (sign < 0, size)
}

pub(super) fn accept<D: Density>(block: u64, trial: u64, place: &mut Place, stream: &mut Stream) -> bool {
    if !D::trial(block, trial, place, stream) {
        return true;
    }
    let mut successes = 1_u32;
    while stream.below(u128::from(successes) + 1) == 0 {
        let bits = stream.bits(TRIAL_BITS);
        if !D::trial(block, bits, place, stream) {
            break;
        }
        successes += 1;
    }
    successes.is_multiple_of(2)
}

/// A place u within a block, uniform on [0, 1).
///
/// It has 25 bits, followed by as many bits as were needed.
pub(super) struct Place {
    pub(super) first: u64,
    pub(super) more: Vec<u64>,
}

impl Place {
    /// Draws true with probability u.
    ///
    /// Compares another uniform number with u, up to the first bits that differ.
    fn bernoulli(&mut self, stream: &mut Stream) -> bool {
        let draw = stream.bits(PLACE_BITS);
        if draw == self.first { self.bernoulli_beyond(stream) } else { draw < self.first }
    }

    /// The same if the first bits are equal.
    #[cold]
    pub(super) fn bernoulli_beyond(&mut self, stream: &mut Stream) -> bool {
        for position in 0.. {
            if position == self.more.len() {
                self.more.push(stream.next_u64());
            }
            let draw = stream.next_u64();
            if draw != self.more[position] {
                return draw < self.more[position];
            }
        }
        unreachable!("equal for ever has probability zero")
    }
}
