//! Convolutions with weight standardisation.

use super::{Convolution, Layer, Pass, Shape};
use crate::{
    kernel::numbers::{add, add_scaled, squared_length},
    random::PublicRandom,
};

/// Added to the squared length of a filter, so that equal weights become zeros.
const SMALLEST_SQUARE: f64 = 1e-4;

/// A convolution with weight standardisation.
///
/// It uses (w - mean) / √(Σ (w - mean)² + 10⁻⁴) instead of the weights w of each output. Biases are not
/// changed.
///
/// The gradient of an example is propagated through the standardisation before its norm is computed. So the
/// norm is that of the gradient that is added. This needs the weights, so the backward pass computes the
/// gradients.
#[derive(Clone, Debug)]
pub struct StandardizedConvolution {
    inner: Convolution,
    groups: usize,
    /// Length of a patch of one group.
    patch: usize,
    /// Outputs of one group.
    width: usize,
}

impl StandardizedConvolution {
    /// Standardises the weights of a convolution.
    #[must_use]
    pub fn new(inner: Convolution) -> Self {
        let (groups, patch, width) = match inner.tensors().first().map(|(_, shape)| shape.as_slice()) {
            Some([groups, rows, columns, channels, width]) => (*groups, rows * columns * channels, *width),
            _ => (0, 0, 0),
        };
        Self { inner, groups, patch, width }
    }

    /// Computes the standardised weights, and the length that each output's weights were divided by.
    fn standardize(&self, weights: &[f32]) -> (Vec<f32>, Vec<f64>) {
        standardize_filters([self.groups, self.patch, self.width], weights)
    }

    /// Sums `term(output, weight)` over the weights of each output of a group.
    fn sum(&self, matrix: &[f32], totals: &mut [f64], term: impl Fn(usize, f32) -> f64) {
        sum_by_output(matrix, self.width, totals, term);
    }

    /// Turns the gradient g by the standardised weights ŵ into the gradient by the weights.
    ///
    /// It is (g - mean of g - ŵ · Σ ŵg) / length.
    fn pull_back(&self, standardized: &[f32], lengths: &[f64], gradient: &mut [f32]) {
        let size = self.patch * self.width;
        let matrices = gradient.chunks_exact_mut(size).zip(standardized.chunks_exact(size));
        for ((gradient, standardized), lengths) in matrices.zip(lengths.chunks_exact(self.width)) {
            let (mut means, mut products) = (vec![0.0; self.width], vec![0.0; self.width]);
            self.sum(gradient, &mut means, |_, g| f64::from(g) / self.patch as f64);
            for (g, w) in gradient.chunks_exact(self.width).zip(standardized.chunks_exact(self.width)) {
                products
                    .iter_mut()
                    .zip(g)
                    .zip(w)
                    .for_each(|((total, g), w)| *total += f64::from(*g) * f64::from(*w));
            }
            for (g, w) in gradient.chunks_exact_mut(self.width).zip(standardized.chunks_exact(self.width)) {
                for (output, (g, w)) in g.iter_mut().zip(w).enumerate() {
                    *g = ((f64::from(*g) - means[output] - f64::from(*w) * products[output])
                        / lengths[output]) as f32;
                }
            }
        }
    }

    /// Splits `kept` into the part of the convolution and one gradient per example.
    fn split<'a>(&self, kept: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32]) {
        let examples = kept.len() / self.kept();
        kept.split_at_mut(examples * self.inner.kept())
    }
}

/// Computes standardised filters, and the length that the weights of each output were divided by.
///
/// The weights of each group are a matrix with a row for each number of a patch, and a column for each output.
pub(crate) fn standardize_filters(
    [groups, patch, width]: [usize; 3],
    weights: &[f32],
) -> (Vec<f32>, Vec<f64>) {
    let (mut standardized, mut lengths) = (weights.to_vec(), vec![0.0; groups * width]);
    for (matrix, lengths) in standardized.chunks_exact_mut(patch * width).zip(lengths.chunks_exact_mut(width))
    {
        let mut means = vec![0.0; width];
        sum_by_output(matrix, width, &mut means, |_, w| f64::from(w));
        for mean in &mut means {
            *mean /= patch as f64;
        }
        sum_by_output(matrix, width, lengths, |output, w| (f64::from(w) - means[output]).powi(2));
        for length in &mut *lengths {
            *length = (*length + SMALLEST_SQUARE).sqrt();
        }
        for row in matrix.chunks_exact_mut(width) {
            let moments = means.iter().zip(&*lengths);
            row.iter_mut()
                .zip(moments)
                .for_each(|(w, (mean, length))| *w = ((f64::from(*w) - mean) / length) as f32);
        }
    }
    (standardized, lengths)
}

/// Sums `term(output, weight)` over the weights of each output.
fn sum_by_output(matrix: &[f32], width: usize, totals: &mut [f64], term: impl Fn(usize, f32) -> f64) {
    for row in matrix.chunks_exact(width) {
        totals.iter_mut().zip(row).enumerate().for_each(|(output, (total, w))| *total += term(output, *w));
    }
}

impl Layer for StandardizedConvolution {
    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    fn output(&self) -> &Shape {
        self.inner.output()
    }

    fn parameters(&self) -> usize {
        self.inner.parameters()
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        self.inner.tensors()
    }

    fn kept(&self) -> usize {
        self.inner.kept() + self.parameters()
    }

    fn initialize(&self, weights: &mut [f32], random: &mut PublicRandom) {
        self.inner.initialize(weights, random);
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], seeds: &[u64]) {
        let (kept, _) = self.split(kept);
        self.inner.forward(&self.standardize(weights).0, input, output, kept, seeds);
    }

    fn backward(
        &self,
        weights: &[f32],
        pass: Pass<'_>,
        kept: &mut [f32],
        input_gradient: Option<&mut [f32]>,
    ) {
        let (kept, gradients) = self.split(kept);
        let (standardized, lengths) = self.standardize(weights);
        self.inner.backward(&standardized, pass, kept, input_gradient);
        let examples = gradients.len() / self.parameters();
        self.inner.squared_norms(pass, kept, &mut vec![0.0; examples]);
        let mut scales = vec![0.0; examples];
        for (example, gradient) in gradients.chunks_exact_mut(self.parameters()).enumerate() {
            // The gradient of this example alone.
            scales[example] = 1.0;
            gradient.fill(0.0);
            self.inner.add_scaled(pass, kept, &scales, gradient);
            self.pull_back(&standardized, &lengths, gradient);
            scales[example] = 0.0;
        }
    }

    fn squared_norms(&self, _: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        let (_, gradients) = self.split(kept);
        let gradients = gradients.chunks_exact(self.parameters());
        squared.iter_mut().zip(gradients).for_each(|(square, gradient)| *square += squared_length(gradient));
    }

    fn add_scaled(&self, _: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let (_, gradients) = self.split(kept);
        for (gradient, scale) in
            gradients.chunks_exact(self.parameters()).zip(scales).filter(|(_, scale)| **scale != 0.0)
        {
            add_scaled(sum, *scale, gradient);
        }
    }

    fn add(&self, _: Pass<'_>, kept: &mut [f32], sum: &mut [f32]) {
        let (_, gradients) = self.split(kept);
        gradients.chunks_exact(self.parameters()).for_each(|gradient| add(sum, gradient));
    }
}
