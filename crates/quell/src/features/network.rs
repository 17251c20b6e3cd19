//! Features from a public network: the output of all its layers but the last.
//!
//! Naming the file declares it public. The network is the same for every record, and its layers process one
//! record at a time.

use std::path::Path;

use serde::Deserialize;

use crate::{
    Error,
    data::{Examples, Scaling},
    features::Features,
    layer,
    learner::{
        outputs,
        tensors::{CONFIGURATION, SHAPE, damaged, read_model, text, weights},
    },
    network::{self, Architecture, Network},
};

/// All layers but the last of a public model.
pub(super) struct PublicNetwork<'p> {
    path: &'p Path,
    /// Shape of a record of the model, channels first.
    shape: Vec<usize>,
    /// The features that the model was trained on.
    pub(super) features: Features,
    trunk: Network,
    /// The settings of the layers of `trunk`.
    pub(super) layers: Vec<layer::Spec>,
    pub(super) weights: Vec<f32>,
    /// The scaling of the records that the model was trained on.
    pub(super) scaling: Option<Scaling>,
    /// BLAKE3 hash of the file in hexadecimal.
    pub(super) digest: String,
}

/// The settings of a model that its features depend on.
#[derive(Deserialize)]
struct Settings {
    #[serde(default)]
    data: Data,
    #[serde(default)]
    features: Features,
    model: Architecture,
}

#[derive(Default, Deserialize)]
struct Data {
    scaling: Option<Scaling>,
}

impl<'p> PublicNetwork<'p> {
    /// Reads a file, and refuses it if its hash is not `digest`.
    pub(super) fn open(path: &'p Path, digest: Option<&str>) -> Result<Self, Error> {
        const MODEL: &str = "the model.safetensors of a run";
        let bytes = read_model(path).map_err(|error| match error {
            Error::Absent { .. } => unfit(path, "does not exist", MODEL),
            other => unfit(path, format!("cannot be read ({other})"), MODEL),
        })?;
        let no_model = |error: Error| unfit(path, format!("contains no model ({error})"), MODEL);
        let settings: Settings = text(&bytes, CONFIGURATION)
            .and_then(|text| toml::from_str(&text).map_err(|_| damaged(CONFIGURATION)))
            .map_err(no_model)?;
        // Compared only now: of a file that is no model, not even the hash decides an answer.
        let found = blake3::hash(&bytes).to_hex().to_string();
        if digest.is_some_and(|digest| digest != found) {
            return Err(unfit(path, "has changed since it was first used", "the unchanged file"));
        }
        // Networks that use the features of other networks could refer to each other in a cycle.
        if let Features::Network { .. } = settings.features {
            return Err(unfit(path, "uses the features of another network", "a network on raw records"));
        }
        let shape: Vec<usize> = text(&bytes, SHAPE)
            .and_then(|text| serde_json::from_str(&text).map_err(|_| damaged(SHAPE)))
            .map_err(no_model)?;
        let trunk = settings.features.output_shape(&shape).and_then(|seen| settings.model.trunk(&seen));
        let trunk = trunk.map_err(|error| match error {
            Error::Layer(layer::Error::NoLayers { .. }) => {
                unfit(path, "has one layer", "at least two, because the last one is removed")
            }
            other => no_model(other),
        })?;
        let weights = weights(&bytes, &trunk).map_err(no_model)?;
        let Settings { data, features, mut model } = settings;
        model.layers.pop();
        let (layers, scaling) = (model.layers, data.scaling);
        Ok(Self { path, shape, features, trunk, layers, weights, scaling, digest: found })
    }

    /// Number of features for records of a shape.
    pub(super) fn outputs(&self, shape: &[usize]) -> Result<usize, Error> {
        if shape != self.shape {
            let found = format!("expects records of {}", super::format_shape(&self.shape));
            return Err(unfit(self.path, found, "a network for records of the same shape as these"));
        }
        Ok(self.trunk.outputs())
    }

    /// Computes the features of all records.
    pub(super) fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        let width = self.outputs(examples.shape())?;
        let inputs = self.features.apply(examples)?;
        examples.with_features(&[width], outputs(&self.trunk, &self.weights, &inputs).concat())
    }
}

/// The error for a file that cannot serve as a public network.
fn unfit(path: &Path, found: impl Into<String>, expected: &'static str) -> Error {
    network::Error::PublicNetwork { path: path.to_owned(), found: found.into(), expected }.into()
}
