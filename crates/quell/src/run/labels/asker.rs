//! Chooses the next questions and asks the voters.

use quell_privacy::{
    ledger::Unit,
    mechanism::{Answer, Electorate, Polling, Votes},
};

use super::{Choice, Labelling};
use crate::{
    Error,
    voting::{
        Aggregator, Asker, Journal,
        knn::{Index, Metric},
        pate::Ballots,
    },
};

/// The number of questions in a block, for teachers and for nearest records.
const TEACHERS_BLOCK: usize = 64;
const NEAREST_BLOCK: usize = 256;

/// Chooses which questions come next.
pub(super) struct Chooser {
    choice: Choice,
    /// All questions, in the order in which to ask them.
    order: Vec<usize>,
    asked: Vec<bool>,
    /// The total number of answers.
    answers: u64,
}

impl Chooser {
    pub(super) fn new(job: &Labelling, order: Vec<usize>, journal: &Journal, answers: u64) -> Self {
        let asked = vec![false; job.questions];
        let mut chooser = Self { choice: job.configuration.student.choice, order, asked, answers };
        chooser.mark_asked(journal);
        chooser
    }

    /// Marks the questions of the journal as asked. An edited journal may name questions that do not exist.
    fn mark_asked(&mut self, journal: &Journal) {
        for entry in journal.entries() {
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
        // The questions whose two likeliest classes are closest in probability.
        let soft = job.spread(&answered)?;
        let mut doubtful: Vec<(f32, usize)> =
            left().map(|question| (margin(job.row(&soft, question)), question)).collect();
        doubtful.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Only a few at a time, because each answer changes which questions are uncertain.
        let few = most.min(self.answers.div_ceil(16) as usize).max(1);
        Ok(doubtful.into_iter().take(few).map(|(_, question)| question).collect())
    }
}

fn margin(row: &[f32]) -> f32 {
    let mut sorted = row.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted.first().zip(sorted.get(1)).map_or(0.0, |(first, second)| first - second)
}

/// Asks the teachers.
pub(super) struct Classroom<'a> {
    pub(super) job: &'a Labelling,
    pub(super) chooser: Chooser,
    pub(super) ballots: &'a Ballots,
    /// The student's class probabilities for each question; empty if no student is used.
    pub(super) expected: Vec<f32>,
}

impl Asker for Classroom<'_> {
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
                    .row(&self.expected, *question)
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
pub(super) struct Neighborhood<'a> {
    pub(super) job: &'a Labelling,
    pub(super) chooser: Chooser,
    pub(super) voters: Nearest<'a>,
    /// Turns that are over, and turns in total.
    pub(super) turn: u32,
    pub(super) turns: u32,
}

/// The private records, indexed for nearest-neighbour search.
pub(super) struct Nearest<'a> {
    index: Index,
    labels: &'a [u32],
    classes: usize,
    neighbors: usize,
    /// The features of the questions, row after row.
    questions: Vec<f32>,
}

impl<'a> Nearest<'a> {
    pub(super) fn new(
        job: &'a Labelling,
        neighbors: usize,
        records: &[f32],
        questions: Vec<f32>,
        width: usize,
    ) -> Result<Self, Error> {
        let labels = match job.private.targets() {
            crate::data::Targets::Classes { labels, .. } => labels.as_slice(),
            crate::data::Targets::Numbers(_) => &[],
        };
        let index = Index::new(records, width, Metric::SquaredEuclidean)?;
        Ok(Self { index, labels, classes: job.classes.len(), neighbors, questions })
    }
}

impl Electorate for Nearest<'_> {
    fn tally(&mut self, questions: &[(usize, Vec<usize>)]) -> Vec<Votes> {
        let width = self.index.width();
        let rows: Vec<f32> = questions
            .iter()
            .flat_map(|(question, _)| &self.questions[question * width..(question + 1) * width])
            .copied()
            .collect();
        let samples: Vec<Vec<usize>> = questions.iter().map(|(_, sample)| sample.clone()).collect();
        // Only a bug in this program can cause an error here. In that case nobody votes.
        let near = self.index.nearest_among(&rows, &samples, self.neighbors).unwrap_or_default();
        let vote = |near: &Vec<crate::voting::knn::Neighbor>| {
            Votes::tally(self.classes, near.iter().map(|near| self.labels[near.record as usize] as usize))
        };
        near.iter().map(vote).collect()
    }
}

impl Asker for Neighborhood<'_> {
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error> {
        self.chooser.mark_asked(journal);
        let answered = journal.answers();
        // The next turn begins when the share of answers before it is complete. From then on, distance is
        // measured on features of a student of the answers so far.
        let turn = (answered.len() as u64 * u64::from(self.turns) / self.chooser.answers.max(1)) as u32;
        if turn > self.turn && turn < self.turns {
            self.turn = turn;
            self.voters = self.job.nearest_by_student(&answered)?;
        }
        let most = if self.job.configuration.votes.aggregator.screens() {
            NEAREST_BLOCK
        } else {
            NEAREST_BLOCK.min(polling.answers_left() as usize)
        };
        self.chooser.next(self.job, journal, most)
    }

    fn ask(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error> {
        Ok(polling.ask_nearest(self.job.private.len(), questions, &mut self.voters)?)
    }
}

/// Checks that the privacy unit is one record.
/// If the unit were a user, several records of one user could vote as nearest records.
pub(super) fn one_record_each(job: &Labelling) -> Result<(), Error> {
    if job.configuration.data.unit == Unit::User {
        return Err(Error::Setting {
            name: "unit",
            found: "user".into(),
            expected: "example: with nearest records as voters, several records of one user could vote at once",
        });
    }
    Ok(())
}
