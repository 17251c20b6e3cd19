//! A decision tree: one comparison at each node, and numbers at each leaf.

use super::{Layer, Pass, Shape};
use crate::{kernel::numbers::add_scaled, random::PublicRandom};

/// A binary tree in which every leaf has the same depth.
///
/// Node i asks whether the number at the index `feature[i]` is above `threshold[i]`. Its children are 2i + 1 for
/// no and 2i + 2 for yes. The outputs are the values of the leaf. NaN is not above any threshold.
#[derive(Clone, Debug)]
pub struct DecisionTree {
    inputs: usize,
    depth: usize,
    output: Shape,
}

/// The parts of the weights of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a> {
    /// The index of the number that each node compares.
    pub features: &'a [f32],
    /// What each node compares the number with.
    pub thresholds: &'a [f32],
    /// The values of all leaves, from left to right.
    pub values: &'a [f32],
}

impl DecisionTree {
    /// The largest depth.
    pub const DEEPEST: usize = 12;

    /// Creates the layer. `None` if the depth is more than [`DecisionTree::DEEPEST`].
    #[must_use]
    pub fn new(inputs: usize, depth: usize, outputs: usize) -> Option<Self> {
        (depth <= Self::DEEPEST && inputs > 0).then(|| Self { inputs, depth, output: vec![outputs] })
    }

    /// Number of nodes that ask a question.
    fn questions(&self) -> usize {
        (1 << self.depth) - 1
    }

    /// Splits the weights into their parts. There are as many as the layer has parameters.
    #[must_use]
    pub fn nodes<'a>(&self, weights: &'a [f32]) -> Nodes<'a> {
        let (features, rest) = weights.split_at(self.questions());
        let (thresholds, values) = rest.split_at(self.questions());
        Nodes { features, thresholds, values }
    }

    /// The leaf of an example.
    fn leaf(&self, nodes: Nodes<'_>, example: &[f32]) -> usize {
        let mut node = 0;
        for _ in 0..self.depth {
            // An index that is no feature is the last one.
            let feature = (nodes.features[node] as usize).min(self.inputs - 1);
            node = 2 * node + 1 + usize::from(example[feature] > nodes.thresholds[node]);
        }
        node - self.questions()
    }
}

impl Layer for DecisionTree {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn parameters(&self) -> usize {
        2 * self.questions() + (1 << self.depth) * self.outputs()
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let questions = vec![self.questions()];
        vec![
            ("feature".into(), questions.clone()),
            ("threshold".into(), questions),
            ("value".into(), vec![1 << self.depth, self.outputs()]),
        ]
    }

    /// The leaf of each example.
    fn kept(&self) -> usize {
        1
    }

    fn initialize(&self, weights: &mut [f32], _: &mut PublicRandom) {
        weights.fill(0.0);
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], _: &[u64]) {
        let (nodes, width) = (self.nodes(weights), self.outputs());
        let mut kept = kept.iter_mut();
        for (x, y) in input.chunks_exact(self.inputs).zip(output.chunks_exact_mut(width)) {
            let leaf = self.leaf(nodes, x);
            y.copy_from_slice(&nodes.values[leaf * width..][..width]);
            // There are at most 2¹² leaves, so the number is exact.
            kept.next().into_iter().for_each(|kept| *kept = leaf as f32);
        }
    }

    /// The leaf does not change if numbers change a little, so derivatives by the input are zero.
    fn backward(&self, _: &[f32], _: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        if let Some(gradient) = input_gradient {
            gradient.fill(0.0);
        }
    }

    fn squared_norms(&self, pass: Pass<'_>, _: &mut [f32], squared: &mut [f64]) {
        let gradients = pass.output_gradient.chunks_exact(self.outputs());
        for (square, gradient) in squared.iter_mut().zip(gradients) {
            *square += crate::kernel::numbers::squared_length(gradient);
        }
    }

    fn add_scaled(&self, pass: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let (width, values) = (self.outputs(), &mut sum[2 * self.questions()..]);
        let gradients = pass.output_gradient.chunks_exact(width);
        for ((gradient, leaf), scale) in gradients.zip(kept).zip(scales).filter(|(_, scale)| **scale != 0.0) {
            add_scaled(&mut values[*leaf as usize * width..][..width], *scale, gradient);
        }
    }
}
