//! What a run is asked to do, as a file.

use std::path::{Path, PathBuf};

use quell_privacy::ledger::Unit;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    data::{self, Dataset, Examples, Options, Scaling, Schema},
    dp_sgd::Recipe,
    features::Features,
    layer,
    network::{self, Network},
};

/// What a run is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// What is learned from.
    pub data: Source,
    /// What is made of each record before it is learned from.
    #[serde(skip_serializing_if = "Features::is_raw")]
    pub features: Features,
    /// What learns.
    pub model: Architecture,
    /// How.
    pub training: Recipe,
    /// What may be spent on the dataset in all, if its ledger is still to be opened; what this run costs if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Allowance>,
}

/// What may be spent on a dataset in all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// The cap on ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
}

/// What is learned from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// A file or a folder; the embedded digits if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Public examples to test on, in a file of the same kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// Name of the ledger; that of the file if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Who is protected: one example, or one person with all their examples.
    pub unit: Unit,
    /// A text file with one line for each record that names its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<PathBuf>,
    /// What is taken off features and what they are divided by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// What is public about the columns of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
}

impl Source {
    /// Reads everything.
    pub fn open(&self) -> Result<Dataset, Error> {
        let Some(path) = &self.path else {
            let mut digits = data::digits()?;
            if let Some(scaling) = &self.scaling {
                digits.train = digits.train.scaled(scaling)?;
                digits.test = digits.test.map(|test| test.scaled(scaling)).transpose()?;
            }
            return Ok(digits);
        };
        let options = Options {
            schema: self.schema.clone(),
            scaling: self.scaling.clone(),
            users: self.users.clone(),
            ..Options::default()
        };
        let mut dataset = data::open(path, &options)?;
        if let Some(test) = &self.test {
            let options = Options { users: None, ..options };
            dataset.test = Some(everything(data::open(test, &options)?));
            dataset.test_is_public = true;
        }
        Ok(dataset)
    }

    /// Name of the ledger.
    #[must_use]
    pub fn name(&self) -> String {
        let stem = || self.path.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
        self.dataset.clone().or_else(stem).unwrap_or_else(|| "digits".into())
    }
}

/// All of a file of public examples, whichever part it calls itself.
fn everything(dataset: Dataset) -> Examples {
    match dataset.test {
        Some(test) if dataset.train.is_empty() => test,
        _ => dataset.train,
    }
}

/// What learns: a model with a name, or layers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Architecture {
    /// One of `quell models`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Or layer by layer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<layer::Recipe>,
}

impl Architecture {
    /// For examples of a shape (channels first) and so many outputs. A name becomes its layers.
    pub fn build(&mut self, shape: &[usize], outputs: usize) -> Result<Network, Error> {
        let input = channels_last(shape);
        if self.layers.is_empty() {
            let default = if shape.len() == 3 { "cnn-tanh" } else { "logistic" };
            self.layers = network::model(self.name.as_deref().unwrap_or(default), &input, outputs)?;
        }
        let network = network::build(&input, &self.layers)?;
        if network.outputs() != outputs {
            let found = format!("{} outputs", network.outputs());
            return Err(Error::Setting { name: "model", found, expected: "one output for each class, or one for a number" });
        }
        Ok(network)
    }
}

impl Architecture {
    /// All layers but the last, of a model that was built for examples of that shape: what it sees, before it decides.
    pub(crate) fn trunk(&self, shape: &[usize]) -> Result<Network, Error> {
        let layers = self.layers.split_last().map_or(&[][..], |(_, layers)| layers);
        network::build(&channels_last(shape), layers)
    }
}

/// How a network wants to be told the shape of an image.
fn channels_last(shape: &[usize]) -> Vec<usize> {
    match *shape {
        [channels, rows, columns] => vec![rows, columns, channels],
        _ => shape.to_vec(),
    }
}

impl Configuration {
    /// Reads TOML.
    pub fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::Configuration { because: error.to_string() })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&std::fs::read_to_string(path).map_err(|error| Error::io(path, &error))?)
    }

    /// The same as TOML.
    pub fn write(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|error| Error::Configuration { because: error.to_string() })
    }

    /// How the embedded digits are trained on unless somebody says otherwise.
    pub fn digits() -> Result<Self, Error> {
        Self::parse(include_str!("digits.toml"))
    }
}
