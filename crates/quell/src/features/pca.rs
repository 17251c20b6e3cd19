//! Principal components: the directions in which public data varies most.
//!
//! Mean and directions are read off the records, so they may be fitted on public records alone. What is then made of a private record depends on it alone.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    chance::Chance,
    data::Examples,
    kernel::{
        numbers::add_wide,
        product::{Into, Matrix, multiply},
    },
};

/// A mean, and directions around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pca {
    /// One number for each feature.
    pub mean: Vec<f32>,
    /// One direction after the other, each of length one and at right angles to the others, the one of most variance first.
    pub components: Vec<f32>,
    /// The variance along each direction.
    pub variances: Vec<f64>,
}

/// More directions are followed than asked for: the last ones are slow to settle.
const SPARE: usize = 10;
/// A direction has settled when what the covariance makes of it is off by less than this share of the largest variance: single precision gives no more.
const SETTLED: f64 = 2e-6;
const MOST_ROUNDS: usize = 500;
/// Records that are multiplied at once.
const TOGETHER: usize = 1024;

impl Pca {
    /// The leading directions of records that everyone may know.
    pub fn fit(public: &Examples, components: usize) -> Result<Self, Error> {
        let width = public.width();
        let possible = (1..=width).contains(&components);
        if !possible {
            let expected = "a whole number from 1 to the numbers of a record";
            return Err(Error::Setting { name: "components", found: components.to_string(), expected });
        }
        if public.is_empty() {
            return Err(Error::Missing { what: "public record", hint: "principal components are fitted on public records" });
        }
        let mut record = vec![0.0; width];
        let mut totals = vec![0.0; width];
        for number in 0..public.len() {
            public.gather(number, &mut record);
            add_wide(&mut totals, &record);
        }
        let mean: Vec<f32> = totals.iter().map(|total| (total / public.len() as f64) as f32).collect();
        let covariance = covariance(public, &mean);
        let (mut directions, mut variances) = leading(&covariance, width, components);
        directions.truncate(components * width);
        variances.truncate(components);
        Ok(Self { mean, components: directions, variances })
    }

    /// The same records, each as how far it lies from the mean in each direction.
    pub fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        let (width, outputs) = (self.mean.len(), self.variances.len());
        if examples.width() != width {
            return Err(Error::Length { what: "a record", found: examples.width(), expected: width });
        }
        if outputs == 0 || self.components.len() != outputs * width {
            return Err(Error::Length { what: "components", found: self.components.len(), expected: outputs * width });
        }
        let mut values = vec![0.0; examples.len() * outputs];
        values.par_chunks_mut(TOGETHER * outputs).enumerate().for_each(|(chunk, into)| {
            let rows = centred(examples, &self.mean, chunk * TOGETHER, into.len() / outputs);
            let directions = Matrix::new(&self.components, width).transposed();
            multiply(Matrix::new(&rows, width), directions, into, outputs, Into::Overwrite);
        });
        examples.with_features(&[outputs], values)
    }
}

/// Some records without the mean.
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
    for from in (0..examples.len()).step_by(TOGETHER) {
        let mut rows = centred(examples, mean, from, TOGETHER.min(examples.len() - from));
        let share = (examples.len() as f32).sqrt().recip();
        for x in &mut rows {
            *x *= share;
        }
        let rows = Matrix::new(&rows, width);
        multiply(rows.transposed(), rows, &mut covariance, width, Into::Add);
    }
    covariance
}

