//! Numbers left out by lot.

use super::{Layer, Pass, Shape};
use crate::{chance::Chance, kernel::numbers::map_two};

/// While training, each number is zero with a given probability, and otherwise larger by as much as keeps its mean. Who is left out follows from the
/// example's coin, so that it does not depend on the examples beside it.
#[derive(Clone, Debug)]
pub struct Dropout {
    rate: f32,
    number: u64,
    output: Shape,
}

impl Dropout {
    /// Leaves out a share of `rate`, in [0, 1), of the numbers. Layers of different `number` draw different lots from one coin.
    #[must_use]
    pub fn new(rate: f32, number: u64, shape: Shape) -> Option<Self> {
        (0.0..1.0).contains(&rate).then_some(Self { rate, number, output: shape })
    }
}

/// What is left out is zero, even where it was not finite.
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

    /// The factor of every number.
    fn kept(&self) -> usize {
        self.outputs()
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], coins: &[u64]) {
        kept.fill(1.0);
        let factor = 1.0 / (1.0 - self.rate);
        for (factors, coin) in kept.chunks_exact_mut(self.outputs()).zip(coins) {
            let mut chance = Chance::of(*coin, self.number);
            for kept in factors {
                *kept = if chance.between(0.0, 1.0) < self.rate { 0.0 } else { factor };
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
