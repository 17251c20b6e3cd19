//! Fully connected layers.

use super::{Layer, Pass, Shape};
use crate::{
    kernel::{
        balance::Balance,
        numbers::{add, add_scaled, squared_length},
        product::{Into, Matrix, multiply},
    },
    random::PublicRandom,
};

/// y = Wx + b. The weights are the rows of W, then b.
#[derive(Clone, Debug)]
pub struct Linear {
    inputs: usize,
    output: Shape,
}

impl Linear {
    /// Creates the layer for a number of inputs and outputs.
    #[must_use]
    pub fn new(inputs: usize, outputs: usize) -> Self {
        Self { inputs, output: vec![outputs] }
    }

    fn width(&self) -> usize {
        self.output[0]
    }

    fn matrix<'a>(&self, weights: &'a [f32]) -> Matrix<'a> {
        Matrix::new(&weights[..self.inputs * self.width()], self.inputs)
    }
}

impl Layer for Linear {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn parameters(&self) -> usize {
        self.width() * (self.inputs + 1)
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        vec![("weight".into(), vec![self.width(), self.inputs]), ("bias".into(), vec![self.width()])]
    }

    fn initialize(&self, weights: &mut [f32], random: &mut PublicRandom) {
        let bound = 1.0 / (self.inputs as f32).sqrt();
        for weight in weights {
            *weight = random.between(-bound, bound);
        }
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        let bias = &weights[self.inputs * self.width()..];
        output.chunks_exact_mut(self.width()).for_each(|row| row.copy_from_slice(bias));
        multiply(
            Matrix::new(input, self.inputs),
            self.matrix(weights).transposed(),
            output,
            self.width(),
            Into::Add,
        );
    }

    fn backward(&self, weights: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        if let Some(input_gradient) = input_gradient {
            let gradient = Matrix::new(pass.output_gradient, self.width());
            multiply(gradient, self.matrix(weights), input_gradient, self.inputs, Into::Overwrite);
        }
    }

    /// ‖gxᵀ‖² + ‖g‖² = ‖g‖² (‖x‖² + 1), without forming the gradient.
    fn squared_norms(&self, pass: Pass<'_>, _: &mut [f32], squared: &mut [f64]) {
        let rows = pass.input.chunks_exact(self.inputs).zip(pass.output_gradient.chunks_exact(self.width()));
        for (square, (x, g)) in squared.iter_mut().zip(rows) {
            *square += squared_length(g) * (squared_length(x) + 1.0);
        }
    }

    fn add_scaled(&self, pass: Pass<'_>, _: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let (matrix, bias) = sum.split_at_mut(self.inputs * self.width());
        let rows = pass.input.chunks_exact(self.inputs).zip(pass.output_gradient.chunks_exact(self.width()));
        let mut balanced = Vec::new();
        for ((x, g), scale) in rows.zip(scales).filter(|(_, scale)| **scale != 0.0) {
            let balance = Balance::new(*scale, x);
            let x = if balance.leaves_input_unchanged() {
                x
            } else {
                balanced.clear();
                balanced.extend(x.iter().map(|x| balance.input().apply(*x)));
                &balanced
            };
            for (row, g) in matrix.chunks_exact_mut(self.inputs).zip(g) {
                add_scaled(row, balance.gradient().apply(*g), x);
            }
            add_scaled(bias, *scale, g);
        }
    }

    fn add(&self, pass: Pass<'_>, _: &mut [f32], sum: &mut [f32]) {
        let (matrix, bias) = sum.split_at_mut(self.inputs * self.width());
        let gradient = Matrix::new(pass.output_gradient, self.width()).transposed();
        multiply(gradient, Matrix::new(pass.input, self.inputs), matrix, self.inputs, Into::Add);
        pass.output_gradient.chunks_exact(self.width()).for_each(|g| add(bias, g));
    }

    fn is_outer_product(&self) -> bool {
        true
    }
}
