//! The voters: teachers trained on shards, or nearest private records.

use std::sync::Mutex;

use super::{
    Labelling, VoterSettings,
    asker::Nearest,
    labelling::{rows, seen},
};
use crate::{
    Error,
    data::Examples,
    features::Pca,
    learner::{Control, outputs},
    run::{Architecture, Folder, Progress, Watch},
    voting::{
        pate::{Ballots, Shards, Teachers},
        student,
    },
};

impl Labelling {
    /// The ballots of all teachers, including those from earlier sessions.
    /// `None` if the callback stopped the run.
    pub(super) fn ballots(
        &self,
        count: usize,
        model: &mut Architecture,
        training: &student::SoftLabelTraining,
        folder: &Folder,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Ballots>, Error> {
        let network = model.build(self.private.shape(), self.classes.len())?;
        let shards = Shards::deal(&self.records, count, self.plan.neighbors)?;
        folder.write_shards(shards.of(), &digest(&self.private))?;
        let missing: Vec<usize> =
            (0..count).filter(|teacher| folder.ballots(*teacher, self.questions).is_none()).collect();
        let (seed, stop) = (self.configuration.seed, Mutex::new((count - missing.len(), watch, false)));
        let teachers = Teachers {
            examples: &self.private,
            shards: &shards,
            network: &network,
            training,
            public: &self.asked,
            seed,
        };
        for some in missing.chunks(64) {
            teachers.vote(some, |teacher, ballots| {
                folder.write_ballots(teacher, ballots)?;
                let mut stop = stop.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                stop.0 += 1;
                let moment = Progress::counted("teacher", stop.0 as u64, count as u64);
                stop.2 |= (stop.1)(moment) == Control::Stop;
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

    /// The private records, with distance measured on features or on principal components.
    /// The components are fitted to the questions, which are public.
    pub(super) fn nearest(&self, neighbors: usize, components: Option<usize>) -> Result<Nearest<'_>, Error> {
        let Some(components) = components else {
            return Nearest::new(
                self,
                neighbors,
                &rows(&self.private),
                rows(&self.asked),
                self.private.width(),
            );
        };
        let pca = Pca::fit(&self.asked, components)?;
        let (records, questions) = (pca.apply(&self.private)?, pca.apply(&self.asked)?);
        Nearest::new(self, neighbors, &rows(&records), rows(&questions), records.width())
    }

    /// The private records, with distance measured on features of a student.
    /// The student is trained on the answers so far. Its features are the outputs of all layers but the last.
    pub(super) fn nearest_by_student(&self, answers: &[(usize, u32)]) -> Result<Nearest<'_>, Error> {
        let VoterSettings::Nearest { neighbors, .. } = self.configuration.voters else {
            return Err(Error::Setting {
                name: "voters",
                found: "teachers".into(),
                expected: "nearest neighbours: only they use the features of a student",
            });
        };
        let weights = self.student(answers, |_| ())?;
        let trunk = self.configuration.student.model.trunk(self.public.shape())?;
        let weights = &weights[..trunk.parameters()];
        let private = seen(&self.configuration.student.features, self.records.clone())?;
        let pool = self.public.select(&(0..self.questions).collect::<Vec<_>>());
        let [records, questions] =
            [&private, &pool].map(|examples| outputs(&trunk, weights, examples).concat());
        Nearest::new(self, neighbors, &records, questions, trunk.outputs())
    }
}

/// A hash of everything that teachers learn from, in order.
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
