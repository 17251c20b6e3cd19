//! The folder of a run.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use quell_privacy::ledger::Receipt;
use serde::Serialize;

use super::{
    Configuration, Lock, Metrics, Paid, configuration::LARGEST_CONFIGURATION, debt::Intent, file, labels, model::LARGEST_FILE,
};
use crate::{Error, toml_error};

/// The folder of a run. Files are written whole or not at all.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held by every clone of a folder that was locked.
    lock: Option<Arc<Lock>>,
}

impl Folder {
    const CONFIGURATION: &str = "config.toml";
    const PAID: &str = "paid.json";
    const WITNESS: &str = "witness.json";
    const METRICS: &str = "metrics.json";
    const CHECKPOINT: &str = "checkpoint.safetensors";

    const LABELS: &str = "labels.toml";
    const BALLOTS: &str = "ballots.toml";
    const OUTCOME: &str = "outcome.json";
    const REVEALED: &str = "revealed.json";

    /// The file with the model.
    pub const MODEL: &str = "model.safetensors";

    /// The file with the answers that were released.
    pub const ANSWERS: &str = "answers.jsonl";

    /// A new folder of that name; an error if there is one.
    pub fn create(path: &Path) -> Result<Self, Error> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| Error::unwritable(parent, &error))?;
        }
        match fs::create_dir(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::RunExists { path: path.to_owned() }),
            Err(error) => Err(Error::unwritable(path, &error)),
            Ok(()) => Self { path: path.to_owned(), lock: None }.locked(),
        }
    }

    /// A new folder in `parent`, with the first number that is free behind the name.
    pub fn number(parent: &Path, name: &str) -> Result<Self, Error> {
        for number in 1_u32.. {
            match Self::create(&parent.join(format!("{name}-{number}"))) {
                Err(Error::RunExists { .. }) => {}
                other => return other,
            }
        }
        Err(Error::RunExists { path: parent.to_owned() })
    }

    /// A folder of a run that was begun, to be looked at. What is private and no longer needed is removed.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let folder = Self { path: path.to_owned(), lock: None };
        if folder.file(Self::CONFIGURATION).is_file() || folder.labels_anything() {
            folder.sweep();
            Ok(folder)
        } else {
            Err(Error::NoRun { path: path.to_owned() })
        }
    }

    /// The same folder, locked: an error if another process works on the run. The system unlocks it when the process ends, however it ends.
    pub fn locked(self) -> Result<Self, Error> {
        if self.lock.is_some() {
            return Ok(self);
        }
        let lock = Lock::take(&self.path)?;
        Ok(Self { lock: Some(Arc::new(lock)), ..self })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where one of its files is.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file whole: first beside it, then in its place.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        file::write(&self.path, name, bytes, file::Access::Everyone)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        file::read(&self.file(name), LARGEST_FILE)
    }

    fn read_text(&self, name: &str) -> Result<String, Error> {
        file::read_text(&self.file(name), LARGEST_CONFIGURATION)
    }

    fn read_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let bytes = self.read(name)?;
        serde_json::from_slice(&bytes).map_err(|_| Error::saved(name, "damaged", "what the run wrote"))
    }

    /// Nothing where there is no such file; an error where there is something else than a file.
    fn json_if_any<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        match fs::symlink_metadata(self.file(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => self.read_json(name).map(Some),
        }
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let bytes = serde_json::to_vec_pretty(value).map_err(|_| Error::saved(name, "not writable", "numbers"))?;
        self.write(name, &bytes)
    }

    /// What was asked for, without gaps.
    pub fn configuration(&self) -> Result<Configuration, Error> {
        Configuration::read(&self.file(Self::CONFIGURATION))
    }

    pub(super) fn write_configuration(&self, configuration: &Configuration) -> Result<(), Error> {
        self.write(Self::CONFIGURATION, configuration.write()?.as_bytes())
    }

    /// Which debt the run lives on.
    pub fn paid(&self) -> Result<Paid, Error> {
        self.read_json(Self::PAID)
    }

    pub(super) fn write_paid(&self, paid: &Paid) -> Result<(), Error> {
        self.write_json(Self::PAID, paid)
    }

    pub(super) fn paid_if_any(&self) -> Result<Option<Paid>, Error> {
        self.json_if_any(Self::PAID)
    }

    /// What the run was about to pay for, if it was.
    pub(super) fn intent(&self, file: &str) -> Result<Option<Intent>, Error> {
        self.json_if_any(file)
    }

    pub(super) fn write_intent(&self, file: &str, intent: &Intent) -> Result<(), Error> {
        self.write_json(file, intent)
    }

    /// The newest line of the ledger that the run has seen.
    pub(super) fn witness(&self) -> Result<Option<Receipt>, Error> {
        self.json_if_any(Self::WITNESS)
    }

    pub(super) fn write_witness(&self, seen: &Receipt) -> Result<(), Error> {
        self.write_json(Self::WITNESS, seen)
    }

    /// The line that paid for something besides the plan.
    pub(super) fn receipt(&self, file: &str) -> Result<Option<Receipt>, Error> {
        self.json_if_any(file)
    }

    pub(super) fn write_receipt(&self, file: &str, receipt: &Receipt) -> Result<(), Error> {
        self.write_json(file, receipt)
    }

    /// What was shown about the cost of the votes.
    pub(super) fn revealed(&self) -> Result<Option<labels::Revealed>, Error> {
        self.json_if_any(Self::REVEALED)
    }

    pub(super) fn write_revealed(&self, revealed: &labels::Revealed) -> Result<(), Error> {
        self.write_json(Self::REVEALED, revealed)
    }

    /// Whether the run is one that puts questions to voters.
    #[must_use]
    pub fn labels_anything(&self) -> bool {
        self.file(Self::LABELS).is_file() || self.file(Self::BALLOTS).is_file()
    }

    /// What a run that labels was asked for.
    pub fn labels_configuration(&self) -> Result<labels::Configuration, Error> {
        labels::Configuration::parse(&self.read_text(Self::LABELS)?)
    }

    pub(super) fn write_labels_configuration(&self, configuration: &labels::Configuration) -> Result<(), Error> {
        self.write(Self::LABELS, configuration.write()?.as_bytes())
    }

    /// What a run on ballots from elsewhere was asked for; none if it is no such run.
    pub fn elsewhere(&self) -> Result<Option<labels::Elsewhere>, Error> {
        if !self.file(Self::BALLOTS).is_file() {
            return Ok(None);
        }
        let text = self.read_text(Self::BALLOTS)?;
        toml::from_str(&text).map(Some).map_err(|error| Error::Configuration { because: toml_error::describe(&text, &error) })
    }

    /// Writes down what a run on ballots from elsewhere is asked for, so that it can go on if it is stopped.
    pub fn write_elsewhere(&self, asked: &labels::Elsewhere) -> Result<(), Error> {
        let text = toml::to_string(asked).map_err(|error| Error::Configuration { because: error.to_string() })?;
        self.write(Self::BALLOTS, text.as_bytes())
    }

    /// What came of a run that labels, so far.
    pub fn labels(&self) -> Result<Option<labels::Outcome>, Error> {
        self.json_if_any(Self::OUTCOME)
    }

    pub(super) fn write_labels(&self, outcome: &labels::Outcome) -> Result<(), Error> {
        self.write_json(Self::OUTCOME, outcome)
    }

    /// What may be known about it.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        Ok(self.json_if_any(Self::METRICS)?.unwrap_or_default())
    }

    pub(super) fn write_metrics(&self, metrics: &Metrics) -> Result<(), Error> {
        self.write_json(Self::METRICS, metrics)
    }

    /// The last checkpoint, if there is one.
    pub(super) fn checkpoint(&self) -> Result<Option<Vec<u8>>, Error> {
        if self.file(Self::CHECKPOINT).is_file() { self.read(Self::CHECKPOINT).map(Some) } else { Ok(None) }
    }

    pub(super) fn write_checkpoint(&self, bytes: &[u8]) -> Result<(), Error> {
        self.write(Self::CHECKPOINT, bytes)
    }
}
