//! The numbers of an example, followed by their squares.

use super::{Layer, Pass, Shape};

/// (x, x²): the numbers of an example, and then the square of each.
#[derive(Clone, Debug)]
pub struct AppendSquares {
    inputs: usize,
    output: Shape,
}

impl AppendSquares {
    /// Creates the layer for examples with this many numbers.
    #[must_use]
    pub fn new(inputs: usize) -> Self {
        Self { inputs, output: vec![2 * inputs] }
    }
}

impl Layer for AppendSquares {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        let width = self.inputs;
        for (x, y) in input.chunks_exact(width).zip(output.chunks_exact_mut(2 * width)) {
            let (same, squares) = y.split_at_mut(width);
            same.copy_from_slice(x);
            squares.iter_mut().zip(x).for_each(|(y, x)| *y = x * x);
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        let Some(input_gradient) = input_gradient else { return };
        let width = self.inputs;
        let examples = pass.input.chunks_exact(width).zip(pass.output_gradient.chunks_exact(2 * width));
        for ((x, gradient), result) in examples.zip(input_gradient.chunks_exact_mut(width)) {
            let (same, squares) = gradient.split_at(width);
            for (((to, x), same), square) in result.iter_mut().zip(x).zip(same).zip(squares) {
                *to = same + 2.0 * x * square;
            }
        }
    }
}
