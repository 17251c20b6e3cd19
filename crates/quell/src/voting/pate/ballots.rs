//! The ballots of teachers for one class each.

use std::path::Path;

use quell_privacy::mechanism::Votes;

use super::sheet::Sheet;
use crate::{Error, data::Use};

/// The ballot of each teacher on each question. They are private; `Debug` omits them.
pub struct Ballots {
    classes: usize,
    questions: usize,
    /// Ballots teacher by teacher. A class that does not exist is an abstention.
    of: Vec<u16>,
}

/// The largest number of classes.
const MOST_CLASSES: usize = u16::MAX as usize;

/// The ballot of a teacher who abstains.
pub(super) const ABSTAINS: u16 = u16::MAX;

impl Ballots {
    /// An empty collection of ballots.
    pub fn new(classes: usize, questions: usize) -> Result<Self, Error> {
        if (2..=MOST_CLASSES).contains(&classes) {
            return Ok(Self { classes, questions, of: Vec::new() });
        }
        Err(Error::Setting {
            name: "classes",
            found: classes.to_string(),
            expected: "a number in [2, 65535]",
        })
    }

    /// Adds the ballots of one teacher.
    ///
    /// # Panics
    /// Panics unless there is one ballot for each question.
    pub fn push(&mut self, ballots: &[u16]) {
        assert_eq!(ballots.len(), self.questions, "one ballot for each question");
        self.of.extend_from_slice(ballots);
    }

    /// Reads a table with one row for each question and one column for each teacher.
    /// Cells are classes counted from 0. An empty or invalid cell is an abstention: an error would reveal
    /// something about the record that caused it.
    pub fn read(path: &Path, classes: usize) -> Result<Self, Error> {
        // A wrong number of classes is not a fault of the ballots, so it is an error.
        Self::new(classes, 0)?;
        let inside = |ballot: &f64| *ballot >= 0.0 && *ballot < classes as f64 && ballot.fract() == 0.0;
        let sheet = Sheet::read(path, Use::Number, |row, teacher| {
            row.number(teacher).filter(inside).map_or(ABSTAINS, |ballot| ballot as u16)
        })?;
        let mut ballots = Self::new(classes, sheet.questions())?;
        ballots.of = (0..sheet.teachers)
            .flat_map(|teacher| sheet.cells.iter().skip(teacher).step_by(sheet.teachers).copied())
            .collect();
        Ok(ballots)
    }

    /// The number of teachers.
    #[must_use]
    pub fn teachers(&self) -> usize {
        self.of.len().checked_div(self.questions).unwrap_or(0)
    }

    /// The number of questions.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.questions
    }

    /// The number of classes.
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
        f.debug_struct("Ballots")
            .field("classes", &self.classes)
            .field("questions", &self.questions)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_ballot_abstains_and_no_error_tells_of_it() {
        const NO: u16 = ABSTAINS;
        let path = std::env::temp_dir().join(format!("quell-abstaining-{}.csv", std::process::id()));
        for (text, ballots) in [
            ("0,1,2", [0, 1, 2]),
            ("0,1,3", [0, 1, NO]),
            ("0,-1,1", [0, NO, 1]),
            ("0,1", [0, 1, NO]),
            ("0,,two", [0, NO, NO]),
            ("1e400,nan,2", [NO, NO, 2]),
            ("0.5,1.0,\"\"", [NO, 1, NO]),
        ] {
            std::fs::write(&path, format!("a,b,c\n{text}\n")).unwrap();
            let read = Ballots::read(&path, 3).unwrap();
            assert_eq!(
                (read.of.as_slice(), read.teachers(), read.questions()),
                (ballots.as_slice(), 3, 1),
                "{text}"
            );
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_ballot_that_is_too_long_takes_no_other_with_it() {
        const NO: u16 = ABSTAINS;
        let long = "1".repeat(17 << 20);
        let path = std::env::temp_dir().join(format!("quell-long-ballot-{}.csv", std::process::id()));
        for (row, ballots) in [
            (format!("{long},1,2"), [NO, 1, 2]),
            (format!("0,\"{long}\",2"), [0, NO, 2]),
            (format!("0,1,{long}"), [0, 1, NO]),
            (format!("{long},{long},2"), [NO, NO, 2]),
            // An index after the last column.
            (format!("0,1,2,{long},1"), [0, 1, 2]),
        ] {
            std::fs::write(&path, format!("a,b,c\n{row}\n2,2,2\n")).unwrap();
            let read = Ballots::read(&path, 3).unwrap();
            let found: Vec<u16> = (0..3).map(|teacher| read.of[2 * teacher]).collect();
            assert_eq!((found.as_slice(), read.questions()), (ballots.as_slice(), 2), "{}", &row[..8]);
            assert!((0..3).all(|teacher| read.of[2 * teacher + 1] == 2), "the next question is as it is");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
