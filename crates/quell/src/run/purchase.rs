//! Answers in files: each is paid for once, however often a command is killed and run again.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use quell_privacy::{
    ledger::{Book, Ledger, Paid},
    mechanism::Mechanism,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{debt, file};
use crate::Error;

/// The answers to a question, and the file beside the answer in which they are kept: `NAME.paid.json`.
///
/// # Contract
/// The key of a charge is durable before the charge, and an answer before it is shown. What was drawn and not kept is lost: drawing it again would be another release.
pub struct Purchase {
    /// Folder and name of the file.
    place: (PathBuf, String),
    kept: Kept,
    /// Whether nothing is written yet: a question that is refused leaves nothing behind.
    is_new: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    question: String,
    /// Random, so that no two purchases share it.
    key: String,
    answers: BTreeMap<String, serde_json::Value>,
}

/// Longer than any file of answers.
const LARGEST: u64 = 1 << 28;

impl Purchase {
    /// Of the answer that is to be written to a file: what an earlier command has left if it asked the same, or nothing yet.
    pub fn open(answer: &Path, question: &str) -> Result<Self, Error> {
        let name = answer.file_name().ok_or_else(|| Error::unwritable(answer, &std::io::ErrorKind::InvalidFilename.into()))?;
        let folder = answer.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = (folder.to_owned(), format!("{}.paid.json", name.to_string_lossy()));
        let path = place.0.join(&place.1);
        if !path.exists() {
            if answer.exists() {
                return Err(Error::AnswerExists { path: answer.to_owned() });
            }
            let kept = Kept { question: question.to_owned(), key: debt::key()?, answers: BTreeMap::new() };
            return Ok(Self { place, kept, is_new: true });
        }
        let damaged = |_| Error::saved("paid.json", "damaged", "what an earlier command wrote");
        let kept: Kept = serde_json::from_slice(&file::read(&path, LARGEST)?).map_err(damaged)?;
        if kept.question != question {
            return Err(Error::AnswerExists { path: answer.to_owned() });
        }
        Ok(Self { place, kept, is_new: false })
    }

    /// An answer that an earlier command has left.
    #[must_use]
    pub fn answer<T: DeserializeOwned>(&self, part: &str) -> Option<T> {
        self.kept.answers.get(part).and_then(|answer| serde_json::from_value(answer.clone()).ok())
    }

    /// Whether a part of the question is paid for.
    pub fn is_paid<B: Book>(&self, ledger: &mut Ledger<B>, part: &str) -> Result<bool, Error> {
        Ok(ledger.state()?.keyed(&self.key(part)).is_some())
    }

    /// The answer to a part of the question: an earlier one, or one that is paid for, drawn and kept now. Nothing if it was paid for and lost.
    pub fn buy<M: Mechanism, B: Book, T: Serialize + DeserializeOwned>(
        &mut self,
        ledger: &mut Ledger<B>,
        part: &str,
        mechanism: M,
        run: impl FnOnce(Paid<M>) -> Result<T, quell_privacy::Error>,
    ) -> Result<Option<T>, Error> {
        if let Some(answer) = self.answer(part) {
            return Ok(Some(answer));
        }
        if std::mem::take(&mut self.is_new) && !file::write_new(&self.place.0, &self.place.1, &bytes(&self.kept)?)? {
            return Err(Error::AnswerExists { path: self.place.0.join(&self.place.1) });
        }
        let Some(paid) = ledger.reserve_once(&self.key(part), mechanism, 1)?.next().transpose()? else { return Ok(None) };
        let answer = run(paid)?;
        let kept = serde_json::to_value(&answer).map_err(|_| Error::saved("paid.json", "not writable", "numbers"))?;
        self.kept.answers.insert(part.to_owned(), kept);
        self.keep()?;
        Ok(Some(answer))
    }

    fn key(&self, part: &str) -> String {
        format!("{} {part}", self.kept.key)
    }

    fn keep(&self) -> Result<(), Error> {
        file::write(&self.place.0, &self.place.1, &bytes(&self.kept)?, file::Access::Everyone)
    }
}

fn bytes(kept: &Kept) -> Result<Vec<u8>, Error> {
    serde_json::to_vec_pretty(kept).map_err(|_| Error::saved("paid.json", "not writable", "numbers"))
}
