//! Buys answers that go to a file: each is charged once, even after a kill.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use quell_privacy::{
    ledger::{Book, Ledger, Paid},
    mechanism::Mechanism,
};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::{charge, file};
use crate::{Error, run};

/// The paid answers to a question, kept in `NAME.paid.json` beside the output file.
///
/// # Contract
/// The key of a charge is durable before the charge, and an answer is durable before it is shown. An answer
/// that was drawn and not saved is lost: drawing it again would be another release.
pub struct Purchase {
    /// Folder and name of the file `NAME.paid.json`.
    place: (PathBuf, String),
    kept: Kept,
    /// Whether nothing is written yet. A refused question leaves no file behind.
    is_new: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The question as JSON text. Equal texts are the same question.
    ///
    /// Earlier versions stored the debug form of the question.
    question: String,
    /// Random, so that no two purchases share it.
    key: String,
    answers: BTreeMap<String, serde_json::Value>,
}

/// The largest file of answers that is read, in bytes.
const LARGEST: u64 = 1 << 28;

impl Purchase {
    /// Opens the purchase for an output file.
    /// If an earlier command asked the same question, this loads its answers. Otherwise the purchase is
    /// empty.
    ///
    /// Questions are compared as JSON. So `question` must contain everything that the answer depends on.
    pub fn open(answer: &Path, question: &impl Serialize) -> Result<Self, Error> {
        let question = serde_json::to_string(question)
            .map_err(|_| Error::saved("paid.json", "not writable", "a question"))?;
        let name = answer
            .file_name()
            .ok_or_else(|| Error::unwritable(answer, &std::io::ErrorKind::InvalidFilename.into()))?;
        let folder =
            answer.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = (folder.to_owned(), format!("{}.paid.json", name.to_string_lossy()));
        let path = place.0.join(&place.1);
        if !path.exists() {
            if answer.exists() {
                return Err(run::Error::AnswerExists { path: answer.to_owned() }.into());
            }
            let kept = Kept { question, key: charge::key()?, answers: BTreeMap::new() };
            return Ok(Self { place, kept, is_new: true });
        }
        let damaged = |_| Error::saved("paid.json", "damaged", "what an earlier command wrote");
        let kept: Kept = serde_json::from_slice(&crate::file::read(&path, LARGEST)?).map_err(damaged)?;
        if kept.question != question {
            if serde_json::from_str::<IgnoredAny>(&kept.question).is_err() {
                return Err(run::Error::EarlierQuestion { path }.into());
            }
            // A person may have removed the answer, and not what is kept beside it.
            let path = if answer.exists() { answer.to_owned() } else { path };
            return Err(run::Error::AnswerExists { path }.into());
        }
        Ok(Self { place, kept, is_new: false })
    }

    /// The answer that an earlier command saved for a part of the question.
    #[must_use]
    pub fn answer<T: DeserializeOwned>(&self, part: &str) -> Option<T> {
        self.kept.answers.get(part).and_then(|answer| serde_json::from_value(answer.clone()).ok())
    }

    /// Whether the ledger holds a charge for a part of the question.
    pub fn is_paid<B: Book>(&self, ledger: &mut Ledger<B>, part: &str) -> Result<bool, Error> {
        Ok(ledger.state()?.keyed(&self.key(part)).is_some())
    }

    /// Returns the saved answer to a part of the question, or buys it.
    /// Buying means to charge, draw and save. Returns `None` if the answer was paid for and lost.
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
        if std::mem::take(&mut self.is_new)
            && !file::write_new(&self.place.0, &self.place.1, &bytes(&self.kept)?)?
        {
            return Err(run::Error::AnswerExists { path: self.place.0.join(&self.place.1) }.into());
        }
        let Some(paid) = ledger.reserve_once(&self.key(part), mechanism, 1)?.next().transpose()? else {
            return Ok(None);
        };
        let answer = run(paid)?;
        let kept = serde_json::to_value(&answer)
            .map_err(|_| Error::saved("paid.json", "not writable", "numbers"))?;
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
