//! What each teacher says to each question, where that is a set of labels or a number.

use std::path::Path;

use quell_privacy::mechanism::{Ballot, Form};

use super::{Ballots, sheet::Sheet};
use crate::{
    Error,
    data::{Row, Use},
};

/// For each question a ballot of each teacher. They are private, and so has `Debug` no word about them.
pub struct Replies {
    form: Form,
    sheet: Sheet<Ballot>,
}

impl Replies {
    /// Reads a table with one row for each question and one column for each teacher. A cell holds labels counted from 0, with `;` or space between them and nothing if
    /// there is none, or a number, whatever the bounds. A cell that is not such names no label, or is no number, which counts as the middle of the bounds: an error would tell
    /// something about the record that made it so.
    pub fn read(path: &Path, form: Form) -> Result<Self, Error> {
        form.check()?;
        let sheet = match form {
            Form::Labels { labels, most } => {
                Sheet::read(path, Use::Text, |row, teacher| Ballot::Labels(named(row, teacher, labels, most).unwrap_or_default()))
            }
            Form::Number(_) => {
                Sheet::read(path, Use::Number, |row, teacher| Ballot::Number(row.number(teacher).unwrap_or(f64::NAN)))
            }
        }?;
        Ok(Self { form, sheet })
    }

    /// What a ballot may say.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// How many teachers there are.
    #[must_use]
    pub fn teachers(&self) -> usize {
        self.sheet.teachers
    }

    /// How many questions there are.
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
        f.debug_struct("Replies").field("form", &self.form).field("questions", &self.questions()).finish_non_exhaustive()
    }
}

/// The labels of a cell; nothing if they are not at most so many different ones.
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
    /// For one class each.
    Classes(Ballots),
    /// For labels or numbers.
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
