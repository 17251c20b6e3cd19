//! The folder of a run.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use quell_privacy::ledger::Receipt;
use serde::Serialize;

use super::{
    Configuration, Lock, Metrics, Model, Origin, PaymentRecord, TuningConfiguration,
    charge::Intent,
    configuration::{LARGEST_CONFIGURATION, from_toml},
    file, labels,
};
use crate::{Error, learner::tensors::LARGEST_FILE, run};

/// The folder of a run.
/// Its methods write each file completely or not at all.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// The lock, shared by every clone of a locked folder.
    lock: Option<Arc<Lock>>,
    /// Whether a run is given up when it is killed, so that no file must survive a power cut.
    is_temporary: bool,
}

impl Folder {
    const CONFIGURATION: &str = "config.toml";
    const PAID: &str = "paid.json";
    const WITNESS: &str = "witness.json";
    const METRICS: &str = "metrics.json";
    const ORIGIN: &str = "origin.json";
    const CHECKPOINT: &str = "checkpoint.safetensors";

    const SEARCH: &str = "tune.toml";
    const LABELS: &str = "labels.toml";
    const BALLOTS: &str = "ballots.toml";
    const OUTCOME: &str = "outcome.json";
    const REVEALED: &str = "revealed.json";

    /// The file with the model.
    pub const MODEL: &str = "model.safetensors";

    /// The file with the answers that were released.
    pub const ANSWERS: &str = "answers.jsonl";

