//! The voters of a labelling run, and which questions they are asked.
//!
//! The voters are teachers, or the private records nearest to a question.

use std::sync::{Mutex, PoisonError};

use quell_privacy::{
    ledger::{Book, Unit},
    mechanism::{Answer, Polling},
};

use super::{Choice, Labelling, Results, VoterSettings, labelling::rows, payment::Payment};
use crate::{
    Error,
    data::{Examples, Targets},
    features::Pca,
    learner::{Control, outputs},
    network::Architecture,
    run::{Folder, Progress, Watch},
    voting::{
        Aggregation, Aggregator, Asker, Journal,
        knn::NearestVoters,
        pate::{Ballots, Shards, Teachers},
        student,
    },
};

/// The number of questions in a block that teachers are asked.
const TEACHERS_BLOCK: usize = 64;

/// The number of questions in a block that nearest records are asked.
const NEAREST_BLOCK: usize = 256;

/// The number of teachers that are trained before the run checks whether it should stop.
const TEACHERS_AT_ONCE: usize = 64;

impl Labelling {
    /// Asks the voters until all answers that were paid for are given. Trains teachers first.
    /// Then writes the number of answers into the folder, and removes the private files.
    pub(super) fn ask_voters<B: Book>(
        &self,
        mut payment: Payment<'_, B>,
        journal: &mut Journal,
        results: &mut Results,
        watch: &mut Watch<'_>,
    ) -> Result<Control, Error> {
        let order = self.order()?;
        let answers = self.plan.aggregation.answers().unwrap_or(self.questions as u64);
        let chooser = Chooser::new(self, order.clone(), journal, answers);
        let folder = payment.folder;
        let control = match &self.configuration.voters {
            VoterSettings::Teachers { count, model, training } => {
                let ballots = self.teacher_ballots(*count, &mut model.clone(), training, folder, watch)?;
                let Some(ballots) = ballots else { return Ok(Control::Stop) };
                let mut asker = TeacherAsker { job: self, chooser, ballots: &ballots, expected: Vec::new() };
                payment.answer_from_ballots(&ballots, &order, &mut asker, journal, results, watch)?
            }
            VoterSettings::Nearest { neighbors, components, turns, .. } => {
                let records = self.nearest_by_features(*neighbors, *components)?;
                let mut asker = NearestAsker { job: self, chooser, records, turn: 0, turns: *turns };
                payment.answer(&mut asker, journal, watch)?
            }
        };
        if control != Control::Stop {
            results.paid = folder.paid_if_any()?;
            results.count(journal);
            folder.write_labels(results)?;
            folder.forget_private()?;
        }
        Ok(control)
    }

    /// All questions, in the order in which to ask them.
    fn order(&self) -> Result<Vec<usize>, Error> {
        if self.configuration.student.choice == Choice::InOrder {
            return Ok((0..self.questions).collect());
        }
        let wanted = match &self.plan.aggregation {
            Aggregation::Polls(poll, rounds) => u64::from(poll.questions) * rounds,
            Aggregation::Stable(_) | Aggregation::Surveys(..) => self.questions as u64,
        };
        let wanted = self.questions.min(wanted as usize);
        let (points, width) = &self.points;
        let mut order = student::representatives(points, *width, wanted, self.configuration.seed)?;
        let mut is_first = vec![false; self.questions];
        for question in &order {
            is_first[*question] = true;
        }
        // All other questions follow in the order of the file.
        order.extend((0..self.questions).filter(|question| !is_first[*question]));
        Ok(order)
    }

