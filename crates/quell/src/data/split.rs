//! Which records train and which test.
//!
//! A rule by number (every fifth record) would not do: if one person is added, all later records change sides, so that
//! neighbouring datasets have training parts that differ in everything. Here a record's side depends on its own content
//! alone, or on its user's name, hence neighbours have training parts that are neighbours or equal, and no user is on both
//! sides. Equal records are on one side.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A share of the records, chosen by a hash of their content (or of their users' names) and of nothing else.
///
/// ```
/// use quell::data::{Examples, Split, Targets};
/// let values: Vec<f32> = (0_u16..1000).map(f32::from).collect();
/// let all = Examples::numbers(&[1], values.clone(), Targets::Numbers(values))?;
/// let (train, test) = all.split(Split { share: 0.2 })?;
/// assert_eq!(train.len() + test.len(), 1000);
/// assert!((150..250).contains(&test.len()));
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The probability of a record to be tested on, in [0, 1).
    pub share: f64,
}

impl Split {
    pub(super) fn check(self) -> Result<(), Error> {
        if (0.0..1.0).contains(&self.share) {
            return Ok(());
        }
        Err(Error::Setting { name: "share", found: self.share.to_string(), expected: "a number in [0, 1)" })
    }

    /// Whether what has this tag is tested on.
    pub(super) fn tests(self, tag: Tag) -> bool {
        (tag.first as f64) < self.share * 2_f64.powi(64)
    }
}

/// 128 bits of a hash: uniform for all that one can know, the same for ever, and too many for two names to have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Tag {
    /// Decides about split, shard and order, so that they are those of runs from when a tag had no more than this.
    first: u64,
    second: u64,
}

impl Tag {
    /// By the last digits: the first have decided about the split.
    pub(super) fn shard(self, shards: usize) -> usize {
        (self.first % (1 << 48) % shards as u64) as usize
    }

    /// By the bytes of a name, which are never parsed or replaced: two people must not become one user. A blank name is nobody's.
    pub(super) fn of_user(name: &[u8]) -> Option<Self> {
        (!name.trim_ascii().is_empty()).then(|| Self::of("quell data split by user, version 1", &[name]))
    }

    pub(super) fn of_record(features: &[u8], target: [u8; 4]) -> Self {
        Self::of("quell data split by record, version 1", &[features, &target])
    }

    fn of(context: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        for part in parts {
            hasher.update(part);
        }
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        let both = u128::from_le_bytes(bytes);
        Self { first: both as u64, second: (both >> 64) as u64 }
    }
}

/// Who the records belong to.
#[derive(Clone)]
pub(super) struct Users {
    /// For each record, an index into the tags.
    pub(super) of: Vec<u32>,
    /// One for each user.
    pub(super) tags: Vec<Tag>,
}

impl Users {
    /// Numbers users in the order in which they come. Records without one are left out afterwards.
    pub(super) fn new(records: impl Iterator<Item = Option<Tag>>) -> Self {
        let (mut of, mut tags, mut seen) = (Vec::new(), Vec::new(), HashMap::new());
        for tag in records {
            of.push(tag.map_or(u32::MAX, |tag| {
                *seen.entry(tag).or_insert_with(|| {
                    tags.push(tag);
                    tags.len() as u32 - 1
                })
            }));
        }
        Self { of, tags }
    }

    pub(super) fn tag(&self, record: usize) -> Option<Tag> {
        self.tags.get(self.of[record] as usize).copied()
    }
}
