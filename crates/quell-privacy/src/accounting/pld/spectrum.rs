//! Products of powers of Fourier transforms, with a bound on their rounding error.

use std::{cell::RefCell, f64::consts::TAU, sync::Arc};

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex, num_complex::Complex64};

use super::compose::Tilted;
use crate::special::ROUNDOFF;

/// The composed, tilted masses at indices first, first + 1, …, with a total error bound.
///
/// # Theorem
/// A transform of length n passes every input to every output through log₂n additions and multiplications by
/// factors of modulus one, each of which rounds by a few u. So with η = 16 u log₂n, which leaves a margin,
/// each coefficient is off by at most η times the sum of the inputs, and all together by at most η times the
/// Euclidean norm of the exact ones [Hig02, Theorem 24.2]. Coefficients have modulus at most one. So a
/// product of powers is off in norm by at most Σ countⱼ times the error of φⱼ, times exp(Σ countⱼ maxₖ|eⱼₖ|)
/// for the higher orders; and in each coefficient by at most Π(|φⱼ| + |eⱼ|)^countⱼ - Π|φⱼ|^countⱼ, which is
/// tiny wherever the product is tiny. The smaller of the two bounds holds. The inverse transform keeps norms
/// and adds η again.
///
/// The largest weight of each law and its neighbours are transformed directly. Where a record is rarely
/// sampled they hold nearly all of the mass, so the error of the transform applies only to the small
/// remainder. In the direct transform, a weight at distance one is off by at most 16 u of itself, at distance
/// two by 64 u: the angle is precise to 2 u of at most π.
pub(super) fn convolve(tilted: &[Tilted<'_>], points: usize, first: i64, dense: bool) -> (Convolved, f64) {
    let (forward, inverse) = plans(points);
    let n = points as f64;
    let eta = 16.0 * ROUNDOFF * n.log2();
    let mut spectrum = Spectrum::one(points / 2 + 1);
    let mut buffer = forward.make_input_vec();
    let mut output = forward.make_output_vec();
    let mut scratch = forward.make_scratch_vec();
    let turns: Vec<Complex64> =
        (0..=points / 2).map(|k| Complex64::from_polar(1.0, -TAU * k as f64 / n)).collect();
    let (mut in_norm, mut worst, mut shift) = (0.0, 0.0, -i128::from(first));
    for t in tilted {
        let mode = t.mode();
        // Folding the index is exact: sums of folded indices are folded sums.
        shift += i128::from(mode) * t.count as i128;
        buffer.fill(0.0);
        for (index, w) in t.iter() {
            buffer[(index - mode).rem_euclid(points as i64) as usize] += w;
        }
        let largest = std::mem::take(&mut buffer[0]);
        let near = Near::take(&mut buffer);
        let norm = buffer.iter().map(|w| w * w).sum::<f64>().sqrt();
        let sum: f64 = buffer.iter().sum();
        // The planner chose the lengths, so this call cannot fail.
        let _ = forward.process_with_scratch(&mut buffer, &mut output, &mut scratch);
        near.add_to(&mut output, &turns);
        let each = eta * sum + near.error();
        spectrum.multiply(&output, largest, t.count, each);
        in_norm += t.count * (eta * norm + near.error());
        worst += t.count * each;
    }
    let shift = shift.rem_euclid(points as i128) as u64;
    let Product { alive, norm, rounding, in_each } = spectrum.product(shift, points);
    let transforms = (in_norm * worst.exp()).min(in_each / n.sqrt());
    let error = transforms + (rounding + eta * norm) / n.sqrt();
    if !dense && alive.len() < points / 64 {
        return (Convolved::Spectrum(alive), error);
    }
    output.fill(Complex64::ZERO);
    for (k, value) in alive {
        output[k] = value;
    }
    let mut scratch = inverse.make_scratch_vec();
    // The planner chose the lengths, and the bins that must be real are real.
    let _ = inverse.process_with_scratch(&mut output, &mut buffer, &mut scratch);
    for value in &mut buffer {
        *value /= n;
    }
    (Convolved::Masses(buffer), error)
}

/// The weights one and two places below and above the largest weight.
struct Near {
    one: (f64, f64),
    two: (f64, f64),
}

impl Near {
    /// Removes these weights from folded masses whose largest weight is first.
    ///
    /// There are at least 64 places.
    fn take(masses: &mut [f64]) -> Self {
        let n = masses.len();
        let mut pair = |distance: usize| {
            (std::mem::take(&mut masses[distance]), std::mem::take(&mut masses[n - distance]))
        };
        Self { one: pair(1), two: pair(2) }
    }

    /// Adds the transform of these weights, given e^(-2πik/n).
    fn add_to(&self, spectrum: &mut [Complex64], turns: &[Complex64]) {
        for (bin, turn) in spectrum.iter_mut().zip(turns) {
            let twice = turn * turn;
            bin.re += (self.one.0 + self.one.1) * turn.re + (self.two.0 + self.two.1) * twice.re;
            bin.im += (self.one.0 - self.one.1) * turn.im + (self.two.0 - self.two.1) * twice.im;
        }
    }

    /// Error bound on the transform of these weights, in each coefficient.
    fn error(&self) -> f64 {
        ROUNDOFF * (16.0 * (self.one.0 + self.one.1) + 64.0 * (self.two.0 + self.two.1))
    }
}

/// The composed masses, or their transform if nearly all of it vanishes.
pub(super) enum Convolved {
    Masses(Vec<f64>),
    Spectrum(Vec<(usize, Complex64)>),
}

/// Plans of the transforms, cached for lengths that recur.
///
/// Making a plan costs as much as several transforms.
fn plans(points: usize) -> (Arc<dyn RealToComplex<f64>>, Arc<dyn ComplexToReal<f64>>) {
    thread_local!(static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new()));
    let plan = |planner: &mut RealFftPlanner<f64>| {
        (planner.plan_fft_forward(points), planner.plan_fft_inverse(points))
    };
    if points > 1 << 20 {
        return plan(&mut RealFftPlanner::new());
    }
    PLANNER.with_borrow_mut(plan)
}

