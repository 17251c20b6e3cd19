//! What each teacher says to each question, where that is a set of labels or a number.

use std::path::Path;

use quell_privacy::mechanism::{Ballot, Form};

use super::{
    Ballots,
    sheet::{Fault, Sheet},
};
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
    /// there is none, or a number, whatever the bounds.
    pub fn read(path: &Path, form: Form) -> Result<Self, Error> {
        form.check()?;
        let sheet = match form {
            Form::Labels { labels, most } => {
                let last = labels.saturating_sub(1);
                let expected = format!("at most {most} different whole numbers from 0 to {last}, with ; between them");
                Sheet::read(path, Use::Text, ("a ballot that is no set of labels", &expected), |row, teacher| {
                    named(row, teacher, labels, most).map(Ballot::Labels)
                })
            }
            Form::Number(_) => Sheet::read(path, Use::Number, ("a ballot that is no number", "numbers"), |row, teacher| {
                row.number(teacher).map(Ballot::Number).ok_or(Fault::Missing)
            }),
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

/// The labels of a cell. An empty one names none.
fn named(row: &Row<'_>, teacher: usize, labels: usize, most: usize) -> Result<Vec<u32>, Fault> {
    if !row.has(teacher) {
        return Err(Fault::Missing);
    }
    let mut named = Vec::new();
    let text = row.text(teacher).unwrap_or_default();
    for label in text.split(|c: char| c == ';' || c.is_whitespace()).filter(|label| !label.is_empty()) {
        match label.parse::<u32>() {
            Ok(label) if (label as usize) < labels && named.len() < most && !named.contains(&label) => named.push(label),
            _ => return Err(Fault::Wrong),
        }
    }
    Ok(named)
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
