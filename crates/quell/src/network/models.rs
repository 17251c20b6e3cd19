//! Networks with a name.

use super::Network;
use crate::{
    Error,
    layer::{Axes, Recipe, Sides},
};

/// A network that can be asked for by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The name.
    pub name: &'static str,
    /// What it is and what for, in a sentence.
    pub purpose: &'static str,
}

const MODELS: [Model; 9] = [
    Model { name: "logistic", purpose: "One linear layer: logistic or linear regression, the first thing to try on a table." },
    Model { name: "mlp", purpose: "One hidden layer of 1000 and ReLU, for numbers in no particular order." },
    Model {
        name: "mlp-tanh",
        purpose: "The same with tanh, whose bounded outputs keep gradients short, so that less is clipped away.",
    },
    Model { name: "cnn", purpose: "Two convolutions with ReLU and max pooling, for grey images of about 28 × 28." },
    Model {
        name: "cnn-tanh",
        purpose: "The same with tanh in place of ReLU, which learns more under a small ε (Papernot et al. 2020).",
    },
    Model {
        name: "cifar-cnn",
        purpose: "Six 3 × 3 convolutions with tanh and three poolings, for colour images of about 32 × 32.",
    },
    Model {
        name: "digits", purpose: "Two small convolutions with tanh, for images of about 8 × 8 such as the embedded digits."
    },
    Model { name: "resnet", purpose: "Six standardised convolutions in residual blocks with group normalisation, for images." },
    Model {
        name: "transformer",
        purpose: "Two blocks of self-attention, for sequences of vectors, of numbers, or of the rows of an image.",
    },
];

/// All that can be named.
#[must_use]
pub fn models() -> &'static [Model] {
    &MODELS
}

/// A network of layers as they are written down, for examples of a shape (images with channels last).
pub fn build(input: &[usize], recipes: &[Recipe]) -> Result<Network, Error> {
    let layers = Recipe::build_all(input, recipes)?;
    // Every layer was built for what comes out of the one before it.
    Network::new(input.to_vec(), layers).ok_or_else(|| Error::NoLayers { place: "the network".into() })
}

/// The layers of a named model, from examples of a shape (images with channels last) to so many outputs.
pub fn model(name: &str, input: &[usize], outputs: usize) -> Result<Vec<Recipe>, Error> {
    let last = Recipe::Linear { outputs };
    let recipes = match name {
        "logistic" => vec![last],
        "mlp" => vec![Recipe::Linear { outputs: 1000 }, Recipe::Relu {}, last],
        "mlp-tanh" => vec![Recipe::Linear { outputs: 1000 }, Recipe::Tanh {}, last],
        "cnn" => small_images(&Recipe::Relu {}, last),
        "cnn-tanh" => small_images(&Recipe::Tanh {}, last),
        "cifar-cnn" => colour_images(last),
        "digits" => digits(last),
        "resnet" => resnet(last),
        "transformer" => transformer(input, last),
        _ => {
            let models = MODELS.iter().map(|model| model.name.into()).collect();
            return Err(Error::NoModel { name: name.into(), models });
        }
    };
    build(input, &recipes)?;
    Ok(recipes)
}

fn convolution(outputs: usize, kernel: usize, stride: usize, padding: usize) -> Recipe {
    let [kernel, stride, padding] = [kernel, stride, padding].map(Sides::Same);
    Recipe::Convolution { outputs, kernel, stride, padding, groups: 1, standardized: false }
}

fn standardized(outputs: usize, kernel: usize, stride: usize, padding: usize) -> Recipe {
    let [kernel, stride, padding] = [kernel, stride, padding].map(Sides::Same);
    Recipe::Convolution { outputs, kernel, stride, padding, groups: 1, standardized: true }
}

fn max_pool(kernel: usize, stride: usize) -> Recipe {
    Recipe::MaxPool { kernel: Sides::Same(kernel), stride: Some(Sides::Same(stride)) }
}

/// The network that Opacus trains on MNIST in its examples.
fn small_images(activation: &Recipe, last: Recipe) -> Vec<Recipe> {
    vec![
        convolution(16, 8, 2, 3),
        activation.clone(),
        max_pool(2, 1),
        convolution(32, 4, 2, 0),
        activation.clone(),
        max_pool(2, 1),
        Recipe::Linear { outputs: 32 },
        activation.clone(),
        last,
    ]
}

/// The network of Papernot et al. 2020 for CIFAR-10.
fn colour_images(last: Recipe) -> Vec<Recipe> {
    let stage = |width: usize| {
        [convolution(width, 3, 1, 1), Recipe::Tanh {}, convolution(width, 3, 1, 1), Recipe::Tanh {}, max_pool(2, 2)]
    };
    let mut layers: Vec<Recipe> = [32, 64, 128].into_iter().flat_map(stage).collect();
    layers.extend([Recipe::Linear { outputs: 128 }, Recipe::Tanh {}, last]);
    layers
}

fn digits(last: Recipe) -> Vec<Recipe> {
    vec![
        convolution(16, 3, 1, 1),
        Recipe::Tanh {},
        max_pool(2, 2),
        convolution(32, 3, 1, 1),
        Recipe::Tanh {},
        max_pool(2, 2),
        last,
    ]
}

/// Normalise, activate, convolve, twice; the second stage has twice the channels at half the sides.
fn resnet(last: Recipe) -> Vec<Recipe> {
    let activate = || [Recipe::GroupNorm { groups: 8 }, Recipe::Relu {}];
    let block = |width: usize, stride: usize| {
        let mut layers = activate().to_vec();
        layers.push(standardized(width, 3, stride, 1));
        layers.extend(activate());
        layers.push(standardized(width, 3, 1, 1));
        let projection = if stride == 1 { Vec::new() } else { vec![standardized(width, 1, stride, 0)] };
        Recipe::Residual { layers, projection }
    };
    let mut layers = vec![standardized(32, 3, 1, 1), block(32, 1), block(64, 2)];
    layers.extend(activate());
    layers.extend([Recipe::GlobalMean {}, last]);
    layers
}

/// What comes in becomes a sequence: numbers are places of one channel each, an image is a sequence of its rows.
fn transformer(input: &[usize], last: Recipe) -> Vec<Recipe> {
    const WIDTH: usize = 64;
    let mut layers = match *input {
        [length] => vec![Recipe::Reshape { shape: vec![length, 1] }],
        // A product that is too large is refused when the layer is built.
        [rows, columns, channels] => vec![Recipe::Reshape { shape: vec![rows, columns.saturating_mul(channels)] }],
        _ => Vec::new(),
    };
    layers.extend([Recipe::Pointwise { outputs: WIDTH }, Recipe::Positions {}]);
    let norm = || Recipe::LayerNorm { over: Axes::Last };
    for _ in 0..2 {
        let attend = vec![norm(), Recipe::SelfAttention { heads: 4, causal: false }];
        let think = vec![norm(), Recipe::Pointwise { outputs: 4 * WIDTH }, Recipe::Gelu {}, Recipe::Pointwise { outputs: WIDTH }];
        layers.extend([attend, think].map(|layers| Recipe::Residual { layers, projection: Vec::new() }));
    }
    layers.extend([norm(), Recipe::GlobalMean {}, last]);
    layers
}
