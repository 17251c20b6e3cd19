//! The values of a forward and backward pass over one chunk of examples.

use super::{Network, Task};
use crate::layer::Pass;

/// Inputs, outputs, gradients and `kept` numbers of all layers, for one thread's chunk of examples.
pub(super) struct Tape {
    /// The input of each layer, and the output of the last.
    values: Vec<Vec<f32>>,
    /// The gradients of the loss by `values`. The first is not needed.
    gradients: Vec<Vec<f32>>,
    kept: Vec<Vec<f32>>,
}

impl Tape {
    /// Allocates buffers for `capacity` examples.
    pub(super) fn new(network: &Network, capacity: usize) -> Self {
        let input: usize = network.input.iter().product();
        let sizes =
            || std::iter::once(input).chain(network.layers.iter().map(|placed| placed.layer.outputs()));
        let zeros = || sizes().map(|size| vec![0.0; size * capacity]).collect();
        let kept = network.layers.iter().map(|placed| vec![0.0; placed.layer.kept() * capacity]).collect();
        Self { values: zeros(), gradients: zeros(), kept }
    }

    /// Runs the forward pass of a number of examples.
    pub(super) fn forward(
        &mut self,
        network: &Network,
        weights: &[f32],
        examples: usize,
        seeds: &[u64],
        mut gather: impl FnMut(usize, &mut [f32]),
    ) {
        let size: usize = network.input.iter().product();
        self.values[0]
            .chunks_exact_mut(size)
            .take(examples)
            .enumerate()
            .for_each(|(position, input)| gather(position, input));
        for (number, placed) in network.layers.iter().enumerate() {
            let layer = &placed.layer;
            let (before, after) = self.values.split_at_mut(number + 1);
            let (input, output) =
                (&before[number][..layer.inputs() * examples], &mut after[0][..layer.outputs() * examples]);
            let kept = &mut self.kept[number][..layer.kept() * examples];
            layer.forward(&weights[placed.weights.clone()], input, output, kept, seeds);
        }
    }

    /// The network outputs of each example.
    pub(super) fn outputs(&self, network: &Network, examples: usize) -> impl Iterator<Item = &[f32]> {
        self.values
            .last()
            .into_iter()
            .flat_map(move |values| values.chunks_exact(network.outputs()).take(examples))
    }

    /// Runs the backward pass, down to the first layer that has weights.
    pub(super) fn backward(
        &mut self,
        network: &Network,
        weights: &[f32],
        examples: usize,
        mut differentiate: impl FnMut(usize, &[f32], &mut [f32]),
    ) {
        let outputs = network.outputs();
        if let (Some(values), Some(gradients)) = (self.values.last(), self.gradients.last_mut()) {
            let pairs = values.chunks_exact(outputs).zip(gradients.chunks_exact_mut(outputs)).take(examples);
            pairs
                .enumerate()
                .for_each(|(position, (outputs, gradient))| differentiate(position, outputs, gradient));
        }
        let first = network
            .layers
            .iter()
            .position(|placed| !placed.weights.is_empty())
            .unwrap_or(network.layers.len());
        for (number, placed) in network.layers.iter().enumerate().skip(first).rev() {
            let layer = &placed.layer;
            let (below, above) = self.gradients.split_at_mut(number + 1);
            let pass = Pass {
                input: &self.values[number][..layer.inputs() * examples],
                output: &self.values[number + 1][..layer.outputs() * examples],
                output_gradient: &above[0][..layer.outputs() * examples],
            };
            let kept = &mut self.kept[number][..layer.kept() * examples];
            let input_gradient = (number > first).then(|| &mut below[number][..layer.inputs() * examples]);
            layer.backward(&weights[placed.weights.clone()], pass, kept, input_gradient);
        }
    }

    /// The pass and the `kept` numbers of the layer with this number.
    pub(super) fn pass(
        &mut self,
        network: &Network,
        number: usize,
        examples: usize,
    ) -> (Pass<'_>, &mut [f32]) {
        let layer = &network.layers[number].layer;
        let pass = Pass {
            input: &self.values[number][..layer.inputs() * examples],
            output: &self.values[number + 1][..layer.outputs() * examples],
            output_gradient: &self.gradients[number + 1][..layer.outputs() * examples],
        };
        (pass, &mut self.kept[number][..layer.kept() * examples])
    }

    /// Runs the forward and backward pass of pairs (record, example).
    ///
    /// The loss gradients are multiplied by `share`.
    pub(super) fn forward_and_backward(
        &mut self,
        network: &Network,
        weights: &[f32],
        task: &impl Task,
        examples: &[(usize, usize)],
        share: f32,
    ) {
        let seeds: Vec<u64> = examples.iter().map(|(record, example)| task.seed(*record, *example)).collect();
        self.forward(network, weights, examples.len(), &seeds, |position, input| {
            let (record, example) = examples[position];
            task.gather(record, example, input);
        });
        self.backward(network, weights, examples.len(), |position, outputs, gradient| {
            let (record, example) = examples[position];
            task.differentiate(record, example, outputs, gradient);
            if share != 1.0 {
                for g in gradient {
                    *g *= share;
                }
            }
        });
    }
}
