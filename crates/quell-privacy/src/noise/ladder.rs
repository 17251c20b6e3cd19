//! The exponential mechanism over billions of candidates with few different distances.

use super::{
    exact::bernoulli_exp,
    fixed::{ERROR, exp_minus, multiply_high},
    random::Stream,
};

/// Distance units per record: a distance is a count of 2⁻⁴⁰ records.
pub(crate) const RECORD: u128 = 1 << RECORD_BITS;
const RECORD_BITS: u32 = 40;

/// The largest total mass of all candidates.
pub(crate) const MOST_MASS: u128 = 1 << 36;

/// A group of candidates with the same distance from the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    /// Total prior weight of the group: the sum of one public number per candidate.
    pub(crate) mass: u64,
    /// Distance in units of 2⁻⁴⁰ records, at most 2¹⁰⁰ units.
    pub(crate) distance: u128,
}

/// Weights that fall by e^(-γ) per record of distance, at every distance.
///
/// Integers W₀ > W₁ > … > W_K are the weights at multiples of a stride. Bernoulli draws of probability
/// e^(-n/d) account for the remaining distance.
pub(crate) struct Ladder {
    /// γ per distance unit is this numerator …
    numerator: u128,
    /// … over 2 to this power, which is at most 100.
    denominator_bits: u32,
    /// The length of a rung is 2 to this power, in distance units.
    stride_bits: u32,
    rungs: Vec<u128>,
}

impl Ladder {
    const TOP: u128 = 1 << 91;
    const BOTTOM: u128 = 1 << 45;

    /// Builds the ladder for weights e^(-γd), with γ rounded down.
    ///
    /// The rounding is by a part in 2²⁰ at most for γ between 2⁻⁴⁰ and 2²⁰. A smaller γ becomes zero, and a
    /// larger γ is clamped.
    ///
    /// # Theorem
    /// A stride s has 1/32 < γs ≤ 1/16, so that about a thousand rungs lead from 2⁹¹ to 2⁴⁵ for every γ. The
    /// multiplier is at least e^(-γs), because the fixed-point exponential is raised by its error bound; the
    /// product is rounded up. So Wₖ₊₁ ≥ e^(-γs) Wₖ, and at most e^(-γs) Wₖ + 2 (THEORY, Quantiles).
    pub(crate) fn new(gamma: f64) -> Self {
        let (numerator, bits) = rational(gamma);
        let denominator_bits = bits + RECORD_BITS;
        // The largest stride with 16 γs ≤ 1. The numerator is below 2²¹, and γ is at most 2²⁰ per record of
        // 2⁴⁰ units.
        let stride_bits = (16 * numerator).max(1).next_power_of_two().ilog2();
        let stride_bits = denominator_bits.saturating_sub(stride_bits);
        let mut rungs = vec![Self::TOP];
        if numerator > 0 {
            // γs ≤ 1/16 with 64 bits after the point: exact, for a numerator of 21 bits and a denominator of
            // 25 bits.
            let multiplier = exp_minus((numerator << 64) >> (denominator_bits - stride_bits)) + ERROR;
            let mut rung = Self::TOP;
            loop {
                rung = multiply_high(rung, multiplier << 1) + 1;
                if rung < Self::BOTTOM {
                    break;
                }
                rungs.push(rung);
            }
        }
        Self { numerator, denominator_bits, stride_bits, rungs }
    }

    /// The γ that is used for drawing, after rounding.
    pub(crate) fn gamma(&self) -> f64 {
        // Exact: a small integer and a power of two.
        self.numerator as f64 / (1_u128 << (self.denominator_bits - RECORD_BITS)) as f64
    }

    /// The weight of a distance's rung, and the distance that remains beyond the rung.
    fn rung(&self, distance: u128) -> (u128, u128) {
        let last = self.rungs.len() - 1;
        let rung = usize::try_from(distance >> self.stride_bits).map_or(last, |rung| rung.min(last));
        (self.rungs[rung], distance - ((rung as u128) << self.stride_bits))
    }

    /// ln T of a distance.
    #[cfg(test)]
    pub(crate) fn ln_weight(&self, distance: u128) -> f64 {
        let (rung, rest) = self.rung(distance);
        // Near zero, `ln_1p` keeps the digits of the logarithm.
        let top = Self::TOP as f64;
        let ln = if rung > Self::TOP / 2 {
            (-((Self::TOP - rung) as f64) / top).ln_1p()
        } else {
            (rung as f64 / top).ln()
        };
        ln - self.gamma() * (rest as f64 / RECORD as f64)
    }

    /// The integer weights, from the first rung to the last.
    #[cfg(test)]
    pub(crate) fn rungs(&self) -> &[u128] {
        &self.rungs
    }

    /// Draws a group, and a position below its mass.
    ///
    /// Each unit of mass has probability ∝ T(distance). Returns `None` if there is no mass, or more than
    /// [`MOST_MASS`].
    ///
    /// # Theorem
    /// (THEORY, Quantiles) [Smi11; DDR20] T(d) = Wₖ e^(-γ(d - ks)) for the rung k of d. The integer Wₖ is the
    /// weight of a proposal; an exact Bernoulli draw accepts or rejects it. Beyond the last rung the
    /// acceptance carries the whole decrease, so the weights fall at every distance. Let changes of distance
    /// between neighbours lie in an interval [-a, b], a, b ≥ 0, over all candidates. Then ln T changes within
    /// an interval of γ(a + b) if a, b ≥ 1/2, and of γ if all changes are 0 or b = 1: the choice has bounded
    /// range γ(a + b), or γ.
    ///
    /// # Contract
    /// Some candidate has distance zero: then at most one proposal in 15 is rejected on average, however many
    /// candidates are far away. The number of proposals must not be observable.
    pub(crate) fn choose(
        &self,
        candidates: &(impl Iterator<Item = Candidates> + Clone),
        stream: &mut Stream,
    ) -> Option<(usize, u64)> {
        let mass: u128 = candidates.clone().map(|group| u128::from(group.mass)).sum();
        if mass == 0 || mass > MOST_MASS {
            return None;
        }
        // At most 2³⁶ 2⁹¹.
        let total =
            candidates.clone().map(|group| u128::from(group.mass) * self.rung(group.distance).0).sum();
        loop {
            let mut ticket = stream.below(total);
            for (number, group) in candidates.clone().enumerate() {
                let (weight, rest) = self.rung(group.distance);
                let group_weight = u128::from(group.mass) * weight;
                if ticket < group_weight {
                    // 2²¹ 2¹⁰⁰ does not overflow.
                    if bernoulli_exp(self.numerator * rest, 1 << self.denominator_bits, stream) {
                        return Some((number, (ticket / weight) as u64));
                    }
                    break;
                }
                ticket -= group_weight;
            }
        }
    }
}

/// Rounds a number in [0, 2²⁰] down to n/2^bits; NaN becomes zero.
///
/// n is below 2²¹ and `bits` at most 60.
fn rational(number: f64) -> (u128, u32) {
    // 2²¹ itself would need one more bit.
    let (mut value, mut bits) = (number.clamp(0.0, f64::from((1 << 20) - 1)), 0);
    while value < f64::from(1 << 20) && bits < 60 {
        value *= 2.0;
        bits += 1;
    }
    // Below 2⁻⁴⁰ the rounding error of a rung would not be small relative to γ. A cast takes NaN to zero.
    let numerator = if value < f64::from(1 << 20) { 0 } else { value as u128 };
    (numerator, bits)
}
