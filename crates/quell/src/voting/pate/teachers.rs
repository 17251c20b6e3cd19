//! Teachers: models trained on one shard each, and their ballots.

use rayon::prelude::*;

use super::{Shards, ballots::ABSTAINS};
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

/// The settings and data that all teachers share.
pub struct Teachers<'a> {
    /// The private records; each teacher learns from its own shard.
    pub examples: &'a Examples,
    /// The shard of each record.
    pub shards: &'a Shards,
    /// The network of each teacher.
    pub network: &'a Network,
    /// How teachers are trained.
    pub training: &'a student::Training,
    /// The public records on which teachers vote.
    pub public: &'a Examples,
    /// The seed of the initial weights.
    pub seed: u64,
}

impl Teachers<'_> {
    /// Trains some teachers in parallel and passes on their ballots as they finish.
    /// Only a few teachers are in memory at a time. A teacher with an empty shard abstains.
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
        let mut targets = vec![0.0; records.len() * classes];
        for (record, target) in targets.chunks_exact_mut(classes).enumerate() {
            if let Some(one) = examples.label(record).and_then(|label| target.get_mut(label as usize)) {
                *one = 1.0;
            }
        }
        let seed = self.seed.wrapping_add(shard as u64);
        let weights = self.training.train(self.network, &examples, &targets, seed, |_, _| ())?;
        let said =
            predictions(self.network, &weights, self.public, Loss::CrossEntropy { label_smoothing: 0.0 });
        Ok(said
            .into_iter()
            .map(|said| if let Some(Target::Class(class)) = said { class as u16 } else { ABSTAINS })
            .collect())
    }
}
