//! The ballots of teachers: for one class each, for sets of labels, or for numbers.

use std::{collections::HashMap, path::Path};

use quell_privacy::mechanism::{Ballot, Form, Votes};

use crate::{
    Error, Input,
    data::{Kind, Row, Table, Use},
};

/// One class from each teacher on each question.
/// The ballots are private; `Debug` omits them.
pub struct Ballots {
    classes: usize,
    questions: usize,
    /// The ballots of the first teacher, then those of the second, and so on.
    /// A class that does not exist is an abstention.
    of: Vec<u16>,
}

/// The largest number of classes.
const MOST_CLASSES: usize = u16::MAX as usize;

/// The ballot of a teacher who abstains.
pub(super) const ABSTAINS: u16 = u16::MAX;

impl Ballots {
    /// Makes an empty collection of ballots.
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
        // The number of classes is a public setting, so an error about it reveals nothing.
        Self::new(classes, 0)?;
        let inside = |ballot: &f64| *ballot >= 0.0 && *ballot < classes as f64 && ballot.fract() == 0.0;
        let sheet = Sheet::read(path, Use::Number, |row, teacher| {
            row.number(teacher).filter(inside).map_or(ABSTAINS, |ballot| ballot as u16)
        })?;
        Self::of_sheet(classes, &sheet)
    }

    /// Reads ballots like [`Ballots::read`], with the names of classes in the cells.
    ///
    /// If no name is a number, a cell may also hold the number of a class, counted from 0.
    pub fn read_named(path: &Path, names: &[String]) -> Result<Self, Error> {
        Self::new(names.len(), 0)?;
        let are_words = names.iter().all(|name| name.trim().parse::<f64>().is_err());
        let places: HashMap<&str, usize> = names.iter().map(|name| name.trim()).zip(0..).collect();
        let counted = |number: f64| {
            let is_class = number >= 0.0 && number < names.len() as f64 && number.fract() == 0.0;
            is_class.then_some(number as usize)
        };
        let named = |text: &str| {
            let number = || counted(text.parse().ok()?);
            places.get(text).copied().or_else(|| number().filter(|_| are_words))
        };
        // A column that is declared as numbers is read as the names of numbers.
        let has_numbers = Table::open(path)?.columns().iter().any(|column| column.kind == Kind::Number);
        let usage = if has_numbers { Use::Number } else { Use::Text };
        let sheet = Sheet::read(path, usage, |row, teacher| {
            let class = if has_numbers {
                row.number(teacher).and_then(|number| named(&number.to_string()))
            } else {
                row.text(teacher).and_then(|text| named(text.trim()))
            };
            class.map_or(ABSTAINS, |class| class as u16)
        })?;
        Self::of_sheet(names.len(), &sheet)
    }

    /// The ballots of a table of classes.
    fn of_sheet(classes: usize, sheet: &Sheet<u16>) -> Result<Self, Error> {
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

    /// The number of votes for each class on a question.
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

/// A set of labels or a number from each teacher on each question.
/// The ballots are private; `Debug` omits them.
pub struct SurveyBallots {
    form: Form,
    sheet: Sheet<Ballot>,
}

impl SurveyBallots {
    /// Reads a table with one row for each question and one column for each teacher.
    /// A cell holds labels counted from 0, or a number. Labels are separated by `;` or a space. An empty cell
    /// names no label. A number may be outside the bounds.
    ///
    /// An invalid cell is not an error: an error would reveal something about the record that caused it. It
    /// names no label, or it counts as the middle of the bounds.
    pub fn read(path: &Path, form: Form) -> Result<Self, Error> {
        form.check()?;
        let sheet = match form {
            Form::Labels { labels, most } => Sheet::read(path, Use::Text, |row, teacher| {
                Ballot::Labels(read_labels(row, teacher, labels, most).unwrap_or_default())
            }),
            Form::Number(_) => Sheet::read(path, Use::Number, |row, teacher| {
                Ballot::Number(row.number(teacher).unwrap_or(f64::NAN))
            }),
        }?;
        Ok(Self { form, sheet })
    }

    /// What a ballot holds: labels or a number.
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

impl std::fmt::Debug for SurveyBallots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SurveyBallots")
            .field("form", &self.form)
            .field("questions", &self.questions())
            .finish_non_exhaustive()
    }
}

/// Reads the labels of a cell.
/// Returns `None` if a label is invalid or repeated, or if there are more than `most` labels.
fn read_labels(row: &Row<'_>, teacher: usize, labels: usize, most: usize) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    let text = row.text(teacher).unwrap_or_default();
    for label in text.split(|c: char| c == ';' || c.is_whitespace()).filter(|label| !label.is_empty()) {
        let label = label.parse::<u32>().ok()?;
        if label as usize >= labels || found.len() == most || found.contains(&label) {
            return None;
        }
        found.push(label);
    }
    Some(found)
}

/// Ballots of any kind.
#[derive(Debug)]
pub enum AnyBallots {
    /// Ballots for one class each.
    Classes(Ballots),
    /// Ballots for labels or numbers.
    Survey(SurveyBallots),
}

impl From<Ballots> for AnyBallots {
    fn from(ballots: Ballots) -> Self {
        Self::Classes(ballots)
    }
}

impl From<SurveyBallots> for AnyBallots {
    fn from(ballots: SurveyBallots) -> Self {
        Self::Survey(ballots)
    }
}

/// A table with one row for each question and one column for each teacher.
struct Sheet<T> {
    teachers: usize,
    /// The cells of the first question, then those of the second, and so on.
    cells: Vec<T>,
}

impl<T> Sheet<T> {
    /// Reads a CSV or Parquet file.
    ///
    /// Every cell is a ballot, whatever it holds: an error would reveal something about a record. A row holds
    /// the ballots of all teachers. So a cell that is too long must not change the other cells of its row.
    fn read(path: &Path, usage: Use, ballot: impl Fn(&Row<'_>, usize) -> T) -> Result<Self, Error> {
        let table = Table::open(path)?;
        let (teachers, mut cells) = (table.columns().len(), Vec::new());
        table.scan_apart(usage, |row| cells.extend((0..teachers).map(|teacher| ballot(row, teacher))))?;
        if cells.is_empty() {
            return Err(Error::Missing { what: Input::Questions });
        }
        Ok(Self { teachers, cells })
    }

    fn questions(&self) -> usize {
        self.cells.len().checked_div(self.teachers).unwrap_or(0)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    #[test]
    fn ballots_may_name_their_classes() {
        const NO: u16 = ABSTAINS;
        let path = std::env::temp_dir().join(format!("quell-named-ballots-{}.csv", std::process::id()));
        let words = ["cat", "dog", "owl"];
        for (text, names, ballots) in [
            ("cat, dog ,owl", words, [0, 1, 2]),
            ("Cat,,2", words, [NO, NO, 2]),
            ("3,-1,1.5", words, [NO, NO, NO]),
            // Where names are numbers, a number is a name.
            ("1,2,0", ["1", "2", "3"], [0, 1, NO]),
            ("2,1,0", ["0", "1", "2"], [2, 1, 0]),
        ] {
            std::fs::write(&path, format!("a;b;c\n{}\n", text.replace(',', ";"))).unwrap();
            let read = Ballots::read_named(&path, &names.map(str::to_owned)).unwrap();
            assert_eq!(read.of, ballots, "{text}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_invalid_cell_is_an_abstention_and_not_an_error() {
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
    fn a_cell_that_is_too_long_leaves_the_other_cells_of_its_row_unchanged() {
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
            assert!((0..3).all(|teacher| read.of[2 * teacher + 1] == 2), "the next question is unchanged");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
