//! The exponential mechanism over billions of candidates with few different distances.

use super::{
    exact::bernoulli_exp,
    fixed::{ERROR, exp_minus, multiply_high},
    random::Stream,
};

/// Distances are counted in this part of a record: 2⁻⁴⁰.
pub(crate) const RECORD: u128 = 1 << RECORD_BITS;
const RECORD_BITS: u32 = 40;

/// Masses of all candidates together are at most this.
pub(crate) const MOST_MASS: u128 = 1 << 36;

/// Candidates with a common distance from what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    /// What they count together before the data is looked at: a public number for each of them.
    pub(crate) mass: u64,
    /// Distance in parts of a record, at most 2¹⁰⁰ of them.
    pub(crate) distance: u128,
}

/// Weights that fall by e^(-γ) for each record of distance, at every distance.
///
/// Integers W₀ > W₁ > … > W_K stand for whole strides of distance; coins of probability e^(-n/d) make up for the rest.
pub(crate) struct Ladder {
    /// γ for a part of a record is this …
    numerator: u128,
    /// … over 2 to this power, at most 100.
    denominator_bits: u32,
    /// A rung is 2 to this power parts of a record long.
    stride_bits: u32,
    rungs: Vec<u128>,
}

impl Ladder {
    const TOP: u128 = 1 << 91;
    const BOTTOM: u128 = 1 << 45;

    /// For weights e^(-γd). γ is rounded down, by a part in 2²⁰ at most between 2⁻⁴⁰ and 2²⁰; below it is zero, above it is held.
    ///
    /// # Theorem
    /// A stride s has 1/32 < γs ≤ 1/16, so that about a thousand rungs lead from 2⁹¹ to 2⁴⁵ whatever γ is. The multiplier is at least e^(-γs), since the
    /// fixed-point exponential is raised by its error; the product is rounded up. So Wₖ₊₁ ≥ e^(-γs) Wₖ, and at most e^(-γs) Wₖ + 2 (THEORY, Quantiles).
    pub(crate) fn new(gamma: f64) -> Self {
        let (numerator, bits) = rational(gamma);
        let denominator_bits = bits + RECORD_BITS;
        // The largest stride with 16 γs ≤ 1. The numerator is below 2²¹, and γ at most 2²⁰ for 2⁴⁰ parts.
        let stride_bits = (16 * numerator).max(1).next_power_of_two().ilog2();
        let stride_bits = denominator_bits.saturating_sub(stride_bits);
        let mut rungs = vec![Self::TOP];
        if numerator > 0 {
            // γs ≤ 1/16 with 64 bits after the point; a numerator of 21 bits and a denominator of 25 lose none.
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

    /// γ, as it is drawn.
    pub(crate) fn gamma(&self) -> f64 {
        // Exact: a small integer and a power of two.
        self.numerator as f64 / (1_u128 << (self.denominator_bits - RECORD_BITS)) as f64
    }

    /// The rung of a distance, and how far below it the distance is.
    fn rung(&self, distance: u128) -> (u128, u128) {
        let last = self.rungs.len() - 1;
        let rung = usize::try_from(distance >> self.stride_bits).map_or(last, |rung| rung.min(last));
        (self.rungs[rung], distance - ((rung as u128) << self.stride_bits))
    }

    /// ln T of a distance.
    #[cfg(test)]
    pub(crate) fn ln_weight(&self, distance: u128) -> f64 {
        let (rung, rest) = self.rung(distance);
        // A logarithm near zero keeps its digits.
        let top = Self::TOP as f64;
        let ln = if rung > Self::TOP / 2 { (-((Self::TOP - rung) as f64) / top).ln_1p() } else { (rung as f64 / top).ln() };
        ln - self.gamma() * (rest as f64 / RECORD as f64)
    }

    /// The integers, from the first to the last.
    #[cfg(test)]
    pub(crate) fn rungs(&self) -> &[u128] {
        &self.rungs
    }

    /// Which candidates, and a place below their mass: each unit of mass with probability ∝ T(distance). Nothing if there is no mass, or too much.
    ///
    /// # Theorem
    /// (THEORY, Quantiles) [Smi11; DDR20] T(d) = Wₖ e^(-γ(d - ks)) for the rung k of d: proposed with the integer Wₖ, accepted with a coin that is exact. Beyond the last rung the coin
    /// does all of it, so the weights go on falling at every distance. Let changes of distance between neighbours lie in an interval [-a, b], a, b ≥ 0, over all candidates.
    /// Then ln T changes within an interval of γ(a + b) if a, b ≥ 1/2, and of γ if all changes are 0 or b = 1: the choice has bounded range γ(a + b), or γ.
    ///
    /// # Contract
    /// Some candidate has distance zero: then at most one proposal in 15 is refused on average, however many candidates are far away.
    /// How many proposals there were must not be seen.
    pub(crate) fn choose(
        &self,
        candidates: &(impl Iterator<Item = Candidates> + Clone),
        stream: &mut Stream,
    ) -> Option<(usize, u64)> {
        let mass: u128 = candidates.clone().map(|some| u128::from(some.mass)).sum();
        if mass == 0 || mass > MOST_MASS {
            return None;
        }
        // At most 2³⁶ 2⁹¹.
        let total = candidates.clone().map(|some| u128::from(some.mass) * self.rung(some.distance).0).sum();
        loop {
            let mut ticket = stream.below(total);
            for (number, some) in candidates.clone().enumerate() {
                let (weight, rest) = self.rung(some.distance);
                let all = u128::from(some.mass) * weight;
                if ticket < all {
                    // 2²¹ 2¹⁰⁰ does not overflow.
                    if bernoulli_exp(self.numerator * rest, 1 << self.denominator_bits, stream) {
                        return Some((number, (ticket / weight) as u64));
                    }
                    break;
                }
                ticket -= all;
            }
        }
    }
}

/// A number in [0, 2²⁰] as n over 2 to a power of at most 60, n below 2²¹, rounded down. What is no number is zero.
fn rational(number: f64) -> (u128, u32) {
    // 2²¹ itself would have one digit more.
    let (mut value, mut bits) = (number.clamp(0.0, f64::from((1 << 20) - 1)), 0);
    while value < f64::from(1 << 20) && bits < 60 {
        value *= 2.0;
        bits += 1;
    }
    // Below 2⁻⁴⁰ the rounding of a rung would be no longer small against it. A cast takes NaN to zero.
    let numerator = if value < f64::from(1 << 20) { 0 } else { value as u128 };
    (numerator, bits)
}
