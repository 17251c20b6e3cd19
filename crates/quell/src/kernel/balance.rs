//! Outer products s·g·xᵀ whose factors are brought into one range by powers of two.
//!
//! Rounded to a number too small for full precision, s·g errs by up to 2⁻¹⁵⁰. Times an x of 3 · 10³⁸ that is 2 · 10⁻⁷, which may be as long as all of a clipped gradient. With x/p
//! and p·s·g, where p is a power of two and no number of x/p is 4 or more, it is at most 2⁻¹⁴⁸, and a power of two rounds nothing else.

/// What a row is multiplied by: `scale · (power · x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Factor {
    pub(crate) scale: f32,
    /// A power of two.
    pub(crate) power: f32,
}

/// How the factors of one example's outer product are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Balance {
    scale: f32,
    /// A power of two, at least one: x is divided by it.
    power: f32,
}

/// The largest power: its inverse is the smallest number of full precision.
const LARGEST: u32 = 126;

impl Balance {
    /// For a scale and what it is the scale of. A scale of one or zero rounds nothing.
    pub(crate) fn new(scale: f32, x: &[f32]) -> Self {
        if scale == 0.0 || scale == 1.0 {
            return Self { scale, power: 1.0 };
        }
        let largest = x.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let exponent = (largest.to_bits() >> 23).saturating_sub(127).min(LARGEST);
        Self { scale, power: f32::from_bits((exponent + 127) << 23) }
    }

    /// What x is multiplied by.
    pub(crate) fn input(self) -> Factor {
        Factor { scale: if self.scale == 0.0 { 0.0 } else { 1.0 }, power: 1.0 / self.power }
    }

    /// What g is multiplied by.
    ///
    /// No product overflows: ‖s·g·xᵀ‖ is at most the clip norm, which is far below the largest number, and p is at most the largest number of x. A scale above one leaves g·p below that;
    /// one below one leaves s·p within the range of p.
    pub(crate) fn gradient(self) -> Factor {
        if self.scale < 1.0 {
            Factor { scale: self.scale * self.power, power: 1.0 }
        } else {
            Factor { scale: self.scale, power: self.power }
        }
    }

    /// What one is in the units of x.
    pub(crate) fn one(self) -> f32 {
        1.0 / self.power
    }

    /// Whether x stays as it is.
    pub(crate) fn is_even(self) -> bool {
        self.power == 1.0
    }
}

impl Factor {
    pub(crate) fn of(self, x: f32) -> f32 {
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
                    let (left, right) = (balance.gradient().of(g), balance.input().of(x));
                    assert!(right.abs() < 4.0 || scale == 1.0, "{scale} {x}");
                    // Exactly the numbers of either factor, but for one rounding and numbers too small for full precision.
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
