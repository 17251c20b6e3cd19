//! What each teacher says to each question.

use std::path::Path;

use quell_privacy::mechanism::Votes;

use crate::{
    Error,
    data::{Table, Use},
};

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
        let table = Table::open(path)?;
        let names: Vec<String> = table.columns().iter().map(|column| column.name.clone()).collect();
        let columns: Vec<(&str, Use)> = names.iter().map(|name| (name.as_str(), Use::Number)).collect();
        let (mut rows, mut wrong) = (Vec::new(), None);
        let teachers = columns.len();
        table.all().scan(&columns, |row| {
            let cells: Vec<Option<f64>> = (0..teachers).map(|teacher| row.number(teacher)).collect();
            let number = rows.len() / teachers.max(1) + 1;
            let fail = |found: String, expected: String| Error::Ballot { path: path.to_owned(), row: number, found, expected };
            let cast = cells.iter().flatten().count();
            if wrong.is_none() && cast != teachers {
                wrong = Some(fail(format!("{cast} ballots"), format!("{teachers}, one of each teacher")));
            }
            let inside = |ballot: f64| ballot >= 0.0 && ballot < classes as f64 && ballot.fract() == 0.0;
            if wrong.is_none() && cells.iter().flatten().any(|ballot| !inside(*ballot)) {
                wrong =
                    Some(fail("a ballot for no class".into(), format!("whole numbers from 0 to {}", classes.saturating_sub(1))));
            }
            rows.extend(cells.iter().map(|cell| cell.unwrap_or(f64::from(u16::MAX)) as u16));
        })?;
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        let questions = rows.len() / teachers.max(1);
        if questions == 0 {
            return Err(Error::Missing { what: "question", hint: "the file of ballots has a header and no row behind it" });
        }
        let mut ballots = Self::new(classes, questions)?;
        ballots.of = (0..teachers).flat_map(|teacher| rows.iter().skip(teacher).step_by(teachers).copied()).collect();
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