/// Leading eigenvectors of a symmetric matrix, as rows, and their eigenvalues: subspace iteration, with the best directions of the subspace in every round.
fn leading(matrix: &[f32], width: usize, wanted: usize) -> (Vec<f32>, Vec<f64>) {
    let count = (wanted + SPARE).min(width);
    // Where it begins is chance that everyone may know.
    let mut chance = Chance::new(0);
    let mut directions: Vec<f64> = (0..count * width).map(|_| f64::from(chance.normal())).collect();
    let mut image = vec![0.0; count * width];
    let mut variances = vec![0.0; count];
    for _ in 0..MOST_ROUNDS {
        orthonormalize(&mut directions, width);
        let narrow: Vec<f32> = directions.iter().map(|x| *x as f32).collect();
        multiply(Matrix::new(&narrow, width), Matrix::new(matrix, width), &mut image, width, Into::Overwrite);
        let seen: Vec<f64> = image.iter().map(|x| f64::from(*x)).collect();
        let small: Vec<f64> = directions
            .chunks_exact(width)
            .flat_map(|direction| seen.chunks_exact(width).map(move |seen| dot(direction, seen)))
            .collect();
        let (values, turn) = eigen(small, count);
        variances = values;
        directions = combined(&turn, &directions, width);
        let seen = combined(&turn, &seen, width);
        let settled = directions.chunks_exact(width).zip(seen.chunks_exact(width)).zip(&variances).take(wanted).all(
            |((direction, seen), variance)| {
                let off = direction.iter().zip(seen).map(|(x, y)| (y - variance * x).powi(2)).sum::<f64>().sqrt();
                off <= SETTLED * variances[0].max(f64::MIN_POSITIVE)
            },
        );
        if settled || count == width {
            break;
        }
        directions = seen;
    }
    (directions.iter().map(|x| *x as f32).collect(), variances)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Rows of weighted sums of rows.
fn combined(weights: &[f64], rows: &[f64], width: usize) -> Vec<f64> {
    let count = rows.len() / width;
    let mut sums = vec![0.0; weights.len() / count * width];
    for (sum, weights) in sums.chunks_exact_mut(width).zip(weights.chunks_exact(count)) {
        for (row, weight) in rows.chunks_exact(width).zip(weights) {
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
        }
    }
    sums
}

/// Gram and Schmidt, twice for each row. A row that the others span becomes an axis that they do not.
fn orthonormalize(rows: &mut [f64], width: usize) {
    for row in 0..rows.len() / width {
        let (before, rest) = rows.split_at_mut(row * width);
        let own = &mut rest[..width];
        let mut next_axis = 0..width;
        loop {
            let length = dot(own, own).sqrt();
            for _ in 0..2 {
                for other in before.chunks_exact(width) {
                    let share = dot(own, other);
                    own.iter_mut().zip(other).for_each(|(x, other)| *x -= share * other);
                }
            }
            let left = dot(own, own).sqrt();
            if left > 1e-9 * length {
                for x in own.iter_mut() {
                    *x /= left;
                }
                break;
            }
            let Some(axis) = next_axis.next() else { break };
            own.fill(0.0);
            own[axis] = 1.0;
        }
    }
}

/// Eigenvalues of a symmetric matrix, largest first, and its eigenvectors as rows (Jacobi).
fn eigen(mut matrix: Vec<f64>, side: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = vec![0.0; side * side];
    (0..side).for_each(|at| vectors[at * side + at] = 1.0);
    for _ in 0..60 {
        let outside: f64 = (0..side * side).filter(|at| at / side != at % side).map(|at| matrix[at] * matrix[at]).sum();
        let all: f64 = matrix.iter().map(|x| x * x).sum();
        if outside <= 1e-30 * all {
            break;
        }
        for p in 0..side {
            for q in p + 1..side {
                rotate(&mut matrix, &mut vectors, side, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..side).collect();
    order.sort_by(|a, b| matrix[b * side + b].total_cmp(&matrix[a * side + a]));
    let values = order.iter().map(|at| matrix[at * side + at]).collect();
    (values, order.iter().flat_map(|at| vectors[at * side..][..side].to_vec()).collect())
}

/// Turns rows and columns p and q so that the number where they meet becomes zero.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], side: usize, p: usize, q: usize) {
    let across = 0.5 * (matrix[p * side + q] + matrix[q * side + p]);
    if across == 0.0 {
        return;
    }
    let theta = (matrix[q * side + q] - matrix[p * side + p]) / (2.0 * across);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = tangent.hypot(1.0).recip();
    let sine = tangent * cosine;
    let turn = |a: f64, b: f64| (cosine * a - sine * b, sine * a + cosine * b);
    for k in 0..side {
        let (first, second) = (p * side + k, q * side + k);
        (matrix[first], matrix[second]) = turn(matrix[first], matrix[second]);
        (vectors[first], vectors[second]) = turn(vectors[first], vectors[second]);
    }
    for k in 0..side {
        let (first, second) = (k * side + p, k * side + q);
        (matrix[first], matrix[second]) = turn(matrix[first], matrix[second]);
    }
}
