//! Elementwise loops over slices.

use super::fast;

/// Computes Σ x² in double precision.
///
/// Squares neither underflow nor overflow, and rounding errors stay small.
pub(crate) fn squared_length(numbers: &[f32]) -> f64 {
    fast(
        #[inline(always)]
        || {
            let mut lanes = [0.0_f64; 16];
            let (chunks, rest) = numbers.as_chunks::<16>();
            for chunk in chunks {
                for (lane, x) in lanes.iter_mut().zip(chunk) {
                    let x = f64::from(*x);
                    *lane += x * x;
                }
            }
            let rest: f64 = rest.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            lanes.iter().sum::<f64>() + rest
        },
    )
}

/// The sum of all products of numbers at the same index.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    fast(
        #[inline(always)]
        || {
            let mut lanes = [0.0_f32; 16];
            let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
            for (a, b) in a.iter().zip(b) {
                lanes.iter_mut().zip(a).zip(b).for_each(|((lane, a), b)| *lane += a * b);
            }
            let rest: f32 = rest_of_a.iter().zip(rest_of_b).map(|(a, b)| a * b).sum();
            lanes.iter().sum::<f32>() + rest
        },
    )
}

/// Computes `sum += scale · numbers`.
pub(crate) fn add_scaled(sum: &mut [f32], scale: f32, numbers: &[f32]) {
    fast(
        #[inline(always)]
        || sum.iter_mut().zip(numbers).for_each(|(total, x)| *total += scale * x),
    );
}

/// Computes `sum += numbers`.
pub(crate) fn add(sum: &mut [f32], numbers: &[f32]) {
    fast(
        #[inline(always)]
        || sum.iter_mut().zip(numbers).for_each(|(total, x)| *total += x),
    );
}

/// Computes `sum += numbers`, where the sum is in double precision.
pub(crate) fn add_wide(sum: &mut [f64], numbers: &[f32]) {
    fast(
        #[inline(always)]
        || sum.iter_mut().zip(numbers).for_each(|(total, x)| *total += f64::from(*x)),
    );
}

/// Computes `sum += numbers`, both in double precision.
pub(crate) fn add_totals(sum: &mut [f64], numbers: &[f64]) {
    fast(
        #[inline(always)]
        || sum.iter_mut().zip(numbers).for_each(|(total, x)| *total += x),
    );
}

/// Computes each number of `output` from the number of `input` at the same index.
pub(crate) fn map(input: &[f32], output: &mut [f32], f: impl Fn(f32) -> f32) {
    fast(
        #[inline(always)]
        || output.iter_mut().zip(input).for_each(|(y, x)| *y = f(*x)),
    );
}

/// Computes each number of `result` from the numbers of `a` and `b`.
pub(crate) fn map_two(a: &[f32], b: &[f32], result: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    fast(
        #[inline(always)]
        || result.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = f(*a, *b)),
    );
}

/// Computes e^x to two units in the last place, as 2^n · p(r) with |r| ≤ ln2/2.
///
/// It uses only operations that vector units have. NaN gives NaN; a result that is too large is infinite.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts. The first part ends in zero bits, so that its product with n is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Outside this range the result is zero or infinite. `clamp` keeps NaN.
    let clamped = x.clamp(-104.0, 89.0);
    let n = (clamped * LOG2_E).round_ties_even();
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    // Taylor polynomial of degree seven: the remainder is below 2⁻²⁷ for |r| ≤ 0.35.
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = (p * r) * r + r + 1.0;
    // 2^n as two factors, because it may be subnormal or have too large an exponent.
    let n = n as i32;
    let half = n >> 1;
    let power = |e: i32| f32::from_bits(((e + 127) as u32) << 23);
    p * power(half) * power(n - half)
}

/// Computes tanh x to four units in the last place.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    // Near zero, 1 - 2/(e^2x + 1) suffers from cancellation; x - x³/3 + … does not.
    let square = x * x;
    let series = x + x
        * square
        * (-1.0 / 3.0 + square * (2.0 / 15.0 + square * (-17.0 / 315.0 + square * (62.0 / 2835.0))));
    let far = (1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0)).copysign(x);
    if x.abs() < 0.3 { series } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_and_tangents_are_right_to_a_few_units_in_the_last_place() {
        for i in -2_000_000..2_000_000 {
            let x = i as f32 * 6e-5;
            let (fine, coarse) = (f64::from(exp(x)), f64::from(x).exp());
            let unit = 1.2e-7 * coarse + 1.5e-45;
            assert!(
                (fine - coarse).abs() <= 2.0 * unit || (coarse > f64::from(f32::MAX) && fine.is_infinite()),
                "e^{x}: {fine} {coarse}"
            );
            let (fine, coarse) = (f64::from(tanh(x)), f64::from(x).tanh());
            assert!((fine - coarse).abs() <= 4.0 * 6e-8 * coarse.abs() + 1e-45, "tanh {x}: {fine} {coarse}");
        }
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan());
        assert_eq!((exp(f32::INFINITY), exp(f32::NEG_INFINITY)), (f32::INFINITY, 0.0));
        assert_eq!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)), (1.0, -1.0));
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for length in [0, 1, 15, 16, 17, 100] {
            let a: Vec<f32> = (0..length).map(|i| (i % 7) as f32 - 3.0).collect();
            let b: Vec<f32> = (0..length).map(|i| (i % 5) as f32 - 1.0).collect();
            let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert_eq!(dot(&a, &b), exact);
        }
    }

    #[test]
    fn lengths_are_those_of_the_definition() {
        let numbers: Vec<f32> = (0..1003).map(|i| (i as f32 - 500.0) * 1e-25).collect();
        let exact: f64 = numbers.iter().map(|x| f64::from(*x).powi(2)).sum();
        assert!((squared_length(&numbers) / exact - 1.0).abs() < 1e-12 && exact > 0.0);
        assert!(squared_length(&[f32::NAN]).is_nan() && squared_length(&[]) == 0.0);
        assert!(squared_length(&[f32::MAX; 17]).is_finite());
    }
}
