//! What a run is asked to do, as a file.

use std::path::{Path, PathBuf};

use quell_privacy::{Neighbors, ledger::Unit};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    data::{self, Dataset, Examples, Options, Scaling, Schema},
    dp_sgd::Recipe,
    features::Features,
    layer,
    network::{self, Network},
    toml_error,
};

/// A configuration longer than this is none.
pub(crate) const LARGEST_CONFIGURATION: u64 = 1 << 24;

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
    /// Whether everyone may know all of the test part that lies with the data. It is private unless told otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public_test: bool,
    /// Name of the ledger; that of the file if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Who is protected: one example, or one person with all their examples.
    pub unit: Unit,
    /// Whose record each row is: integers in an NPY or IDX file, or a text file with one line for each row. Tables name a column in their schema instead, and archives hold an
    /// array `users`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<PathBuf>,
    /// The classes, where labels are numbers or names of folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Channels, rows and columns of pictures in folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<[usize; 3]>,
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
            if self.classes.is_some() || self.shape.is_some() {
                let name = if self.classes.is_some() { "classes" } else { "shape" };
                return Err(Error::Setting { name, found: "given".into(), expected: "none: the embedded digits have theirs" });
            }
            let mut digits = data::digits()?;
            if let Some(scaling) = &self.scaling {
                digits.train = digits.train.scaled(scaling)?;
                digits.test = digits.test.map(|test| test.scaled(scaling)).transpose()?;
            }
            return Ok(digits);
        };
        let mut options = Options {
            schema: self.schema.clone(),
            classes: self.classes.clone(),
            shape: self.shape,
            scaling: self.scaling.clone(),
            public_test: self.public_test,
            ..Options::default()
        };
        if self.test.as_ref().is_some_and(|test| data::shares_records(test, path)) {
            return Err(Error::Setting {
                name: "test",
                found: "the data that is trained on, or a part of it".into(),
                expected: "other records, which are public; of data that has a test part of its own, say with --public-test that it is public",
            });
        }
        // How the data is divided says nothing about another file, all of which is tested on.
        let whole = self.schema.clone().map(|schema| Schema { test: None, ..schema });
        let of_file = Options { public: true, schema: whole, ..options.clone() };
        let test = self.test.as_ref().map(|test| data::open(test, &of_file)).transpose()?.map(everything);
        if let Some(test) = &test {
            // What is public about pictures may be read off those that are.
            options.classes = options.classes.or_else(|| test.classes().map(<[String]>::to_vec));
            options.shape = options.shape.or_else(|| test.shape().try_into().ok());
        }
        options.users.clone_from(&self.users);
        let mut dataset = data::open(path, &options)?;
        if let Some(test) = test {
            (dataset.test, dataset.test_is_public) = (Some(test), true);
        }
        Ok(dataset)
    }

    /// Whether what was read can be protected as is wanted. Depends on nothing that a record says.
    pub(super) fn check(&self, train: &Examples, neighbors: Neighbors) -> Result<(), Error> {
        if self.unit == Unit::User && train.users().is_none() {
            return Err(NO_USERS);
        }
        let splits = self.schema.as_ref().and_then(|schema| schema.test.as_ref()).is_some_and(|test| test.share.is_some());
        if neighbors == Neighbors::Replace && splits && self.path.is_some() {
            return Err(Error::Setting {
                name: "neighbors",
                found: "replace, where a share of the records is split off by what they hold".into(),
                expected: "add_remove, or a test part in a file of its own: a record that is exchanged would change the number of records on either side",
            });
        }
        Ok(())
    }

    /// Name of the ledger.
    #[must_use]
    pub fn name(&self) -> String {
        let stem = || self.path.as_deref().and_then(data::name_of);
        self.dataset.clone().or_else(stem).unwrap_or_else(|| "digits".into())
    }
}

/// People are to be protected, and nobody says who they are.
pub(super) const NO_USERS: Error = Error::Missing {
    what: "user of each record",
    hint: "name the column that says whose record it is in the schema, an array `users` in an archive, or a file with --users FILE; pictures in folders and the embedded digits have no users",
};

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
    /// How many records there are, if that is public whatever the ledger says: only of the embedded digits. Where one may only be exchanged it is public, too, but whether
    /// that is so the ledger says, and not whoever asks.
    pub(super) fn public_count(&self, train: &Examples) -> Option<u64> {
        self.data.path.is_none().then_some(train.row_count() as u64)
    }

    /// Reads TOML.
    pub fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::Configuration { because: toml_error::describe(text, &error) })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&super::file::read_text(path, LARGEST_CONFIGURATION)?)
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
