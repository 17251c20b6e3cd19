//! The layers of a neural network, with per-example gradients.
//!
//! A layer computes its forward and backward pass, the norm of every example's gradient by its weights, and
//! the scaled sum of these gradients. [`Spec`] describes a layer in a configuration file.
//!
//! The examples of a chunk are contiguous, `inputs()` numbers each. Images have channels last. A layer does
//! not own its weights: they are a part of the network's weight vector, so that an optimizer step is one pass
//! over one slice. A layer has no state either. What it needs in a later call it writes to `kept`, which
//! belongs to one chunk of examples and so to one thread.
//!
//! ```
//! use quell::layer::{Layer, Linear};
//! // y = Wx + b with W = (2, 3) and b = 1.
//! let (layer, weights) = (Linear::new(2, 1), [2.0, 3.0, 1.0]);
//! assert_eq!(layer.parameters(), 3);
//! let mut output = [0.0; 2];
//! // Two examples, (1, 1) and (0, 2).
//! layer.forward(&weights, &[1.0, 1.0, 0.0, 2.0], &mut output, &mut [], &[]);
//! assert_eq!(output, [6.0, 7.0]);
//! ```

mod activation;
mod append_squares;
mod attention;
mod build;
mod chain;
mod convolution;
mod decision_tree;
mod dropout;
mod embedding;
mod error;
mod leaves;
mod linear;
mod normalization;
mod pooling;
mod positions;
mod reshape;
mod residual;
mod site;
mod spec;
mod standardize;
mod standardized;
mod waves;

pub use activation::{Activation, Function};
pub use append_squares::AppendSquares;
pub use attention::SelfAttention;
pub(crate) use build::MOST_TREES;
pub use convolution::Convolution;
pub use decision_tree::{DecisionTree, Nodes};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use error::Error;
pub use leaves::Leaves;
pub(crate) use leaves::Trees;
pub use linear::Linear;
pub use normalization::Normalization;
pub use pooling::{Pool, Pooling};
pub use positions::Positions;
pub use reshape::Reshape;
pub use residual::Residual;
pub use spec::{Axes, Sides, Spec};
pub use standardize::{BoundLength, Standardize};
pub use standardized::StandardizedConvolution;
pub(crate) use standardized::standardize_filters;
pub(crate) use waves::Table as WaveTable;
pub use waves::Waves;

use crate::random::PublicRandom;

/// The shape of one example: `[n]`, `[length, channels]` or `[rows, columns, channels]`.
pub type Shape = Vec<usize>;

/// The values of one layer for a chunk of examples during the backward pass.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    /// The input of the layer.
    pub input: &'a [f32],
    /// The output of the layer.
    pub output: &'a [f32],
    /// The gradient of every example's loss by the output.
    pub output_gradient: &'a [f32],
}

/// A differentiable function with weights and a gradient for each example.
///
/// # Contract
/// What a method writes for an example depends on that example alone. For a chunk of examples, `forward`,
/// `backward` and `squared_norms` are called in this order, then `add_scaled`, with the same `kept`.
/// [`Network`](crate::network::Network) calls `add_scaled` for examples of one block only.
pub trait Layer: Send + Sync {
    /// Number of inputs of one example.
    fn inputs(&self) -> usize;

    /// Shape of the output of one example.
    fn output(&self) -> &Shape;

    /// Number of outputs of one example.
    fn outputs(&self) -> usize {
        self.output().iter().product()
    }

    /// Number of weights.
    fn parameters(&self) -> usize {
        0
    }

    /// Names and shapes of the weights, in order.
    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        Vec::new()
    }

    /// How many numbers per example the layer keeps from one call to the next.
    fn kept(&self) -> usize {
        0
    }

    /// Writes the initial weights.
    fn initialize(&self, _weights: &mut [f32], _random: &mut PublicRandom) {}

    /// Computes `output` from `input`.
    ///
    /// During training, `seeds` holds a random number for each example; otherwise it is empty.
    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], seeds: &[u64]);

    /// Writes the gradient by the input, if one is requested.
    fn backward(&self, weights: &[f32], pass: Pass<'_>, kept: &mut [f32], input_gradient: Option<&mut [f32]>);

    /// Adds the squared norm of each example's gradient by the weights to `squared`.
    fn squared_norms(&self, _pass: Pass<'_>, _kept: &mut [f32], _squared: &mut [f64]) {}

    /// Adds all gradients by the weights to `sum`, each multiplied by its scale.
    ///
    /// A scale of zero adds nothing, whatever the gradient is.
    fn add_scaled(&self, _pass: Pass<'_>, _kept: &mut [f32], _scales: &[f32], _sum: &mut [f32]) {}

    /// Adds all gradients by the weights to `sum`, unscaled. `squared_norms` need not be called before.
    fn add(&self, pass: Pass<'_>, kept: &mut [f32], sum: &mut [f32]) {
        let mut squared = vec![0.0; pass.input.len() / self.inputs()];
        self.squared_norms(pass, kept, &mut squared);
        self.add_scaled(pass, kept, &vec![1.0; squared.len()], sum);
    }

    /// Whether an example's gradient is an outer product, as in a linear layer.
    ///
    /// That is the outer product of its output gradient and its input, followed by the output gradient
    /// itself. A network then adds up the gradients of a whole batch at once.
    fn is_outer_product(&self) -> bool {
        false
    }
}
