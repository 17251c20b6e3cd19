//! Layer and group normalisation: mean zero and variance one within an example.
//!
//! Batch normalisation is not supported. It mixes examples, so that no example has a gradient of its own.

use super::{Layer, Pass, Shape};
use crate::kernel::{
    fast,
    numbers::{add, add_scaled, add_wide, squared_length},
};

/// Added to the variance, so that constant numbers become zeros.
const SMALLEST_VARIANCE: f64 = 1e-5;

/// y = weight · (x - mean) / √(variance + 10⁻⁵) + bias, normalised within an example.
///
/// An example consists of blocks, a block of rows, and a row of channels. Each channel has one weight and one
/// bias. Mean and variance are taken over the rows of a block and the channels of a group.
#[derive(Clone, Debug)]
pub struct Normalization {
    blocks: usize,
    rows: usize,
    groups: usize,
    /// Channels of a group.
    width: usize,
    /// Shape of the weights.
    weights: Shape,
    output: Shape,
}

impl Normalization {
    /// Group normalisation, over all positions and the channels of each group.
    ///
    /// The channels are the last axis. `None` if the number of groups does not divide them.
    #[must_use]
    pub fn over_groups(shape: &[usize], groups: usize) -> Option<Self> {
        let (channels, places) = shape.split_last()?;
        let divides = groups > 0 && *channels > 0 && channels % groups == 0;
        divides.then(|| Self {
            blocks: 1,
            rows: places.iter().product(),
            groups,
            width: channels / groups,
            weights: vec![*channels],
            output: shape.to_vec(),
        })
    }

    /// Layer normalisation of a sequence, over the last axis at each position separately.
    #[must_use]
    pub fn over_last_axis(shape: &[usize]) -> Option<Self> {
        let (channels, places) = shape.split_last()?;
        (*channels > 0).then(|| Self {
            blocks: places.iter().product(),
            rows: 1,
            groups: 1,
            width: *channels,
            weights: vec![*channels],
            output: shape.to_vec(),
        })
    }

    /// Layer normalisation over all numbers of an example, each with its own weight and bias.
    #[must_use]
    pub fn over_all(shape: &[usize]) -> Option<Self> {
        let width = shape.iter().product();
        (width > 0).then(|| Self {
            blocks: 1,
            rows: 1,
            groups: 1,
            width,
            weights: shape.to_vec(),
            output: shape.to_vec(),
        })
    }

    fn channels(&self) -> usize {
        self.groups * self.width
    }

    /// Splits `kept` into normalised numbers, inverse standard deviations per group, and gradients per
    /// example.
    fn split<'a>(&self, kept: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32], &'a mut [f32]) {
        let examples = kept.len() / self.kept();
        let (normalized, rest) = kept.split_at_mut(examples * self.outputs());
        let (inverses, gradients) = rest.split_at_mut(examples * self.blocks * self.groups);
        (normalized, inverses, gradients)
    }

    /// Replaces the sums over rows, one per channel, by the mean of the channel's group.
    fn average_groups(&self, totals: &mut [f64]) {
        let count = (self.rows * self.width) as f64;
        for group in totals.chunks_exact_mut(self.width) {
            let mean = group.iter().sum::<f64>() / count;
            group.fill(mean);
        }
    }

    /// Normalises a block. `means` is a buffer with one number per channel.
    fn normalize(&self, block: &[f32], normalized: &mut [f32], inverses: &mut [f32], means: &mut [f64]) {
        let channels = self.channels();
        means.fill(0.0);
        block.chunks_exact(channels).for_each(|row| add_wide(means, row));
        self.average_groups(means);
        for (row, to) in block.chunks_exact(channels).zip(normalized.chunks_exact_mut(channels)) {
            to.iter_mut()
                .zip(row)
                .zip(&*means)
                .for_each(|((to, x), mean)| *to = (f64::from(*x) - mean) as f32);
        }
        means.fill(0.0);
        for row in normalized.chunks_exact(channels) {
            means.iter_mut().zip(row).for_each(|(total, x)| *total += f64::from(*x) * f64::from(*x));
        }
        self.average_groups(means);
        for variance in &mut *means {
            *variance = 1.0 / (*variance + SMALLEST_VARIANCE).sqrt();
        }
        for row in normalized.chunks_exact_mut(channels) {
            row.iter_mut().zip(&*means).for_each(|(x, inverse)| *x *= *inverse as f32);
        }
        inverses.iter_mut().zip(means.chunks_exact(self.width)).for_each(|(to, group)| *to = group[0] as f32);
    }

    /// Computes the gradient by the input of a block.
    ///
    /// It is (d - mean of d - x̂ · mean of d·x̂) / deviation, with d = weight · g and the normalised input
    /// x̂.
    fn differentiate(
        &self,
        weights: &[f32],
        (normalized, gradient): (&[f32], &[f32]),
        inverses: &[f32],
        result: &mut [f32],
        [means, products]: [&mut [f64]; 2],
    ) {
        let channels = self.channels();
        means.fill(0.0);
        products.fill(0.0);
        let rows = || normalized.chunks_exact(channels).zip(gradient.chunks_exact(channels));
        for (normalized, gradient) in rows() {
            for ((((mean, product), x), g), w) in
                means.iter_mut().zip(&mut *products).zip(normalized).zip(gradient).zip(weights)
            {
                let d = f64::from(g * w);
                *mean += d;
                *product += d * f64::from(*x);
            }
        }
        self.average_groups(means);
        self.average_groups(products);
        for ((normalized, gradient), result) in rows().zip(result.chunks_exact_mut(channels)) {
            for (group, inverse) in inverses.iter().enumerate() {
                for channel in group * self.width..(group + 1) * self.width {
                    let (mean, product) = (means[channel] as f32, products[channel] as f32);
                    result[channel] = inverse
                        * (gradient[channel] * weights[channel] - mean - normalized[channel] * product);
                }
            }
        }
    }
}

