//! Principal component analysis of public records.
//!
//! The mean and the components are computed from records without privacy, so they may be fitted on public
//! records only. The features of a private record then depend on that record alone.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    Error, Input,
    data::Examples,
    features::eigen::leading_eigenvectors,
    kernel::{
        numbers::add_wide,
        product::{Into, Matrix, multiply},
    },
};

/// A fitted principal component analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pca {
    /// The mean of each feature.
    pub mean: Vec<f32>,
    /// The components one after the other: orthonormal directions, in order of decreasing variance.
    pub components: Vec<f32>,
    /// The variance along each component.
    pub variances: Vec<f64>,
}

/// Records in one matrix product.
const CHUNK: usize = 1024;

impl Pca {
    /// Fits the leading components of public records.
    pub fn fit(public: &Examples, components: usize) -> Result<Self, Error> {
        let width = public.width();
        let possible = (1..=width).contains(&components);
        if !possible {
            let expected = "a whole number from 1 to the width of a record";
            return Err(Error::Setting { name: "components", found: components.to_string(), expected });
        }
        if public.is_empty() {
            return Err(Error::Missing { what: Input::PublicRecords });
        }
        let mut record = vec![0.0; width];
        let mut totals = vec![0.0; width];
        for number in 0..public.len() {
            public.gather(number, &mut record);
            add_wide(&mut totals, &record);
        }
        let mean: Vec<f32> = totals.iter().map(|total| (total / public.len() as f64) as f32).collect();
        let covariance = covariance(public, &mean);
        let (mut directions, mut variances) = leading_eigenvectors(&covariance, width, components, 0.0);
        directions.truncate(components * width);
        variances.truncate(components);
        Ok(Self { mean, components: directions, variances })
    }

    /// Projects each record, minus the mean, onto the components.
    pub fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        let (width, outputs) = (self.mean.len(), self.variances.len());
        if examples.width() != width {
            return Err(Error::Length { what: "a record", found: examples.width(), expected: width });
        }
        if outputs == 0 || self.components.len() != outputs * width {
            return Err(Error::Length {
                what: "components",
                found: self.components.len(),
                expected: outputs * width,
            });
        }
        let mut values = vec![0.0; examples.len() * outputs];
        values.par_chunks_mut(CHUNK * outputs).enumerate().for_each(|(chunk, into)| {
            let rows = centred(examples, &self.mean, chunk * CHUNK, into.len() / outputs);
            let directions = Matrix::new(&self.components, width).transposed();
            multiply(Matrix::new(&rows, width), directions, into, outputs, Into::Overwrite);
        });
        examples.with_features(&[outputs], values)
    }
}

/// A range of records, minus the mean.
fn centred(examples: &Examples, mean: &[f32], from: usize, count: usize) -> Vec<f32> {
    let mut rows = vec![0.0; count * mean.len()];
    for (number, row) in rows.chunks_exact_mut(mean.len()).enumerate() {
        examples.gather(from + number, row);
        row.iter_mut().zip(mean).for_each(|(x, mean)| *x -= mean);
    }
    rows
}

fn covariance(examples: &Examples, mean: &[f32]) -> Vec<f32> {
    let width = mean.len();
    let mut covariance = vec![0.0; width * width];
    for from in (0..examples.len()).step_by(CHUNK) {
        let mut rows = centred(examples, mean, from, CHUNK.min(examples.len() - from));
        let share = (examples.len() as f32).sqrt().recip();
        for x in &mut rows {
            *x *= share;
        }
        let rows = Matrix::new(&rows, width);
        multiply(rows.transposed(), rows, &mut covariance, width, Into::Add);
    }
    covariance
}
