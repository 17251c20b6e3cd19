//! A sequence of layers inside another layer.

use super::{Layer, Pass, Shape};
use crate::random::PublicRandom;

/// A sequence of layers inside another layer.
///
/// The outer layer's `kept` buffer holds the outputs of each inner layer, their gradients, and the inner
/// layer's own `kept` numbers.
pub(super) struct Chain {
    layers: Vec<Box<dyn Layer>>,
    inputs: usize,
    output: Shape,
}

/// The part of `kept` that belongs to one inner layer.
struct Link<'a> {
    values: &'a mut [f32],
    gradients: &'a mut [f32],
    kept: &'a mut [f32],
}

impl Chain {
    /// Creates a chain; `None` if it is empty or a layer does not take the output of the one before it.
    pub(super) fn new(layers: Vec<Box<dyn Layer>>) -> Option<Self> {
        let (first, last) = (layers.first()?, layers.last()?);
        let fits = layers.windows(2).all(|pair| pair[0].outputs() == pair[1].inputs());
        let (inputs, output) = (first.inputs(), last.output().clone());
        fits.then_some(Self { layers, inputs, output })
    }

    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn output(&self) -> &Shape {
        &self.output
    }

    pub(super) fn parameters(&self) -> usize {
        self.layers.iter().map(|layer| layer.parameters()).sum()
    }

    /// Names and shapes of the weights. A name is the prefix `name`, the number of the layer, and its tensor.
    pub(super) fn tensors(&self, name: &str) -> Vec<(String, Vec<usize>)> {
        let named = |number: usize, (tensor, shape)| (format!("{name}{number}.{tensor}"), shape);
        let layers = self.layers.iter().enumerate();
        layers
            .flat_map(|(number, layer)| layer.tensors().into_iter().map(move |tensor| named(number, tensor)))
            .collect()
    }

    pub(super) fn kept(&self) -> usize {
        self.layers.iter().map(|layer| 2 * layer.outputs() + layer.kept()).sum()
    }

    pub(super) fn initialize(&self, mut weights: &mut [f32], random: &mut PublicRandom) {
        for layer in &self.layers {
            let (own, rest) = weights.split_at_mut(layer.parameters());
            layer.initialize(own, random);
            weights = rest;
        }
    }

    /// Splits the `kept` buffer into the parts of the inner layers.
    fn links<'a>(&self, mut kept: &'a mut [f32]) -> Vec<Link<'a>> {
        let examples = kept.len() / self.kept().max(1);
        let mut take = |size: usize| {
            let (own, rest) = std::mem::take(&mut kept).split_at_mut(size * examples);
            kept = rest;
            own
        };
        let link =
            |(size, own): (usize, usize)| Link { values: take(size), gradients: take(size), kept: take(own) };
        self.layers.iter().map(|layer| (layer.outputs(), layer.kept())).map(link).collect()
    }

    /// Runs the forward pass of all layers, and returns the output of the last.
    pub(super) fn forward<'a>(
        &self,
        mut weights: &[f32],
        input: &'a [f32],
        kept: &'a mut [f32],
        seeds: &[u64],
    ) -> &'a [f32] {
        let mut input = input;
        for (layer, link) in self.layers.iter().zip(self.links(kept)) {
            let (own, rest) = weights.split_at(layer.parameters());
            layer.forward(own, input, link.values, link.kept, seeds);
            (weights, input) = (rest, link.values);
        }
        input
    }

    /// Runs the backward pass of all layers. Writes the gradient by the input if one is requested.
    pub(super) fn backward(
        &self,
        weights: &[f32],
        pass: Pass<'_>,
        kept: &mut [f32],
        input_gradient: Option<&mut [f32]>,
    ) {
        let mut links = self.links(kept);
        if let Some(last) = links.last_mut() {
            last.gradients.copy_from_slice(pass.output_gradient);
        }
        let mut end = self.parameters();
        for number in (1..self.layers.len()).rev() {
            let layer = &self.layers[number];
            let own = &weights[end - layer.parameters()..end];
            end -= layer.parameters();
            let (below, above) = links.split_at_mut(number);
            let (below, link) = (&mut below[number - 1], &mut above[0]);
            let pass = Pass { input: below.values, output: link.values, output_gradient: link.gradients };
            layer.backward(own, pass, link.kept, Some(below.gradients));
        }
        let (layer, link) = (&self.layers[0], &mut links[0]);
        let inner = Pass { input: pass.input, output: link.values, output_gradient: link.gradients };
        layer.backward(&weights[..end], inner, link.kept, input_gradient);
    }

    /// Calls `each` for every layer that has weights.
    ///
    /// The arguments are the layer, its pass, its `kept` numbers, and the offset of its weights.
    fn each(
        &self,
        input: &[f32],
        kept: &mut [f32],
        mut each: impl FnMut(&dyn Layer, Pass<'_>, &mut [f32], usize),
    ) {
        let (mut input, mut start) = (input, 0);
        for (layer, link) in self.layers.iter().zip(self.links(kept)) {
            let (values, pass) =
                (&*link.values, Pass { input, output: link.values, output_gradient: link.gradients });
            if layer.parameters() > 0 {
                each(layer.as_ref(), pass, link.kept, start);
            }
            (input, start) = (values, start + layer.parameters());
        }
    }

    pub(super) fn squared_norms(&self, pass: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        self.each(pass.input, kept, |layer, pass, kept, _| layer.squared_norms(pass, kept, squared));
    }

    pub(super) fn add_scaled(&self, pass: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        self.each(pass.input, kept, |layer, pass, kept, start| {
            layer.add_scaled(pass, kept, scales, &mut sum[start..start + layer.parameters()]);
        });
    }

    pub(super) fn add(&self, pass: Pass<'_>, kept: &mut [f32], sum: &mut [f32]) {
        self.each(pass.input, kept, |layer, pass, kept, start| {
            layer.add(pass, kept, &mut sum[start..start + layer.parameters()]);
        });
    }
}
