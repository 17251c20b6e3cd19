//! Discrete distributions, drawn exactly: integers in, integers out, every probability met to the last digit.
//!
//! Not for long vectors: a draw takes some hundred nanoseconds. `rounded` is for those.

use super::random::Stream;
use crate::units::Scale;

/// A positive rational scale, as the samplers need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ratio {
    /// Below 2³⁰.
    numerator: u64,
    /// A power of two, at most 2³⁰.
    denominator: u64,
}

impl Ratio {
    /// The scale rounded up, by a part in 2²⁰ at most: more noise than asked for, never less.
    ///
    /// From 2²⁰ on the next integer, below that the next number with 21 digits. Charge for [`Ratio::get`], which is exact,
    /// and no theorem about what more noise does is needed.
    pub(crate) fn above(scale: Scale) -> Self {
        let (mut value, mut denominator) = (scale.get(), 1);
        while value < f64::from(1 << 20) {
            // Exact: a power of two.
            value *= 2.0;
            denominator *= 2;
        }
        Self { numerator: value.ceil() as u64, denominator }
    }

    /// 2 to this power, at most 62, for [`discrete_laplace`] alone.
    pub(crate) fn power_of_two(exponent: u32) -> Self {
        Self { numerator: 1 << exponent.min(62), denominator: 1 }
    }

    /// The same number, exactly: numerator and denominator are far below 2⁵³ and the latter is a power of two.
    pub(crate) fn get(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// 1 with probability numerator/denominator ≤ 1.
pub(crate) fn bernoulli(numerator: u128, denominator: u128, stream: &mut Stream) -> bool {
    stream.below(denominator) < numerator
}

/// 1 with probability e^(-numerator/denominator).
///
/// # Theorem
/// [CKS20, Algorithm 1]. With γ = i + f: i coins of probability e^-1 and one of probability e^-f, until one shows 0; on average
/// fewer than two of them are tossed, however large γ is.
pub(crate) fn bernoulli_exp(numerator: u128, denominator: u128, stream: &mut Stream) -> bool {
    let mut whole = numerator / denominator;
    while whole > 0 {
        if !bernoulli_exp_fraction(1, 1, stream) {
            return false;
        }
        whole -= 1;
    }
    bernoulli_exp_fraction(numerator % denominator, denominator, stream)
}

/// For γ ≤ 1: coins of probability γ, γ/2, γ/3, …; the number of successes before the first failure is even with probability e^-γ.
fn bernoulli_exp_fraction(numerator: u128, denominator: u128, stream: &mut Stream) -> bool {
    let mut successes = 0_u128;
    // γ/k is the coin γ and the coin 1/k, so that no product can overflow.
    while bernoulli(numerator, denominator, stream) && stream.below(successes + 1) == 0 {
        successes += 1;
    }
    successes.is_multiple_of(2)
}

/// An integer x with probability ∝ e^(-|x|/scale).
///
/// # Theorem
/// [CKS20, Algorithm 2], for scale t/s: u + tv with u below t accepted with probability e^(-u/t) and v geometric with e^-1 is geometric with
/// e^(-1/t); a quotient by s is geometric with e^(-s/t); of the two zeros one is refused. At least 1 - 1/e of the first and half of the second
/// proposals are accepted. Numbers beyond 63 bits, of probability e^-(2³³) at most, are held there, which is post-processing.
pub(crate) fn discrete_laplace(scale: Ratio, stream: &mut Stream) -> i64 {
    let (t, s) = (u128::from(scale.numerator), u128::from(scale.denominator));
    loop {
        let remainder = stream.below(t);
        if !bernoulli_exp_fraction(remainder, t, stream) {
            continue;
        }
        let mut quotient = 0_u128;
        while bernoulli_exp_fraction(1, 1, stream) {
            quotient += 1;
        }
        // t < 2⁶³, and nobody counts to 2⁶⁵.
        let magnitude = i64::try_from((remainder + t * quotient) / s).unwrap_or(i64::MAX);
        let negative = stream.bits(1) == 1;
        if !(negative && magnitude == 0) {
            return if negative { -magnitude } else { magnitude };
        }
    }
}

/// An integer x with probability ∝ e^(-x²/2σ²).
///
/// # Theorem
/// [CKS20, Algorithm 3]: y from the discrete Laplace distribution of scale t, any integer t ≥ 1, accepted with probability
/// e^(-(|y| - σ²/t)²/2σ²). For t ≈ σ about three of four are accepted, and four of ten for small σ. With σ = p/q the exponent is
/// (|y|tq² - p²)²/2(pqt)²; below 2²⁰ its denominator is at most 2(2²¹ 2³⁰)² = 2¹⁰³ or 2(2²¹ 2²²)² = 2⁸⁷, so a numerator
/// that overflows means an exponent above 2²⁵: that probability, e^-(2²⁵), is taken for zero.
pub(crate) fn discrete_gaussian(sigma: Ratio, stream: &mut Stream) -> i64 {
    let t = proposal(sigma);
    loop {
        let y = discrete_laplace(Ratio { numerator: t, denominator: 1 }, stream);
        if exponent(sigma, y.unsigned_abs()).is_some_and(|(numerator, denominator)| bernoulli_exp(numerator, denominator, stream))
        {
            return y;
        }
    }
}

/// The scale t of what is proposed: σ where that is an integer, from 2²⁰ on, else the next integer.
pub(super) fn proposal(sigma: Ratio) -> u64 {
    if sigma.denominator == 1 { sigma.numerator } else { sigma.numerator / sigma.denominator + 1 }
}

/// (|y| - σ²/t)²/2σ² as a fraction, or nothing above 2²⁵.
pub(super) fn exponent(sigma: Ratio, size: u64) -> Option<(u128, u128)> {
    let (p, q, t) = (u128::from(sigma.numerator), u128::from(sigma.denominator), u128::from(proposal(sigma)));
    let size = u128::from(size);
    // For t = σ it is (|y| - σ)²/2σ²: smaller numbers.
    let (root, denominator) = if q == 1 {
        (size.abs_diff(p), 2 * p * p)
    } else {
        (size.checked_mul(t * q * q)?.abs_diff(p * p), 2 * (p * q * t) * (p * q * t))
    };
    Some((root.checked_mul(root)?, denominator))
}
