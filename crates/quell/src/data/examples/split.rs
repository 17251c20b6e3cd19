//! Assigns records to the training part or the test part.
//!
//! A rule by position (every fifth record) is not private: if one person is added, all later records change
//! parts, and neighbouring datasets have completely different training parts. Here the part of a record
//! depends on its own content alone, or on the name of its user. So neighbouring datasets have training parts
//! that are neighbours or equal, and no user is in both parts. Equal records are in the same part.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A share of the records to test on, chosen by a hash.
///
/// The hash depends only on the content of a record, or on the name of its user if users are known.
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
    /// The probability that a record is in the test part, in [0, 1).
    pub share: f64,
}

impl Split {
    pub(in crate::data) fn check(self) -> Result<(), Error> {
        if (0.0..1.0).contains(&self.share) {
            return Ok(());
        }
        Err(Error::Setting { name: "share", found: self.share.to_string(), expected: "a number in [0, 1)" })
    }

    /// Returns whether a record with this tag is in the test part.
    pub(in crate::data) fn tests(self, tag: Tag) -> bool {
        (tag.first as f64) < self.share * 2_f64.powi(64)
    }
}

/// A 128-bit hash of a user's name or of a record.
///
/// It is computationally uniform and never changes between versions. With 128 bits, no two names have the
/// same tag in practice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::data) struct Tag {
    /// Decides split, shard and order. Older tags had only these 64 bits, so old runs keep their results.
    first: u64,
    second: u64,
}

impl Tag {
    /// Chooses a shard by the low bits, because the high bits decided the split.
    pub(in crate::data) fn shard(self, shards: usize) -> usize {
        (self.first % (1 << 48) % shards as u64) as usize
    }

    /// Hashes the bytes of a name. A blank name has no tag.
    ///
    /// The bytes are never parsed or replaced: two people must not become one user.
    pub(in crate::data) fn of_user(name: &[u8]) -> Option<Self> {
        (!name.trim_ascii().is_empty()).then(|| Self::of("quell data split by user, version 1", &[name]))
    }

    pub(in crate::data) fn of_record(features: &[u8], target: [u8; 4]) -> Self {
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

/// The users that the records belong to.
#[derive(Clone)]
pub(in crate::data) struct Users {
    /// The index into `tags` of each record.
    pub(in crate::data) of: Vec<u32>,
    /// One tag for each user.
    pub(in crate::data) tags: Vec<Tag>,
}

impl Users {
    /// Numbers users in the order of their first record. The caller leaves out records without a user.
    pub(in crate::data) fn new(records: impl Iterator<Item = Option<Tag>>) -> Self {
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

    pub(in crate::data) fn tag(&self, record: usize) -> Option<Tag> {
        self.tags.get(self.of[record] as usize).copied()
    }
}
