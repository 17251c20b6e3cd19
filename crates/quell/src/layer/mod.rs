//! Layers: each knows its forward and backward pass, how long its part of every example's gradient is, and how to add those parts up.
//!
//! Examples lie one after the other, `inputs()` numbers each, and images with channels last. A layer has no weights of its own: they are a part of the network's vector, so
//! that a step of an optimizer is one pass over one slice. Nor has it memory: what it needs again it writes into `kept`, which belongs to the chunk of
//! examples that is being worked on, and so to one thread.

mod activation;
mod attention;
mod build;
mod chain;
mod convolution;
mod dropout;
mod embedding;
mod linear;
mod normalization;
mod pooling;
mod positions;
mod recipe;
mod reshape;
mod residual;
mod site;
mod standardized;

pub use activation::{Activation, Function};
pub use attention::SelfAttention;
pub use convolution::Convolution;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use linear::Linear;
pub use normalization::Normalization;
pub use pooling::{Pool, Pooling};
pub use positions::Positions;
pub use recipe::{Axes, Recipe, Sides};
pub use reshape::Reshape;
pub use residual::Residual;
pub use standardized::StandardizedConvolution;

use crate::chance::Chance;

/// How the numbers of one example are arranged: `[n]`, `[length, channels]` or `[rows, columns, channels]`.
pub type Shape = Vec<usize>;

/// What a layer has seen of a chunk of examples when it is asked about its gradient.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    /// What came in.
    pub input: &'a [f32],
    /// What went out.
    pub output: &'a [f32],
    /// The derivative of every example's loss by what went out.
    pub output_gradient: &'a [f32],
}

/// A function with weights that can be differentiated, one example at a time.
///
/// # Contract
/// What is written for an example depends on that example alone. Of a chunk of examples, `forward`, `backward` and `squared_norms` are called in this order, then
/// `add_scaled`, with the same `kept`. [`Network`](crate::network::Network) calls `add_scaled` for examples of one block only.
pub trait Layer: Send + Sync {
    /// Numbers of an example that come in.
    fn inputs(&self) -> usize;

    /// Arrangement of the numbers that go out.
    fn output(&self) -> &Shape;

    /// Numbers of an example that go out.
    fn outputs(&self) -> usize {
        self.output().iter().product()
    }

    /// How many weights there are.
    fn parameters(&self) -> usize {
        0
    }

    /// Names and arrangements of the weights, in their order.
    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        Vec::new()
    }

    /// Numbers per example that must be kept from one call to the next.
    fn kept(&self) -> usize {
        0
    }

    /// Weights to begin with.
    fn initialize(&self, _weights: &mut [f32], _chance: &mut Chance) {}

    /// From `input` to `output`. `coins` holds a random number for each example while training, and nothing otherwise.
    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], coins: &[u64]);

    /// Writes the derivative by the input, if it is wanted.
    fn backward(&self, weights: &[f32], pass: Pass<'_>, kept: &mut [f32], input_gradient: Option<&mut [f32]>);

    /// Adds to each example's number the squared length of its gradient by the weights.
    fn squared_norms(&self, _pass: Pass<'_>, _kept: &mut [f32], _squared: &mut [f64]) {}

    /// Adds all gradients by the weights to `sum`, each times its scale. A scale of zero adds nothing, whatever the gradient is.
    fn add_scaled(&self, _pass: Pass<'_>, _kept: &mut [f32], _scales: &[f32], _sum: &mut [f32]) {}

    /// Adds all gradients by the weights to `sum`, for training without privacy: nothing was measured before.
    fn add(&self, pass: Pass<'_>, kept: &mut [f32], sum: &mut [f32]) {
        let mut squared = vec![0.0; pass.input.len() / self.inputs()];
        self.squared_norms(pass, kept, &mut squared);
        self.add_scaled(pass, kept, &vec![1.0; squared.len()], sum);
    }

    /// Whether the gradient of an example is the outer product of its output gradient and its input, followed by the output gradient itself: then a network
    /// adds up the gradients of a whole batch at once.
    fn is_outer_product(&self) -> bool {
        false
    }
}
