//! Who votes: teachers that learn from shards of the private records, or the private records where near can be told.

use std::sync::Mutex;

use super::{
    Electors, Job, Moment,
    asker::Nearest,
    job::{rows, seen},
};
use crate::{
    Error,
    data::Examples,
    dp_sgd::{Going, outputs},
    features::Pca,
    pate::{Ballots, Shards, Teachers},
    run::{Architecture, Folder},
    student,
};

impl Job {
    /// What teachers say, those of earlier sittings included; nothing if it was stopped.
    pub(super) fn ballots(
        &self,
        count: usize,
        model: &mut Architecture,
        training: &student::Recipe,
        folder: &Folder,
        watch: &mut (dyn FnMut(Moment) -> Going + Send),
    ) -> Result<Option<Ballots>, Error> {
        let network = model.build(self.private.shape(), self.classes.len())?;
        let shards = Shards::deal(&self.records, count, self.plan.neighbors)?;
        folder.write_shards(shards.of(), &digest(&self.private))?;
        let missing: Vec<usize> = (0..count).filter(|teacher| folder.ballots(*teacher, self.questions).is_none()).collect();
        let (seed, stop) = (self.configuration.seed, Mutex::new((count - missing.len(), watch, false)));
        let teachers =
            Teachers { examples: &self.private, shards: &shards, network: &network, training, public: &self.asked, seed };
        for some in missing.chunks(64) {
            teachers.vote(some, |teacher, ballots| {
                folder.write_ballots(teacher, ballots)?;
                let mut stop = stop.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                stop.0 += 1;
                let moment = Moment::Teachers { done: stop.0, of: count };
                stop.2 |= (stop.1)(moment) == Going::Stop;
                Ok(())
            })?;
            if stop.lock().unwrap_or_else(std::sync::PoisonError::into_inner).2 {
                return Ok(None);
            }
        }
        let mut ballots = Ballots::new(self.classes.len(), self.questions)?;
        for teacher in 0..count {
            ballots.push(
                &folder
                    .ballots(teacher, self.questions)
                    .ok_or_else(|| Error::saved("ballots", "damaged", "what the run wrote"))?,
            );
        }
        Ok(Some(ballots))
    }

    /// The private records where near is measured on features, or on principal components of the public ones.
    pub(super) fn nearest(&self, neighbors: usize, components: Option<usize>) -> Result<Nearest<'_>, Error> {
        let Some(components) = components else {
            return Nearest::new(self, neighbors, &rows(&self.private), rows(&self.asked), self.private.width());
        };
        let pca = Pca::fit(&self.asked, components)?;
        let (records, questions) = (pca.apply(&self.private)?, pca.apply(&self.asked)?);
        Nearest::new(self, neighbors, &rows(&records), rows(&questions), records.width())
    }

    /// The same, where near is measured on what a student of the answers so far has learned to see: everything but its last layer.
    pub(super) fn nearest_by_student(&self, answers: &[(usize, u32)]) -> Result<Nearest<'_>, Error> {
        let Electors::Nearest { neighbors, .. } = self.configuration.voters else {
            return Err(Error::Missing { what: "neighbour", hint: "teachers have no features to learn" });
        };
        let weights = self.student(answers, |_| ())?;
        let trunk = self.configuration.student.model.trunk(self.public.shape())?;
        let weights = &weights[..trunk.parameters()];
        let private = seen(&self.configuration.student.features, self.records.clone())?;
        let pool = self.public.select(&(0..self.questions).collect::<Vec<_>>());
        let [records, questions] = [&private, &pool].map(|examples| outputs(&trunk, weights, examples).concat());
        Nearest::new(self, neighbors, &records, questions, trunk.outputs())
    }
}

/// Tells datasets apart by all that teachers learn from, in its order.
fn digest(examples: &Examples) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut row = vec![0.0_f32; examples.width()];
    for record in 0..examples.len() {
        examples.gather(record, &mut row);
        for value in &row {
            hasher.update(&value.to_bits().to_le_bytes());
        }
        hasher.update(&examples.label(record).unwrap_or(u32::MAX).to_le_bytes());
        hasher.update(&(examples.row(record) as u64).to_le_bytes());
    }
    hasher.finalize()
}
