//! Disjoint shards of the private records, one for each teacher.

use quell_privacy::Neighbors;

use crate::{Error, data::Examples};

/// The shard of each record.
/// The shard follows from the record, its user or its row only, so a change of one record changes one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    of: Vec<u32>,
    count: usize,
}

impl Shards {
    /// Distributes records to `count` shards.
    ///
    /// Under add-remove neighbours the shard follows from the content or the user of a record: an index would
    /// shift. Under replace-one neighbours the shard follows from the row in the raw data. By content, or by
    /// the index among the usable records, a replacement could change two shards.
    ///
    /// ```
    /// use quell::{data, voting::pate::Shards};
    /// use quell_privacy::Neighbors;
    /// let digits = data::digits()?.train;
    /// let shards = Shards::deal(&digits, 10, Neighbors::AddRemove)?;
    /// let fewer = digits.select(&(1..digits.len()).collect::<Vec<_>>());
    /// // Without the first record, all others stay where they were.
    /// assert_eq!(Shards::deal(&fewer, 10, Neighbors::AddRemove)?.of(), &shards.of()[1..]);
    /// # Ok::<(), quell::Error>(())
    /// ```
    pub fn deal(examples: &Examples, count: usize, neighbors: Neighbors) -> Result<Self, Error> {
        Self::check(examples, count, neighbors)?;
        let shard = |record: usize| match neighbors {
            Neighbors::AddRemove => examples.shard(record, count),
            Neighbors::Replace => examples.row(record) % count,
        };
        Ok(Self { of: (0..examples.len()).map(|record| shard(record) as u32).collect(), count })
    }

    /// Checks that records can be distributed so that one change changes one shard.
    pub fn check(examples: &Examples, count: usize, neighbors: Neighbors) -> Result<(), Error> {
        if count == 0 || u32::try_from(count).is_err() {
            return Err(Error::Setting {
                name: "teachers",
                found: count.to_string(),
                expected: "at least 1",
            });
        }
        let refused =
            |found: &str, expected| Err(Error::Setting { name: "neighbors", found: found.into(), expected });
        if neighbors == Neighbors::Replace && examples.users().is_some() {
            let expected = "add_remove: replacing a user would change two shards";
            return refused("replace, with several records for a user", expected);
        }
        if neighbors == Neighbors::Replace && !examples.has_places() {
            let expected = "add_remove: replacing an image would change two shards";
            return refused("replace, with records that are files in folders", expected);
        }
        Ok(())
    }

    /// Takes shards that the caller has chosen.
    ///
    /// # Contract
    /// The shard of a record follows from that record or its user only.
    pub fn given(examples: &Examples, of: Vec<u32>, count: usize) -> Result<Self, Error> {
        if of.len() != examples.len() {
            return Err(Error::Sizes { name: "shards" });
        }
        if let Some(shard) = of.iter().find(|shard| **shard as usize >= count) {
            return Err(Error::Setting {
                name: "shard",
                found: shard.to_string(),
                expected: "a number below the number of teachers",
            });
        }
        if let Some(users) = examples.users() {
            let mut seen = vec![None; examples.user_count().unwrap_or(0)];
            for (user, shard) in users.iter().zip(&of) {
                if *seen[*user as usize].get_or_insert(*shard) != *shard {
                    return Err(Error::Setting {
                        name: "shard",
                        found: "different for two records of one user".into(),
                        expected: "one shard for all records of a user",
                    });
                }
            }
        }
        Ok(Self { of, count })
    }

    /// The shard of each record.
    #[must_use]
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// The number of shards, including empty ones.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The indices of the records in one shard.
    #[must_use]
    pub fn records(&self, shard: usize) -> Vec<usize> {
        (0..self.of.len()).filter(|record| self.of[*record] as usize == shard).collect()
    }
}
