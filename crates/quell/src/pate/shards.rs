//! Who learns from whom: disjoint shards.

use quell_privacy::Neighbors;

use crate::{Error, data::Examples};

/// For each record its shard. Which it is follows from the record, its user or its place alone, so that a change of one record touches one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    of: Vec<u32>,
    count: usize,
}

impl Shards {
    /// Deals records to so many shards.
    ///
    /// Where records come and go, by their content or their user: a place among others would shift. Where one is exchanged for another in the same row, by the row in the raw
    /// data: by content the exchange would touch two shards, and so it would by the place among the records that can be used.
    ///
    /// ```
    /// use quell::{data, pate::Shards};
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

    /// Whether records of this kind can be dealt such that a change of one touches one shard.
    pub fn check(examples: &Examples, count: usize, neighbors: Neighbors) -> Result<(), Error> {
        if count == 0 || u32::try_from(count).is_err() {
            return Err(Error::Setting { name: "teachers", found: count.to_string(), expected: "at least 1" });
        }
        let refused = |found: &str, expected| Err(Error::Setting { name: "neighbors", found: found.into(), expected });
        if neighbors == Neighbors::Replace && examples.users().is_some() {
            let expected = "add_remove: a person who is exchanged for another would touch two shards";
            return refused("replace, where people have several records", expected);
        }
        if neighbors == Neighbors::Replace && !examples.has_places() {
            let expected = "add_remove: a picture that is exchanged for another would touch two shards";
            return refused("replace, where records are files in folders", expected);
        }
        Ok(())
    }

    /// As somebody else dealt them.
    ///
    /// # Contract
    /// Which shard a record is in follows from that record or its user alone.
    pub fn given(examples: &Examples, of: Vec<u32>, count: usize) -> Result<Self, Error> {
        if of.len() != examples.len() {
            return Err(Error::Sizes { name: "shards" });
        }
        if let Some(shard) = of.iter().find(|shard| **shard as usize >= count) {
            return Err(Error::Setting { name: "shard", found: shard.to_string(), expected: "a number below that of teachers" });
        }
        if let Some(users) = examples.users() {
            let mut seen = vec![None; examples.user_count().unwrap_or(0)];
            for (user, shard) in users.iter().zip(&of) {
                if *seen[*user as usize].get_or_insert(*shard) != *shard {
                    return Err(Error::TwoShards { who: "user" });
                }
            }
        }
        Ok(Self { of, count })
    }

    /// For each record its shard.
    #[must_use]
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// How many shards there are, empty ones included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The records of one shard.
    #[must_use]
    pub fn records(&self, shard: usize) -> Vec<usize> {
        (0..self.of.len()).filter(|record| self.of[*record] as usize == shard).collect()
    }
}
