//! The exact statistics behind releases, for tests that run whole pipelines on neighbouring datasets.
//!
//! This module exists only with the feature `exact-statistics`. No crate turns the feature on by default, and
//! it does not compile without debug assertions: no released program contains it.
//!
//! While [`watch`] runs, on its thread:
//! - the statistics to which noise would be added are recorded, and noise is added to zeros in their place.
//!   So every release depends only on the random numbers, and must be the same for neighbours, to the last
//!   bit: files, counts, words and errors.
//! - random numbers depend only on a seed and on the identity of each record. Records that two datasets have
//!   in common therefore get the same random numbers in both, whatever their positions.

use std::{any::Any, cell::RefCell, fmt::Display};

use crate::{
    mechanism::KeyedNumber,
    noise::random::{Key, Randomness},
};

/// The norm in which the distance of two statistics is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Sum of the absolute differences.
    L1,
    /// Root of the sum of the squared differences.
    L2,
    /// The largest absolute difference.
    Largest,
}

/// A recorded statistic, and how far the charge allows one record to move it.
///
/// It is what noise is added to, or the records that a mechanism is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// The description of the mechanism.
    pub mechanism: String,
    /// The numbers without noise.
    pub values: Vec<f64>,
    /// The norm of their distance.
    pub norm: Norm,
    /// Largest distance when a record is added or removed.
    pub addition: f64,
    /// Largest distance when a record is replaced.
    pub exchange: f64,
}

impl Statistic {
    /// The distance from the numbers of another dataset.
    ///
    /// The distance is infinite if the lengths differ or a number is NaN.
    #[must_use]
    pub fn distance(&self, other: &Self) -> f64 {
        if self.values.len() != other.values.len()
            || self.values.iter().chain(&other.values).any(|x| x.is_nan())
        {
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

/// The source of random numbers.
#[derive(Clone, Debug, Default)]
pub struct Coins {
    /// The seed of all random numbers.
    pub seed: u64,
    /// A stable identity for each record.
    ///
    /// It distinguishes the record from others and does not change when other records are added or removed. A
    /// record that is not in the list is identified by its position.
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

/// Runs `work` and returns its result with the statistics behind its releases.
pub fn watch<R>(coins: Coins, work: impl FnOnce() -> R) -> (R, Vec<Statistic>) {
    let keys = Randomness::seeded(coins.seed);
    WATCH.set(Some(Watch { coins, draws: 0, keys, seen: Vec::new() }));
    let result = work();
    (result, WATCH.take().map(|watch| watch.seen).unwrap_or_default())
}

/// Replaces the identities, for a pipeline whose records are known only while it runs.
pub fn identify(identities: Vec<u64>) {
    with(|watch| watch.coins.identities = identities);
}

fn with<R>(work: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map(work))
}

/// Records a statistic. Returns whether it was recorded: then it must not be released.
pub(crate) fn withhold(
    mechanism: &impl Display,
    norm: Norm,
    (addition, exchange): (f64, f64),
    values: impl FnOnce() -> Vec<f64>,
) -> bool {
    let mechanism = || mechanism.to_string();
    with(|watch| {
        watch.seen.push(Statistic { mechanism: mechanism(), values: values(), norm, addition, exchange });
    })
    .is_some()
}

/// Number of buckets in which records are counted, by a hash of their content.
const BUCKETS: usize = 256;

/// Records which records a mechanism is given, as counts by a hash of their content.
///
/// Returns whether they were recorded: then they must not be used.
pub(crate) fn withhold_records(data: &dyn Any) -> bool {
    let buckets = |hashes: &mut dyn Iterator<Item = u64>| {
        let mut counts = vec![0.0; BUCKETS];
        hashes.for_each(|hash| counts[(hash % BUCKETS as u64) as usize] += 1.0);
        counts
    };
    let text = |text: &Option<String>| {
        text.as_deref().unwrap_or("\0").bytes().fold(7, |hash, byte| mix(hash ^ u64::from(byte)))
    };
    let (values, exchange) = if let Some(count) = data.downcast_ref::<u64>() {
        (vec![*count as f64], 1.0)
    } else if let Some(numbers) = data.downcast_ref::<Vec<f64>>() {
        (buckets(&mut numbers.iter().map(|number| mix(number.to_bits()))), 2.0)
    } else if let Some(keys) = data.downcast_ref::<Vec<Option<String>>>() {
        (buckets(&mut keys.iter().map(text)), 2.0)
    } else if let Some(records) = data.downcast_ref::<Vec<KeyedNumber>>() {
        let hash = |(key, number): &KeyedNumber| mix(text(key) ^ number.to_bits());
        (buckets(&mut records.iter().map(hash)), 2.0)
    } else {
        // Other types must state here how far they move.
        (vec![f64::NAN], 0.0)
    };
    withhold(&"records", Norm::L1, (1.0, exchange), || values)
}

/// The key of a release.
pub(crate) fn key() -> Option<Key> {
    with(|watch| watch.keys.key().ok()).flatten()
}

/// A random number for each record, from its identity and the number of earlier calls.
pub(crate) fn coins(records: usize) -> Option<Vec<u64>> {
    with(|watch| {
        watch.draws += 1;
        let of = |record: usize| watch.coins.identities.get(record).copied().unwrap_or(record as u64);
        (0..records).map(|record| mix(mix(watch.coins.seed ^ mix(watch.draws)) ^ of(record))).collect()
    })
}

/// The finalizer of Steele, Lea and Flood: for tests, not for secrets.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
