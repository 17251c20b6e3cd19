//! A model file: weights, everything needed to use them, and the payment.

use std::{collections::HashMap, path::Path};

use safetensors::serialize;

use super::{Configuration, Folder, PaymentRecord};
use crate::{
    Error,
    data::Examples,
    learner::{
        loss::Target,
        predictions,
        tensors::{CONFIGURATION, SHAPE, Tensor, damaged, read_model, text, weights},
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

const CLASSES: &str = "quell.classes";
const PAID: &str = "quell.paid";
const STATEMENT: &str = "quell.statement";

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

    /// Opens a model by its file, or by the folder of its run.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            return Folder::open(path)?.model();
        }
        read_model(path).and_then(|bytes| Self::restore(&bytes)).map_err(|error| match error {
            // These errors name the file that is to blame.
            Error::Absent { .. }
            | Error::Unreadable { .. }
            | Error::Network(network::Error::PublicNetwork { .. }) => error,
            error => run::Error::UnreadableModel { path: path.to_owned(), because: error.to_string() }.into(),
        })
    }

    /// Reads a model from bytes that [`Model::save`] wrote.
    pub fn restore(bytes: &[u8]) -> Result<Self, Error> {
        let text = |name: &str| text(bytes, name);
        let mut configuration = Configuration::parse(&text(CONFIGURATION)?)?;
        let shape: Vec<usize> = serde_json::from_str(&text(SHAPE)?).map_err(|_| damaged(SHAPE))?;
        let classes: Option<Vec<String>> =
            serde_json::from_str(&text(CLASSES)?).map_err(|_| damaged(CLASSES))?;
        let paid = serde_json::from_str(&text(PAID)?).map_err(|_| damaged(PAID))?;
        let statement = text(STATEMENT)?;
        let loss = configuration.training.loss.ok_or_else(|| damaged("the loss"))?;
        let features = configuration.features.output_shape(&shape)?;
        let network =
            configuration.model.build(&features, loss.outputs(classes.as_ref().map_or(1, Vec::len)))?;
        let weights = weights(bytes, &network)?;
        Ok(Self { configuration, shape, classes, paid, statement, network, weights })
    }
}
