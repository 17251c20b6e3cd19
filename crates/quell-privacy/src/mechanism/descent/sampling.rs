//! Sampling of records: batches, and the blocks in which they are summed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::summation::SAMPLING_STREAM;
use crate::{
    Error, Event, Neighbors,
    noise::random::{Key, Stream},
    number::format_brief,
    units::SamplingRate,
};

/// How batches are formed.
///
/// ```
/// use quell_privacy::mechanism::Sampling;
/// let text = r#"{"without_replacement":{"size":256,"records":60000}}"#;
/// let sampling = Sampling::WithoutReplacement { size: 256, records: 60_000 };
/// assert_eq!(serde_json::from_str::<Sampling>(text).unwrap(), sampling);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sampling {
    /// Poisson sampling: each record enters the batch independently, with the same probability.
    Poisson {
        /// Probability that a record enters the batch.
        rate: SamplingRate,
    },
    /// Every record is in every batch.
    Full,
    /// A uniformly random set of fixed size.
    ///
    /// The number of records must be public, so this requires replace-one neighbours.
    WithoutReplacement {
        /// Records in a batch.
        size: u64,
        /// Records in the dataset.
        records: u64,
    },
    /// Each record is put into one of several batches, at random.
    ///
    /// No amplification is claimed.
    Shuffled {
        /// Number of batches in one run.
        batches: u32,
    },
}

/// Which records are in the batches of one run.
pub(super) enum Order {
    /// One batch, drawn when its step is taken.
    Single {
        /// Records in the data.
        records: usize,
    },
    /// Batches that were formed when the run started.
    Partition {
        /// All records, batch after batch.
        order: Vec<usize>,
        /// Where each batch begins, and where the last one ends.
        cuts: Vec<usize>,
    },
}

impl Order {
    pub(super) fn batches(&self) -> usize {
        match self {
            Self::Single { .. } => 1,
            Self::Partition { cuts, .. } => cuts.len().saturating_sub(1),
        }
    }

    /// The records of one batch.
    pub(super) fn draw(&self, batch: usize, sampling: Sampling, stream: &mut Stream) -> Vec<usize> {
        match self {
            Self::Single { records } => sampling.draw(*records, stream),
            Self::Partition { order, cuts } => {
                let range = cuts.get(batch).zip(cuts.get(batch + 1)).map_or(0..0, |(from, to)| *from..*to);
                order.get(range).unwrap_or(&[]).to_vec()
            }
        }
    }
}

impl Sampling {
    /// The cost of a step that costs `event` on its batch.
    pub(in crate::mechanism) fn event(self, event: Event) -> Event {
        match self {
            Self::Poisson { rate } if rate.get() < 1.0 => event.poisson_sampled(rate),
            Self::WithoutReplacement { size, records } if size < records => {
                Event::SampledWithoutReplacement { batch: size, records, event: Box::new(event) }
            }
            Self::Poisson { .. } | Self::Full | Self::WithoutReplacement { .. } | Self::Shuffled { .. } => {
                event
            }
        }
    }

    /// Number of batches, and so of steps, in one run of the mechanism.
    #[must_use]
    pub fn batches(self) -> u64 {
        match self {
            Self::Shuffled { batches } => batches.into(),
            Self::Poisson { .. } | Self::Full | Self::WithoutReplacement { .. } => 1,
        }
    }

    /// Forms the batches of one run over so many records. Only shuffling requests the key.
    pub(super) fn order(
        self,
        records: usize,
        key: impl FnOnce() -> Result<Key, Error>,
    ) -> Result<Order, Error> {
        let Self::Shuffled { batches } = self else { return Ok(Order::Single { records }) };
        let mut stream = key()?.stream(SAMPLING_STREAM);
        let batch_of: Vec<u32> = (0..records).map(|_| stream.below(u128::from(batches)) as u32).collect();
        #[cfg(feature = "exact-statistics")]
        let batch_of = match crate::exact::coins(records) {
            Some(numbers) => numbers.into_iter().map(|number| (number % u64::from(batches)) as u32).collect(),
            None => batch_of,
        };
        // Sorted by batch, and by record within a batch.
        let mut order: Vec<usize> = (0..records).collect();
        order.sort_by_key(|record| batch_of[*record]);
        let cuts =
            (0..=batches).map(|batch| order.partition_point(|record| batch_of[*record] < batch)).collect();
        Ok(Order::Partition { order, cuts })
    }

