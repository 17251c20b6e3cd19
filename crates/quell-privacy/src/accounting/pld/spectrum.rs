//! Products of powers of Fourier transforms, with a bound on what rounding does to them.

use std::{cell::RefCell, f64::consts::TAU, sync::Arc};

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex, num_complex::Complex64};

use super::compose::Tilted;
use crate::special::ROUNDOFF;

/// Values of the composed, tilted masses at indices first, first + 1, …, and a bound on the error of all of them.
///
/// # Theorem
/// A transform of length n computed in floating point is off by at most η = 16 u log₂n times the Euclidean norm of the exact
/// one [Hig02, Theorem 24.2, with room]. Coefficients have modulus at most one, so the error of a product of powers is in
/// norm at most Σ countⱼ times that of φⱼ, times exp(Σ countⱼ maxₖ|eⱼₖ|) for the higher orders; the inverse transform keeps
/// norms and adds η again. The largest weight of each law is transformed by hand, exactly: where a record is rarely
/// sampled it is nearly all, and the transform's error is then that of the little that is left.
pub(super) fn convolve(tilted: &[Tilted<'_>], points: usize, first: i64, dense: bool) -> (Convolved, f64) {
    let (forward, inverse) = plans(points);
    let n = points as f64;
    let eta = 16.0 * ROUNDOFF * n.log2();
    let mut spectrum = Spectrum::one(points / 2 + 1);
    let mut buffer = forward.make_input_vec();
    let mut output = forward.make_output_vec();
    let mut scratch = forward.make_scratch_vec();
    let (mut error, mut worst, mut shift) = (0.0, 0.0, -i128::from(first));
    for t in tilted {
        let mode = t.mode();
        // Folding the index is exact: sums of folded indices are folded sums.
        shift += i128::from(mode) * t.count as i128;
        buffer.fill(0.0);
        for (index, w) in t.iter() {
            buffer[(index - mode).rem_euclid(points as i64) as usize] += w;
        }
        let largest = std::mem::take(&mut buffer[0]);
        let rest = buffer.iter().map(|w| w * w).sum::<f64>().sqrt();
        // Lengths are the planner's own: there is nothing that can fail.
        let _ = forward.process_with_scratch(&mut buffer, &mut output, &mut scratch);
        spectrum.multiply(&output, largest, t.count);
        error += t.count * eta * rest;
        worst += t.count * eta * n.sqrt() * rest;
    }
    let shift = shift.rem_euclid(points as i128) as u64;
    let (alive, norm, rounding) = spectrum.product(shift, points);
    let error = error * worst.exp() + (rounding + eta * norm) / n.sqrt();
    if !dense && alive.len() < points / 64 {
        return (Convolved::Spectrum(alive), error);
    }
    output.fill(Complex64::ZERO);
    for (k, value) in alive {
        output[k] = value;
    }
    let mut scratch = inverse.make_scratch_vec();
    // Lengths are the planner's own, and the bins that must be real are.
    let _ = inverse.process_with_scratch(&mut output, &mut buffer, &mut scratch);
    for value in &mut buffer {
        *value /= n;
    }
    (Convolved::Masses(buffer), error)
}

/// The composed masses, or their transform where nearly all of it vanishes.
pub(super) enum Convolved {
    Masses(Vec<f64>),
    Spectrum(Vec<(usize, Complex64)>),
}

/// Plans of the transforms, kept for the lengths that come up again and again: a plan costs as much as several transforms.
fn plans(points: usize) -> (Arc<dyn RealToComplex<f64>>, Arc<dyn ComplexToReal<f64>>) {
    thread_local!(static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new()));
    let plan = |planner: &mut RealFftPlanner<f64>| (planner.plan_fft_forward(points), planner.plan_fft_inverse(points));
    if points > 1 << 20 {
        return plan(&mut RealFftPlanner::new());
    }
    PLANNER.with_borrow_mut(plan)
}

/// A product of powers of transforms, kept as logarithms.
struct Spectrum {
    ln_size: Vec<f64>,
    angle: Vec<f64>,
    /// Roundings of the logarithms so far, in units of the roundoff.
    roundings: Vec<f64>,
}

impl Spectrum {
    /// Below e^-90 a coefficient counts as zero, and as error.
    const DEAD: f64 = -90.0;

    fn one(bins: usize) -> Self {
        Self { ln_size: vec![0.0; bins], angle: vec![0.0; bins], roundings: vec![8.0; bins] }
    }

    /// Multiplies by (largest + rest)^count.
    fn multiply(&mut self, rest: &[Complex64], largest: f64, count: f64) {
        let ln_largest = largest.ln();
        // |φ|² below this is dead whatever came before, without a logarithm.
        let hopeless = (2.0 * Self::DEAD / count).exp();
        for (k, bin) in rest.iter().enumerate() {
            if self.ln_size[k] < Self::DEAD {
                continue;
            }
            let sum = bin + largest;
            if sum.norm_sqr() < hopeless {
                self.ln_size[k] = 2.0 * Self::DEAD;
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
        }
    }

    /// The coefficients that are not zero, moved by `shift` places, their norm and a bound on the norm of their rounding error.
    fn product(&self, shift: u64, points: usize) -> (Vec<(usize, Complex64)>, f64, f64) {
        let mut alive = Vec::new();
        let (mut norm, mut rounding) = (0.0, 0.0);
        for (k, ln_size) in self.ln_size.iter().enumerate() {
            let real = k == 0 || 2 * k == points;
            let twice = if real { 1.0 } else { 2.0 };
            if *ln_size < Self::DEAD {
                rounding += twice * (2.0 * Self::DEAD).exp();
                continue;
            }
            let size = ln_size.exp();
            // Reduced in integers, because angles lose digits as they grow.
            let turned = ((u128::from(shift) * k as u128) % points as u128) as f64 / points as f64 * TAU;
            let mut bin = Complex64::from_polar(size, self.angle[k] % TAU - turned);
            if real {
                bin.im = 0.0;
            }
            alive.push((k, bin));
            norm += twice * size * size;
            rounding += twice * (size * self.roundings[k] * ROUNDOFF).powi(2);
        }
        (alive, norm.sqrt(), rounding.sqrt())
    }
}
