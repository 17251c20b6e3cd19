//! Numbers of 106 bits: unevaluated sums of two double-precision numbers.
//!
//! Every operation errs by at most [`ROUNDING`] of its result, except where a product is below 10⁻²⁹⁰.

/// Bound on the relative error of each operation: 8u² with u = 2⁻⁵³.
///
/// # Theorem
/// [JMP17] bounds the errors of these algorithms: 2u² for [`Double::plus`] (Algorithm 4), 3u² + 13u³ for
/// [`Double::add`] (Algorithm 6), 3u² for [`Double::times`] (Algorithm 8) and 7u² for [`Double::multiply`]
/// (Algorithm 10). Numbers are rounded to nearest, and no product underflows.
pub(super) const ROUNDING: f64 = 1.0 / (1_u128 << 103) as f64;

/// The number `high + low`, with |low| at most half a unit in the last place of `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Double {
    pub(super) high: f64,
    pub(super) low: f64,
}

impl From<f64> for Double {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Double {
    /// a + b, exactly.
    pub(super) fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let shadow = high - a;
        Self { high, low: (a - (high - shadow)) + (b - shadow) }
    }

    /// a + b, exactly, where |a| ≥ |b| or a is zero.
    fn ordered_sum(a: f64, b: f64) -> Self {
        let high = a + b;
        Self { high, low: b - (high - a) }
    }

    /// a·b, exactly.
    fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        let ((a, a_rest), (b, b_rest)) = (split::<27>(a), split::<27>(b));
        Self { high, low: ((a * b - high) + a * b_rest + a_rest * b) + a_rest * b_rest }
    }

    /// The sum with a double-precision number.
    #[inline]
    pub(super) fn plus(self, b: f64) -> Self {
        let sum = Self::sum(self.high, b);
        Self::ordered_sum(sum.high, self.low + sum.low)
    }

    pub(super) fn add(self, other: Self) -> Self {
        let (high, low) = (Self::sum(self.high, other.high), Self::sum(self.low, other.low));
        let first = Self::ordered_sum(high.high, high.low + low.high);
        Self::ordered_sum(first.high, low.low + first.low)
    }

    /// The product with a double-precision number.
    pub(super) fn times(self, b: f64) -> Self {
        let product = Self::product(self.high, b);
        Self::ordered_sum(product.high, product.low + self.low * b)
    }

    pub(super) fn multiply(self, other: Self) -> Self {
        let product = Self::product(self.high, other.high);
        Self::ordered_sum(product.high, product.low + (self.high * other.low + self.low * other.high))
    }

    /// The product with one or minus one, exactly.
    pub(super) fn signed(self, sign: f64) -> Self {
        Self { high: sign * self.high, low: sign * self.low }
    }

    /// Whether the number is below another.
    fn is_below(self, other: f64) -> bool {
        self.high < other || (self.high == other && self.low < 0.0)
    }

    /// The nearest number in [low, high], exactly.
    pub(super) fn clamp(self, low: f64, high: f64) -> Self {
        if self.is_below(low) {
            Self::from(low)
        } else if self.signed(-1.0).is_below(-high) {
            Self::from(high)
        } else {
            self
        }
    }

    /// The largest integer that is not above the number, below 2⁵³.
    pub(super) fn floor(self) -> f64 {
        let floor = self.high.floor();
        if floor == self.high && self.low < 0.0 { floor - 1.0 } else { floor }
    }
}

/// Splits a number exactly: the second part has at most `BITS` bits, the first part has the rest of the 53.
pub(super) fn split<const BITS: u32>(a: f64) -> (f64, f64) {
    let shifted = a * ((1_u64 << BITS) + 1) as f64;
    let first = shifted - (shifted - a);
    (first, a - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number times 2^`power`, rounded down to an integer.
    ///
    /// Both parts are integers of at most 53 bits times a power of two.
    fn scaled(number: Double, power: i32) -> i128 {
        let part = |x: f64| {
            let exponent = ((x.to_bits() >> 52) & 2047) as i32;
            let fraction = i128::from(x.to_bits() & ((1 << 52) - 1) | 1 << 52);
            let shift = exponent - 1075 + power;
            let size = if x == 0.0 {
                0
            } else if shift >= 0 {
                fraction << shift
            } else {
                fraction >> (-shift).min(127)
            };
            if x < 0.0 { -size } else { size }
        };
        part(number.high) + part(number.low)
    }

    /// Random numbers between one half and two, with digits in both parts.
    fn numbers() -> impl Iterator<Item = (Double, Double)> {
        let mut state = 7_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        std::iter::repeat_with(move || {
            let mut one = || {
                let sign = if next() < 0.5 { -1.0 } else { 1.0 };
                Double::sum(sign * (0.5 + 1.5 * next()), (next() - 0.5) / (1_u64 << 53) as f64)
            };
            (one(), one())
        })
    }

    /// Compares with integers: numbers times 2⁶⁰ have products below 2¹²².
    #[test]
    fn every_operation_errs_by_at_most_its_bound() {
        for (a, b) in numbers().take(100_000) {
            // Sums, in units of 2⁻¹²⁰.
            let sum = scaled(a.add(b), 120);
            assert!((sum - scaled(a, 120) - scaled(b, 120)).abs() <= (sum.abs() >> 103) + 4, "{a:?} + {b:?}");
            let sum = scaled(a.plus(b.high), 120);
            let exact = scaled(a, 120) + scaled(Double::from(b.high), 120);
            assert!((sum - exact).abs() <= (sum.abs() >> 103) + 4, "{a:?} + {}", b.high);
            // Products of numbers of 60 bits, in units of 2⁻¹²⁰.
            let short = |x: Double| {
                let unit = (1_u64 << 60) as f64;
                Double { high: x.high, low: (x.low * unit).round() / unit }
            };
            let (a, b) = (short(a), short(b));
            let product = scaled(a.multiply(b), 120);
            let exact = scaled(a, 60) * scaled(b, 60);
            assert!((product - exact).abs() <= (product.abs() >> 103) + 4, "{a:?} · {b:?}");
            let product = scaled(a.times(b.high), 120);
            let exact = scaled(a, 60) * scaled(Double::from(b.high), 60);
            assert!((product - exact).abs() <= (product.abs() >> 103) + 4, "{a:?} · {}", b.high);
        }
    }

    #[test]
    fn parts_of_a_number_have_few_digits_and_lose_nothing() {
        for (a, _) in numbers().take(10_000) {
            let (first, second) = split::<24>(a.high);
            assert_eq!(first + second, a.high);
            // The first part has 29 bits: it is a multiple of 2⁻²⁹, or of 2⁻²⁸ above one.
            assert_eq!((first * f64::from(1 << 29)).fract(), 0.0);
            assert!((second * (1_u64 << 53) as f64).abs() <= f64::from(1 << 24));
        }
    }

    #[test]
    fn comparisons_see_the_low_part() {
        let tiny = 1.0 / (1_u64 << 60) as f64;
        let (below, above) = (Double { high: 1.0, low: -tiny }, Double { high: 1.0, low: tiny });
        assert_eq!((below.floor(), above.floor()), (0.0, 1.0));
        assert_eq!((below.clamp(1.0, 2.0), above.clamp(1.0, 2.0)), (Double::from(1.0), above));
        assert_eq!((below.clamp(0.0, 1.0), above.clamp(0.0, 1.0)), (below, Double::from(1.0)));
    }
}
