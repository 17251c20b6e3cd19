//! Layers one after the other, and the gradients of a batch, clipped one by one and summed, in one pass.
//!
//! *Book-keeping.* Each chunk of examples goes forward and backward once. Layers report how long each example's gradient is, its scale is asked for, and the scaled
//! gradients are added up: those of linear layers for many records at once, as one product of all inputs and all scaled output gradients (`deferred`), those of
//! other layers chunk by chunk. The gradients of a batch are never in memory together.

mod batch;
mod deferred;
mod models;
mod tape;

pub use batch::{Scales, Workspace};
pub use models::{Model, build, model, models};

use std::ops::Range;

use crate::{
    chance::Chance,
    layer::{Layer, Shape},
};
use tape::Tape;

/// What a network learns from: records, each made of one example or several.
///
/// # Contract
/// All that is written for a record depends on that record alone. [`is_grouped`](Self::is_grouped) depends on no record.
pub trait Task: Sync {
    /// Whether a record may have several examples, whose mean gradient is then its gradient.
    ///
    /// A public setting: it decides in which order and precision the gradients of all records are computed. If it followed from the records, one record with two examples
    /// would change the last digits of what all others contribute.
    fn is_grouped(&self) -> bool {
        false
    }

    /// How many examples the record has. One that has none contributes a vector of zeros. Without groups there is at most one.
    fn examples(&self, _record: usize) -> usize {
        1
    }

    /// Writes what goes into the network.
    fn gather(&self, record: usize, example: usize, input: &mut [f32]);

    /// Writes the derivative of the loss by what came out of it.
    fn differentiate(&self, record: usize, example: usize, outputs: &[f32], gradient: &mut [f32]);

    /// A random number for layers that draw lots while training. It may depend on the record and the step, and not on the record's place among others.
    fn coin(&self, _record: usize, _example: usize) -> u64 {
        0
    }
}

/// A layer, and where its weights are.
struct Placed {
    layer: Box<dyn Layer>,
    weights: Range<usize>,
}

/// Layers one after the other. The weights are not in it, but one slice beside it.
pub struct Network {
    input: Shape,
    layers: Vec<Placed>,
    parameters: usize,
    chunk: usize,
}

/// Numbers of one thread's chunk: inputs, outputs, gradients and what layers keep.
const CHUNK_NUMBERS: usize = 1 << 21;

impl Network {
    /// Layers for examples of a shape; nothing if one does not fit onto the one before it, or there is none.
    #[must_use]
    pub fn new(input: Shape, layers: Vec<Box<dyn Layer>>) -> Option<Self> {
        let (mut size, mut parameters) = (input.iter().product::<usize>(), 0);
        let mut placed = Vec::new();
        let mut numbers = size;
        for layer in layers {
            if layer.inputs() != size || layer.outputs() == 0 {
                return None;
            }
            size = layer.outputs();
            numbers += 2 * size + layer.kept();
            let weights = parameters..parameters + layer.parameters();
            parameters = weights.end;
            placed.push(Placed { layer, weights });
        }
        let chunk = (CHUNK_NUMBERS / numbers).clamp(8, 512);
        (!placed.is_empty()).then_some(Self { input, layers: placed, parameters, chunk })
    }

    /// Arrangement of an example.
    #[must_use]
    pub fn input(&self) -> &Shape {
        &self.input
    }

    /// Numbers that come out for an example.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, |last| last.layer.outputs())
    }

    /// How many weights there are.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// The weights of each layer that has any, and their names and arrangements.
    pub fn tensors(&self) -> impl Iterator<Item = (String, Vec<usize>, Range<usize>)> {
        self.layers.iter().enumerate().flat_map(|(number, placed)| {
            let mut start = placed.weights.start;
            placed.layer.tensors().into_iter().map(move |(name, shape)| {
                let weights = start..start + shape.iter().product::<usize>();
                start = weights.end;
                (format!("{number}.{name}"), shape, weights)
            })
        })
    }

    /// Weights of each layer that has any, in order: the parts that can be clipped apart.
    #[must_use]
    pub fn parts(&self) -> Vec<usize> {
        self.layers.iter().map(|placed| placed.weights.len()).filter(|size| *size > 0).collect()
    }

    /// First weights.
    #[must_use]
    pub fn initialize(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.parameters];
        for (number, placed) in self.layers.iter().enumerate() {
            placed.layer.initialize(&mut weights[placed.weights.clone()], &mut Chance::of(seed, number as u64));
        }
        weights
    }

    /// Hands what comes out for each of `count` examples to `each`, in no order.
    pub fn predict(
        &self,
        weights: &[f32],
        count: usize,
        gather: impl Fn(usize, &mut [f32]) + Sync,
        each: impl Fn(usize, &[f32]) + Sync,
    ) {
        use rayon::prelude::*;
        let chunk = self.chunk;
        (0..count.div_ceil(chunk)).into_par_iter().for_each_init(
            || Tape::new(self, chunk),
            |tape, number| {
                let examples = number * chunk..((number + 1) * chunk).min(count);
                tape.forward(self, weights, examples.len(), &[], |position, input| gather(examples.start + position, input));
                let outputs = tape.outputs(self, examples.len()).enumerate();
                outputs.for_each(|(position, outputs)| each(examples.start + position, outputs));
            },
        );
    }
}
