//! Rescales the factors of an outer product s·g·xᵀ to limit rounding errors.
//!
//! A subnormal s·g has a rounding error of up to 2⁻¹⁵⁰. Multiplied by an x of 3 · 10³⁸, the error is 2 ·
//! 10⁻⁷, which may be as large as the whole clipped gradient. This module computes x/p and p·s·g instead,
//! where p is a power of two such that no number of x/p is 4 or more. Then the error is at most 2⁻¹⁴⁸.
//! Multiplying by a power of two rounds nothing else.

/// The factor that a row is multiplied by: `scale · (power · x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Factor {
    pub(crate) scale: f32,
    /// A power of two.
    pub(crate) power: f32,
}

/// How an example's scale is divided between the factors of its outer product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Balance {
    scale: f32,
    /// The divisor of x: a power of two, at least one.
    power: f32,
}

/// The largest exponent of a power. Its inverse is the smallest number with full precision.
const LARGEST: u32 = 126;

impl Balance {
    /// Chooses the power for a scale and an input x. Scales of one and zero need none: they round nothing.
    pub(crate) fn new(scale: f32, x: &[f32]) -> Self {
        if scale == 0.0 || scale == 1.0 {
            return Self { scale, power: 1.0 };
        }
        let largest = x.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let exponent = (largest.to_bits() >> 23).saturating_sub(127).min(LARGEST);
        Self { scale, power: f32::from_bits((exponent + 127) << 23) }
    }

    /// The factor of x.
    pub(crate) fn input(self) -> Factor {
        Factor { scale: if self.scale == 0.0 { 0.0 } else { 1.0 }, power: 1.0 / self.power }
    }

    /// The factor of g.
    ///
    /// No product overflows. ‖s·g·xᵀ‖ is at most the clip norm, which is far below the largest number, and p
    /// is at most the largest number of x. If the scale is above one, g·p is below the clip norm. If the
    /// scale is below one, s·p is below p.
    pub(crate) fn gradient(self) -> Factor {
        if self.scale < 1.0 {
            Factor { scale: self.scale * self.power, power: 1.0 }
        } else {
            Factor { scale: self.scale, power: self.power }
        }
    }

    /// The value that a constant input of one has after division by the power.
    pub(crate) fn one(self) -> f32 {
        1.0 / self.power
    }

    /// Whether x is left unchanged.
    pub(crate) fn leaves_input_unchanged(self) -> bool {
        self.power == 1.0
    }
}

impl Factor {
    pub(crate) fn apply(self, x: f32) -> f32 {
        self.scale * (self.power * x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_what_they_are_without_powers_wherever_those_round_nothing() {
        for scale in [0.3_f32, 1e-30, f32::MIN_POSITIVE, 1.0, 7.0, 1e20] {
            for x in [0.0, 1e-40, 0.7, 1.9, 2.0, 3.5, 1e10, 1e30, 3.4e38, f32::MAX] {
                for g in [1e-45_f32, 1e-30, 0.25, 1.5, 1e10] {
                    let exact = f64::from(scale) * f64::from(g) * f64::from(x);
                    if exact.abs() > 1e30 || f64::from(scale) * f64::from(g) > 1e30 {
                        continue;
                    }
                    let balance = Balance::new(scale, &[x, -0.5 * x]);
                    let (left, right) = (balance.gradient().apply(g), balance.input().apply(x));
                    assert!(right.abs() < 4.0 || scale == 1.0, "{scale} {x}");
                    // The product is exact, except for one rounding and for subnormal numbers.
                    let product = f64::from(left) * f64::from(right);
                    assert!(
                        (product - exact).abs() <= exact.abs() * 2_f64.powi(-24) + 2_f64.powi(-147),
                        "{scale} {g} {x}: {product} {exact}"
                    );
                }
            }
        }
    }
}
