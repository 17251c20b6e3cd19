//! Rounds real numbers to a grid, so that floating-point digits of noisy numbers leak nothing.

use crate::{
    Error, Event,
    mechanism::{Noise, normal_beyond},
    noise::{
        random::Stream,
        rounded::{self, GRID, Shape},
    },
    units::NoiseMultiplier,
};

impl Noise {
    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::Laplace => Shape::Laplace,
            Self::Gaussian => Shape::Gaussian,
        }
    }

    pub(crate) fn event(self, noise_multiplier: NoiseMultiplier) -> Event {
        match self {
            Self::Laplace => Event::Laplace { noise_multiplier },
            Self::Gaussian => Event::Gaussian { noise_multiplier },
        }
    }

    /// The absolute value that noise of this scale exceeds in one case of twenty.
    pub(crate) fn error(self, scale: f64) -> f64 {
        self.error_beyond(scale, 20.0)
    }

    /// The absolute value that noise of this scale exceeds in one case of `one_in`.
    pub(crate) fn error_beyond(self, scale: f64, one_in: f64) -> f64 {
        match self {
            Self::Laplace => scale * one_in.ln(),
            Self::Gaussian => scale * normal_beyond(one_in),
        }
    }
}

/// Multiples of a step, with 2³⁰ steps per scale of the noise. (THEORY, Noise)
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    step: f64,
}

/// Indices are clamped to this size.
///
/// A contribution is 2³⁰/z steps long, at most 2⁵⁰ for the least noise multiplier there is.
const LARGEST: f64 = (1_u64 << 60) as f64;

/// 1.5 · 2⁵², in the middle of the numbers whose last digit is worth one …
const SHIFT: f64 = 1.5 * (1_u64 << 52) as f64;

/// … and the sum stays in that range if less than this is added.
const WITHIN: f64 = (1_u64 << 50) as f64;

/// Reduces every contribution by one part in 2⁵⁰.
///
/// This covers the rounding of a product and a quotient.
const SHAVED: f64 = 1.0 - 1.0 / (1_u64 << 50) as f64;

impl Grid {
    /// A grid for noise of this scale.
    pub(crate) fn new(scale: f64) -> Result<Self, Error> {
        let step = scale / GRID as f64;
        // A subnormal step has lost digits.
        if step.is_normal() && scale.is_finite() {
            Ok(Self { step })
        } else {
            Err(Error::OutOfRange { what: "noise scale", value: scale, range: "[1e-298, 1e308]" })
        }
    }

    /// The next grid point towards zero. NaN becomes zero.
    ///
    /// # Theorem
    /// |index · step| ≤ |value|, so no norm grows: the quotient is off by at most a part in 2⁵³, and the
    /// value was reduced by one in 2⁵⁰.
    pub(crate) fn toward_zero(self, value: f64) -> i64 {
        let index = value * SHAVED / self.step;
        // A cast takes NaN to zero and cuts the fraction.
        index.clamp(-LARGEST, LARGEST) as i64
    }

