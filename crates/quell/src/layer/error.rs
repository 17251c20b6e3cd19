//! Errors about layers.

use crate::Hint;

/// Why a layer, or a list of layers, is invalid.
///
/// A message depends on the settings of the layers and the shape of a record, which are public. It never
/// depends on the value of a record or on the number of records.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The layer cannot take the shape of its input.
    #[error("the input of {layer} has the shape {found:?}, expected {expected}")]
    Input {
        /// The layer.
        layer: String,
        /// The shape of the input: the output of the layer before.
        found: Vec<usize>,
        /// The inputs that the layer can take.
        expected: String,
    },
    /// A setting of a layer is invalid in this place.
    #[error("{setting} of {layer} is {found}, expected {expected}")]
    Setting {
        /// The layer.
        layer: String,
        /// The name of the setting.
        setting: &'static str,
        /// What was found.
        found: String,
        /// What is allowed.
        expected: String,
    },
    /// The layer mixes examples, so no example has its own gradient.
    #[error(
        "{layer} mixes the examples of a batch, so no example has its own gradient to clip; expected layers that process each example separately"
    )]
    MixesExamples {
        /// The layer.
        layer: String,
    },
    /// The network is larger than the limit.
    #[error("with {layer} the network has more than {most} {what}, expected at most that many")]
    TooLarge {
        /// The layer that exceeds the limit.
        layer: String,
        /// The quantity that exceeds the limit.
        what: &'static str,
        /// What is allowed.
        most: u128,
    },
    /// Layers are nested too deeply.
    #[error("{layer} is nested in {most} layers and contains layers itself, expected at most {most} levels")]
    TooDeep {
        /// The layer.
        layer: String,
        /// What is allowed.
        most: usize,
    },
    /// A network, or a layer made of layers, has no layers.
    #[error("{place} has no layers, expected at least one")]
    NoLayers {
        /// The network, or a layer made of layers.
        place: String,
    },
}

impl Error {
    /// What to try next.
    pub(crate) fn hint(&self) -> Hint {
        match self {
            Self::Setting { setting: "kernel", .. } => Hint::ShrinkKernel,
            Self::Setting { setting: "output", .. } => Hint::KeepShape,
            Self::Input { .. } | Self::Setting { .. } => Hint::ChangeLayer,
            Self::MixesExamples { .. } => Hint::UseGroupNorm,
            Self::TooLarge { .. } => Hint::NarrowLayers,
            Self::TooDeep { .. } | Self::NoLayers { .. } => Hint::ListLayers,
        }
    }
}
