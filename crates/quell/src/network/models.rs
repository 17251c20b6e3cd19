//! Predefined networks.

use super::Network;
use crate::{
    Error,
    layer::{self, Axes, Sides, Spec},
    network,
};

/// A predefined network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The name that [`named`] accepts.
    pub name: &'static str,
    /// The network in words, for a title. A linear layer is named after its use for classes.
    pub title: &'static str,
    /// One sentence on its architecture and its use.
    pub purpose: &'static str,
}

const MODELS: [Model; 10] = [
    Model {
        name: "logistic",
        title: "Logistic regression",
        purpose: "One linear layer: logistic or linear regression.",
    },
    Model {
        name: "mlp",
        title: "Neural network",
        purpose: "One hidden layer of 1000 and ReLU, for unordered features.",
    },
    Model {
        name: "mlp-small",
        title: "Small neural network",
        purpose: "One hidden layer of 64 and ReLU: the default for large tables with classes.",
    },
    Model {
        name: "mlp-tanh",
        title: "Neural network",
        purpose: "mlp with tanh, whose bounded outputs keep gradients short, so that fewer are clipped.",
    },
    Model {
        name: "cnn",
        title: "Convolutional network",
        purpose: "Two convolutions with ReLU and max pooling, for grey images of about 28 × 28.",
    },
    Model {
        name: "cnn-tanh",
        title: "Convolutional network",
        purpose: "cnn with tanh in place of ReLU, which learns more under a small ε (Papernot et al. 2020).",
    },
    Model {
        name: "cifar-cnn",
        title: "Convolutional network",
        purpose: "Six 3 × 3 convolutions with tanh and three poolings, for colour images of about 32 × 32.",
    },
    Model {
        name: "digits",
        title: "Small convolutional network",
        purpose: "Two small convolutions with tanh, for images of about 8 × 8 such as the embedded digits.",
    },
    Model {
        name: "resnet",
        title: "Residual network",
        purpose: "Six standardised convolutions in residual blocks with group normalisation, for images.",
    },
    Model {
        name: "transformer",
        title: "Transformer",
        purpose: "Two blocks of self-attention, for sequences of vectors, of numbers, or of the rows of an image.",
    },
];

/// All predefined networks.
#[must_use]
pub fn models() -> &'static [Model] {
    &MODELS
}

/// Builds a network from layer settings, for examples of a shape (images with channels last).
pub fn build(input: &[usize], recipes: &[Spec]) -> Result<Network, Error> {
    let layers = Spec::build_all(input, recipes)?;
    // Every layer was built for the output of the one before it.
    let no_layers = || layer::Error::NoLayers { place: "the network".into() };
    Ok(Network::new(input.to_vec(), layers).ok_or_else(no_layers)?)
}

/// Builds a predefined network for examples of a shape (images with channels last).
pub fn named(name: &str, input: &[usize], outputs: usize) -> Result<Network, Error> {
    build(input, &layers_of(name, input, outputs)?)
}

/// The layer settings of a predefined network, for examples of a shape (channels last).
pub fn layers_of(name: &str, input: &[usize], outputs: usize) -> Result<Vec<Spec>, Error> {
    let last = Spec::Linear { outputs };
    let recipes = match name {
        "logistic" => vec![last],
        "mlp" => vec![Spec::Linear { outputs: 1000 }, Spec::Relu {}, last],
        "mlp-small" => vec![Spec::Linear { outputs: 64 }, Spec::Relu {}, last],
        "mlp-tanh" => vec![Spec::Linear { outputs: 1000 }, Spec::Tanh {}, last],
        "cnn" => small_images(&Spec::Relu {}, last),
        "cnn-tanh" => small_images(&Spec::Tanh {}, last),
        "cifar-cnn" => colour_images(last),
        "digits" => digits(last),
        "resnet" => resnet(last),
        "transformer" => transformer(input, last),
        _ => {
            let models = MODELS.iter().map(|model| model.name.into()).collect();
            return Err(network::Error::NoModel { name: name.into(), models }.into());
        }
    };
    build(input, &recipes)?;
    Ok(recipes)
}

