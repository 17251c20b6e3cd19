//! The answers that were released, written down as they come.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::Error;

/// What came of one question. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Which question.
    pub question: usize,
    /// The class; none if an answer was refused.
    pub answer: Option<u32>,
}

/// A file with one line for each question that was put. What it holds is never asked, and so never paid for, again.
pub struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

impl Journal {
    /// Opens a journal, or begins one. A last line that was cut off, which no answer depends on, is dropped.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::io(path, &error);
        let (entries, whole) = parse(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        file.set_len(whole).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, entries })
    }

    /// What one holds, without opening it for more; nothing if there is none.
    pub fn read(path: &Path) -> Result<Vec<Entry>, Error> {
        Ok(parse(path)?.0)
    }

    /// Everything that was asked.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The questions that were answered, with their answers.
    #[must_use]
    pub fn answers(&self) -> Vec<(usize, u32)> {
        self.entries.iter().filter_map(|entry| Some((entry.question, entry.answer?))).collect()
    }

    /// Writes down, so that it survives whatever comes.
    pub fn record(&mut self, entries: &[Entry]) -> Result<(), Error> {
        let mut text = String::new();
        for entry in entries {
            text += &serde_json::to_string(entry).map_err(|_| Error::saved("answers.jsonl", "not writable", "numbers"))?;
            text.push('\n');
        }
        let failed = |error: std::io::Error| Error::io(&self.path, &error);
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all()).map_err(failed)?;
        self.entries.extend_from_slice(entries);
        Ok(())
    }
}

/// The whole lines of a file, and where they end.
fn parse(path: &Path) -> Result<(Vec<Entry>, u64), Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Error::io(path, &error)),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let entry = |line| serde_json::from_str(line).map_err(|_| Error::saved("answers.jsonl", "damaged", "what the run wrote"));
    let entries = text[..whole].lines().map(entry).collect::<Result<Vec<Entry>, Error>>()?;
    Ok((entries, whole as u64))
}
