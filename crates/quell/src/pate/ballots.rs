//! What each teacher says to each question.

use std::path::Path;

use quell_privacy::mechanism::Votes;

use super::sheet::{Fault, Sheet};
use crate::{Error, data::Use};

/// For each teacher a ballot on each question. They are private, and so has `Debug` no word about them.
pub struct Ballots {
    classes: usize,
    questions: usize,
    /// Teacher by teacher; a class that does not exist abstains.
    of: Vec<u16>,
}

/// Classes, at most.
const MOST_CLASSES: usize = u16::MAX as usize;

impl Ballots {
    /// None yet.
    pub fn new(classes: usize, questions: usize) -> Result<Self, Error> {
        if (2..=MOST_CLASSES).contains(&classes) {
            return Ok(Self { classes, questions, of: Vec::new() });
        }
        Err(Error::Setting { name: "classes", found: classes.to_string(), expected: "a number in [2, 65535]" })
    }

    /// Adds a teacher's.
    ///
    /// # Panics
    /// If it is not one for each question.
    pub fn push(&mut self, ballots: &[u16]) {
        assert_eq!(ballots.len(), self.questions, "one ballot for each question");
        self.of.extend_from_slice(ballots);
    }

    /// Reads a table with one row for each question and one column for each teacher, whose cells are classes counted from 0.
    pub fn read(path: &Path, classes: usize) -> Result<Self, Error> {
        // A wrong number of classes is no fault of the ballots.
        Self::new(classes, 0)?;
        let expected = format!("whole numbers from 0 to {}", classes.saturating_sub(1));
        let inside = |ballot: f64| ballot >= 0.0 && ballot < classes as f64 && ballot.fract() == 0.0;
        let sheet =
            Sheet::read(path, Use::Number, ("a ballot for no class", &expected), |row, teacher| match row.number(teacher) {
                None => Err(Fault::Missing),
                Some(ballot) if inside(ballot) => Ok(ballot as u16),
                Some(_) => Err(Fault::Wrong),
            })?;
        let mut ballots = Self::new(classes, sheet.questions())?;
        ballots.of =
            (0..sheet.teachers).flat_map(|teacher| sheet.cells.iter().skip(teacher).step_by(sheet.teachers).copied()).collect();
        Ok(ballots)
    }

    /// How many teachers there are.
    #[must_use]
    pub fn teachers(&self) -> usize {
        self.of.len().checked_div(self.questions).unwrap_or(0)
    }

    /// How many questions there are.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.questions
    }

    /// How many classes there are.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The votes on a question.
    #[must_use]
    pub fn votes(&self, question: usize) -> Votes {
        let ballots = self.of.iter().skip(question).step_by(self.questions.max(1));
        Votes::tally(self.classes, ballots.map(|class| usize::from(*class)))
    }
}

impl std::fmt::Debug for Ballots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ballots").field("classes", &self.classes).field("questions", &self.questions).finish_non_exhaustive()
    }
}
