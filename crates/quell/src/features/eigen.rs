//! Eigenvectors of symmetric matrices.
//!
//! Nothing here knows records. The random numbers are public: they only start an iteration.

use crate::{
    kernel::product::{Into, Matrix, multiply},
    random::PublicRandom,
};

/// Additional directions of the subspace iteration. The last directions converge slowly.
const OVERSAMPLING: usize = 10;
/// The largest residual of a converged direction, relative to the largest variance.
///
/// Single precision allows no smaller one.
const TOLERANCE: f64 = 2e-6;
const MOST_ROUNDS: usize = 500;

/// Computes the leading eigenvectors of a symmetric matrix, as rows, and their eigenvalues.
///
/// It uses subspace iteration with a Rayleigh-Ritz step in every round.
pub(crate) fn leading_eigenvectors(matrix: &[f32], width: usize, wanted: usize) -> (Vec<f32>, Vec<f64>) {
    let count = (wanted + OVERSAMPLING).min(width);
    // The starting directions are random but public.
    let mut random = PublicRandom::new(0);
    let mut directions: Vec<f64> = (0..count * width).map(|_| f64::from(random.normal())).collect();
    let mut image = vec![0.0; count * width];
    let mut variances = vec![0.0; count];
    for round in 1..=MOST_ROUNDS {
        orthonormalize(&mut directions, width);
        let narrow: Vec<f32> = directions.iter().map(|x| *x as f32).collect();
        multiply(Matrix::new(&narrow, width), Matrix::new(matrix, width), &mut image, width, Into::Overwrite);
        let products: Vec<f64> = image.iter().map(|x| f64::from(*x)).collect();
        let small: Vec<f64> = directions
            .chunks_exact(width)
            .flat_map(|direction| products.chunks_exact(width).map(move |product| dot(direction, product)))
            .collect();
        let (values, rotation) = eigen(small, count);
        variances = values;
        directions = weighted_sums(&rotation, &directions, width);
        let products = weighted_sums(&rotation, &products, width);
        let has_converged = directions
            .chunks_exact(width)
            .zip(products.chunks_exact(width))
            .zip(&variances)
            .take(wanted)
            .all(|((direction, product), variance)| {
                let residual = direction
                    .iter()
                    .zip(product)
                    .map(|(x, y)| (y - variance * x).powi(2))
                    .sum::<f64>()
                    .sqrt();
                residual <= TOLERANCE * variances[0].max(f64::MIN_POSITIVE)
            });
        // Products are neither of length one nor orthogonal, so the last round keeps its directions.
        if has_converged || count == width || round == MOST_ROUNDS {
            break;
        }
        directions = products;
    }
    (directions.iter().map(|x| *x as f32).collect(), variances)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Computes weighted sums of rows, one for each row of weights.
fn weighted_sums(weights: &[f64], rows: &[f64], width: usize) -> Vec<f64> {
    let count = rows.len() / width;
    let mut sums = vec![0.0; weights.len() / count * width];
    for (sum, weights) in sums.chunks_exact_mut(width).zip(weights.chunks_exact(count)) {
        for (row, weight) in rows.chunks_exact(width).zip(weights) {
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
        }
    }
    sums
}

/// Orthonormalises the rows by the Gram-Schmidt process, twice for each row.
///
/// A row in the span of the rows before it is replaced by an axis outside their span.
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

/// Computes the eigenvalues of a symmetric matrix, largest first, and its eigenvectors as rows (Jacobi).
pub(crate) fn eigen(mut matrix: Vec<f64>, side: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = vec![0.0; side * side];
    (0..side).for_each(|at| vectors[at * side + at] = 1.0);
    for _ in 0..60 {
        let outside: f64 =
            (0..side * side).filter(|at| at / side != at % side).map(|at| matrix[at] * matrix[at]).sum();
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

/// Applies the Jacobi rotation that makes entry (p, q) zero.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], side: usize, p: usize, q: usize) {
    let across = 0.5 * (matrix[p * side + q] + matrix[q * side + p]);
    if across == 0.0 {
        return;
    }
    let theta = (matrix[q * side + q] - matrix[p * side + p]) / (2.0 * across);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = tangent.hypot(1.0).recip();
    let sine = tangent * cosine;
    let rotation = |a: f64, b: f64| (cosine * a - sine * b, sine * a + cosine * b);
    for k in 0..side {
        let (first, second) = (p * side + k, q * side + k);
        (matrix[first], matrix[second]) = rotation(matrix[first], matrix[second]);
        (vectors[first], vectors[second]) = rotation(vectors[first], vectors[second]);
    }
    for k in 0..side {
        let (first, second) = (k * side + p, k * side + q);
        (matrix[first], matrix[second]) = rotation(matrix[first], matrix[second]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All eigenvalues are nearly equal, so that the iteration does not converge.
    #[test]
    fn eigenvectors_are_orthonormal_even_if_the_iteration_does_not_converge() {
        let (width, wanted) = (40, 5);
        let mut random = PublicRandom::new(3);
        let mut matrix = vec![0.0; width * width];
        for row in 0..width {
            for column in 0..=row {
                let noise = 0.001 * random.normal() + if row == column { 1.0 } else { 0.0 };
                matrix[row * width + column] = noise;
                matrix[column * width + row] = noise;
            }
        }
        let (vectors, values) = leading_eigenvectors(&matrix, width, wanted);
        assert!(values[..wanted].iter().all(|value| (0.99..1.02).contains(value)), "{values:?}");
        for (a, one) in vectors.chunks_exact(width).take(wanted).enumerate() {
            for (b, other) in vectors.chunks_exact(width).take(wanted).enumerate() {
                let product: f32 = one.iter().zip(other).map(|(x, y)| x * y).sum();
                let expected = if a == b { 1.0 } else { 0.0 };
                assert!((product - expected).abs() < 1e-5, "{a} {b}: {product}");
            }
        }
    }
}
