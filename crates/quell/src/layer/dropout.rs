//! Dropout.

use super::{Layer, Pass, Shape};
use crate::{kernel::numbers::map_two, random::PublicRandom};

/// Sets each number to zero with a given probability during training.
///
/// The other numbers are scaled up, so that the mean stays the same. The mask follows from the example's
/// seed, so it does not depend on the other examples of the batch.
#[derive(Clone, Debug)]
pub struct Dropout {
    rate: f32,
    number: u64,
    output: Shape,
}

impl Dropout {
    /// Creates a layer that drops a share of `rate`, in [0, 1), of the numbers.
    ///
    /// Layers with different values of `number` draw different masks from the same seed.
    #[must_use]
    pub fn new(rate: f32, number: u64, shape: Shape) -> Option<Self> {
        (0.0..1.0).contains(&rate).then_some(Self { rate, number, output: shape })
    }
}

/// Multiplies a number by its factor. A dropped number is zero, even if it was not finite.
#[inline]
fn keep(x: f32, factor: f32) -> f32 {
    if factor == 0.0 { 0.0 } else { factor * x }
}

impl Layer for Dropout {
    fn inputs(&self) -> usize {
        self.outputs()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    /// One factor for every number.
    fn kept(&self) -> usize {
        self.outputs()
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], seeds: &[u64]) {
        kept.fill(1.0);
        let factor = 1.0 / (1.0 - self.rate);
        for (factors, seed) in kept.chunks_exact_mut(self.outputs()).zip(seeds) {
            let mut random = PublicRandom::of(*seed, self.number);
            for kept in factors {
                *kept = if random.between(0.0, 1.0) < self.rate { 0.0 } else { factor };
            }
        }
        map_two(input, kept, output, keep);
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, kept: &mut [f32], input_gradient: Option<&mut [f32]>) {
        if let Some(input_gradient) = input_gradient {
            map_two(pass.output_gradient, kept, input_gradient, keep);
        }
    }
}
