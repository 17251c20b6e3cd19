//! Learned position embeddings.

use super::{Layer, Pass, Shape};
use crate::{
    kernel::numbers::{add, add_scaled, squared_length},
    random::PublicRandom,
};

/// Adds a weight to every number, so that later layers can distinguish positions.
///
/// The gradient of an example by the weights is its output gradient.
#[derive(Clone, Debug)]
pub struct Positions {
    output: Shape,
}

impl Positions {
    /// Creates the layer for examples of a shape.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { output: shape }
    }
}

impl Layer for Positions {
    fn inputs(&self) -> usize {
        self.outputs()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn parameters(&self) -> usize {
        self.outputs()
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        vec![("weight".into(), self.output.clone())]
    }

    fn initialize(&self, weights: &mut [f32], random: &mut PublicRandom) {
        for weight in weights {
            *weight = 0.02 * random.normal();
        }
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        output.copy_from_slice(input);
        output.chunks_exact_mut(self.outputs()).for_each(|example| add(example, weights));
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        if let Some(input_gradient) = input_gradient {
            input_gradient.copy_from_slice(pass.output_gradient);
        }
    }

    fn squared_norms(&self, pass: Pass<'_>, _: &mut [f32], squared: &mut [f64]) {
        let gradients = pass.output_gradient.chunks_exact(self.outputs());
        squared.iter_mut().zip(gradients).for_each(|(square, gradient)| *square += squared_length(gradient));
    }

    fn add_scaled(&self, pass: Pass<'_>, _: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let gradients = pass.output_gradient.chunks_exact(self.outputs());
        for (gradient, scale) in gradients.zip(scales).filter(|(_, scale)| **scale != 0.0) {
            add_scaled(sum, *scale, gradient);
        }
    }
}
