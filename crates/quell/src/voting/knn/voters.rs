//! The private records as voters: the nearest of a sample vote for their own labels.

use quell_privacy::mechanism::{Electorate, Votes};

use super::{Index, Neighbor};
use crate::Error;

/// Private records, each with its label, and the questions on which they vote.
///
/// The records nearest to a question, within the sample that the mechanism draws, vote for their own labels. A label
/// that is no class is no ballot.
pub struct NearestVoters {
    index: Index,
    labels: Vec<u32>,
    classes: usize,
    neighbors: usize,
    /// The features of the questions, row after row.
    questions: Vec<f32>,
}

impl NearestVoters {
    /// Indexes records of `width` features each. `neighbors` of them vote on a question, for one of `classes`.
    ///
    /// # Contract
    /// The features of a record depend on that record only.
    ///
    /// ```
    /// use quell::voting::knn::NearestVoters;
    /// let voters = NearestVoters::new((&[0.0, 1.0, 5.0], 1), vec![0, 0, 1], 2, 2, vec![0.4])?;
    /// assert_eq!((voters.records(), voters.questions()), (3, 1));
    /// assert!(NearestVoters::new((&[0.0, 1.0], 1), vec![0], 2, 2, vec![0.4]).is_err(), "a label for each record");
    /// # Ok::<(), quell::Error>(())
    /// ```
    pub fn new(
        (records, width): (&[f32], usize),
        labels: Vec<u32>,
        classes: usize,
        neighbors: usize,
        questions: Vec<f32>,
    ) -> Result<Self, Error> {
        let index = Index::new(records, width)?;
        if labels.len() != index.len() {
            return Err(Error::Sizes { name: "labels" });
        }
        if !questions.len().is_multiple_of(width) {
            return Err(Error::Sizes { name: "features of the questions" });
        }
        Ok(Self { index, labels, classes, neighbors, questions })
    }

    /// The number of records, which is private.
    #[must_use]
    pub fn records(&self) -> usize {
        self.labels.len()
    }

    /// The number of questions.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.questions.len() / self.index.width()
    }
}

impl Electorate for NearestVoters {
    fn tally(&mut self, questions: &[(usize, Vec<usize>)]) -> Vec<Votes> {
        let width = self.index.width();
        let rows: Vec<f32> = questions
            .iter()
            .flat_map(|(question, _)| &self.questions[question * width..(question + 1) * width])
            .copied()
            .collect();
        let samples: Vec<Vec<usize>> = questions.iter().map(|(_, sample)| sample.clone()).collect();
        // Only a bug in this program can cause an error here. Then there are no votes.
        let near = self.index.nearest_among(&rows, &samples, self.neighbors).unwrap_or_default();
        let vote = |near: &Vec<Neighbor>| {
            Votes::tally(self.classes, near.iter().map(|near| self.labels[near.record as usize] as usize))
        };
        near.iter().map(vote).collect()
    }
}
