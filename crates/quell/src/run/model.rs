//! A model file: weights, everything needed to use them, and the payment.

use std::{collections::HashMap, path::Path};

use safetensors::{Dtype, SafeTensors, serialize};

use super::{Configuration, Folder, PaymentRecord, file};
use crate::{
    Error,
    data::Examples,
    learner::{
        loss::Target,
        predictions,
        tensors::{Tensor, numbers},
    },
    network::{self, Network},
    run,
};

/// A model with its settings and its payment.
pub struct Model {
    /// The complete settings.
    pub configuration: Configuration,
    /// Shape of an example, channels first, before features are computed.
    pub shape: Vec<usize>,
    /// Names of the classes; `None` for a model that predicts numbers.
    pub classes: Option<Vec<String>>,
    /// The payment: its receipt, ε and δ.
    pub paid: PaymentRecord,
    /// The privacy statement in words.
    pub statement: String,
    /// The layers.
    pub network: Network,
    /// The weights of all layers.
    pub weights: Vec<f32>,
}

const CONFIGURATION: &str = "quell.configuration";
const SHAPE: &str = "quell.shape";
const CLASSES: &str = "quell.classes";
const PAID: &str = "quell.paid";
const STATEMENT: &str = "quell.statement";

/// The largest file that is read as a model, in bytes.
pub(super) const LARGEST_FILE: u64 = 1 << 33;

impl Model {
    /// Computes the features on which the network was trained.
    pub fn features(&self, examples: Examples) -> Result<Examples, Error> {
        if self.configuration.features.is_raw() {
            Ok(examples)
        } else {
            self.configuration.features.apply(&examples)
        }
    }

    /// Predicts the class name, or the number, of each example.
    /// `None` where the outputs are not numbers (NaN).
    pub fn predict(&self, examples: &Examples) -> Result<Vec<Option<String>>, Error> {
        let loss = self.configuration.training.loss.ok_or_else(|| damaged("the loss"))?;
        let seen = if self.configuration.features.is_raw() {
            None
        } else {
            Some(self.configuration.features.apply(examples)?)
        };
        let name = |class: u32| self.classes.as_ref().and_then(|names| names.get(class as usize)).cloned();
        let predicted = predictions(&self.network, &self.weights, seen.as_ref().unwrap_or(examples), loss);
        Ok(predicted
            .into_iter()
            .map(|target| match target? {
                Target::Class(class) => name(class),
                Target::Number(number) => Some(number.to_string()),
            })
            .collect())
    }

    /// The blake3 hash of the weights, in hexadecimal digits. It tells models apart.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        self.weights.iter().for_each(|weight| {
            hasher.update(&weight.to_le_bytes());
        });
        hasher.finalize().to_hex().to_string()
    }

    /// Writes a safetensors file.
    /// Each tensor is named by the number of its layer. Everything else is text in the metadata.
    pub fn save(&self) -> Result<Vec<u8>, Error> {
        let failed = |_| Error::saved("model", "not writable", "tensors and text");
        let tensors = self
            .network
            .tensors()
            .map(|(name, shape, range)| (name, Tensor::shaped(&self.weights[range], shape)));
        let metadata = HashMap::from([
            (CONFIGURATION.to_owned(), self.configuration.write()?),
            (SHAPE.to_owned(), serde_json::to_string(&self.shape).map_err(failed)?),
            (CLASSES.to_owned(), serde_json::to_string(&self.classes).map_err(failed)?),
            (PAID.to_owned(), serde_json::to_string(&self.paid).map_err(failed)?),
            (STATEMENT.to_owned(), self.statement.clone()),
        ]);
        serialize(tensors, Some(metadata))
            .map_err(|_| Error::saved("model", "not writable", "tensors and text"))
    }

    /// All layers but the last, with their weights: the part that computes features.
    pub(crate) fn trunk(&self) -> Result<(Network, &[f32]), Error> {
        let seen = self.configuration.features.output_shape(&self.shape)?;
        let trunk = self.configuration.model.trunk(&seen)?;
        let weights = &self.weights[..trunk.parameters()];
        Ok((trunk, weights))
    }

    /// Opens a model by its file, or by the folder of its run.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            return Folder::open(path)?.model();
        }
        Self::read(path).and_then(|bytes| Self::restore(&bytes)).map_err(|error| match error {
            // These errors name the file that is to blame.
            Error::Absent { .. }
            | Error::Unreadable { .. }
            | Error::Network(network::Error::PublicNetwork { .. }) => error,
            error => run::Error::UnreadableModel { path: path.to_owned(), because: error.to_string() }.into(),
        })
    }

    /// Reads the bytes of a file, unless it is too large for a model.
    pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
        // A device or a pipe has no size, and may never end.
        let found = std::fs::metadata(path).map_err(|error| Error::io(path, &error))?;
        if !found.is_file() {
            return Err(Error::saved("model", "not a file", "a model"));
        }
        file::read(path, LARGEST_FILE)
    }

    /// Reads the settings from bytes that [`Model::save`] wrote.
    pub(crate) fn describe(bytes: &[u8]) -> Result<Configuration, Error> {
        Configuration::parse(&text(bytes, CONFIGURATION)?)
    }

    /// Reads a model from bytes that [`Model::save`] wrote.
    pub fn restore(bytes: &[u8]) -> Result<Self, Error> {
        let file = SafeTensors::deserialize(bytes).map_err(|_| damaged("the file"))?;
        let text = |name: &str| text(bytes, name);
        let mut configuration = Self::describe(bytes)?;
        let shape: Vec<usize> = serde_json::from_str(&text(SHAPE)?).map_err(|_| damaged(SHAPE))?;
        let classes: Option<Vec<String>> =
            serde_json::from_str(&text(CLASSES)?).map_err(|_| damaged(CLASSES))?;
        let paid = serde_json::from_str(&text(PAID)?).map_err(|_| damaged(PAID))?;
        let statement = text(STATEMENT)?;
        let loss = configuration.training.loss.ok_or_else(|| damaged("the loss"))?;
        let features = configuration.features.output_shape(&shape)?;
        let network =
            configuration.model.build(&features, loss.outputs(classes.as_ref().map_or(1, Vec::len)))?;
        // A forged description of a network cannot allocate more weights than the file holds.
        if network.parameters() > bytes.len() / 4 {
            return Err(damaged("weights"));
        }
        let mut weights = vec![0.0; network.parameters()];
        for (name, shape, range) in network.tensors() {
            let values = numbers(&file, &name, Dtype::F32, f32::from_le_bytes)
                .filter(|values| values.len() == range.len());
            let fits = file.tensor(&name).is_ok_and(|tensor| tensor.shape() == shape);
            weights[range].copy_from_slice(&values.filter(|_| fits).ok_or_else(|| damaged(&name))?);
        }
        Ok(Self { configuration, shape, classes, paid, statement, network, weights })
    }
}

fn damaged(part: &str) -> Error {
    Error::saved(part, "missing or damaged", "the contents of a model of Quell")
}

/// The text stored under a name in the metadata.
fn text(bytes: &[u8], name: &str) -> Result<String, Error> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|_| damaged("the header"))?;
    header.metadata().as_ref().and_then(|metadata| metadata.get(name)).cloned().ok_or_else(|| damaged(name))
}