    /// Checks whether a theorem covers this sampling.
    pub(super) fn check(self, neighbors: Neighbors) -> Result<(), Error> {
        if self == (Self::Shuffled { batches: 0 }) {
            return Err(Error::OutOfRange { what: "batches", value: 0.0, range: "[1, 2^32)" });
        }
        let Self::WithoutReplacement { size, records } = self else { return Ok(()) };
        if neighbors == Neighbors::AddRemove {
            return Err(Error::Unfit {
                what: "a batch of fixed size",
                because: "if records are added or removed, their number is not public; use Poisson sampling, or replace-one neighbours",
            });
        }
        if size == 0 || size > records {
            return Err(Error::OutOfRange { what: "size", value: size as f64, range: "[1, records]" });
        }
        Ok(())
    }

    /// Draws the records of one batch, out of `records`.
    ///
    /// For batches of a fixed size, positions are drawn out of the number of records that was paid for. A
    /// position without a record adds nothing, and a record beyond the last position never takes part. No
    /// error depends on the number of records, because the batch is already paid for.
    pub(in crate::mechanism) fn draw(self, records: usize, stream: &mut Stream) -> Vec<usize> {
        #[cfg(feature = "exact-statistics")]
        if let Some(batch) = self.observed_batch(records) {
            return batch;
        }
        match self {
            Self::Poisson { rate } if rate.get() < 1.0 => poisson(records, rate, stream),
            Self::Poisson { .. } | Self::Full => (0..records).collect(),
            // `order` forms these batches, so nothing is drawn here.
            Self::Shuffled { .. } => Vec::new(),
            Self::WithoutReplacement { size, records: paid } => {
                let places = subset(paid as usize, size as usize, stream);
                places.into_iter().filter(|place| *place < records).collect()
            }
        }
    }
}

#[cfg(feature = "exact-statistics")]
impl Sampling {
    /// Draws the batch by the records' own random numbers, if a test observes them.
    fn observed_batch(self, records: usize) -> Option<Vec<usize>> {
        match self {
            Self::Poisson { rate } if rate.get() < 1.0 => {
                let numbers = crate::exact::coins(records)?;
                Some(
                    (0..records)
                        .filter(|record| (numbers[*record] as f64) < rate.get() * 2_f64.powi(64))
                        .collect(),
                )
            }
            Self::Poisson { .. } | Self::Full | Self::Shuffled { .. } => None,
            Self::WithoutReplacement { size, records: paid } => {
                let numbers = crate::exact::coins(paid as usize)?;
                let mut places: Vec<usize> = (0..paid as usize).collect();
                places.sort_by_key(|place| numbers[*place]);
                places.truncate(size as usize);
                places.sort_unstable();
                Some(places.into_iter().filter(|place| *place < records).collect())
            }
        }
    }
}

impl std::fmt::Display for Sampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Poisson { rate } => write!(f, "on a Poisson sample of rate {}", format_brief(rate.get())),
            Self::Full => f.write_str("over all records"),
            Self::WithoutReplacement { size, records } => {
                write!(f, "on {size} of {records} records without replacement")
            }
            Self::Shuffled { batches } => write!(f, "over {batches} batches that contain each record once"),
        }
    }
}

/// Leading bits of a uniform number, which are compared first …
const LEADING_BITS: u32 = 16;
/// … and trailing bits, drawn only if the leading bits equal those of the rate.
const TRAILING_BITS: u32 = 47;

/// Draws each record independently.
///
/// Exact for rates that are multiples of 2⁻⁶³; other rates are rounded down, so that less is sampled than is
/// charged for.
fn poisson(records: usize, rate: SamplingRate, stream: &mut Stream) -> Vec<usize> {
    // Below 2⁶³, because the rate is below one.
    let numerator = (rate.get() * (1_u64 << (LEADING_BITS + TRAILING_BITS)) as f64) as u64;
    let (leading, trailing) = (numerator >> TRAILING_BITS, numerator % (1 << TRAILING_BITS));
    let mut batch = Vec::new();
    let mut bytes = [0; 4096];
    for start in (0..records).step_by(bytes.len() / 2) {
        let count = (records - start).min(bytes.len() / 2);
        stream.fill(&mut bytes[..2 * count]);
        for (record, digits) in (start..).zip(bytes[..2 * count].as_chunks().0) {
            let digits = u64::from(u16::from_le_bytes(*digits));
            // The first digits that differ decide whether a uniform number is below the rate.
            if digits < leading || (digits == leading && stream.bits(TRAILING_BITS) < trailing) {
                batch.push(record);
            }
        }
    }
    batch
}

