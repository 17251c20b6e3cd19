//! Real numbers on a grid, so that noise can be added without a trace of the number under it.

use super::{Noise, normal_beyond};
use crate::{
    Error, Event,
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

    /// What noise of this scale exceeds in one case of twenty.
    pub(crate) fn error(self, scale: f64) -> f64 {
        self.error_beyond(scale, 20.0)
    }

    /// What noise of this scale exceeds in one case of so many.
    pub(crate) fn error_beyond(self, scale: f64, one_in: f64) -> f64 {
        match self {
            Self::Laplace => scale * one_in.ln(),
            Self::Gaussian => scale * normal_beyond(one_in),
        }
    }
}

/// The multiples of a step that belongs to the scale of the noise: 2³⁰ of them to one scale. (THEORY, Noise)
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    step: f64,
}

/// Indices stay within this. A contribution is 2³⁰/z steps long, at most 2⁵⁰ for the least noise multiplier there is.
const LARGEST: f64 = (1_u64 << 60) as f64;

/// The last digit of a number between 2⁵² and 2⁵³ is one; this one is in the middle of them, …
const SHIFT: f64 = 1.5 * (1_u64 << 52) as f64;

/// … and stays between them if less than this is added.
const WITHIN: f64 = (1_u64 << 50) as f64;

/// One part in 2⁵⁰ off every contribution makes up for the rounding of a product and a quotient.
const SHAVED: f64 = 1.0 - 1.0 / (1_u64 << 50) as f64;

impl Grid {
    /// For noise of this scale.
    pub(crate) fn new(scale: f64) -> Result<Self, Error> {
        let step = scale / GRID as f64;
        // A subnormal step has lost digits.
        if step.is_normal() && scale.is_finite() {
            Ok(Self { step })
        } else {
            Err(Error::OutOfRange { what: "noise scale", value: scale, range: "[1e-298, 1e308]" })
        }
    }

    /// The next grid point towards zero. What is no number is zero.
    ///
    /// # Theorem
    /// |index · step| ≤ |value|, so no norm grows: the quotient errs by a part in 2⁵³ and the value was shaved by one in 2⁵⁰.
    pub(crate) fn toward_zero(self, value: f64) -> i64 {
        let index = value * SHAVED / self.step;
        // A cast takes NaN to zero and cuts the fraction.
        index.clamp(-LARGEST, LARGEST) as i64
    }

    /// For each value the nearest grid point, but for a part in 2⁵¹ of the value. What is no number is zero.
    pub(crate) fn near(self, values: &[f64], indices: &mut [i64]) {
        let per_unit = self.step.recip();
        // Sums of records nearly always are this near to zero, and then a vector unit does all of it: 1.5 · 2⁵² and a smaller number make one whose last digits are
        // the integer.
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
        // Numbers from 0 to below 2⁵¹ have no other bits than the last 51, and together no others either.
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

    /// The nearest grid point, at most half a step away, or the end of the grid. What is no number is zero.
    ///
    /// A quotient in floating point is off by many steps where a value is large against the noise, so this one is made of integers: both numbers are
    /// m · 2^e with m below 2⁵³, and where the quotient is below 2⁶⁰ the shifted dividend is below 2¹¹⁴.
    pub(crate) fn nearest(self, value: f64) -> i64 {
        let estimate = value / self.step;
        // A cast takes NaN to zero.
        if estimate.is_nan() || estimate.abs() >= LARGEST {
            return estimate.clamp(-LARGEST, LARGEST) as i64;
        }
        let ((dividend, e), (divisor, f)) = (parts(value.abs()), parts(self.step));
        let shift = e - f;
        // Below a quarter of a step, which is where the dividend could be shifted out of sight.
        if shift < -60 || dividend == 0 {
            return 0;
        }
        let (dividend, divisor) = if shift >= 0 { (dividend << shift, divisor) } else { (dividend, divisor << -shift) };
        let index = ((2 * dividend + divisor) / (2 * divisor)) as i64;
        if value < 0.0 { -index } else { index }
    }

    /// The number at an index.
    pub(crate) fn value(self, index: i128) -> f64 {
        index as f64 * self.step
    }

    /// A sum of indices plus noise, as a number.
    pub(crate) fn release(self, noise: Noise, sum: i128, stream: &mut Stream) -> f64 {
        self.value(sum + i128::from(rounded::sample(noise.shape(), stream)))
    }
}

/// m and e with m · 2^e the number, which is finite and not negative.
fn parts(number: f64) -> (u128, i32) {
    let bits = number.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    // Subnormal numbers have no hidden digit.
    if exponent == 0 { (u128::from(fraction), -1074) } else { (u128::from(fraction | 1 << 52), exponent - 1075) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_to_the_grid_and_back_whether_they_are_small_or_large() {
        let grid = Grid { step: 0.3 };
        let small = [0.0, 0.1, -0.2, 1e6 * 0.3, -3e14, 0.44, 0.46];
        for large in [0.0, 1e300, -1e300, 1.2e15 * 0.3, 3e15 * 0.3, -3e15 * 0.3, 1e16 * 0.3, f64::NAN, f64::INFINITY, -4e17] {
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
            // The remainder of a division is exact in floating point, and so is its size.
            let rest = value % grid.step;
            let rest = rest.abs().min(grid.step - rest.abs());
            // |value - index · step| is the distance to a multiple of the step; it must be the least.
            let exact = libm::fma(-(index as f64), grid.step, value);
            if index.unsigned_abs() < 1 << 53 {
                assert!((exact.abs() - rest).abs() <= 1e-9 * grid.step, "{value} on {}: {exact} for {rest}", grid.step);
            }
        }
        let grid = Grid { step: 0.3 };
        // 0.3 is a little less than 3/10, so 1e15 is a little more than 10/3 · 1e15 steps: floating point alone is off by some.
        let far = 1e15;
        let (m, e) = parts(0.3);
        assert_eq!(grid.nearest(far), ((((1_000_000_000_000_000_u128 << -e) * 2) + m) / (2 * m)) as i64);
        assert_eq!((grid.nearest(f64::NAN), grid.nearest(0.0), grid.nearest(-0.7), grid.nearest(1e-320)), (0, 0, -2, 0));
        assert_eq!((grid.nearest(f64::INFINITY), grid.nearest(-1e300)), (1 << 60, -(1 << 60)));
    }
}
