//! Random numbers for public choices: initial weights, dropout masks and augmentations.
//!
//! Never use them for privacy noise. The mechanisms in [`quell_privacy`] draw that noise from a secure
//! generator.
//!
//! ```
//! use quell::random::PublicRandom;
//! let mut random = PublicRandom::new(7);
//! let die = 1 + random.below(6);
//! assert!((1..=6).contains(&die));
//! // The same seed gives the same sequence.
//! assert_eq!(PublicRandom::new(7).bits(), PublicRandom::new(7).bits());
//! ```

/// A pseudorandom generator that is determined by its seed (SplitMix64).
///
/// It is not cryptographic: assume that an attacker knows the whole sequence.
#[derive(Clone, Debug)]
pub struct PublicRandom(u64);

impl PublicRandom {
    /// Creates the generator for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates the generator for a seed and a stream number.
    ///
    /// Each stream number gives another sequence.
    #[must_use]
    pub fn of(seed: u64, number: u64) -> Self {
        Self(mix(seed ^ mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// Draws the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Draws a number uniformly from [low, high).
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        // A single-precision number has 24 significant bits.
        let unit = (self.bits() >> 40) as f32 / (1_u32 << 24) as f32;
        low + (high - low) * unit
    }

    /// Draws an integer uniformly from [0, bound). The bound must be positive.
    ///
    /// The bias is below 2⁻³² for bounds below 2³².
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Draws a number from the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f32 {
        let radius = (-2.0 * f64::from(1.0 - self.between(0.0, 1.0)).max(f64::MIN_POSITIVE).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(self.between(0.0, 1.0));
        (radius * angle.cos()) as f32
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_over_their_range() {
        let mut random = PublicRandom::new(1);
        let (mut low, mut sum, mut squares) = (0, 0.0, 0.0);
        for _ in 0..100_000 {
            let x = random.between(-1.0, 3.0);
            assert!((-1.0..3.0).contains(&x) && random.below(7) < 7);
            low += i32::from(x < 0.0);
            let normal = f64::from(random.normal());
            sum += normal;
            squares += normal * normal;
        }
        // Six standard deviations.
        assert!(
            (low - 25_000).abs() < 6 * 137
                && (sum / 1e5).abs() < 6.0 / 316.0
                && (squares / 1e5 - 1.0).abs() < 6.0 * 1.42 / 316.0
        );
        assert_ne!(PublicRandom::of(1, 2).bits(), PublicRandom::of(1, 3).bits());
        assert_ne!(PublicRandom::of(1, 2).bits(), PublicRandom::of(2, 1).bits());
    }
}
