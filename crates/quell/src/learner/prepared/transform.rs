//! The transform that follows from the releases of a preparation. It is public.

use rayon::prelude::*;
use safetensors::{Dtype, SafeTensors};

use crate::{
    Error,
    data::Examples,
    features::Pca,
    kernel::product::{Into, Matrix, multiply},
    learner::{
        supervised::gather,
        tensors::{Tensor, damaged, numbers},
    },
};

/// A transform of one record at a time, by numbers that were released.
#[derive(Clone, Debug, PartialEq)]
pub struct Transform {
    /// The released mean and directions.
    pub components: Pca,
}

/// Records in one matrix product.
const CHUNK: usize = 1024;
/// Names of the tensors in a file.
const MEAN: &str = "preparation.mean";
const COMPONENTS: &str = "preparation.components";

impl Transform {
    /// Number of features after the transform.
    pub(crate) fn outputs(&self) -> usize {
        self.components.variances.len()
    }

    /// Transforms every record. Their order, targets and users stay the same.
    pub fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        let Pca { mean, components, .. } = &self.components;
        let (width, outputs) = (mean.len(), self.outputs());
        if examples.width() != width {
            return Err(Error::Length { what: "a record", found: examples.width(), expected: width });
        }
        let mut values = vec![0.0; examples.len() * outputs];
        values.par_chunks_mut(CHUNK * outputs).enumerate().for_each(|(chunk, into)| {
            let mut rows = vec![0.0; into.len() / outputs * width];
            for (number, row) in rows.chunks_exact_mut(width).enumerate() {
                // As in the preparation: images with channels last.
                gather(examples, chunk * CHUNK + number, row);
                row.iter_mut().zip(mean).for_each(|(x, mean)| *x -= mean);
            }
            let directions = Matrix::new(components, width).transposed();
            multiply(Matrix::new(&rows, width), directions, into, outputs, Into::Overwrite);
        });
        examples.with_features(&[outputs], values)
    }

    /// All numbers that the result depends on.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &f32> {
        self.components.mean.iter().chain(&self.components.components)
    }

    /// The tensors of a model file.
    pub(crate) fn tensors(&self) -> Vec<(String, Tensor)> {
        let Pca { mean, components, .. } = &self.components;
        vec![
            (MEAN.into(), Tensor::single(mean)),
            (COMPONENTS.into(), Tensor::shaped(components, vec![self.outputs(), mean.len()])),
        ]
    }

    /// Reads the transform of a model file, for records of so many features.
    pub(crate) fn restore(bytes: &[u8], width: usize, outputs: usize) -> Result<Self, Error> {
        let file = SafeTensors::deserialize(bytes).map_err(|_| damaged("the file"))?;
        let single = |name: &str, length: usize| {
            numbers(&file, name, Dtype::F32, f32::from_le_bytes)
                .filter(|values| values.len() == length && values.iter().all(|x| x.is_finite()))
                .ok_or_else(|| damaged(name))
        };
        let length = width.checked_mul(outputs).filter(|length| *length > 0);
        let length = length.ok_or_else(|| damaged(COMPONENTS))?;
        let components = Pca {
            mean: single(MEAN, width)?,
            components: single(COMPONENTS, length)?,
            // Not kept: the transform does not depend on them.
            variances: vec![0.0; outputs],
        };
        Ok(Self { components })
    }
}
