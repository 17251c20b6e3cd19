//! The state of a run whose releases are weights.

use safetensors::serialize;

use crate::{
    Error,
    learner::{
        Snapshot,
        tensors::{Tensor, TensorFile},
    },
};

/// The weights that were released so far, and the number of releases.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    position: u64,
    taken: u64,
    pub(in crate::learner) values: Vec<f64>,
}

/// Names of the tensors in a file.
const WEIGHTS: &str = "weights";
const COUNTERS: &str = "counters";

impl Weights {
    /// The state before the first release, or a saved state.
    pub(in crate::learner) fn new(parameters: usize, saved: Option<&[u8]>) -> Result<Self, Error> {
        let start = Self { position: 0, taken: 0, values: vec![0.0; parameters] };
        match saved {
            Some(bytes) => start.restore(bytes),
            None => Ok(start),
        }
    }

    /// Counts a release. `position` is its number.
    pub(in crate::learner) fn advance(&mut self, position: u64) {
        (self.position, self.taken) = (position + 1, self.taken + 1);
    }

    /// Restores a state that [`Snapshot::save`] wrote for the same plan.
    fn restore(mut self, bytes: &[u8]) -> Result<Self, Error> {
        let file = TensorFile::of_checkpoint(bytes)?;
        let read = |name: &str, length: usize| {
            let values = file.double(name)?;
            if values.len() == length { Ok(values) } else { Err(file.damaged(name)) }
        };
        self.values = read(WEIGHTS, self.values.len())?;
        let counters = read(COUNTERS, 2)?;
        (self.position, self.taken) = (counters[0] as u64, counters[1] as u64);
        Ok(self)
    }
}

impl Snapshot for Weights {
    fn position(&self) -> u64 {
        self.position
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    /// The file is a safetensors file.
    fn save(&self) -> Result<Vec<u8>, Error> {
        let tensors = [
            (WEIGHTS, Tensor::double(&self.values)),
            (COUNTERS, Tensor::double(&[self.position as f64, self.taken as f64])),
        ];
        serialize(tensors, None).map_err(|_| Error::saved("checkpoint", "not writable", "tensors"))
    }
}
