//! Choosing among candidates by their utilities, exactly.
//!
//! Weights like e^(εu/2Δ) are real numbers; rounded ones belong to a mechanism that nobody analysed. Here utilities are integers and the
//! choice is made either by coins of probability e^(-n/d) or among integers whose ratios are known to be small enough.

use std::num::NonZero;

use super::{
    exact::bernoulli_exp,
    fixed::{ERROR, ONE, exp_minus, multiply_high},
    random::Stream,
};
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

/// Points of a grid between two neighbouring data points, and how far their rank is from the wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// How many points of the grid.
    pub(crate) points: u64,
    /// Distance of the rank.
    pub(crate) distance: u64,
}

/// Integers W₀ > W₁ > … > W_K > 0 with Wₖ ≤ e^γ Wₖ₊₁: weights for candidates too many to touch one by one.
pub(crate) struct Ladder(Vec<u128>);

impl Ladder {
    const TOP: u128 = 1 << 80;
    const BOTTOM: u128 = 1 << 20;

    /// At most `longest` steps, from 2⁸⁰ down to 2²⁰ or until γ is too small for an integer to shrink.
    ///
    /// # Theorem
    /// The multiplier is at least e^-γ, since the fixed-point exponential is raised by its error and γ was rounded down; the product is rounded up.
    /// So Wₖ₊₁ ≥ e^-γ Wₖ.
    pub(crate) fn new(coefficient: Coefficient, longest: usize) -> Self {
        // γ ≤ 2³⁰ with 64 bits after the point.
        let multiplier = exp_minus((coefficient.numerator << 64) / coefficient.denominator) + ERROR;
        let mut steps = vec![Self::TOP];
        let mut step = Self::TOP;
        while steps.len() <= longest && multiplier < ONE {
            let next = multiply_high(step, multiplier << 1) + 1;
            if next >= step || next < Self::BOTTOM {
                break;
            }
            steps.push(next);
            step = next;
        }
        Self(steps)
    }

    /// W of this distance; beyond the last step the ladder is level.
    pub(crate) fn weight(&self, distance: u64) -> u128 {
        let last = self.0.len() - 1;
        self.0[usize::try_from(distance).map_or(last, |distance| distance.min(last))]
    }

    /// An interval and a point in it, every point with probability ∝ its weight. Nothing if there is no point, or if there are more than 2⁴⁷.
    ///
    /// # Theorem
    /// [Smi11] with integer weights. If distances of points move by at most one between neighbours, each weight and the total change by a factor between
    /// e^-γ and e^γ: 2γ-DP, and of bounded range 2γ because the total is common to all outcomes [DDR20].
    pub(crate) fn choose(&self, intervals: &[Interval], stream: &mut Stream) -> Option<(usize, u64)> {
        let points: u128 = intervals.iter().map(|interval| u128::from(interval.points)).sum();
        if points == 0 || points > 1 << 47 {
            return None;
        }
        // At most 2⁴⁷ 2⁸⁰.
        let total = intervals.iter().map(|interval| u128::from(interval.points) * self.weight(interval.distance)).sum();
        let mut ticket = stream.below(total);
        for (number, interval) in intervals.iter().enumerate() {
            let weight = self.weight(interval.distance);
            let all = u128::from(interval.points) * weight;
            if ticket < all {
                return Some((number, (ticket / weight) as u64));
            }
            ticket -= all;
        }
        unreachable!("the ticket is below the total")
    }
}