impl Layer for Normalization {
    fn inputs(&self) -> usize {
        self.outputs()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn parameters(&self) -> usize {
        2 * self.channels()
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        vec![("weight".into(), self.weights.clone()), ("bias".into(), self.weights.clone())]
    }

    fn kept(&self) -> usize {
        self.outputs() + self.blocks * self.groups + self.parameters()
    }

    fn initialize(&self, weights: &mut [f32], _: &mut crate::random::PublicRandom) {
        let (weight, bias) = weights.split_at_mut(self.channels());
        weight.fill(1.0);
        bias.fill(0.0);
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], _: &[u64]) {
        let (normalized, inverses, _) = self.split(kept);
        let (size, mut means) = (self.rows * self.channels(), vec![0.0; self.channels()]);
        let blocks = input
            .chunks_exact(size)
            .zip(normalized.chunks_exact_mut(size))
            .zip(inverses.chunks_exact_mut(self.groups));
        for ((block, normalized), inverses) in blocks {
            fast(
                #[inline(always)]
                || self.normalize(block, normalized, inverses, &mut means),
            );
        }
        let (weight, bias) = weights.split_at(self.channels());
        for (row, output) in normalized.chunks_exact(weight.len()).zip(output.chunks_exact_mut(weight.len()))
        {
            output.iter_mut().zip(row).zip(weight).zip(bias).for_each(|(((y, x), w), b)| *y = x * w + b);
        }
    }

    fn backward(
        &self,
        weights: &[f32],
        pass: Pass<'_>,
        kept: &mut [f32],
        input_gradient: Option<&mut [f32]>,
    ) {
        let Some(input_gradient) = input_gradient else { return };
        let (normalized, inverses, _) = self.split(kept);
        let size = self.rows * self.channels();
        let (mut means, mut products) = (vec![0.0; self.channels()], vec![0.0; self.channels()]);
        let blocks = normalized.chunks_exact(size).zip(pass.output_gradient.chunks_exact(size));
        let results = inverses.chunks_exact(self.groups).zip(input_gradient.chunks_exact_mut(size));
        for (block, (inverses, result)) in blocks.zip(results) {
            fast(
                #[inline(always)]
                || self.differentiate(weights, block, inverses, result, [&mut means, &mut products]),
            );
        }
    }

    fn squared_norms(&self, pass: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        let (normalized, _, gradients) = self.split(kept);
        let (size, channels) = (self.outputs(), self.channels());
        let examples = normalized.chunks_exact(size).zip(pass.output_gradient.chunks_exact(size));
        for (((normalized, output_gradient), gradient), square) in
            examples.zip(gradients.chunks_exact_mut(2 * channels)).zip(squared)
        {
            gradient.fill(0.0);
            let (weight, bias) = gradient.split_at_mut(channels);
            for (row, g) in normalized.chunks_exact(channels).zip(output_gradient.chunks_exact(channels)) {
                weight.iter_mut().zip(row).zip(g).for_each(|((total, x), g)| *total += x * g);
                add(bias, g);
            }
            *square += squared_length(gradient);
        }
    }

    fn add_scaled(&self, _: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let (_, _, gradients) = self.split(kept);
        for (gradient, scale) in
            gradients.chunks_exact(self.parameters()).zip(scales).filter(|(_, scale)| **scale != 0.0)
        {
            add_scaled(sum, *scale, gradient);
        }
    }
}
