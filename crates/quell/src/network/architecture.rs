//! The settings of a model: a name, or a list of layers.

use serde::{Deserialize, Serialize};

use super::{Network, build, layers_of};
use crate::{Error, layer};

/// The model: the name of a built-in model, or a list of layers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Architecture {
    /// The name of a model that `quell models` lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The layers, if there is no name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<layer::Spec>,
}

/// The fewest rows and columns of an image for the default network.
const SMALLEST_SIDE: usize = 16;

impl Architecture {
    /// Builds the network for examples of a shape (channels first) and `outputs` outputs.
    /// Adds the layers of the named model, or names a default model.
    pub fn build(&mut self, shape: &[usize], outputs: usize) -> Result<Network, Error> {
        let input = channels_last(shape);
        if self.layers.is_empty() {
            let default = match *shape {
                // The convolutions of the other network are larger than such an image.
                [_, rows, columns] if rows.min(columns) < SMALLEST_SIDE => "digits",
                [_, _, _] => "cnn-tanh",
                _ => "logistic",
            };
            let name = self.name.get_or_insert_with(|| default.to_owned());
            self.layers = layers_of(name, &input, outputs)?;
        }
        let network = build(&input, &self.layers)?;
        if network.outputs() != outputs {
            let found = format!("{} outputs", network.outputs());
            return Err(Error::Setting {
                name: "model",
                found,
                expected: "one output for each class, or one for a number",
            });
        }
        Ok(network)
    }

    /// All layers but the last, of a model built for this shape.
    /// These layers compute the features on which the last layer decides.
    pub(crate) fn trunk(&self, shape: &[usize]) -> Result<Network, Error> {
        let layers = self.layers.split_last().map_or(&[][..], |(_, layers)| layers);
        build(&channels_last(shape), layers)
    }
}

/// Converts the shape of an image from channels first to channels last.
pub(crate) fn channels_last(shape: &[usize]) -> Vec<usize> {
    match *shape {
        [channels, rows, columns] => vec![rows, columns, channels],
        _ => shape.to_vec(),
    }
}
