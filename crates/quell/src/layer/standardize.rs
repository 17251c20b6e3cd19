//! Standardisation of each number by constants, and bounded lengths.

use super::{Layer, Pass, Shape};
use crate::{
    kernel::{
        fast,
        numbers::{add_scaled, squared_length},
    },
    random::PublicRandom,
};

/// y = gain · clamp((x - centre) · rate, -limit, limit), with three weights for each number.
///
/// Values beyond the limit are winsorised: they count as the limit.
#[derive(Clone, Debug)]
pub struct Standardize {
    limit: f32,
    output: Shape,
}

impl Standardize {
    /// Creates the layer for examples of a shape.
    #[must_use]
    pub fn new(limit: f32, shape: Shape) -> Self {
        Self { limit, output: shape }
    }

    /// Splits the weights into centres, rates and gains.
    fn split<'a>(&self, weights: &'a [f32]) -> [&'a [f32]; 3] {
        let (centres, rest) = weights.split_at(self.outputs());
        let (rates, gains) = rest.split_at(self.outputs());
        [centres, rates, gains]
    }
}

impl Layer for Standardize {
    fn inputs(&self) -> usize {
        self.outputs()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn parameters(&self) -> usize {
        3 * self.outputs()
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        ["centre", "rate", "gain"].map(|name| (name.into(), self.output.clone())).to_vec()
    }

    /// The gradient of each example by the weights.
    fn kept(&self) -> usize {
        self.parameters()
    }

    fn initialize(&self, weights: &mut [f32], _: &mut PublicRandom) {
        let (centres, others) = weights.split_at_mut(self.outputs());
        centres.fill(0.0);
        others.fill(1.0);
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        let ([centres, rates, gains], width) = (self.split(weights), self.outputs());
        let limit = self.limit;
        for (x, y) in input.chunks_exact(width).zip(output.chunks_exact_mut(width)) {
            fast(
                #[inline(always)]
                || {
                    let constants = centres.iter().zip(rates).zip(gains);
                    for ((x, y), ((centre, rate), gain)) in x.iter().zip(y).zip(constants) {
                        let scaled = (x - centre) * rate;
                        // `clamp` checks its bounds for each number, which a vector unit cannot. NaN stays NaN.
                        let below = if scaled > limit { limit } else { scaled };
                        *y = gain * if below < -limit { -limit } else { below };
                    }
                },
            );
        }
    }

    fn backward(
        &self,
        weights: &[f32],
        pass: Pass<'_>,
        kept: &mut [f32],
        mut input_gradient: Option<&mut [f32]>,
    ) {
        let ([centres, rates, gains], width) = (self.split(weights), self.outputs());
        let examples = pass.input.chunks_exact(width).zip(pass.output_gradient.chunks_exact(width));
        for (number, ((x, g), own)) in examples.zip(kept.chunks_exact_mut(3 * width)).enumerate() {
            for i in 0..width {
                let scaled = (x[i] - centres[i]) * rates[i];
                // NaN is not inside, and stays NaN in the gradient by the gain.
                let inside = if scaled.abs() <= self.limit { g[i] * gains[i] } else { 0.0 };
                own[i] = -inside * rates[i];
                own[width + i] = inside * (x[i] - centres[i]);
                own[2 * width + i] = g[i] * scaled.clamp(-self.limit, self.limit);
                if let Some(gradient) = input_gradient.as_deref_mut() {
                    gradient[number * width + i] = inside * rates[i];
                }
            }
        }
    }

    fn squared_norms(&self, _: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        let gradients = kept.chunks_exact(self.parameters());
        squared.iter_mut().zip(gradients).for_each(|(square, gradient)| *square += squared_length(gradient));
    }

    fn add_scaled(&self, _: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let gradients = kept.chunks_exact(self.parameters());
        for (gradient, scale) in gradients.zip(scales).filter(|(_, scale)| **scale != 0.0) {
            add_scaled(sum, *scale, gradient);
        }
    }
}

/// x / max(1, ‖x‖): examples longer than one are scaled to length one.
#[derive(Clone, Debug)]
pub struct BoundLength {
    output: Shape,
}

impl BoundLength {
    /// Creates the layer for examples of a shape.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { output: shape }
    }
}

impl Layer for BoundLength {
    fn inputs(&self) -> usize {
        self.outputs()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        let width = self.outputs();
        for (x, y) in input.chunks_exact(width).zip(output.chunks_exact_mut(width)) {
            let factor = shrink(x);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = factor * x);
        }
    }

    /// Outside of the unit ball: (g - y⟨y, g⟩)/‖x‖ with y = x/‖x‖.
    fn backward(&self, _: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        let Some(input_gradient) = input_gradient else { return };
        let width = self.outputs();
        let rows = pass.input.chunks_exact(width).zip(pass.output.chunks_exact(width));
        let gradients = pass.output_gradient.chunks_exact(width).zip(input_gradient.chunks_exact_mut(width));
        for ((x, y), (g, result)) in rows.zip(gradients) {
            let factor = shrink(x);
            let along: f32 = if factor < 1.0 { y.iter().zip(g).map(|(y, g)| y * g).sum() } else { 0.0 };
            result.iter_mut().zip(y).zip(g).for_each(|((to, y), g)| *to = factor * (g - along * y));
        }
    }
}

/// 1/max(1, ‖x‖).
pub(crate) fn shrink(x: &[f32]) -> f32 {
    squared_length(x).sqrt().max(1.0).recip() as f32
}
