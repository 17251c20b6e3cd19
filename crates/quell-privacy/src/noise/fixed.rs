//! exp(-x) in fixed point with a proven error, used to build the samplers' tables.

/// One, with 127 bits after the point.
pub(super) const ONE: u128 = 1 << 127;

/// The bound on the error |`exp_minus`(x) - 2¹²⁷e^-x|.
pub(super) const ERROR: u128 = 64;

/// ⌊ab/2¹²⁸⌋.
pub(super) fn multiply_high(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a_high, a_low, b_high, b_low) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (across, other) = (a_high * b_low, a_low * b_high);
    // Three numbers below 2⁶⁴: no overflow.
    let carry = ((a_low * b_low) >> 64) + (across & LOW) + (other & LOW);
    a_high * b_high + (across >> 64) + (other >> 64) + (carry >> 64)
}

/// e^-x with 127 bits after the point, for x with 64 bits after the point.
///
/// # Theorem
/// In units of 2⁻¹²⁷, with x = i + f: the terms tₖ = fᵏ/k! are computed as cₖ = ⌊cₖ₋₁f/k⌋ from c₁ = f, so 0 ≤
/// tₖ - cₖ ≤ (tₖ₋₁ - cₖ₋₁)/k + 1 ≤ 4/3 for k ≥ 2. Signs alternate, so at most the 17 errors of one sign add
/// up among the at most 34 terms before cₖ = 0 (34! > 2¹²⁷), and the remainder of the series is below its
/// first term, t₃₅ < 1: together |error| ≤ 24. The error of e^-i = e^-(i-1) e^-1 is εᵢ ≤ e^-1 εᵢ₋₁ +
/// 24e^-(i-1) + 2 < 24 for i ≥ 1 (the 2: rounding, and the product of two errors), and that of e^-i e^-f is
/// at most 24 + 24e^-1 + 2 < 36. [`ERROR`] is 64.
pub(super) fn exp_minus(x: u128) -> u128 {
    let fraction = (x & u128::from(u64::MAX)) << 63;
    let mut power = exp_minus_fraction(fraction);
    let integer = x >> 64;
    // e^-89 < 2⁻¹²⁸: further factors would only multiply zeros.
    if integer > 0 {
        let inverse = exp_minus_one();
        let mut integer_power = inverse;
        for _ in 1..integer.min(256) {
            integer_power = multiply_high(integer_power, inverse << 1);
        }
        // The fraction may be zero and its exponential one, which leaves no room for a further bit.
        power = multiply_high(power, integer_power << 1);
    }
    power
}

/// e^-1 by the series at 1, because squaring e^-1/2 would cost a bit.
fn exp_minus_one() -> u128 {
    alternating(|term| term)
}

fn exp_minus_fraction(fraction: u128) -> u128 {
    alternating(|term| multiply_high(term, fraction << 1))
}

/// Σ (-1)ᵏ fᵏ/k!, given the multiplication by f.
fn alternating(times: impl Fn(u128) -> u128) -> u128 {
    let (mut term, mut sum) = (ONE, ONE);
    for k in 1_u128.. {
        term = times(term) / k;
        if term == 0 {
            break;
        }
        if k % 2 == 1 { sum -= term } else { sum += term }
    }
    sum
}