fn convolution(outputs: usize, kernel: usize, stride: usize, padding: usize) -> Spec {
    let [kernel, stride, padding] = [kernel, stride, padding].map(Sides::Same);
    Spec::Convolution { outputs, kernel, stride, padding, groups: 1, standardized: false }
}

fn standardized(outputs: usize, kernel: usize, stride: usize, padding: usize) -> Spec {
    let [kernel, stride, padding] = [kernel, stride, padding].map(Sides::Same);
    Spec::Convolution { outputs, kernel, stride, padding, groups: 1, standardized: true }
}

fn max_pool(kernel: usize, stride: usize) -> Spec {
    Spec::MaxPool { kernel: Sides::Same(kernel), stride: Some(Sides::Same(stride)) }
}

/// The network of the Opacus example for MNIST.
fn small_images(activation: &Spec, last: Spec) -> Vec<Spec> {
    vec![
        convolution(16, 8, 2, 3),
        activation.clone(),
        max_pool(2, 1),
        convolution(32, 4, 2, 0),
        activation.clone(),
        max_pool(2, 1),
        Spec::Linear { outputs: 32 },
        activation.clone(),
        last,
    ]
}

/// The network of Papernot et al. 2020 for CIFAR-10.
fn colour_images(last: Spec) -> Vec<Spec> {
    let stage = |width: usize| {
        [
            convolution(width, 3, 1, 1),
            Spec::Tanh {},
            convolution(width, 3, 1, 1),
            Spec::Tanh {},
            max_pool(2, 2),
        ]
    };
    let mut layers: Vec<Spec> = [32, 64, 128].into_iter().flat_map(stage).collect();
    layers.extend([Spec::Linear { outputs: 128 }, Spec::Tanh {}, last]);
    layers
}

fn digits(last: Spec) -> Vec<Spec> {
    vec![
        convolution(16, 3, 1, 1),
        Spec::Tanh {},
        max_pool(2, 2),
        convolution(32, 3, 1, 1),
        Spec::Tanh {},
        max_pool(2, 2),
        last,
    ]
}

/// Two residual stages: the second has twice the channels at half the rows and columns.
///
/// A block applies normalisation, activation and convolution twice.
fn resnet(last: Spec) -> Vec<Spec> {
    let activate = || [Spec::GroupNorm { groups: 8 }, Spec::Relu {}];
    let block = |width: usize, stride: usize| {
        let mut layers = activate().to_vec();
        layers.push(standardized(width, 3, stride, 1));
        layers.extend(activate());
        layers.push(standardized(width, 3, 1, 1));
        let projection = if stride == 1 { Vec::new() } else { vec![standardized(width, 1, stride, 0)] };
        Spec::Residual { layers, projection }
    };
    let mut layers = vec![standardized(32, 3, 1, 1), block(32, 1), block(64, 2)];
    layers.extend(activate());
    layers.extend([Spec::GlobalMean {}, last]);
    layers
}

/// A transformer. Numbers become positions with one channel each, an image the sequence of its rows.
fn transformer(input: &[usize], last: Spec) -> Vec<Spec> {
    const WIDTH: usize = 64;
    let mut layers = match *input {
        [length] => vec![Spec::Reshape { shape: vec![length, 1] }],
        // Building the layer refuses a product that is too large.
        [rows, columns, channels] => {
            vec![Spec::Reshape { shape: vec![rows, columns.saturating_mul(channels)] }]
        }
        _ => Vec::new(),
    };
    layers.extend([Spec::Pointwise { outputs: WIDTH }, Spec::Positions {}]);
    let norm = || Spec::LayerNorm { over: Axes::Last };
    for _ in 0..2 {
        let attend = vec![norm(), Spec::SelfAttention { heads: 4, causal: false }];
        let transform = vec![
            norm(),
            Spec::Pointwise { outputs: 4 * WIDTH },
            Spec::Gelu {},
            Spec::Pointwise { outputs: WIDTH },
        ];
        layers.extend([attend, transform].map(|layers| Spec::Residual { layers, projection: Vec::new() }));
    }
    layers.extend([norm(), Spec::GlobalMean {}, last]);
    layers
}
