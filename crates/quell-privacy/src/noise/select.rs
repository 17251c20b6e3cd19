//! Exact selection among candidates by their utilities.
//!
//! Weights like e^(εu/2Δ) are real numbers, and rounded weights would make a mechanism without a proof. Here
//! utilities are integers, and the choice is made by Bernoulli draws of probability e^(-n/d). Where
//! candidates are too many to try one by one, `ladder` first draws proposals among integers.

use std::num::NonZero;

use super::{exact::bernoulli_exp, random::Stream};
use crate::units::Epsilon;

/// ε/2Δ, the weight of one unit of utility, as a rational number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coefficient {
    /// At most 2³⁰.
    numerator: u128,
    /// At most 2¹²⁵.
    denominator: u128,
}

impl Coefficient {
    /// Rounds ε/2Δ down, which costs less than ε.
    ///
    /// The rounding is by a part in 2²⁰ at most for ε between 2⁻⁴⁰ and 2³⁰. A larger ε is clamped to 2³⁰; a
    /// smaller ε is rounded down to a multiple of 2⁻⁶⁰.
    pub(crate) fn new(epsilon: Epsilon, sensitivity: NonZero<u64>) -> Self {
        let (mut value, mut denominator) = (epsilon.get().min(f64::from(1 << 30)), 1_u128);
        while value < f64::from(1 << 20) && denominator < 1 << 60 {
            value *= 2.0;
            denominator *= 2;
        }
        Self {
            numerator: value.floor() as u128,
            denominator: denominator * 2 * u128::from(sensitivity.get()),
        }
    }

    /// Draws true with probability e^(-coefficient · gap); 2³⁰ 2⁶⁴ does not overflow.
    fn accepts(self, gap: u64, stream: &mut Stream) -> bool {
        bernoulli_exp(self.numerator * u128::from(gap), self.denominator, stream)
    }
}

/// The exponential mechanism: draws candidate i with probability ∝ e^(ε uᵢ/2Δ).
///
/// Returns `None` if there are no candidates.
///
/// # Theorem
/// [MT07, Theorem 6], of bounded range ε [DDR20]. Drawn by rejection: a uniform candidate is accepted with
/// probability e^(-ε(max - u)/2Δ). The best candidate is always accepted, so that the mean number of rounds
/// does not exceed the number of candidates. The number of rounds must not be observable.
pub(crate) fn exponential(utilities: &[i64], coefficient: Coefficient, stream: &mut Stream) -> Option<usize> {
    let best = *utilities.iter().max()?;
    loop {
        let candidate = stream.below(utilities.len() as u128) as usize;
        if coefficient.accepts(best.abs_diff(utilities[candidate]), stream) {
            return Some(candidate);
        }
    }
}

/// Permute and flip: tries candidates in random order and returns the first accepted one.
///
/// A candidate is accepted with probability e^(-ε(max - u)/2Δ).
///
/// # Theorem
/// [MS20]: ε-DP, and in expectation never worse than the exponential mechanism. Only the pure guarantee is
/// claimed here, not a bounded range.
pub(crate) fn permute_and_flip(
    utilities: &[i64],
    coefficient: Coefficient,
    stream: &mut Stream,
) -> Option<usize> {
    let best = *utilities.iter().max()?;
    let mut remaining: Vec<usize> = (0..utilities.len()).collect();
    while !remaining.is_empty() {
        let candidate = remaining.swap_remove(stream.below(remaining.len() as u128) as usize);
        if coefficient.accepts(best.abs_diff(utilities[candidate]), stream) {
            return Some(candidate);
        }
    }
    unreachable!("the best candidate is always accepted")
}