    /// Creates a new folder; an error if it exists.
    pub fn create(path: &Path) -> Result<Self, Error> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| Error::unwritable(parent, &error))?;
        }
        match fs::create_dir(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(run::Error::Exists { path: path.to_owned() }.into())
            }
            Err(error) => Err(Error::unwritable(path, &error)),
            Ok(()) => Self { path: path.to_owned(), lock: None, is_temporary: false }.locked(),
        }
    }

    /// Creates a new folder like [`Folder::create`], for a run that nobody will resume.
    ///
    /// Its files are not synchronised, which takes most of the time of a short run. The ledger is as durable as ever.
    pub fn create_temporary(path: &Path) -> Result<Self, Error> {
        Ok(Self { is_temporary: true, ..Self::create(path)? })
    }

    /// Creates a folder in `parent`, with the first free number after the name.
    pub fn number(parent: &Path, name: &str) -> Result<Self, Error> {
        for number in 1_u32.. {
            match Self::create(&parent.join(format!("{name}-{number}"))) {
                Err(Error::Run(run::Error::Exists { .. })) => {}
                other => return other,
            }
        }
        Err(run::Error::Exists { path: parent.to_owned() }.into())
    }

    /// Opens the folder of an existing run for reading.
    /// Removes private files that are no longer needed.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let folder = Self { path: path.to_owned(), lock: None, is_temporary: false };
        if folder.has_configuration() || folder.is_labelling() || folder.is_search() {
            folder.sweep();
            Ok(folder)
        } else {
            Err(run::Error::NotFound { path: path.to_owned() }.into())
        }
    }

    /// Locks the folder; an error if another process works on the run.
    /// The operating system releases the lock when the process ends, however it ends.
    pub fn locked(self) -> Result<Self, Error> {
        if self.lock.is_some() {
            return Ok(self);
        }
        let lock = Lock::take(&self.path)?;
        Ok(Self { lock: Some(Arc::new(lock)), ..self })
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file completely: to a draft first, which is then renamed.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        if self.is_temporary {
            let path = self.file(name);
            return fs::write(&path, bytes).map_err(|error| Error::unwritable(&path, &error));
        }
        file::write(&self.path, name, bytes, file::Access::Everyone)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        crate::file::read(&self.file(name), LARGEST_FILE)
    }

    fn read_text(&self, name: &str) -> Result<String, Error> {
        crate::file::read_text(&self.file(name), LARGEST_CONFIGURATION)
    }

    fn read_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let bytes = self.read(name)?;
        serde_json::from_slice(&bytes).map_err(|_| Error::saved(name, "damaged", "what the run wrote"))
    }

    /// Reads JSON; `None` if the file does not exist, an error if it is no file.
    fn json_if_any<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        match fs::symlink_metadata(self.file(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => self.read_json(name).map(Some),
        }
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let bytes =
            serde_json::to_vec_pretty(value).map_err(|_| Error::saved(name, "not writable", "numbers"))?;
        self.write(name, &bytes)
    }

    /// Whether a training run has written its settings.
    pub(super) fn has_configuration(&self) -> bool {
        self.file(Self::CONFIGURATION).is_file()
    }

    /// The complete settings of a training run.
    pub fn configuration(&self) -> Result<Configuration, Error> {
        Configuration::read(&self.file(Self::CONFIGURATION))
    }

    pub(super) fn write_configuration(&self, configuration: &Configuration) -> Result<(), Error> {
        self.write(Self::CONFIGURATION, configuration.write()?.as_bytes())
    }

    /// The payment for the run.
    pub fn paid(&self) -> Result<PaymentRecord, Error> {
        self.read_json(Self::PAID)
    }

    pub(super) fn write_paid(&self, paid: &PaymentRecord) -> Result<(), Error> {
        self.write_json(Self::PAID, paid)
    }

    pub(super) fn paid_if_any(&self) -> Result<Option<PaymentRecord>, Error> {
        self.json_if_any(Self::PAID)
    }

    /// The intent that the run recorded before it paid, if there is one.
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

    /// The receipt of a purchase other than the plan.
    pub(super) fn receipt(&self, file: &str) -> Result<Option<Receipt>, Error> {
        self.json_if_any(file)
    }

    pub(super) fn write_receipt(&self, file: &str, receipt: &Receipt) -> Result<(), Error> {
        self.write_json(file, receipt)
    }

    /// The released cost of the votes.
    pub(super) fn revealed(&self) -> Result<Option<labels::Revealed>, Error> {
        self.json_if_any(Self::REVEALED)
    }

    pub(super) fn write_revealed(&self, revealed: &labels::Revealed) -> Result<(), Error> {
        self.write_json(Self::REVEALED, revealed)
    }

    /// Whether the run is a labelling run.
    #[must_use]
    pub fn is_labelling(&self) -> bool {
        self.file(Self::LABELS).is_file() || self.file(Self::BALLOTS).is_file()
    }

    /// The settings of a labelling run.
    pub fn labels_configuration(&self) -> Result<labels::Configuration, Error> {
        labels::Configuration::parse(&self.read_text(Self::LABELS)?)
    }

    pub(super) fn write_labels_configuration(
        &self,
        configuration: &labels::Configuration,
    ) -> Result<(), Error> {
        self.write(Self::LABELS, configuration.write()?.as_bytes())
    }

    /// The settings of a run on external ballots; `None` for any other run.
    pub fn ballots_configuration(&self) -> Result<Option<labels::ExternalBallots>, Error> {
        if !self.file(Self::BALLOTS).is_file() {
            return Ok(None);
        }
        from_toml(&self.read_text(Self::BALLOTS)?).map(Some)
    }

    pub(super) fn write_ballots_configuration(
        &self,
        settings: &labels::ExternalBallots,
    ) -> Result<(), Error> {
        self.write(Self::BALLOTS, settings.write()?.as_bytes())
    }

    /// Whether the run is a search.
    #[must_use]
    pub fn is_search(&self) -> bool {
        self.file(Self::SEARCH).is_file()
    }

    /// The settings of a search; `None` for any other run.
    pub(super) fn search(&self) -> Result<Option<TuningConfiguration>, Error> {
        if !self.is_search() {
            return Ok(None);
        }
        from_toml(&self.read_text(Self::SEARCH)?).map(Some)
    }

    pub(super) fn write_search(&self, text: &str) -> Result<(), Error> {
        self.write(Self::SEARCH, text.as_bytes())
    }

    pub(super) fn has_model(&self) -> bool {
        self.file(Self::MODEL).is_file()
    }

    /// The results of a labelling run so far.
    pub fn labels(&self) -> Result<Option<labels::Results>, Error> {
        self.json_if_any(Self::OUTCOME)
    }

    pub(super) fn write_labels(&self, results: &labels::Results) -> Result<(), Error> {
        self.write_json(Self::OUTCOME, results)
    }

    /// The public metrics of a training run.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        Ok(self.json_if_any(Self::METRICS)?.unwrap_or_default())
    }

    pub(super) fn write_metrics(&self, metrics: &Metrics) -> Result<(), Error> {
        self.write_json(Self::METRICS, metrics)
    }

    /// Where the run comes from; `None` if its front end did not say, as earlier versions did not.
    pub fn origin(&self) -> Result<Option<Origin>, Error> {
        self.json_if_any(Self::ORIGIN)
    }

    /// Writes where the run comes from.
    pub fn write_origin(&self, origin: &Origin) -> Result<(), Error> {
        self.write_json(Self::ORIGIN, origin)
    }

    /// The model of the run.
    pub fn model(&self) -> Result<Model, Error> {
        let file = self.file(Self::MODEL);
        if file.is_file() {
            Model::open(&file)
        } else {
            Err(run::Error::NoModel { folder: self.path.clone() }.into())
        }
    }

    /// The last checkpoint, if there is one.
    pub(super) fn checkpoint(&self) -> Result<Option<Vec<u8>>, Error> {
        if self.file(Self::CHECKPOINT).is_file() { self.read(Self::CHECKPOINT).map(Some) } else { Ok(None) }
    }

    pub(super) fn write_checkpoint(&self, bytes: &[u8]) -> Result<(), Error> {
        self.write(Self::CHECKPOINT, bytes)
    }
}
