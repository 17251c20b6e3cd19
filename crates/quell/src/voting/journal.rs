//! The journal of released answers, and the loop that asks questions and records their answers.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use quell_privacy::{
    ledger::{Book, Lease},
    mechanism::{Answer, Poll, Polling},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Error, learner::Control};

/// The result of one question. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry<A = u32> {
    /// The index of the question.
    pub question: usize,
    /// The class, or another kind of answer; `None` if the question was refused.
    pub answer: Option<A>,
}

/// The released answer of a survey: labels or a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SurveyAnswer {
    /// The labels that more than half of the teachers named.
    Labels(Vec<u32>),
    /// The mean of the teachers' numbers.
    Number(f64),
}

/// A file with one line for each question that was asked.
/// A question in the journal is never asked again, and so never paid for again.
pub struct Journal<A = u32> {
    path: PathBuf,
    file: File,
    entries: Vec<Entry<A>>,
}

impl<A: Clone + Serialize + DeserializeOwned> Journal<A> {
    /// Opens a journal, or creates one.
    ///
    /// An incomplete last line is removed. A killed run leaves such a line, and its answer counts as lost.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::io(path, &error);
        let (entries, whole) = parse(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        file.set_len(whole).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, entries })
    }

    /// Reads the entries of a journal without opening it for writing.
    /// Returns no entries if the file does not exist.
    pub fn read(path: &Path) -> Result<Vec<Entry<A>>, Error> {
        Ok(parse(path)?.0)
    }

    /// All questions that were asked.
    #[must_use]
    pub fn entries(&self) -> &[Entry<A>] {
        &self.entries
    }

    /// The questions that were answered, with their answers.
    #[must_use]
    pub fn answers(&self) -> Vec<(usize, A)> {
        self.entries.iter().filter_map(|entry| Some((entry.question, entry.answer.clone()?))).collect()
    }

    /// Appends entries. They are durable when this method returns.
    pub fn record(&mut self, entries: &[Entry<A>]) -> Result<(), Error> {
        let mut text = String::new();
        for entry in entries {
            text += &serde_json::to_string(entry)
                .map_err(|_| Error::saved("answers.jsonl", "not writable", "numbers"))?;
            text.push('\n');
        }
        let failed = |error: std::io::Error| Error::io(&self.path, &error);
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all()).map_err(failed)?;
        self.entries.extend_from_slice(entries);
        Ok(())
    }
}

/// Reads the complete lines of a file.
/// Returns their entries, and the position after the last complete line.
fn parse<A: DeserializeOwned>(path: &Path) -> Result<(Vec<Entry<A>>, u64), Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Error::io(path, &error)),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let entry = |line| {
        serde_json::from_str(line).map_err(|_| Error::saved("answers.jsonl", "damaged", "what the run wrote"))
    };
    let entries = text[..whole].lines().map(entry).collect::<Result<Vec<Entry<A>>, Error>>()?;
    Ok((entries, whole as u64))
}

/// Chooses the next questions and asks the voters.
pub(crate) trait Asker {
    /// Chooses the next questions, given the answers so far.
    ///
    /// No chosen question may be in the journal. [`ask`] stops if no question is chosen.
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error>;

    /// Asks the voters; returns one answer for each question.
    fn ask(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error>;
}

/// Asks questions in blocks until the paid answers or the questions are used up.
///
/// `watch` is called with the journal after each block of questions.
pub(crate) fn ask<B: Book>(
    mut lease: Lease<'_, Poll, B>,
    journal: &mut Journal,
    asker: &mut impl Asker,
    mut watch: impl FnMut(&Journal) -> Control,
) -> Result<Control, Error> {
    let mut polling: Option<Polling> = None;
    loop {
        let mut open = match polling.take() {
            Some(open) if open.is_open() => open,
            // The next round adds its answers to the poll of the rounds before it.
            closed => match lease.next() {
                None => return Ok(Control::Continue),
                Some(paid) => match closed {
                    None => paid?.run()?,
                    Some(mut closed) => {
                        closed.add(paid?)?;
                        closed
                    }
                },
            },
        };
        let questions = asker.choose(journal, &open)?;
        if questions.is_empty() {
            return Ok(Control::Continue);
        }
        let entries: Vec<Entry> =
            questions.iter().zip(asker.ask(&mut open, &questions)?).filter_map(entry).collect();
        journal.record(&entries)?;
        lease.confirm()?;
        polling = Some(open);
        if watch(journal) == Control::Stop {
            return Ok(Control::Stop);
        }
    }
}

/// The journal entry of an answer.
/// `None` if the paid answers were used up before the votes were read; the question may be asked again.
pub(crate) fn entry((question, answer): (&usize, Answer)) -> Option<Entry> {
    match answer {
        Answer::Winner(class) => Some(Entry { question: *question, answer: Some(class as u32) }),
        Answer::Refused => Some(Entry { question: *question, answer: None }),
        Answer::Exhausted => None,
    }
}
