//! The transform that follows from the releases of a preparation. It is public.

use rayon::prelude::*;
use safetensors::{Dtype, SafeTensors};

use super::{PiecewiseLinear, Preparation};
use crate::{
    Error,
    data::Examples,
    features::Pca,
    kernel::product::{Into, Matrix, multiply},
    learner::{
        method::check_width,
        supervised::{gather, put_back},
        tensors::{Tensor, damaged, numbers},
    },
};

/// A transform of one record at a time, by numbers that were released.
#[derive(Clone, Debug, PartialEq)]
pub enum Transform {
    /// The released mean and directions.
    Components(Pca),
    /// A function of each feature.
    PiecewiseLinear(PiecewiseLinear),
}

/// Records in one matrix product.
const CHUNK: usize = 1024;
/// Names of the tensors in a file.
const MEAN: &str = "preparation.mean";
const COMPONENTS: &str = "preparation.components";
const INPUTS: &str = "preparation.inputs";
const OUTPUTS: &str = "preparation.outputs";

impl Transform {
    /// Transforms every record. Their order, targets and users stay the same.
    pub fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        match self {
            Self::Components(pca) => project(pca, examples),
            Self::PiecewiseLinear(lines) => {
                check_width(examples, lines.width())?;
                let width = lines.width();
                let mut values = vec![0.0; examples.len() * width];
                values.par_chunks_mut(CHUNK * width).enumerate().for_each(|(chunk, into)| {
                    for (number, row) in into.chunks_exact_mut(width).enumerate() {
                        // As in the preparation: images with channels last.
                        gather(examples, chunk * CHUNK + number, row);
                        lines.apply(row);
                        put_back(examples.shape(), row);
                    }
                });
                examples.with_features(examples.shape(), values)
            }
        }
    }

    /// All numbers that the result depends on.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &f32> {
        let [first, second] = match self {
            Self::Components(Pca { mean, components, .. }) => [mean, components],
            Self::PiecewiseLinear(PiecewiseLinear { inputs, outputs, .. }) => [inputs, outputs],
        };
        first.iter().chain(second)
    }

    /// The tensors of a model file.
    pub(crate) fn tensors(&self) -> Vec<(String, Tensor)> {
        match self {
            Self::Components(Pca { mean, components, variances }) => vec![
                (MEAN.into(), Tensor::single(mean)),
                (COMPONENTS.into(), Tensor::shaped(components, vec![variances.len(), mean.len()])),
            ],
            Self::PiecewiseLinear(lines) => {
                let shape = || vec![lines.width(), lines.knots];
                vec![
                    (INPUTS.into(), Tensor::shaped(&lines.inputs, shape())),
                    (OUTPUTS.into(), Tensor::shaped(&lines.outputs, shape())),
                ]
            }
        }
    }

    /// Reads the transform of a model file, for records of `width` features.
    pub(crate) fn restore(bytes: &[u8], preparation: &Preparation, width: usize) -> Result<Self, Error> {
        let file = SafeTensors::deserialize(bytes).map_err(|_| damaged("the file"))?;
        let single = |name: &str, fits: &dyn Fn(usize) -> bool| {
            numbers(&file, name, Dtype::F32, f32::from_le_bytes)
                .filter(|values| fits(values.len()) && values.iter().all(|x| x.is_finite()))
                .ok_or_else(|| damaged(name))
        };
        if let Preparation::Components { count, .. } = *preparation {
            let length = width.checked_mul(count).filter(|length| *length > 0);
            let length = length.ok_or_else(|| damaged(COMPONENTS))?;
            return Ok(Self::Components(Pca {
                mean: single(MEAN, &|found| found == width)?,
                components: single(COMPONENTS, &|found| found == length)?,
                // Not kept: the transform does not depend on them.
                variances: vec![0.0; count],
            }));
        }
        let inputs = single(INPUTS, &|found| width > 0 && found.is_multiple_of(width) && found / width >= 2)?;
        let outputs = single(OUTPUTS, &|found| found == inputs.len())?;
        Ok(Self::PiecewiseLinear(PiecewiseLinear { knots: inputs.len() / width, inputs, outputs }))
    }
}

/// Replaces the features of every record by its coordinates along the components.
fn project(pca: &Pca, examples: &Examples) -> Result<Examples, Error> {
    let Pca { mean, components, variances } = pca;
    let (width, outputs) = (mean.len(), variances.len());
    check_width(examples, width)?;
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
