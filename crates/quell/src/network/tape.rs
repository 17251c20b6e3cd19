//! What one thread remembers of the chunk of examples it works on.

use super::{Network, Task};
use crate::layer::Pass;

/// Inputs, outputs, gradients and what layers keep, for some examples.
pub(super) struct Tape {
    /// What goes into each layer, and what comes out of the last.
    values: Vec<Vec<f32>>,
    /// The derivatives of the loss by them; the first is not needed.
    gradients: Vec<Vec<f32>>,
    kept: Vec<Vec<f32>>,
}

impl Tape {
    /// Room for `capacity` examples; for gradients too, if they are wanted.
    pub(super) fn new(network: &Network, capacity: usize) -> Self {
        let input: usize = network.input.iter().product();
        let sizes = || std::iter::once(input).chain(network.layers.iter().map(|placed| placed.layer.outputs()));
        let room = || sizes().map(|size| vec![0.0; size * capacity]).collect();
        let kept = network.layers.iter().map(|placed| vec![0.0; placed.layer.kept() * capacity]).collect();
        Self { values: room(), gradients: room(), kept }
    }

    /// Takes so many examples through the network.
    pub(super) fn forward(
        &mut self,
        network: &Network,
        weights: &[f32],
        examples: usize,
        coins: &[u64],
        mut gather: impl FnMut(usize, &mut [f32]),
    ) {
        let size: usize = network.input.iter().product();
        self.values[0].chunks_exact_mut(size).take(examples).enumerate().for_each(|(position, input)| gather(position, input));
        for (number, placed) in network.layers.iter().enumerate() {
            let layer = &placed.layer;
            let (before, after) = self.values.split_at_mut(number + 1);
            let (input, output) = (&before[number][..layer.inputs() * examples], &mut after[0][..layer.outputs() * examples]);
            let kept = &mut self.kept[number][..layer.kept() * examples];
            layer.forward(&weights[placed.weights.clone()], input, output, kept, coins);
        }
    }

    /// What came out for each example.
    pub(super) fn outputs(&self, network: &Network, examples: usize) -> impl Iterator<Item = &[f32]> {
        self.values.last().into_iter().flat_map(move |values| values.chunks_exact(network.outputs()).take(examples))
    }

    /// Takes the derivatives of the losses back through the network, as far as there are weights.
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
            pairs.enumerate().for_each(|(position, (outputs, gradient))| differentiate(position, outputs, gradient));
        }
        let first = network.layers.iter().position(|placed| !placed.weights.is_empty()).unwrap_or(network.layers.len());
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

    /// What layer number so-and-so has seen, and what it kept.
    pub(super) fn pass(&mut self, network: &Network, number: usize, examples: usize) -> (Pass<'_>, &mut [f32]) {
        let layer = &network.layers[number].layer;
        let pass = Pass {
            input: &self.values[number][..layer.inputs() * examples],
            output: &self.values[number + 1][..layer.outputs() * examples],
            output_gradient: &self.gradients[number + 1][..layer.outputs() * examples],
        };
        (pass, &mut self.kept[number][..layer.kept() * examples])
    }

    /// Takes one example of each record, from `examples`, through the network and back.
    pub(super) fn learn(
        &mut self,
        network: &Network,
        weights: &[f32],
        task: &impl Task,
        examples: &[(usize, usize)],
        share: f32,
    ) {
        let coins: Vec<u64> = examples.iter().map(|(record, example)| task.coin(*record, *example)).collect();
        self.forward(network, weights, examples.len(), &coins, |position, input| {
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
