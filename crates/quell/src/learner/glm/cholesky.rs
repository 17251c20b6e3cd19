//! Systems of linear equations with a symmetric, positive definite matrix.

/// The lower triangle L with LLᵀ = A.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::learner) struct Cholesky {
    side: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors `matrix + shift · I`, of which the lower triangle is read; `None` if it is not positive
    /// definite.
    pub(in crate::learner) fn new(matrix: &[f64], side: usize, shift: f64) -> Option<Self> {
        let mut lower = vec![0.0; side * side];
        for row in 0..side {
            let (above, own) = lower.split_at_mut(row * side);
            for column in 0..=row {
                let other = if column == row { &[][..] } else { &above[column * side..][..column] };
                let dot: f64 = if column == row {
                    own[..column].iter().map(|x| x * x).sum()
                } else {
                    own[..column].iter().zip(other).map(|(a, b)| a * b).sum()
                };
                let rest = matrix[row * side + column] - dot;
                if column == row {
                    let pivot = rest + shift;
                    // This also refuses NaN.
                    if !(pivot > 0.0 && pivot.is_finite()) {
                        return None;
                    }
                    own[column] = pivot.sqrt();
                } else {
                    own[column] = rest / above[column * side + column];
                }
            }
        }
        Some(Self { side, lower })
    }

    /// Factors the matrix after raising its smallest eigenvalue to at least `smallest`, which is positive.
    ///
    /// A multiple of the identity is added, and nothing if the smallest eigenvalue is large enough. `None` if
    /// the matrix is not finite.
    pub(in crate::learner) fn raised(matrix: &[f64], side: usize, smallest: f64) -> Option<Self> {
        let reaches = |shift: f64| Self::new(matrix, side, shift - smallest).is_some();
        let (mut low, mut high) = (0.0, 0.0);
        if !reaches(0.0) {
            high = smallest;
            while !reaches(high) {
                (low, high) = (high, 2.0 * high);
                if !high.is_finite() {
                    return None;
                }
            }
            for _ in 0..20 {
                let middle = 0.5 * (low + high);
                if reaches(middle) { high = middle } else { low = middle }
            }
        }
        Self::new(matrix, side, high)
    }

    /// Solves A x = b in place.
    pub(in crate::learner) fn solve(&self, numbers: &mut [f64]) {
        let side = self.side;
        for row in 0..side {
            let (before, own) = numbers.split_at_mut(row);
            let dot: f64 = self.lower[row * side..].iter().zip(&*before).map(|(l, x)| l * x).sum();
            own[0] = (own[0] - dot) / self.lower[row * side + row];
        }
        for row in (0..side).rev() {
            let (before, own) = numbers.split_at_mut(row);
            own[0] /= self.lower[row * side + row];
            before.iter_mut().zip(&self.lower[row * side..]).for_each(|(x, l)| *x -= l * own[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_solve_and_indefinite_matrices_are_raised() {
        let matrix = [4.0, 1.0, 0.5, 1.0, 3.0, -1.0, 0.5, -1.0, 2.0];
        let mut x = [1.0, 2.0, 3.0];
        Cholesky::new(&matrix, 3, 0.5).unwrap().solve(&mut x);
        for (row, wanted) in matrix.chunks(3).enumerate().zip([1.0, 2.0, 3.0]) {
            let product: f64 = row.1.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>() + 0.5 * x[row.0];
            assert!((product - wanted).abs() < 1e-12, "{product} {wanted}");
        }
        // Eigenvalues 3 and -1.
        let indefinite = [1.0, 2.0, 2.0, 1.0];
        assert!(
            Cholesky::new(&indefinite, 2, 0.999).is_none() && Cholesky::new(&indefinite, 2, 1.001).is_some()
        );
        // Raised to 0.5, the matrix is that plus 1.5: its inverse maps (1, -1) to (2, -2).
        let mut x = [1.0, -1.0];
        Cholesky::raised(&indefinite, 2, 0.5).unwrap().solve(&mut x);
        assert!((x[0] - 2.0).abs() < 1e-4 && (x[1] + 2.0).abs() < 1e-4, "{x:?}");
        // A matrix with large eigenvalues stays as it is.
        let mut x = [3.0, 6.0];
        Cholesky::raised(&[3.0, 0.0, 0.0, 3.0], 2, 0.5).unwrap().solve(&mut x);
        assert!((x[0] - 1.0).abs() < 1e-12 && (x[1] - 2.0).abs() < 1e-12, "{x:?}");
        assert!(Cholesky::raised(&[f64::NAN, 0.0, 0.0, 1.0], 2, 0.5).is_none());
    }
}
