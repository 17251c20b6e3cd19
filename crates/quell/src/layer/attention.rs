//! Self-attention over the positions of a sequence.

use super::{Convolution, Layer, Pass, Shape, chain::Chain};
use crate::{
    kernel::{
        fast,
        numbers::exp,
        product::{Into, Matrix, multiply},
        scratch,
    },
    random::PublicRandom,
};

/// Multi-head self-attention over a sequence of `[length, channels]`.
///
/// The weights are the input projection to queries, keys and values, `[channels, 3 · channels]`, with its
/// biases, and then the output projection, `[channels, channels]`, with its biases.
pub struct SelfAttention {
    chain: Chain,
    channels: usize,
}

impl SelfAttention {
    /// Creates the layer; `None` if the number of heads does not divide the channels.
    ///
    /// If `causal`, a position attends only to itself and to earlier positions.
    #[must_use]
    pub fn new([length, channels]: [usize; 2], heads: usize, causal: bool) -> Option<Self> {
        let core = Core::new([length, channels], heads, causal)?;
        let project = |channels: usize, outputs: usize| {
            Convolution::over_sequence([length, channels], outputs, 1, 1, 0, 1)
        };
        let chain = Chain::new(vec![
            Box::new(project(channels, 3 * channels)?),
            Box::new(core),
            Box::new(project(channels, channels)?),
        ])?;
        Some(Self { chain, channels })
    }
}

impl Layer for SelfAttention {
    fn inputs(&self) -> usize {
        self.chain.inputs()
    }

    fn output(&self) -> &Shape {
        self.chain.output()
    }

    fn parameters(&self) -> usize {
        self.chain.parameters()
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let channels = self.channels;
        let named = |name: &str, shape: &[usize]| (name.to_owned(), shape.to_vec());
        vec![
            named("input.weight", &[channels, 3 * channels]),
            named("input.bias", &[3 * channels]),
            named("output.weight", &[channels, channels]),
            named("output.bias", &[channels]),
        ]
    }

    fn kept(&self) -> usize {
        self.chain.kept()
    }

    fn initialize(&self, weights: &mut [f32], random: &mut PublicRandom) {
        self.chain.initialize(weights, random);
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], seeds: &[u64]) {
        output.copy_from_slice(self.chain.forward(weights, input, kept, seeds));
    }

    fn backward(
        &self,
        weights: &[f32],
        pass: Pass<'_>,
        kept: &mut [f32],
        input_gradient: Option<&mut [f32]>,
    ) {
        self.chain.backward(weights, pass, kept, input_gradient);
    }

    fn squared_norms(&self, pass: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        self.chain.squared_norms(pass, kept, squared);
    }

    fn add_scaled(&self, pass: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        self.chain.add_scaled(pass, kept, scales, sum);
    }

    fn add(&self, pass: Pass<'_>, kept: &mut [f32], sum: &mut [f32]) {
        self.chain.add(pass, kept, sum);
    }
}

/// Computes softmax(QKᵀ/√d) V for each head, where d is the width of a head. It has no weights.
struct Core {
    length: usize,
    channels: usize,
    heads: usize,
    causal: bool,
    output: Shape,
}

impl Core {
    fn new([length, channels]: [usize; 2], heads: usize, causal: bool) -> Option<Self> {
        let divides = length > 0 && channels > 0 && heads > 0 && channels % heads == 0;
        divides.then(|| Self { length, channels, heads, causal, output: vec![length, channels] })
    }

    /// Width of a head.
    fn width(&self) -> usize {
        self.channels / self.heads
    }

    /// Offset of a head's queries (0), keys (1) or values (2) within a position.
    fn start(&self, which: usize, head: usize) -> usize {
        which * self.channels + head * self.width()
    }

