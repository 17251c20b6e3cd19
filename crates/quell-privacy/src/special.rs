//! Functions of the normal distribution, accurate in both tails.
//!
//! Neither the standard library nor `libm` has them.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Unit roundoff of `f64`, 2⁻⁵³.
pub(crate) const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Φ(x), with a relative error of a few ulps even where it is tiny.
pub(crate) fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// ln Φ(x), with a relative error of a few ulps in both tails.
pub(crate) fn ln_normal_below(x: f64) -> f64 {
    if x < 0.0 {
        (0.5 * scaled_erfc(-x * FRAC_1_SQRT_2)).ln() - 0.5 * x * x
    } else {
        (-normal_below(-x)).ln_1p()
    }
}

/// Φ⁻¹(p) for p in (0, 1).
///
/// Bisects in the smaller tail, so that both ends are accurate.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    let (mut low, mut high) = (-39.0, 0.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if normal_below(middle) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// exp(x²) erfc(x) for x ≥ 0, which neither overflows nor underflows.
fn scaled_erfc(x: f64) -> f64 {
    if x < 20.0 {
        // x² = square + rest exactly; exp would otherwise magnify the rounding of x² by x².
        let square = x * x;
        let rest = x.mul_add(x, -square);
        return square.exp() * libm::erfc(x) * (1.0 + rest);
    }
    // Asymptotic series [DLMF 7.12.1]; at x ≥ 20 the first omitted term is below 1e-15.
    let t = 1.0 / (2.0 * x * x);
    (1.0 - t * (1.0 - 3.0 * t * (1.0 - 5.0 * t * (1.0 - 7.0 * t * (1.0 - 9.0 * t * (1.0 - 11.0 * t))))))
        / (x * PI.sqrt())
}

/// Mills' ratio (1 - Φ(x))/φ(x) for x ≥ 0.
fn mills(x: f64) -> f64 {
    scaled_erfc(x * FRAC_1_SQRT_2) * (PI / 2.0).sqrt()
}

/// ln of δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), the privacy profile of the Gaussian mechanism.
///
/// μ is the sensitivity over the standard deviation of the noise.
///
/// # Theorem
/// [BW18, Theorem 8]. With a = ε/μ - μ/2 and b = a + μ, e^ε φ(b) = φ(a), so δ = φ(a) (R(a) - R(b)) in Mills'
/// ratio R: no overflow for large ε and no underflow for small δ.
pub(crate) fn ln_gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let a = epsilon / mu - mu / 2.0;
    let b = epsilon / mu + mu / 2.0;
    if a <= 0.0 && b < 1.0 {
        // Φ(-a) - Φ(-b) is a sum of two error functions, and e^ε - 1 is of the order μ².
        let between = 0.5 * (libm::erf(b * FRAC_1_SQRT_2) - libm::erf(a * FRAC_1_SQRT_2));
        return (between - epsilon.exp_m1() * normal_below(-b)).ln();
    }
    if a <= 0.0 {
        return (normal_below(-a) - ln_density(a).exp() * mills(b)).ln();
    }
    ln_density(a) + mills_difference(a, mu).ln()
}

/// R(a) - R(a + μ) > 0 for a, μ > 0, without cancellation when μ is small.
///
/// R' = xR - 1, so a short Taylor series in μ is exact where the difference would cancel.
fn mills_difference(a: f64, mu: f64) -> f64 {
    if mu * (1.0 + a) > 0.02 {
        return mills(a) - mills(a + mu);
    }
    // Expanded at the middle, odd orders only: R(c - t) - R(c + t) = -2 (R'(c) t + R'''(c) t³/6 + …),
    // t = μ/2.
    let (c, t) = (a + mu / 2.0, mu / 2.0);
    let first = mills_slope(c);
    let r = mills(c);
    // R⁽ⁿ⁺¹⁾ = nR⁽ⁿ⁻¹⁾ + xR⁽ⁿ⁾; the higher derivatives are only small corrections.
    let second = r + c * first;
    let third = 2.0 * first + c * second;
    let fourth = 3.0 * second + c * third;
    let fifth = 4.0 * third + c * fourth;
    -2.0 * t * (first + t * t * (third / 6.0 + fifth * t * t / 120.0))
}

/// R'(x) = xR(x) - 1 < 0, by its asymptotic series where the subtraction would cancel.
fn mills_slope(x: f64) -> f64 {
    if x < 30.0 {
        return x * mills(x) - 1.0;
    }
    let t = 1.0 / (x * x);
    -t * (1.0
        - 3.0 * t * (1.0 - 5.0 * t * (1.0 - 7.0 * t * (1.0 - 9.0 * t * (1.0 - 11.0 * t * (1.0 - 13.0 * t))))))
}

/// ln φ(x).
fn ln_density(x: f64) -> f64 {
    -0.5 * x * x - 0.5 * (2.0 * PI).ln()
}

/// ln(Σ exp(xᵢ)); NaN if any term is NaN.
pub(crate) fn ln_sum_exp(terms: &[f64]) -> f64 {
    // `f64::max` ignores NaN.
    if terms.iter().any(|term| term.is_nan()) {
        return f64::NAN;
    }
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    largest + terms.iter().map(|t| (t - largest).exp()).sum::<f64>().ln()
}

/// A sum that carries its rounding errors along (Neumaier), however many numbers are added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PreciseSum {
    sum: f64,
    lost: f64,
}

impl PreciseSum {
    pub(crate) fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.lost += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    /// The sum.
    ///
    /// It is off by a few units in its last place if all numbers have the same sign.
    pub(crate) fn value(self) -> f64 {
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

impl FromIterator<f64> for PreciseSum {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        let mut sum = Self::default();
        numbers.into_iter().for_each(|x| sum.add(x));
        sum
    }
}

/// Bisects for the smallest x in [low, high] at which the monotone condition `fits` holds.
///
/// The condition fails below that x and holds above it. After at most `steps` halvings the result is on the
/// side where the condition holds.
pub(crate) fn bisect_smallest(
    mut low: f64,
    mut high: f64,
    steps: u32,
    mut fits: impl FnMut(f64) -> bool,
) -> f64 {
    for _ in 0..steps {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_inverts_the_distribution_function_in_both_tails() {
        for p in [1e-300, 1e-20, 1e-5, 0.3, 0.5, 0.9, 1.0 - 1e-12] {
            let back = normal_below(normal_quantile(p));
            assert!((back / p - 1.0).abs() < 1e-12, "{p} came back as {back}");
        }
    }

    #[test]
    fn mills_ratio_is_continuous_where_its_formula_changes() {
        for x in [20.0 * std::f64::consts::SQRT_2, 30.0] {
            let (below, above) = (mills(x * (1.0 - 1e-13)), mills(x * (1.0 + 1e-13)));
            assert!((below / above - 1.0).abs() < 1e-12);
            let (below, above) = (mills_slope(x * (1.0 - 1e-13)), mills_slope(x * (1.0 + 1e-13)));
            assert!((below / above - 1.0).abs() < 1e-9, "{below} {above}");
        }
    }
}
