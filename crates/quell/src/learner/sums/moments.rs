//! Noisy second moments, and their eigenvectors.

use crate::features::eigen::{eigen, leading_eigenvectors};

/// The sum of all releases of second moments, and their number.
///
/// A release holds the products of all pairs of features: row after row, each row from the diagonal on.
/// Products off the diagonal are multiplied by √2, so that a release is as long as the matrix.
#[derive(Clone, Debug, Default)]
pub(in crate::learner) struct Moments {
    sum: Vec<f64>,
    count: u64,
}

/// The eigenvectors of a noisy matrix of moments, with the largest eigenvalues first.
pub(in crate::learner) struct Spectrum {
    /// The eigenvalues, with noise.
    pub(in crate::learner) values: Vec<f64>,
    /// The eigenvectors, one after the other.
    pub(in crate::learner) vectors: Vec<f64>,
    /// The largest eigenvalue that noise alone would have.
    pub(in crate::learner) edge: f64,
}

/// The widest matrix of which all eigenvectors are computed.
const SMALL: usize = 128;

impl Moments {
    /// Uses a release.
    pub(in crate::learner) fn add(&mut self, released: &[f64]) {
        self.sum.resize(released.len(), 0.0);
        self.sum.iter_mut().zip(released).for_each(|(sum, x)| *sum += x);
        self.count += 1;
    }

    /// Whether nothing was released.
    pub(in crate::learner) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The mean of the releases times `scale`, as a symmetric matrix.
    fn matrix(&self, width: usize, scale: f64) -> Vec<f64> {
        let factor = scale / self.count.max(1) as f64;
        let mut matrix = vec![0.0; width * width];
        let mut sums = self.sum.iter();
        for row in 0..width {
            for column in row..width {
                let sum = sums.next().copied().unwrap_or(0.0) * factor;
                let sum = if row == column { sum } else { sum * std::f64::consts::FRAC_1_SQRT_2 };
                matrix[row * width + column] = sum;
                matrix[column * width + row] = sum;
            }
        }
        matrix
    }

    /// The leading eigenvectors of the mean times `scale`, at least `wanted`; all of them if they are few.
    ///
    /// `noise` is the standard deviation of the noise in each number of a release.
    pub(in crate::learner) fn spectrum(
        &self,
        width: usize,
        wanted: usize,
        (noise, scale): (f64, f64),
    ) -> Spectrum {
        // √(width/2) is for numbers off the diagonal that were divided by √2.
        let count = self.count.max(1) as f64;
        let edge = 2.0 * (0.5 * width as f64).sqrt() * scale * noise / count.sqrt();
        let mut matrix = self.matrix(width, scale);
        if width <= SMALL {
            let (values, vectors) = eigen(matrix, width);
            return Spectrum { values, vectors, edge };
        }
        // The iteration finds eigenvalues of the largest size. Noise makes some of them negative.
        let shift = 2.0 * edge;
        let largest = matrix.iter().fold(shift, |most: f64, x| most.max(x.abs())).max(f64::MIN_POSITIVE);
        (0..width).for_each(|at| matrix[at * (width + 1)] += shift);
        let narrow: Vec<f32> = matrix.iter().map(|x| (x / largest) as f32).collect();
        // A tenth of the noise more changes nothing, and the directions of noise would need many more rounds.
        let (vectors, values) = leading_eigenvectors(&narrow, width, wanted.min(width), 0.1 * edge / largest);
        Spectrum {
            values: values.iter().map(|value| value * largest - shift).collect(),
            vectors: vectors.iter().map(|x| f64::from(*x)).collect(),
            edge,
        }
    }
}
