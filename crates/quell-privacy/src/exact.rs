//! The exact statistics behind releases, for tests that run whole pipelines on neighbouring datasets.
//!
//! This module exists with the feature `exact-statistics` alone, which no crate turns on by default and which does not compile without debug assertions: no released program has it.
//!
//! While [`watch`] runs, on its thread:
//! - what noise would be added to is written down, and noise is added to zeros in its place. So everything that is released follows from the coins, and must be the same for neighbours,
//!   to the last bit: files, counts, words and errors.
//! - coins follow from a seed and from the identity of each record, so that records that two datasets have in common have the same coins in both, whatever their numbers.

use std::{any::Any, cell::RefCell, fmt::Display};

use crate::noise::random::{Key, Randomness};

/// How far two statistics are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Sum of the distances of the numbers.
    L1,
    /// Root of the sum of their squares.
    L2,
    /// The largest of them.
    Largest,
}

/// What noise is added to, or which records a mechanism is given, and how far one record may move it by what is charged for.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// The mechanism, in words.
    pub mechanism: String,
    /// The numbers without noise.
    pub values: Vec<f64>,
    /// How their distance is measured.
    pub norm: Norm,
    /// The farthest that they move when a record comes or goes.
    pub addition: f64,
    /// The farthest that they move when a record is exchanged for another.
    pub exchange: f64,
}

impl Statistic {
    /// How far the numbers are from those of another dataset; infinite if they are not as many, or one is no number.
    #[must_use]
    pub fn distance(&self, other: &Self) -> f64 {
        if self.values.len() != other.values.len() || self.values.iter().chain(&other.values).any(|x| x.is_nan()) {
            return f64::INFINITY;
        }
        let apart = self.values.iter().zip(&other.values).map(|(a, b)| (a - b).abs());
        match self.norm {
            Norm::L1 => apart.sum(),
            Norm::L2 => apart.map(|x| x * x).sum::<f64>().sqrt(),
            Norm::Largest => apart.fold(0.0, f64::max),
        }
    }
}

/// Where coins come from.
#[derive(Clone, Debug, Default)]
pub struct Coins {
    /// What they follow from.
    pub seed: u64,
    /// For each record something that tells it from others and does not change when others come and go; its number if it is not among these.
    pub identities: Vec<u64>,
}

struct Watch {
    coins: Coins,
    draws: u64,
    keys: Randomness,
    seen: Vec<Statistic>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Runs something, and hands out what its releases would have been made of.
pub fn watch<R>(coins: Coins, work: impl FnOnce() -> R) -> (R, Vec<Statistic>) {
    let keys = Randomness::seeded(coins.seed);
    WATCH.set(Some(Watch { coins, draws: 0, keys, seen: Vec::new() }));
    let result = work();
    (result, WATCH.take().map(|watch| watch.seen).unwrap_or_default())
}

/// Other identities from now on: for a pipeline whose records are known only while it runs.
pub fn identify(identities: Vec<u64>) {
    with(|watch| watch.coins.identities = identities);
}

fn with<R>(work: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map(work))
}

/// Writes down a statistic. Whether it was: then it must not be released.
pub(crate) fn withhold(
    mechanism: &impl Display,
    norm: Norm,
    (addition, exchange): (f64, f64),
    values: impl FnOnce() -> Vec<f64>,
) -> bool {
    let mechanism = || mechanism.to_string();
    with(|watch| watch.seen.push(Statistic { mechanism: mechanism(), values: values(), norm, addition, exchange })).is_some()
}

/// Buckets that records are counted in, by what they hold.
const BUCKETS: usize = 256;

/// Writes down which records are handed to a mechanism, as counts by a hash of what they hold. Whether they were: then they must not be used.
pub(crate) fn withhold_records(data: &dyn Any) -> bool {
    let buckets = |hashes: &mut dyn Iterator<Item = u64>| {
        let mut counts = vec![0.0; BUCKETS];
        hashes.for_each(|hash| counts[(hash % BUCKETS as u64) as usize] += 1.0);
        counts
    };
    let text = |text: &Option<String>| text.as_deref().unwrap_or("\0").bytes().fold(7, |hash, byte| mix(hash ^ u64::from(byte)));
    let (values, exchange) = if let Some(count) = data.downcast_ref::<u64>() {
        (vec![*count as f64], 1.0)
    } else if let Some(numbers) = data.downcast_ref::<Vec<f64>>() {
        (buckets(&mut numbers.iter().map(|number| mix(number.to_bits()))), 2.0)
    } else if let Some(keys) = data.downcast_ref::<Vec<Option<String>>>() {
        (buckets(&mut keys.iter().map(text)), 2.0)
    } else {
        // Whoever hands in something else must say here how far it moves.
        (vec![f64::NAN], 0.0)
    };
    withhold(&"records", Norm::L1, (1.0, exchange), || values)
}

/// The key of a release.
pub(crate) fn key() -> Option<Key> {
    with(|watch| watch.keys.key().ok()).flatten()
}

/// A number for each of so many records, which follows from its identity and from how often this was asked.
pub(crate) fn coins(records: usize) -> Option<Vec<u64>> {
    with(|watch| {
        watch.draws += 1;
        let of = |record: usize| watch.coins.identities.get(record).copied().unwrap_or(record as u64);
        (0..records).map(|record| mix(mix(watch.coins.seed ^ mix(watch.draws)) ^ of(record))).collect()
    })
}

/// Steele, Lea and Flood's finalizer: for tests, not for secrets.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