/// A product of powers of transforms, stored as logarithms.
struct Spectrum {
    ln_size: Vec<f64>,
    angle: Vec<f64>,
    /// Roundings of the logarithms so far, in units of the roundoff.
    roundings: Vec<f64>,
    /// How much the errors of the transforms may increase the logarithm of the size.
    growth: Vec<f64>,
}

/// The coefficients of a product, and bounds on their errors.
struct Product {
    /// The nonzero coefficients with their indices.
    alive: Vec<(usize, Complex64)>,
    norm: f64,
    /// Bound on the norm of the rounding errors of the powers.
    rounding: f64,
    /// Bound on the norm of the propagated transform errors, from bounds on each coefficient.
    in_each: f64,
}

impl Spectrum {
    /// Coefficients below e^-90 count as zero, and as error.
    const DEAD: f64 = -90.0;

    fn one(bins: usize) -> Self {
        Self {
            ln_size: vec![0.0; bins],
            angle: vec![0.0; bins],
            roundings: vec![8.0; bins],
            growth: vec![0.0; bins],
        }
    }

    /// Multiplies by (largest + rest)^count; each coefficient of `rest` may be off by `error`.
    fn multiply(&mut self, rest: &[Complex64], largest: f64, count: f64, error: f64) {
        let ln_largest = largest.ln();
        // If |φ| is below this, the product is below e^-90 whatever the other factors are; no logarithm is
        // needed.
        let hopeless = (Self::DEAD / count).exp();
        for (k, bin) in rest.iter().enumerate() {
            if self.ln_size[k] + self.growth[k] < Self::DEAD {
                continue;
            }
            let sum = bin + largest;
            let size = sum.norm_sqr().sqrt();
            if size < hopeless || size < 2.0 * error {
                // The computed power counts as zero; the true one is at most (size + error)^count.
                self.ln_size[k] += 2.0 * Self::DEAD;
                self.growth[k] += count * (size + error).clamp(1e-300, 1.0).ln() - 2.0 * Self::DEAD;
                continue;
            }
            let ratio = bin / largest;
            let square = ratio.norm_sqr();
            let (ln_size, angle, roundings) = if square < 0.25 {
                // ln(1 + r) keeps the digits of a small r.
                let ln = 0.5 * (2.0 * ratio.re + square).ln_1p();
                (ln_largest + ln, ratio.im.atan2(1.0 + ratio.re), 8.0 * square.sqrt() + ln_largest.abs())
            } else {
                (0.5 * sum.norm_sqr().max(1e-300).ln(), sum.arg(), 8.0)
            };
            self.ln_size[k] += count * ln_size;
            self.roundings[k] += count * roundings;
            self.angle[k] += count * angle;
            // (1 + e/|φ|)^count ≤ exp(count e/|φ|)
            self.growth[k] += count * error / size;
        }
    }

    /// The nonzero coefficients, with the masses shifted by `shift` places.
    fn product(&self, shift: u64, points: usize) -> Product {
        let mut product = Product { alive: Vec::new(), norm: 0.0, rounding: 0.0, in_each: 0.0 };
        for (k, (ln_size, growth)) in self.ln_size.iter().zip(&self.growth).enumerate() {
            let real = k == 0 || 2 * k == points;
            let twice = if real { 1.0 } else { 2.0 };
            if *ln_size < Self::DEAD {
                product.rounding += twice * (2.0 * Self::DEAD).exp();
                product.in_each += twice * (2.0 * (ln_size + growth).min(0.0)).exp();
                continue;
            }
            let size = ln_size.exp();
            // Reduced in integers, because angles lose digits as they grow.
            let turned = ((u128::from(shift) * k as u128) % points as u128) as f64 / points as f64 * TAU;
            let mut bin = Complex64::from_polar(size, self.angle[k] % TAU - turned);
            if real {
                bin.im = 0.0;
            }
            product.alive.push((k, bin));
            product.norm += twice * size * size;
            product.rounding += twice * (size * self.roundings[k] * ROUNDOFF).powi(2);
            product.in_each += twice * (size * growth.exp_m1()).powi(2);
        }
        for square in [&mut product.norm, &mut product.rounding, &mut product.in_each] {
            *square = square.sqrt();
        }
        product
    }
}
