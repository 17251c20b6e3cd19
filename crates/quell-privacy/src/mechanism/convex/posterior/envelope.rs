//! The posterior of linear regression as a quadratic function, and Gaussian envelopes of it on a ball.

use super::{super::double::Double, Design, PosteriorSample, exact};

/// The negative logarithm of a density: ρ(½wᵀSw - ⟨c, w⟩) + λ/2 ‖w‖², up to a constant.
///
/// S = Σ xᵢxᵢᵀ and c = Σ yᵢxᵢ are exact: features and targets are integers, in units of 2⁻³⁰.
pub(super) struct Quadratic {
    dimension: usize,
    power: f64,
    penalty: f64,
    /// S, row by row.
    squares: Vec<Double>,
    /// c.
    products: Vec<Double>,
    /// Number of records.
    records: usize,
}

/// A Gaussian distribution: a proposal is w = m + Gz for standard Gaussian numbers z.
pub(super) struct Envelope {
    /// m.
    center: Vec<f64>,
    /// Gᵀ, row by row: the inverse of a lower triangular matrix.
    inverse: Vec<f64>,
    /// C: the potential at w minus ‖z‖²/2 is at least this, for all proposals in the ball.
    pub(super) offset: Double,
}

/// Steps of the refinement of a centre.
const REFINEMENTS: usize = 8;

/// The largest slack of an envelope: this much acceptance is lost by rounding.
const MOST_SLACK: f64 = 0.5;

/// Steps per unit of features and targets.
const UNITS: f64 = (1_u64 << 30) as f64;

impl Quadratic {
    pub(super) fn new(settings: &PosteriorSample, design: &Design) -> Self {
        let d = settings.dimension;
        let (mut squares, mut products) = (vec![0_i128; d * d], vec![0_i128; d]);
        let mut records = 0;
        let mut integers = vec![0_i64; d];
        for (features, target) in design.rows() {
            // Towards zero, so that no norm grows. A feature is at most one in size.
            integers.iter_mut().zip(features).for_each(|(to, x)| *to = (f64::from(*x) * UNITS) as i64);
            let target = (target.clamp(-1.0, 1.0) * UNITS) as i64;
            for (i, x) in integers.iter().enumerate() {
                // Products of two numbers of at most 2³⁰.
                products[i] += i128::from(target * x);
                for (sum, y) in squares[i * d..][..=i].iter_mut().zip(&integers) {
                    *sum += i128::from(x * y);
                }
            }
            records += 1;
        }
        for i in 0..d {
            for j in i + 1..d {
                squares[i * d + j] = squares[j * d + i];
            }
        }
        let number = |sum: i128| exact(sum).times(1.0 / (UNITS * UNITS));
        Self {
            dimension: d,
            power: settings.power.get(),
            penalty: settings.regularization.get(),
            squares: squares.into_iter().map(number).collect(),
            products: products.into_iter().map(number).collect(),
            records,
        }
    }

    /// The negative logarithm of the density at these weights, up to a constant.
    pub(super) fn potential(&self, weights: &[Double]) -> Double {
        let (mut quadratic, mut linear, mut norm) = (Double::default(), Double::default(), Double::default());
        for ((row, c), weight) in self.squares.chunks_exact(self.dimension).zip(&self.products).zip(weights) {
            let image =
                row.iter().zip(weights).fold(Double::default(), |sum, (s, w)| sum.add(s.multiply(*w)));
            quadratic = quadratic.add(image.multiply(*weight));
            linear = linear.add(c.multiply(*weight));
            norm = norm.add(weight.multiply(*weight));
        }
        let loss = quadratic.times(0.5).add(linear.signed(-1.0));
        loss.times(self.power).add(norm.times(0.5 * self.penalty))
    }

