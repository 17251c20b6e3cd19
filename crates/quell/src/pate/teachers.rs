//! Models that learn from one shard each, and what they say to the questions.

use rayon::prelude::*;

use super::{Shards, ballots::ABSTAINS};
use crate::{
    Error,
    data::Examples,
    dp_sgd::predictions,
    loss::{Loss, Target},
    network::Network,
    student,
};

/// What all teachers have in common.
pub struct Teachers<'a> {
    /// What they learn from, each from its own shard.
    pub examples: &'a Examples,
    /// Who learns from whom.
    pub shards: &'a Shards,
    /// What they are.
    pub network: &'a Network,
    /// How they learn.
    pub training: &'a student::Recipe,
    /// What they are asked about.
    pub public: &'a Examples,
    /// What their first weights follow from.
    pub seed: u64,
}

impl Teachers<'_> {
    /// Trains some teachers, several at a time, and hands their ballots over as they come: never more than a few are in memory. One whose shard is empty abstains.
    pub fn vote(&self, shards: &[usize], each: impl Fn(usize, &[u16]) -> Result<(), Error> + Sync) -> Result<(), Error> {
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
        let said = predictions(self.network, &weights, self.public, Loss::CrossEntropy { label_smoothing: 0.0 });
        Ok(said.into_iter().map(|said| if let Some(Target::Class(class)) = said { class as u16 } else { ABSTAINS }).collect())
    }
}
