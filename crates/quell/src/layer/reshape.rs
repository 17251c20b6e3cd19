//! A change of shape.

use super::{Layer, Pass, Shape};

/// Passes the numbers on unchanged, with another shape.
#[derive(Clone, Debug)]
pub struct Reshape {
    output: Shape,
}

impl Reshape {
    /// Creates the layer with an output shape.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { output: shape }
    }
}

impl Layer for Reshape {
    fn inputs(&self) -> usize {
        self.outputs()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        output.copy_from_slice(input);
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        if let Some(input_gradient) = input_gradient {
            input_gradient.copy_from_slice(pass.output_gradient);
        }
    }
}