    /// An envelope that proposals leave seldom.
    ///
    /// # Theorem
    /// (THEORY, One posterior) On the ball the density is below exp(ν(R² - ‖w‖²)/2) times itself, which is
    /// Gaussian, for each ν ≥ 0. The ν that is chosen decides how long sampling takes, and nothing else. If
    /// the settings were checked, the certificate never fails.
    pub(super) fn envelope(&self, radius: f64, most_squared: f64) -> Envelope {
        let mut tilt = self.tilt(radius * radius);
        loop {
            let envelope = self
                .gaussian(tilt)
                .and_then(|(center, inverse)| self.certified(tilt, radius, most_squared, center, inverse));
            if let Some(envelope) = envelope {
                return envelope;
            }
            tilt = 2.0 * tilt + self.penalty;
        }
    }

    /// ν: the least tilt for which most proposals are in the ball, up to 1/2R².
    fn tilt(&self, squared_radius: f64) -> f64 {
        let is_within = |tilt: f64| {
            self.gaussian(tilt).is_some_and(|(center, inverse)| {
                let spread: f64 = inverse.iter().map(|x| x * x).sum();
                let norm: f64 = center.iter().map(|x| x * x).sum();
                norm + spread + (2.0 * spread / (self.penalty + tilt)).sqrt() <= squared_radius
            })
        };
        if is_within(0.0) {
            return 0.0;
        }
        let most = 0.25 * self.power * self.records as f64 + 2.5 * self.dimension as f64;
        let (mut low, mut high) = (0.0, 1.01 * most / squared_radius);
        while (high - low) * squared_radius > 0.5 {
            let middle = 0.5 * (low + high);
            if is_within(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    /// m and Gᵀ of the Gaussian distribution with the potential of the posterior plus ν/2 ‖w‖².
    ///
    /// `None` if the matrix is not positive definite in double precision.
    fn gaussian(&self, tilt: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        let d = self.dimension;
        let mut matrix: Vec<f64> = self.squares.iter().map(|s| self.power * s.high).collect();
        (0..d).for_each(|i| matrix[i * d + i] += self.penalty + tilt);
        let inverse = inverse_factor(&matrix, d)?;
        let mut center = vec![0.0; d];
        for _ in 0..REFINEMENTS {
            let scaled = scaled_residual(&inverse, &self.residual(tilt, &center));
            for (row, s) in inverse.chunks_exact(d).zip(&scaled) {
                center.iter_mut().zip(row).for_each(|(m, x)| *m -= x * s);
            }
        }
        Some((center, inverse))
    }

    /// The gradient (ρS + (λ + ν)I)m - ρc of the tilted potential.
    fn residual(&self, tilt: f64, center: &[f64]) -> Vec<f64> {
        let rows = self.squares.chunks_exact(self.dimension).zip(&self.products).zip(center);
        rows.map(|((row, c), m)| {
            let image = row.iter().zip(center).fold(Double::default(), |sum, (s, m)| sum.add(s.times(*m)));
            let slope = image.add(c.signed(-1.0)).times(self.power);
            slope.add(Double::sum(self.penalty, tilt).times(*m)).high
        })
        .collect()
    }

    /// The envelope with a proven offset; `None` if it is too far below the posterior.
    ///
    /// # Theorem
    /// (THEORY, One posterior) With H = Gᵀ(ρS + (λ + ν)I)G and g = Gᵀ times the gradient at m, the tilted
    /// potential at m + Gz minus ‖z‖²/2 is ⟨g, z⟩ + ½zᵀ(H - I)z above that at m. For ‖z‖ ≤ Z that is at least
    /// -‖g‖Z - ½‖H - I‖Z². The rounding of H and g is below 2⁻³⁰ in all.
    fn certified(
        &self,
        tilt: f64,
        radius: f64,
        most_squared: f64,
        center: Vec<f64>,
        inverse: Vec<f64>,
    ) -> Option<Envelope> {
        let slope = norm(&scaled_residual(&inverse, &self.residual(tilt, &center)));
        let slack = slope * most_squared.sqrt() + 0.5 * self.defect(tilt, &inverse) * most_squared;
        let slack = slack * (1.0 + 1e-6) + 1.0 / f64::from(1 << 20);
        if slack.is_nan() || slack > MOST_SLACK {
            return None;
        }
        let at_center: Vec<Double> = center.iter().map(|m| Double::from(*m)).collect();
        let square = super::sum_of_squares(&at_center).add(Double::from(radius).times(-radius));
        let offset = self.potential(&at_center).add(square.times(0.5 * tilt)).plus(-slack);
        Some(Envelope { center, inverse, offset })
    }

    /// ‖H - I‖ in the Frobenius norm.
    fn defect(&self, tilt: f64, inverse: &[f64]) -> f64 {
        let d = self.dimension;
        let mut total = 0.0;
        for i in 0..d {
            let row = &inverse[i * d..][..=i];
            // (ρS + (λ + ν)I) times the i-th column of G.
            let image: Vec<Double> = (0..d)
                .map(|k| {
                    let product = row.iter().zip(&self.squares[k * d..][..d]);
                    let sum = product.fold(Double::default(), |sum, (x, s)| sum.add(s.times(*x)));
                    let own = row.get(k).copied().unwrap_or(0.0);
                    sum.times(self.power).add(Double::sum(self.penalty, tilt).times(own))
                })
                .collect();
            for j in 0..=i {
                let other = inverse[j * d..][..=j].iter().zip(&image);
                let entry = other.fold(Double::default(), |sum, (x, v)| sum.add(v.times(*x)));
                let miss = entry.plus(if i == j { -1.0 } else { 0.0 }).high;
                total += miss * miss * if i == j { 1.0 } else { 2.0 };
            }
        }
        total.sqrt()
    }
}

impl Envelope {
    /// m + Gz.
    pub(super) fn weights(&self, numbers: &[Double]) -> Vec<Double> {
        let d = self.center.len();
        let mut weights: Vec<Double> = self.center.iter().map(|m| Double::from(*m)).collect();
        for (i, (row, z)) in self.inverse.chunks_exact(d).zip(numbers).enumerate() {
            weights.iter_mut().zip(&row[..=i]).for_each(|(weight, x)| *weight = weight.add(z.times(*x)));
        }
        weights
    }
}

/// Gᵀr for the rows of Gᵀ.
fn scaled_residual(inverse: &[f64], residual: &[f64]) -> Vec<f64> {
    let rows = inverse.chunks_exact(residual.len());
    rows.map(|row| row.iter().zip(residual).map(|(x, r)| x * r).sum()).collect()
}

fn norm(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The inverse of the lower triangular factor L of a matrix LLᵀ.
///
/// `None` if the matrix is not positive definite in double precision.
fn inverse_factor(matrix: &[f64], d: usize) -> Option<Vec<f64>> {
    let mut factor = matrix.to_vec();
    for i in 0..d {
        for j in 0..=i {
            let (before, rest) = factor.split_at_mut(i * d);
            let other = if i == j { &rest[..j] } else { &before[j * d..][..j] };
            let product: f64 = rest[..j].iter().zip(other).map(|(a, b)| a * b).sum();
            let value = rest[j] - product;
            if i == j {
                if value.is_nan() || value <= 0.0 {
                    return None;
                }
                rest[j] = value.sqrt();
            } else {
                rest[j] = value / before[j * d + j];
            }
        }
    }
    // Each row x solves xL = eᵢ, so that the product with L from the right is the identity to the last bits.
    let mut inverse = vec![0.0; d * d];
    for (i, row) in inverse.chunks_exact_mut(d).enumerate() {
        row[i] = 1.0;
        for k in (0..=i).rev() {
            let below = &factor[k * d..][..=k];
            row[k] /= below[k];
            let weight = row[k];
            row[..k].iter_mut().zip(below).for_each(|(x, l)| *x -= weight * l);
        }
    }
    Some(inverse)
}
