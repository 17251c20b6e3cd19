//! Choosing among candidates by their utilities, exactly.
//!
//! Weights like e^(εu/2Δ) are real numbers; rounded ones belong to a mechanism that nobody analysed. Here utilities are integers and the
//! choice is made by coins of probability e^(-n/d), after proposals among integers where candidates are too many to try one by one (`ladder`).

use std::num::NonZero;

use super::{exact::bernoulli_exp, random::Stream};
use crate::units::Epsilon;

/// ε/2Δ, what a unit of utility counts: a rational number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coefficient {
    /// At most 2³⁰.
    numerator: u128,
    /// At most 2¹²⁵.
    denominator: u128,
}

impl Coefficient {
    /// Rounded down, which costs less than ε: by a part in 2²⁰ at most for ε between 2⁻⁴⁰ and 2³⁰, and to these ends outside.
    pub(crate) fn new(epsilon: Epsilon, sensitivity: NonZero<u64>) -> Self {
        let (mut value, mut denominator) = (epsilon.get().min(f64::from(1 << 30)), 1_u128);
        while value < f64::from(1 << 20) && denominator < 1 << 60 {
            value *= 2.0;
            denominator *= 2;
        }
        Self { numerator: value.floor() as u128, denominator: denominator * 2 * u128::from(sensitivity.get()) }
    }

    /// 1 with probability e^(-coefficient · gap); 2³⁰ 2⁶⁴ does not overflow.
    fn coin(self, gap: u64, stream: &mut Stream) -> bool {
        bernoulli_exp(self.numerator * u128::from(gap), self.denominator, stream)
    }
}

/// The exponential mechanism: candidate i with probability ∝ e^(ε uᵢ/2Δ). Nothing if there are no candidates.
///
/// # Theorem
/// [MT07, Theorem 6], of bounded range ε [DDR20]. Drawn by rejection: a uniform candidate is accepted with probability e^(-ε(max - u)/2Δ). The best
/// one is always accepted, so that the rounds on average do not exceed the number of candidates. How many there were must not be seen.
pub(crate) fn exponential(utilities: &[i64], coefficient: Coefficient, stream: &mut Stream) -> Option<usize> {
    let best = *utilities.iter().max()?;
    loop {
        let candidate = stream.below(utilities.len() as u128) as usize;
        if coefficient.coin(best.abs_diff(utilities[candidate]), stream) {
            return Some(candidate);
        }
    }
}

/// Permute and flip: candidates in random order, the first whose coin of probability e^(-ε(max - u)/2Δ) shows 1.
///
/// # Theorem
/// [MS20]: ε-DP, and in expectation never worse than the exponential mechanism. Only the pure guarantee is claimed here, none of bounded range.
pub(crate) fn permute_and_flip(utilities: &[i64], coefficient: Coefficient, stream: &mut Stream) -> Option<usize> {
    let best = *utilities.iter().max()?;
    let mut left: Vec<usize> = (0..utilities.len()).collect();
    while !left.is_empty() {
        let candidate = left.swap_remove(stream.below(left.len() as u128) as usize);
        if coefficient.coin(best.abs_diff(utilities[candidate]), stream) {
            return Some(candidate);
        }
    }
    unreachable!("the coin of the best candidate shows 1")
}
