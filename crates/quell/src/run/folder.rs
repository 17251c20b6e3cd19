//! The folder of a run.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use quell_privacy::{Bound, ledger::Receipt};
use serde::{Deserialize, Serialize};

use super::{Configuration, labels};
use crate::{Error, dp_sgd::Evaluation};

/// The folder of a run. Files are written whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

/// Which debt this run lives on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paid {
    /// The line that paid.
    pub receipt: Receipt,
    /// ε of the run, as an interval.
    pub epsilon: Bound,
    /// δ.
    pub delta: f64,
}

/// What is known of one moment of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Steps so far.
    pub step: u64,
    /// ε of those steps alone. What was paid is the ε of all.
    pub epsilon: f64,
    /// Accuracy on public test data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
}

/// What may be known about a run besides its model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Steps that were paid for.
    pub steps: u64,
    /// Steps that were taken; fewer if the run was killed.
    pub taken: u64,
    /// Time it took, in seconds, all sittings together.
    pub seconds: f64,
    /// The way there.
    pub points: Vec<Point>,
    /// The model on public test data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
}

impl Folder {
    const CONFIGURATION: &str = "config.toml";
    const PAID: &str = "paid.json";
    const INTENDED: &str = "intended.json";
    const METRICS: &str = "metrics.json";
    const CHECKPOINT: &str = "checkpoint.safetensors";

    const LABELS: &str = "labels.toml";
    const BALLOTS: &str = "ballots.toml";
    const OUTCOME: &str = "outcome.json";
    const PRIVATE: &str = "private";

    /// The file with the model.
    pub const MODEL: &str = "model.safetensors";

    /// The file with the answers that were released.
    pub const ANSWERS: &str = "answers.jsonl";

    /// A new folder of that name; an error if there is one.
    pub fn create(path: &Path) -> Result<Self, Error> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| Error::io(parent, &error))?;
        }
        match fs::create_dir(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::RunExists { path: path.to_owned() }),
            other => other.map(|()| Self(path.to_owned())).map_err(|error| Error::io(path, &error)),
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

    /// A folder of a run that was begun.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let folder = Self(path.to_owned());
        if folder.file(Self::CONFIGURATION).is_file() || folder.labels_anything() {
            Ok(folder)
        } else {
            Err(Error::NoRun { path: path.to_owned() })
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where one of its files is.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file whole: first beside it, then in its place.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let (path, beside) = (self.file(name), self.file(&format!(".{name}.new")));
        let failed = |error: std::io::Error| Error::io(&path, &error);
        let mut file = File::create(&beside).map_err(failed)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&beside, &path).map_err(failed)?;
        // The name is in the folder's own file.
        File::open(&self.0).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.file(name);
        fs::read(&path).map_err(|error| Error::io(&path, &error))
    }

    fn read_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let bytes = self.read(name)?;
        serde_json::from_slice(&bytes).map_err(|_| Error::saved(name, "damaged", "what the run wrote"))
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
        if self.file(Self::PAID).is_file() { self.paid().map(Some) } else { Ok(None) }
    }

    /// Where the ledger ended when the run was about to pay.
    pub(super) fn intended(&self) -> Result<Option<u64>, Error> {
        if self.file(Self::INTENDED).is_file() { self.read_json(Self::INTENDED).map(Some) } else { Ok(None) }
    }

    pub(super) fn write_intended(&self, lines: u64) -> Result<(), Error> {
        self.write_json(Self::INTENDED, &lines)
    }

    /// Whether the run is one that puts questions to voters.
    #[must_use]
    pub fn labels_anything(&self) -> bool {
        self.file(Self::LABELS).is_file() || self.file(Self::BALLOTS).is_file()
    }

    /// What a run that labels was asked for.
    pub fn labels_configuration(&self) -> Result<labels::Configuration, Error> {
        let bytes = self.read(Self::LABELS)?;
        labels::Configuration::parse(&String::from_utf8_lossy(&bytes))
    }

    pub(super) fn write_labels_configuration(&self, configuration: &labels::Configuration) -> Result<(), Error> {
        self.write(Self::LABELS, configuration.write()?.as_bytes())
    }

    /// What a run on ballots from elsewhere was asked for; none if it is no such run.
    pub fn elsewhere(&self) -> Result<Option<labels::Elsewhere>, Error> {
        if !self.file(Self::BALLOTS).is_file() {
            return Ok(None);
        }
        let bytes = self.read(Self::BALLOTS)?;
        let parsed = toml::from_str(&String::from_utf8_lossy(&bytes));
        parsed.map(Some).map_err(|error| Error::Configuration { because: error.to_string() })
    }

    /// Writes down what a run on ballots from elsewhere is asked for, so that it can go on if it is stopped.
    pub fn write_elsewhere(&self, asked: &labels::Elsewhere) -> Result<(), Error> {
        let text = toml::to_string(asked).map_err(|error| Error::Configuration { because: error.to_string() })?;
        self.write(Self::BALLOTS, text.as_bytes())
    }

    /// What came of a run that labels, so far.
    pub fn labels(&self) -> Result<Option<labels::Outcome>, Error> {
        if self.file(Self::OUTCOME).is_file() { self.read_json(Self::OUTCOME).map(Some) } else { Ok(None) }
    }

    pub(super) fn write_labels(&self, outcome: &labels::Outcome) -> Result<(), Error> {
        self.write_json(Self::OUTCOME, outcome)
    }

    /// The folder of what must not leave the house.
    fn private(&self) -> Result<Self, Error> {
        let path = self.file(Self::PRIVATE);
        fs::create_dir_all(&path).map_err(|error| Error::io(&path, &error))?;
        Ok(Self(path))
    }

    /// Which shard each record is in.
    pub(super) fn write_shards(&self, of: &[u32]) -> Result<(), Error> {
        let lines: Vec<String> = of.iter().map(u32::to_string).collect();
        self.private()?.write("shards.txt", lines.join("\n").as_bytes())
    }

    /// The ballots of a teacher that has voted, on so many questions.
    pub(super) fn ballots(&self, teacher: usize, questions: usize) -> Option<Vec<u16>> {
        let bytes = fs::read(self.file(Self::PRIVATE).join(format!("ballots-{teacher}"))).ok()?;
        let (pairs, rest) = bytes.as_chunks::<2>();
        (pairs.len() == questions && rest.is_empty()).then(|| pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect())
    }

    pub(super) fn write_ballots(&self, teacher: usize, ballots: &[u16]) -> Result<(), Error> {
        let bytes: Vec<u8> = ballots.iter().flat_map(|ballot| ballot.to_le_bytes()).collect();
        self.private()?.write(&format!("ballots-{teacher}"), &bytes)
    }

    /// Removes what must not leave the house.
    pub(super) fn forget_private(&self) -> Result<(), Error> {
        let path = self.file(Self::PRIVATE);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&path, &error)),
            _ => Ok(()),
        }
    }

    /// What may be known about it.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        if self.file(Self::METRICS).is_file() { self.read_json(Self::METRICS) } else { Ok(Metrics::default()) }
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