    /// The nearest grid point of each value; NaN becomes zero.
    ///
    /// It is nearest up to a part in 2⁵¹ of the value.
    pub(crate) fn near(self, values: &[f64], indices: &mut [i64]) {
        let per_unit = self.step.recip();
        // Sums of records are nearly always this close to zero. Then vector instructions do all of the work:
        // the sum of 1.5 · 2⁵² and a smaller number has the integer in its last digits.
        let mut common = true;
        for (index, value) in indices.iter_mut().zip(values) {
            let steps = value * per_unit;
            common &= steps.abs() < WITHIN;
            *index = (steps + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i64;
        }
        if !common {
            for (index, value) in indices.iter_mut().zip(values) {
                // A cast takes NaN to zero.
                *index = (value * per_unit).round_ties_even().clamp(-LARGEST, LARGEST) as i64;
            }
        }
    }

    /// The numbers at the indices, in single precision.
    pub(crate) fn singles(self, indices: &[i64], values: &mut [f32]) {
        // Numbers from 0 to below 2⁵¹ use only the last 51 bits, and so does the bitwise OR of such numbers.
        let mut bits = 0;
        for (value, index) in values.iter_mut().zip(indices) {
            bits |= index.wrapping_add(WITHIN as i64) as u64;
            let index = f64::from_bits((*index as u64).wrapping_add(SHIFT.to_bits())) - SHIFT;
            *value = (index * self.step) as f32;
        }
        if bits >= 2 * WITHIN as u64 {
            for (value, index) in values.iter_mut().zip(indices) {
                *value = (*index as f64 * self.step) as f32;
            }
        }
    }

    /// The nearest grid point, or the end of the grid.
    ///
    /// NaN becomes zero. A floating-point quotient is off by many steps where a value is large against the
    /// noise, so this function divides integers. Both numbers are m · 2^e with m below 2⁵³, and where the
    /// quotient is below 2⁶⁰ the shifted dividend is below 2¹¹⁴.
    pub(crate) fn nearest(self, value: f64) -> i64 {
        let estimate = value / self.step;
        // A cast takes NaN to zero.
        if estimate.is_nan() || estimate.abs() >= LARGEST {
            return estimate.clamp(-LARGEST, LARGEST) as i64;
        }
        let ((dividend, e), (divisor, f)) = (parts(value.abs()), parts(self.step));
        let shift = e - f;
        // Below a quarter of a step, where the shifted divisor could overflow.
        if shift < -60 || dividend == 0 {
            return 0;
        }
        let (dividend, divisor) =
            if shift >= 0 { (dividend << shift, divisor) } else { (dividend, divisor << -shift) };
        let index = ((2 * dividend + divisor) / (2 * divisor)) as i64;
        if value < 0.0 { -index } else { index }
    }

    /// The number at an index.
    pub(crate) fn value(self, index: i128) -> f64 {
        index as f64 * self.step
    }

    /// Adds noise to a sum of indices and returns the number at the result.
    pub(crate) fn release(self, noise: Noise, sum: i128, stream: &mut Stream) -> f64 {
        self.value(sum + i128::from(rounded::sample(noise.shape(), stream)))
    }
}

/// Returns m and e with m · 2^e = `number`, which is finite and not negative.
fn parts(number: f64) -> (u128, i32) {
    let bits = number.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    // Subnormal numbers have no hidden digit.
    if exponent == 0 {
        (u128::from(fraction), -1074)
    } else {
        (u128::from(fraction | 1 << 52), exponent - 1075)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_to_the_grid_and_back_whether_they_are_small_or_large() {
        let grid = Grid { step: 0.3 };
        let small = [0.0, 0.1, -0.2, 1e6 * 0.3, -3e14, 0.44, 0.46];
        for large in [
            0.0,
            1e300,
            -1e300,
            1.2e15 * 0.3,
            3e15 * 0.3,
            -3e15 * 0.3,
            1e16 * 0.3,
            f64::NAN,
            f64::INFINITY,
            -4e17,
        ] {
            let values: Vec<f64> = small.into_iter().chain([large]).collect();
            let (mut indices, mut singles) = (vec![7; values.len()], vec![7.0; values.len()]);
            grid.near(&values, &mut indices);
            for (value, index) in values.iter().zip(&indices) {
                let allowed = 2.0 * (value / 0.3).abs() / (1_u64 << 51) as f64;
                let off = (index - grid.nearest(*value)).abs() as f64;
                assert!(off == 0.0 || off <= allowed, "{value}: {index}");
            }
            grid.singles(&indices, &mut singles);
            let expected: Vec<f32> = indices.iter().map(|index| (*index as f64 * 0.3) as f32).collect();
            assert_eq!(singles, expected, "beside {large}");
        }
    }

    #[test]
    fn nearest_is_within_half_a_step_for_values_of_any_size() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..200_000 {
            let grid = Grid { step: (60.0 * next() - 30.0).exp2() };
            let value = (next() - 0.5) * grid.step * (60.0 * next()).exp2();
            let index = grid.nearest(value);
            // The floating-point remainder is exact.
            let rest = value % grid.step;
            let rest = rest.abs().min(grid.step - rest.abs());
            // |value - index · step| is the distance to a multiple of the step; it must be the smallest.
            let exact = libm::fma(-(index as f64), grid.step, value);
            if index.unsigned_abs() < 1 << 53 {
                assert!(
                    (exact.abs() - rest).abs() <= 1e-9 * grid.step,
                    "{value} on {}: {exact} for {rest}",
                    grid.step
                );
            }
        }
        let grid = Grid { step: 0.3 };
        // 0.3 is a little less than 3/10, so 1e15 is a little more than 10/3 · 1e15 steps: a floating-point
        // quotient is off by some steps.
        let far = 1e15;
        let (m, e) = parts(0.3);
        assert_eq!(grid.nearest(far), ((((1_000_000_000_000_000_u128 << -e) * 2) + m) / (2 * m)) as i64);
        assert_eq!(
            (grid.nearest(f64::NAN), grid.nearest(0.0), grid.nearest(-0.7), grid.nearest(1e-320)),
            (0, 0, -2, 0)
        );
        assert_eq!((grid.nearest(f64::INFINITY), grid.nearest(-1e300)), (1 << 60, -(1 << 60)));
    }
}
