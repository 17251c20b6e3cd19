//! Teachers: models trained on disjoint shards of the private records, one shard each.

use quell_privacy::Neighbors;
use rayon::prelude::*;

use super::ballots::ABSTAINS;
use crate::{
    Error,
    data::Examples,
    learner::{
        loss::{Loss, Target},
        predictions,
    },
    network::Network,
    voting::student,
};

/// The shard of each record.
///
/// The shard depends on the record, its user or its row only. So a change of one record changes one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    of: Vec<u32>,
    count: usize,
}

impl Shards {
    /// Distributes records to `count` shards.
    ///
    /// Under add-remove neighbours the shard depends on the content or the user of a record. It cannot depend
    /// on the index, because a removed record shifts the indices of all later records.
    ///
    /// Under replace-one neighbours the shard depends on the row in the raw data. If it depended on the
    /// content, or on the index among the usable records, a replacement could change two shards.
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

    /// Checks that a change of one record, or of one user, changes one shard only.
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

    /// Makes shards that the caller has chosen.
    ///
    /// # Contract
    /// The shard of a record depends on that record or its user only.
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

/// The data and settings of all teachers.
pub struct Teachers<'a> {
    /// The private records. Each teacher is trained on the records of its own shard.
    pub examples: &'a Examples,
    /// The shard of each record.
    pub shards: &'a Shards,
    /// The network of each teacher.
    pub network: &'a Network,
    /// How teachers are trained.
    pub training: &'a student::SoftLabelTraining,
    /// The public records on which teachers vote.
    pub public: &'a Examples,
    /// The seed of the initial weights; teacher number n uses the seed plus n.
    pub seed: u64,
}

impl Teachers<'_> {
    /// Trains the teachers of some shards in parallel, and calls `each` with a teacher's ballots.
    ///
    /// A trained teacher votes and is then dropped, so only a few teachers are in memory at a time. A teacher
    /// with an empty shard abstains.
    pub fn vote(
        &self,
        shards: &[usize],
        each: impl Fn(usize, &[u16]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        shards.par_iter().try_for_each(|shard| each(*shard, &self.ballots(*shard)?))
    }

    fn ballots(&self, shard: usize) -> Result<Vec<u16>, Error> {
        let records = self.shards.records(shard);
        if records.is_empty() {
            return Ok(vec![ABSTAINS; self.public.len()]);
        }
        let examples = self.examples.select(&records);
        let classes = self.network.outputs();
        // Soft labels that give all probability to the class of the record.
        let mut targets = vec![0.0; records.len() * classes];
        for (record, target) in targets.chunks_exact_mut(classes).enumerate() {
            if let Some(one) = examples.label(record).and_then(|label| target.get_mut(label as usize)) {
                *one = 1.0;
            }
        }
        let seed = self.seed.wrapping_add(shard as u64);
        let weights = self.training.train(self.network, &examples, &targets, seed, |_, _| ())?;
        let predicted =
            predictions(self.network, &weights, self.public, Loss::CrossEntropy { label_smoothing: 0.0 });
        Ok(predicted
            .into_iter()
            .map(|target| if let Some(Target::Class(class)) = target { class as u16 } else { ABSTAINS })
            .collect())
    }
}