/// Draws a set of `size` out of 0, …, records - 1, all sets being equally likely.
///
/// # Theorem
/// [BF87] For j = n - k, …, n - 1 one of 0, …, j is drawn and taken, or j itself if it was taken before. If
/// before step j every set of i numbers below j is equally likely, then after it every set of i + 1 numbers
/// below j + 1 is: one without j arises from i + 1 sets by one draw each, one with j from one set by i + 1
/// draws, each of probability 1/(j + 1).
fn subset(records: usize, size: usize, stream: &mut Stream) -> Vec<usize> {
    let mut taken = BTreeSet::new();
    for last in records.saturating_sub(size)..records {
        let drawn = stream.below(last as u128 + 1) as usize;
        if !taken.insert(drawn) {
            taken.insert(last);
        }
    }
    taken.into_iter().collect()
}

/// A record of a batch, with a random tag that decides its block.
pub(super) type Drawn = (u64, usize);

/// Gives each record of a batch a random tag, and orders the batch for [`pieces`] of `most` records or more.
///
/// The order is by tag, except that records whose tags agree in all bits that pieces depend on stay in their
/// order. So the records of nearly every piece lie in the order of their numbers.
pub(super) fn tagged(batch: Vec<usize>, most: usize, stream: &mut Stream) -> Vec<Drawn> {
    let mut bytes = vec![0; 8 * batch.len()];
    stream.fill(&mut bytes);
    let tags = bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    #[cfg(feature = "exact-statistics")]
    let tags = {
        let numbers = crate::exact::coins(batch.iter().map(|record| record + 1).max().unwrap_or(0));
        let own: Vec<u64> = tags.collect();
        let of = |(tag, record): (u64, &usize)| numbers.as_ref().map_or(tag, |numbers| numbers[*record]);
        own.into_iter().zip(&batch).map(of).collect::<Vec<_>>().into_iter()
    };
    ordered(tags.zip(batch).collect(), most)
}

/// Orders a batch by as many leading bits of the tags as pieces of `most` records or more depend on.
///
/// A first pass counts how many tags begin with each pattern of bits, a second one moves each record to its
/// place. Only where more than `most` tags begin with the same pattern do later bits matter.
fn ordered(batch: Vec<Drawn>, most: usize) -> Vec<Drawn> {
    // On average there are `most`/2 to `most` records for each pattern; a batch of one piece has one pattern.
    let bits = batch.len().div_ceil(most.max(1)).next_power_of_two().trailing_zeros();
    let pattern = |tag: u64| tag.checked_shr(u64::BITS - bits).unwrap_or(0) as usize;
    let mut ends = vec![0; 1 << bits];
    for (tag, _) in &batch {
        ends[pattern(*tag)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        // At first the place of the first record of the pattern, and after the second pass the end.
        sum += std::mem::replace(end, sum);
    }
    let mut ordered = vec![(0, 0); batch.len()];
    for drawn in batch {
        let place = &mut ends[pattern(drawn.0)];
        ordered[*place] = drawn;
        *place += 1;
    }
    let mut start = 0;
    for end in ends {
        if end - start > most {
            ordered[start..end].sort_unstable();
        }
        start = end;
    }
    ordered
}

/// Divides a batch that [`tagged`] ordered into pieces of at most `most` records.
///
/// Pieces are halved by the next bit of the tags until they are small enough. Tags are independent of
/// everything, so a record affects only the composition of its own piece, however records are numbered.
pub(super) fn pieces(batch: &[Drawn], most: usize) -> Vec<&[Drawn]> {
    let mut pieces = Vec::new();
    halve(batch, u64::BITS, most, &mut pieces);
    pieces
}

fn halve<'b>(batch: &'b [Drawn], bits: u32, most: usize, pieces: &mut Vec<&'b [Drawn]>) {
    if batch.is_empty() {
    } else if batch.len() <= most {
        pieces.push(batch);
    } else if let Some(bit) = bits.checked_sub(1) {
        let (low, high) = batch.split_at(batch.partition_point(|(tag, _)| tag >> bit & 1 == 0));
        halve(low, bit, most, pieces);
        halve(high, bit, most, pieces);
    } else {
        // 97 equal tags: for fewer than 2⁵⁰ records the probability is below 2⁻⁸⁰⁰.
        pieces.extend(batch.chunks(most));
    }
}

#[cfg(test)]
mod tests;
