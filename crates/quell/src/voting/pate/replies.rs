//! The ballots of teachers for sets of labels or for numbers.

use std::path::Path;

use quell_privacy::mechanism::{Ballot, Form};

use super::{Ballots, sheet::Sheet};
use crate::{
    Error,
    data::{Row, Use},
};

/// The ballot of each teacher on each question. They are private; `Debug` omits them.
pub struct Replies {
    form: Form,
    sheet: Sheet<Ballot>,
}

impl Replies {
    /// Reads a table with one row for each question and one column for each teacher.
    /// A cell holds labels counted from 0, or a number. Labels are separated by `;` or a space; an empty cell
    /// names none. A number may be outside the bounds. An invalid cell names no label; as a number, it counts
    /// as the middle of the bounds. An error would reveal something about the record that caused it.
    pub fn read(path: &Path, form: Form) -> Result<Self, Error> {
        form.check()?;
        let sheet = match form {
            Form::Labels { labels, most } => Sheet::read(path, Use::Text, |row, teacher| {
                Ballot::Labels(named(row, teacher, labels, most).unwrap_or_default())
            }),
            Form::Number(_) => Sheet::read(path, Use::Number, |row, teacher| {
                Ballot::Number(row.number(teacher).unwrap_or(f64::NAN))
            }),
        }?;
        Ok(Self { form, sheet })
    }

    /// The form of a ballot.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// The number of teachers.
    #[must_use]
    pub fn teachers(&self) -> usize {
        self.sheet.teachers
    }

    /// The number of questions.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.sheet.questions()
    }

    /// The ballots on a question.
    #[must_use]
    pub fn ballots(&self, question: usize) -> &[Ballot] {
        self.sheet.cells.chunks(self.sheet.teachers.max(1)).nth(question).unwrap_or(&[])
    }
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replies")
            .field("form", &self.form)
            .field("questions", &self.questions())
            .finish_non_exhaustive()
    }
}

/// The labels of a cell.
/// None unless the labels are distinct and at most the allowed number.
fn named(row: &Row<'_>, teacher: usize, labels: usize, most: usize) -> Option<Vec<u32>> {
    let mut named = Vec::new();
    let text = row.text(teacher).unwrap_or_default();
    for label in text.split(|c: char| c == ';' || c.is_whitespace()).filter(|label| !label.is_empty()) {
        let label = label.parse::<u32>().ok()?;
        if label as usize >= labels || named.len() == most || named.contains(&label) {
            return None;
        }
        named.push(label);
    }
    Some(named)
}

/// Ballots of any kind.
#[derive(Debug)]
pub enum Cast {
    /// Ballots for one class each.
    Classes(Ballots),
    /// Ballots for labels or numbers.
    Replies(Replies),
}

impl From<Ballots> for Cast {
    fn from(ballots: Ballots) -> Self {
        Self::Classes(ballots)
    }
}

impl From<Replies> for Cast {
    fn from(replies: Replies) -> Self {
        Self::Replies(replies)
    }
}