    /// A head's queries (0), keys (1) or values (2), one row per position.
    fn part<'a>(&self, example: &'a [f32], which: usize, head: usize) -> Matrix<'a> {
        Matrix::strided(&example[self.start(which, head)..], self.length, self.width(), 3 * self.channels)
    }

    /// A head's part of the output, or of its gradient, one row per position.
    fn head_output<'a>(&self, example: &'a [f32], head: usize) -> Matrix<'a> {
        Matrix::strided(&example[head * self.width()..], self.length, self.width(), self.channels)
    }

    /// 1/√d
    fn scale(&self) -> f32 {
        1.0 / (self.width() as f32).sqrt()
    }

    /// Turns the products of queries and keys into attention weights.
    fn softmax(&self, scores: &mut [f32]) {
        let scale = self.scale();
        for (place, row) in scores.chunks_exact_mut(self.length).enumerate() {
            let (row, masked) = row.split_at_mut(if self.causal { place + 1 } else { self.length });
            masked.fill(0.0);
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for score in &mut *row {
                *score = exp(scale * (*score - largest));
            }
            let share = 1.0 / row.iter().sum::<f32>();
            for score in row {
                *score *= share;
            }
        }
    }

    /// Turns the gradient g by the attention weights p into that by the products.
    ///
    /// It is p · (g - Σ pg) / √d.
    fn softmax_back(&self, shares: &[f32], gradient: &mut [f32]) {
        let scale = self.scale();
        for (shares, gradient) in shares.chunks_exact(self.length).zip(gradient.chunks_exact_mut(self.length))
        {
            let mean: f32 = shares.iter().zip(&*gradient).map(|(p, g)| p * g).sum();
            gradient.iter_mut().zip(shares).for_each(|(g, p)| *g = scale * p * (*g - mean));
        }
    }
}

impl Layer for Core {
    fn inputs(&self) -> usize {
        3 * self.outputs()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    /// The attention weights of each head.
    fn kept(&self) -> usize {
        self.heads * self.length * self.length
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], _: &[u64]) {
        let square = self.length * self.length;
        let examples = input.chunks_exact(self.inputs()).zip(output.chunks_exact_mut(self.outputs()));
        for ((example, output), kept) in examples.zip(kept.chunks_exact_mut(self.kept())) {
            for (head, shares) in kept.chunks_exact_mut(square).enumerate() {
                let (queries, keys) = (self.part(example, 0, head), self.part(example, 1, head));
                multiply(queries, keys.transposed(), shares, self.length, Into::Overwrite);
                fast(
                    #[inline(always)]
                    || self.softmax(shares),
                );
                let (shares, values) = (Matrix::new(shares, self.length), self.part(example, 2, head));
                multiply(shares, values, &mut output[head * self.width()..], self.channels, Into::Overwrite);
            }
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, kept: &mut [f32], input_gradient: Option<&mut [f32]>) {
        let Some(input_gradient) = input_gradient else { return };
        let (square, stride) = (self.length * self.length, 3 * self.channels);
        let examples =
            pass.input.chunks_exact(self.inputs()).zip(pass.output_gradient.chunks_exact(self.outputs()));
        let results = kept.chunks_exact(self.kept()).zip(input_gradient.chunks_exact_mut(self.inputs()));
        for ((example, gradient), (kept, result)) in examples.zip(results) {
            for (head, shares) in kept.chunks_exact(square).enumerate() {
                let head_gradient = self.head_output(gradient, head);
                let weighted = Matrix::new(shares, self.length).transposed();
                multiply(
                    weighted,
                    head_gradient,
                    &mut result[self.start(2, head)..],
                    stride,
                    Into::Overwrite,
                );
                scratch(square, |scores| {
                    multiply(
                        head_gradient,
                        self.part(example, 2, head).transposed(),
                        scores,
                        self.length,
                        Into::Overwrite,
                    );
                    self.softmax_back(shares, scores);
                    let scores = Matrix::new(scores, self.length);
                    multiply(
                        scores,
                        self.part(example, 1, head),
                        &mut result[self.start(0, head)..],
                        stride,
                        Into::Overwrite,
                    );
                    let keys = &mut result[self.start(1, head)..];
                    multiply(scores.transposed(), self.part(example, 0, head), keys, stride, Into::Overwrite);
                });
            }
        }
    }
}
