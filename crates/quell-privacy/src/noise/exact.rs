//! Samplers for discrete distributions that meet every probability exactly, in integer arithmetic.
//!
//! A draw takes some hundred nanoseconds. Use `rounded` for long vectors.

use super::random::Stream;
use crate::units::Scale;

/// A positive rational scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ratio {
    /// Below 2³⁰.
    numerator: u64,
    /// A power of two, at most 2³⁰.
    denominator: u64,
}

impl Ratio {
    /// Rounds the scale up by at most a part in 2²⁰.
    ///
    /// So there is more noise than requested, never less. A scale of 2²⁰ or more is rounded to the next
    /// integer, a smaller one to the next number with 21 binary digits. Charges use [`Ratio::get`], which is
    /// exact, so no theorem about the effect of additional noise is needed.
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

    /// The scale as a floating-point number, exactly.
    ///
    /// The numerator and the denominator are far below 2⁵³, and the denominator is a power of two.
    pub(crate) fn get(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// Draws true with probability numerator/denominator ≤ 1.
pub(crate) fn bernoulli(numerator: u128, denominator: u128, stream: &mut Stream) -> bool {
    stream.below(denominator) < numerator
}

/// Draws true with probability e^(-numerator/denominator).
///
/// # Theorem
/// [CKS20, Algorithm 1]. With γ = i + f: i Bernoulli draws of probability e^-1 and one of probability e^-f,
/// until one fails; on average fewer than two draws are made, however large γ is.
pub(crate) fn bernoulli_exp(numerator: u128, denominator: u128, stream: &mut Stream) -> bool {
    let mut integer = numerator / denominator;
    while integer > 0 {
        if !bernoulli_exp_fraction(1, 1, stream) {
            return false;
        }
        integer -= 1;
    }
    bernoulli_exp_fraction(numerator % denominator, denominator, stream)
}

/// Draws true with probability e^-γ, for γ ≤ 1.
///
/// Makes Bernoulli draws of probability γ, γ/2, γ/3, …; the number of successes before the first failure is
/// even with probability e^-γ.
fn bernoulli_exp_fraction(numerator: u128, denominator: u128, stream: &mut Stream) -> bool {
    let mut successes = 0_u128;
    // γ/k is a draw of probability γ and a draw of probability 1/k, so that no product can overflow.
    while bernoulli(numerator, denominator, stream) && stream.below(successes + 1) == 0 {
        successes += 1;
    }
    successes.is_multiple_of(2)
}

/// Draws an integer x with probability ∝ e^(-|x|/scale).
///
/// # Theorem
/// [CKS20, Algorithm 2], for scale t/s. Let u be below t, accepted with probability e^(-u/t), and v geometric
/// with e^-1: u + tv is geometric with e^(-1/t), and its quotient by s is geometric with e^(-s/t). Of the two
/// signed zeros one is rejected. At least 1 - 1/e of the first and half of the second proposals are accepted.
/// Numbers beyond 63 bits, of probability e^-(2³³) at most, are clamped, which is post-processing.
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
        // t < 2⁶³, and the quotient cannot be counted up to 2⁶⁵ in practice.
        let magnitude = i64::try_from((remainder + t * quotient) / s).unwrap_or(i64::MAX);
        let negative = stream.bits(1) == 1;
        if !(negative && magnitude == 0) {
            return if negative { -magnitude } else { magnitude };
        }
    }
}

/// Draws an integer x with probability ∝ e^(-x²/2σ²).
///
/// # Theorem
/// [CKS20, Algorithm 3]: y from the discrete Laplace distribution of scale t, any integer t ≥ 1, is accepted
/// with probability e^(-(|y| - σ²/t)²/2σ²). For t ≈ σ about three of four proposals are accepted, and four of
/// ten for small σ. With σ = p/q the exponent is (|y|tq² - p²)²/2(pqt)²; below 2²⁰ its denominator is at most
/// 2(2²¹ 2³⁰)² = 2¹⁰³ or 2(2²¹ 2²²)² = 2⁸⁷, so a numerator that overflows means an exponent above 2²⁵: the
/// sampler takes that probability, e^-(2²⁵), for zero.
pub(crate) fn discrete_gaussian(sigma: Ratio, stream: &mut Stream) -> i64 {
    let t = proposal(sigma);
    loop {
        let y = discrete_laplace(Ratio { numerator: t, denominator: 1 }, stream);
        if exponent(sigma, y.unsigned_abs())
            .is_some_and(|(numerator, denominator)| bernoulli_exp(numerator, denominator, stream))
        {
            return y;
        }
    }
}

/// The scale t of the proposal.
///
/// It is σ if σ is an integer (σ ≥ 2²⁰), else the next integer.
pub(super) fn proposal(sigma: Ratio) -> u64 {
    if sigma.denominator == 1 { sigma.numerator } else { sigma.numerator / sigma.denominator + 1 }
}

/// (|y| - σ²/t)²/2σ² as a fraction, or `None` if it overflows, which means above 2²⁵.
pub(super) fn exponent(sigma: Ratio, size: u64) -> Option<(u128, u128)> {
    let (p, q, t) = (u128::from(sigma.numerator), u128::from(sigma.denominator), u128::from(proposal(sigma)));
    let size = u128::from(size);
    // For t = σ the exponent is (|y| - σ)²/2σ², with smaller numbers.
    let (root, denominator) = if q == 1 {
        (size.abs_diff(p), 2 * p * p)
    } else {
        (size.checked_mul(t * q * q)?.abs_diff(p * p), 2 * (p * q * t) * (p * q * t))
    };
    Some((root.checked_mul(root)?, denominator))
}
