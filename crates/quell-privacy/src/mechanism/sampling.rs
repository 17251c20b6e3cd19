//! Who takes part: batches, and the blocks they are summed in.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Error, Event, Neighbors, noise::random::Stream, number::brief, units::SamplingRate};

/// How the batch of a step is drawn.
///
/// ```
/// use quell_privacy::mechanism::Sampling;
/// let text = r#"{"without_replacement":{"size":256,"records":60000}}"#;
/// assert_eq!(serde_json::from_str::<Sampling>(text).unwrap(), Sampling::WithoutReplacement { size: 256, records: 60_000 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sampling {
    /// Each record on its own coin.
    Poisson {
        /// Probability that a record enters the batch.
        rate: SamplingRate,
    },
    /// Every record.
    Full,
    /// A set of fixed size, each as likely as any other. The number of records must be public, so one record may only be replaced.
    WithoutReplacement {
        /// Records in a batch.
        size: u64,
        /// Records in the dataset.
        records: u64,
    },
}

impl Sampling {
    /// What a step costs if it costs `event` on its batch.
    pub(super) fn event(self, event: Event) -> Event {
        match self {
            Self::Poisson { rate } if rate.get() < 1.0 => event.poisson_sampled(rate),
            Self::WithoutReplacement { size, records } if size < records => {
                Event::SampledWithoutReplacement { batch: size, records, event: Box::new(event) }
            }
            Self::Poisson { .. } | Self::Full | Self::WithoutReplacement { .. } => event,
        }
    }

    /// Whether there is a theorem for it.
    pub(super) fn check(self, neighbors: Neighbors) -> Result<(), Error> {
        let Self::WithoutReplacement { size, records } = self else { return Ok(()) };
        if neighbors == Neighbors::AddRemove {
            return Err(Error::Unfit {
                what: "a batch of fixed size",
                because: "where records come and go their number is not public; hint: sample by Poisson, or open a ledger under which one record is replaced",
            });
        }
        if size == 0 || size > records {
            return Err(Error::OutOfRange { what: "size", value: size as f64, range: "[1, records]" });
        }
        Ok(())
    }

    /// The records of one batch, out of so many.
    ///
    /// Where batches have a fixed size, places are drawn out of the number that was paid for. A place without a record adds nothing, and a record beyond the last place never takes part: no error
    /// depends on how many there are, since everything is paid for by now.
    pub(super) fn draw(self, records: usize, stream: &mut Stream) -> Vec<usize> {
        #[cfg(feature = "exact-statistics")]
        if let Some(batch) = self.watched(records) {
            return batch;
        }
        match self {
            Self::Poisson { rate } if rate.get() < 1.0 => poisson(records, rate, stream),
            Self::Poisson { .. } | Self::Full => (0..records).collect(),
            Self::WithoutReplacement { size, records: paid } => {
                let places = subset(paid as usize, size as usize, stream);
                places.into_iter().filter(|place| *place < records).collect()
            }
        }
    }
}

#[cfg(feature = "exact-statistics")]
impl Sampling {
    /// The batch, by coins that follow from who the records are, if that is watched.
    fn watched(self, records: usize) -> Option<Vec<usize>> {
        match self {
            Self::Poisson { rate } if rate.get() < 1.0 => {
                let coins = crate::exact::coins(records)?;
                Some((0..records).filter(|record| (coins[*record] as f64) < rate.get() * 2_f64.powi(64)).collect())
            }
            Self::Poisson { .. } | Self::Full => None,
            Self::WithoutReplacement { size, records: paid } => {
                let coins = crate::exact::coins(paid as usize)?;
                let mut places: Vec<usize> = (0..paid as usize).collect();
                places.sort_by_key(|place| coins[*place]);
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
            Self::Poisson { rate } => write!(f, "on a Poisson sample of rate {}", brief(rate.get())),
            Self::Full => f.write_str("over all records"),
            Self::WithoutReplacement { size, records } => write!(f, "on {size} of {records} records"),
        }
    }
}

/// Digits of a coin that are compared first …
const LEADING_BITS: u32 = 16;
/// … and those behind them, which are drawn only if the first are equal.
const TRAILING_BITS: u32 = 47;

/// Each record on its own coin, exact for rates that are multiples of 2⁻⁶³ and rounded down to one otherwise: less is sampled than is charged for.
fn poisson(records: usize, rate: SamplingRate, stream: &mut Stream) -> Vec<usize> {
    // Below 2⁶³, for the rate is below one.
    let numerator = (rate.get() * (1_u64 << (LEADING_BITS + TRAILING_BITS)) as f64) as u64;
    let (leading, trailing) = (numerator >> TRAILING_BITS, numerator % (1 << TRAILING_BITS));
    let mut batch = Vec::new();
    let mut bytes = [0; 4096];
    for start in (0..records).step_by(bytes.len() / 2) {
        let count = (records - start).min(bytes.len() / 2);
        stream.fill(&mut bytes[..2 * count]);
        for (record, digits) in (start..).zip(bytes[..2 * count].as_chunks().0) {
            let digits = u64::from(u16::from_le_bytes(*digits));
            // A uniform number is below the rate if the first digits in which they differ are.
            if digits < leading || (digits == leading && stream.bits(TRAILING_BITS) < trailing) {
                batch.push(record);
            }
        }
    }
    batch
}

/// A set of `size` out of 0, …, records - 1, all sets being equally likely.
///
/// # Theorem
/// [BF87] For j = n - k, …, n - 1 one of 0, …, j is drawn and taken, or j itself if it was taken before. If before step j every set of i
/// numbers below j is equally likely, then after it every set of i + 1 numbers below j + 1 is: one without j arises from i + 1 sets by one draw each, one
/// with j from one set by i + 1 draws, each of probability 1/(j + 1).
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

/// A record of a batch, behind a random tag by which it is put into a block.
pub(super) type Drawn = (u64, usize);

/// Tags for a batch, and the batch in their order.
pub(super) fn tagged(batch: impl IntoIterator<Item = usize>, stream: &mut Stream) -> Vec<Drawn> {
    let mut batch: Vec<Drawn> = batch.into_iter().map(|record| (stream.next_u64(), record)).collect();
    #[cfg(feature = "exact-statistics")]
    if let Some(coins) = crate::exact::coins(batch.iter().map(|(_, record)| record + 1).max().unwrap_or(0)) {
        for (tag, record) in &mut batch {
            *tag = coins[*record];
        }
    }
    batch.sort_unstable();
    batch
}

/// A batch, in order of tags, in pieces of at most `most` records: halved by the next bit of the tags until they are small enough. Tags are
/// independent of everything, so who shares a piece depends on a record only in the piece that it is in itself, however records are numbered.
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
