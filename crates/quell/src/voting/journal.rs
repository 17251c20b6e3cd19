//! The journal of released answers, written as they come.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::Error;

/// The result of one question. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry<A = u32> {
    /// The index of the question.
    pub question: usize,
    /// The class, or another kind of answer; `None` if the question was refused.
    pub answer: Option<A>,
}

/// An answer that is not a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// The labels that more than half of the teachers named.
    Labels(Vec<u32>),
    /// The mean of their numbers.
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
    /// Drops an incomplete last line, on which no answer depends.
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

/// Reads the complete lines of a file, and the position at which they end.
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