    /// The ballots of all teachers, including those from earlier sessions.
    /// Returns `None` if the callback stopped the run.
    fn teacher_ballots(
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
        let teachers = Teachers {
            examples: &self.private,
            shards: &shards,
            network: &network,
            training,
            public: &self.asked,
            seed: self.configuration.seed,
        };
        // The number of finished teachers, the callback, and whether the callback stopped the run.
        let progress = Mutex::new((count - missing.len(), watch, false));
        for some in missing.chunks(TEACHERS_AT_ONCE) {
            teachers.vote(some, |teacher, ballots| {
                folder.write_ballots(teacher, ballots)?;
                let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                progress.0 += 1;
                let moment = Progress::counted("teacher", progress.0 as u64, count as u64);
                progress.2 |= (progress.1)(moment) == Control::Stop;
                Ok(())
            })?;
            if progress.lock().unwrap_or_else(PoisonError::into_inner).2 {
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
    fn nearest_by_features(
        &self,
        neighbors: usize,
        components: Option<usize>,
    ) -> Result<NearestVoters, Error> {
        let Some(components) = components else {
            let (records, questions) = (rows(&self.private), rows(&self.asked));
            return self.nearest_voters(neighbors, (&records, self.private.width()), questions);
        };
        let pca = Pca::fit(&self.asked, components)?;
        let (records, questions) = (pca.apply(&self.private)?, pca.apply(&self.asked)?);
        self.nearest_voters(neighbors, (&rows(&records), records.width()), rows(&questions))
    }

    /// The private records, with distance measured on features of a student.
    /// The student is trained on the answers so far. Its features are the outputs of all layers but the last.
    fn nearest_by_student(&self, answers: &[(usize, u32)]) -> Result<NearestVoters, Error> {
        let VoterSettings::Nearest { neighbors, .. } = self.configuration.voters else {
            return Err(Error::Setting {
                name: "voters",
                found: "teachers".into(),
                expected: "nearest neighbours: only they use the features of a student",
            });
        };
        let weights = self.train_student(answers, |_| ())?;
        let trunk = self.configuration.student.model.trunk(self.public.shape())?;
        let weights = &weights[..trunk.parameters()];
        let private = self.configuration.student.features.transform(self.records.clone())?;
        let pool = self.public.select(&(0..self.questions).collect::<Vec<_>>());
        let [records, questions] =
            [&private, &pool].map(|examples| outputs(&trunk, weights, examples).concat());
        self.nearest_voters(neighbors, (&records, trunk.outputs()), questions)
    }

    /// The private records with these features as voters on questions with these features.
    fn nearest_voters(
        &self,
        neighbors: usize,
        records: (&[f32], usize),
        questions: Vec<f32>,
    ) -> Result<NearestVoters, Error> {
        let labels = match self.private.targets() {
            Targets::Classes { labels, .. } => labels.clone(),
            Targets::Numbers(_) => Vec::new(),
        };
        NearestVoters::new(records, labels, self.classes.len(), neighbors, questions)
    }
}

/// A hash of everything that teachers are trained on, in order.
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

/// Chooses which questions come next.
struct Chooser {
    choice: Choice,
    /// All questions, in the order in which to ask them.
    order: Vec<usize>,
    /// Whether each question was asked.
    asked: Vec<bool>,
    /// The total number of paid answers.
    answers: u64,
}

impl Chooser {
    fn new(job: &Labelling, order: Vec<usize>, journal: &Journal, answers: u64) -> Self {
        let asked = vec![false; job.questions];
        let mut chooser = Self { choice: job.configuration.student.choice, order, asked, answers };
        chooser.mark_asked(journal);
        chooser
    }

    /// Marks the questions of the journal as asked.
    fn mark_asked(&mut self, journal: &Journal) {
        for entry in journal.entries() {
            // An edited journal may name questions that do not exist.
            if let Some(asked) = self.asked.get_mut(entry.question) {
                *asked = true;
            }
        }
    }

    /// Chooses at most `most` questions that were not asked yet.
    fn next(&self, job: &Labelling, journal: &Journal, most: usize) -> Result<Vec<usize>, Error> {
        let left = || self.order.iter().copied().filter(|question| !self.asked[*question]);
        let answered = journal.answers();
        if self.choice != Choice::Active || (answered.len() as u64) * 2 < self.answers {
            return Ok(left().take(most).collect());
        }
        let soft_labels = job.spread(&answered)?;
        let mut by_margin: Vec<(f32, usize)> =
            left().map(|question| (margin(job.soft_label(&soft_labels, question)), question)).collect();
        by_margin.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Only a few at a time, because each answer changes which questions are uncertain.
        let few = most.min(self.answers.div_ceil(16) as usize).max(1);
        Ok(by_margin.into_iter().take(few).map(|(_, question)| question).collect())
    }
}

/// The difference between the two largest class probabilities. It is small for an uncertain question.
fn margin(soft_label: &[f32]) -> f32 {
    let mut sorted = soft_label.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted.first().zip(sorted.get(1)).map_or(0.0, |(first, second)| first - second)
}

/// Asks the teachers.
struct TeacherAsker<'a> {
    job: &'a Labelling,
    chooser: Chooser,
    ballots: &'a Ballots,
    /// The expected class probabilities of each question, for the interactive aggregator.
    /// They follow from the answers so far. Empty if nothing is expected.
    expected: Vec<f32>,
}

impl Asker for TeacherAsker<'_> {
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error> {
        self.chooser.mark_asked(journal);
        if self.job.configuration.votes.aggregator == Aggregator::Interactive && !journal.answers().is_empty()
        {
            self.expected = self.job.spread(&journal.answers())?;
        }
        let most = TEACHERS_BLOCK.min(polling.answers_left() as usize);
        self.chooser.next(self.job, journal, most)
    }

    fn ask(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error> {
        let teachers = self.ballots.teachers() as f32;
        let ask = |question: &usize| {
            let expected: Vec<i64> = if self.expected.is_empty() {
                Vec::new()
            } else {
                self.job
                    .soft_label(&self.expected, *question)
                    .iter()
                    .map(|share| (share * teachers).round() as i64)
                    .collect()
            };
            Ok(polling.ask(&self.ballots.votes(*question), &expected)?)
        };
        questions.iter().map(ask).collect()
    }
}

/// Asks the nearest records.
struct NearestAsker<'a> {
    job: &'a Labelling,
    chooser: Chooser,
    records: NearestVoters,
    /// The number of turns that are over.
    turn: u32,
    /// The number of all turns.
    turns: u32,
}

impl Asker for NearestAsker<'_> {
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error> {
        self.chooser.mark_asked(journal);
        let answered = journal.answers();
        // Each turn has the same number of answers. From the second turn on, distance is measured on the
        // features of a student, which is trained on the answers of the turns before.
        let turn = (answered.len() as u64 * u64::from(self.turns) / self.chooser.answers.max(1)) as u32;
        if turn > self.turn && turn < self.turns {
            self.turn = turn;
            self.records = self.job.nearest_by_student(&answered)?;
        }
        let most = if self.job.configuration.votes.aggregator.screens() {
            NEAREST_BLOCK
        } else {
            NEAREST_BLOCK.min(polling.answers_left() as usize)
        };
        self.chooser.next(self.job, journal, most)
    }

    fn ask(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error> {
        Ok(polling.ask_nearest(self.job.private.len(), questions, &mut self.records)?)
    }
}

/// Checks that the privacy unit is one record, where the nearest records vote.
/// If the unit were a user, several records of one user could vote on one question.
pub(super) fn check_nearest_unit(unit: Unit) -> Result<(), Error> {
    if unit == Unit::User {
        return Err(Error::Setting {
            name: "unit",
            found: "user".into(),
            expected: "example: with nearest records as voters, several records of one user could vote at once",
        });
    }
    Ok(())
}
