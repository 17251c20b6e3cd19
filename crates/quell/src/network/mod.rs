//! Neural networks, and the clipped per-record gradients of a batch, summed in one pass.
//!
//! The method is called *book-keeping*. Each chunk of examples goes forward and backward once. Layers report
//! the norm of each example's gradient, the clipping mechanism returns a scale for it, and the scaled
//! gradients are added up. The gradients of linear layers are added for many records at once, as one product
//! of all inputs and all scaled output gradients (`deferred`). The gradients of other layers are added chunk
//! by chunk. The gradients of a batch are never in memory together.
//!
//! ```
//! use quell::network;
//! let network = network::named("mlp-tanh", &[4], 3)?;
//! assert_eq!(network.parameters(), 4 * 1000 + 1000 + 1000 * 3 + 3);
//! let weights = network.initialize(7);
//! let examples = [[0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]];
//! network.predict(
//!     &weights,
//!     examples.len(),
//!     |example, input| input.copy_from_slice(&examples[example]),
//!     |_, outputs| assert_eq!(outputs.len(), 3),
//! );
//! # Ok::<(), quell::Error>(())
//! ```

mod architecture;
mod batch;
mod deferred;
mod error;
mod models;
mod tape;

pub use architecture::Architecture;
pub(crate) use architecture::channels_last;
pub use batch::{Scales, Workspace};
pub use error::Error;
pub use models::{Model, build, layers_of, models, named};

use std::ops::Range;

use crate::{
    layer::{Layer, Shape},
    random::PublicRandom,
};
use tape::Tape;

/// The records that a network learns from. Each record has one or several examples.
///
/// # Contract
/// Everything that a method writes for a record depends on that record alone.
/// [`is_grouped`](Self::is_grouped) depends on no record.
pub trait Task: Sync {
    /// Whether a record may have several examples. Its gradient is then their mean gradient.
    ///
    /// This must be a public setting, because it determines the order and the precision in which the
    /// gradients of all records are computed. If it depended on the records, one record with two examples
    /// would change the last digits of the contributions of all others.
    fn is_grouped(&self) -> bool {
        false
    }

    /// Number of examples of a record. Without groups it is at most one.
    ///
    /// A record without examples contributes a vector of zeros.
    fn examples(&self, _record: usize) -> usize {
        1
    }

    /// Writes the network input of an example.
    fn gather(&self, record: usize, example: usize, input: &mut [f32]);

    /// Writes the gradient of an example's loss by the network outputs.
    fn differentiate(&self, record: usize, example: usize, outputs: &[f32], gradient: &mut [f32]);

    /// A random seed for layers such as dropout, which draw random numbers during training.
    ///
    /// It may depend on the record and the step, but not on the record's index.
    fn seed(&self, _record: usize, _example: usize) -> u64 {
        0
    }
}

/// A layer, and the range of its weights in the weight vector.
struct Placed {
    layer: Box<dyn Layer>,
    weights: Range<usize>,
}

/// A sequence of layers. The weights are not part of it: callers pass them as one slice.
pub struct Network {
    input: Shape,
    layers: Vec<Placed>,
    parameters: usize,
    chunk: usize,
}

/// Computes the outputs of one example at a time, on one thread.
pub(crate) struct Single<'n> {
    network: &'n Network,
    tape: Tape,
}

impl Single<'_> {
    /// The outputs of the example whose input `gather` writes.
    pub(crate) fn outputs(&mut self, weights: &[f32], mut gather: impl FnMut(&mut [f32])) -> &[f32] {
        self.tape.forward(self.network, weights, 1, &[], |_, input| gather(input));
        self.tape.outputs(self.network, 1).next().unwrap_or(&[])
    }
}

/// Numbers in one thread's chunk: inputs, outputs, gradients and the layers' `kept` numbers.
const CHUNK_NUMBERS: usize = 1 << 21;

impl Network {
    /// Creates a network for examples of a shape.
    ///
    /// `None` if there are no layers, or if a layer does not take the output of the one before it.
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

    /// Shape of an example.
    #[must_use]
    pub fn input(&self) -> &Shape {
        &self.input
    }

    /// Number of outputs for an example.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, |last| last.layer.outputs())
    }

    /// Number of weights.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Name, shape and range of every weight tensor.
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

    /// Number of weights of each layer that has any, in order. These parts can be clipped separately.
    #[must_use]
    pub fn parts(&self) -> Vec<usize> {
        self.layers.iter().map(|placed| placed.weights.len()).filter(|size| *size > 0).collect()
    }

    /// Draws the initial weights for a seed.
    #[must_use]
    pub fn initialize(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.parameters];
        for (number, placed) in self.layers.iter().enumerate() {
            placed
                .layer
                .initialize(&mut weights[placed.weights.clone()], &mut PublicRandom::of(seed, number as u64));
        }
        weights
    }

    /// Buffers to compute the outputs of one example at a time.
    pub(crate) fn single(&self) -> Single<'_> {
        Single { network: self, tape: Tape::new(self, 1) }
    }

    /// Computes the outputs of `count` examples, and calls `each` with every index and its outputs.
    ///
    /// `gather` writes the input of an example. The calls are made in parallel and in no particular order.
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
                tape.forward(self, weights, examples.len(), &[], |position, input| {
                    gather(examples.start + position, input);
                });
                let outputs = tape.outputs(self, examples.len()).enumerate();
                outputs.for_each(|(position, outputs)| each(examples.start + position, outputs));
            },
        );
    }
}
