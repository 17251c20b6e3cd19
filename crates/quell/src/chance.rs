//! Chance for public things: first weights, coins of dropout, augmentations. Never noise: that is drawn in the trusted room.

/// A sequence of numbers that follows from a seed (SplitMix64). Good for spreading things; an attacker may know all of it.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence of a seed and a number, different for every number.
    #[must_use]
    pub fn of(seed: u64, number: u64) -> Self {
        Self(mix(seed ^ mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in [low, high).
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        // 24 bits are all that a number below one can tell apart.
        let unit = (self.bits() >> 40) as f32 / (1_u32 << 24) as f32;
        low + (high - low) * unit
    }

    /// A whole number below the bound, which must be positive; the bias is below 2⁻³² for bounds below 2³².
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A number from the standard normal distribution (Box and Muller).
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
        let mut chance = Chance::new(1);
        let (mut low, mut sum, mut squares) = (0, 0.0, 0.0);
        for _ in 0..100_000 {
            let x = chance.between(-1.0, 3.0);
            assert!((-1.0..3.0).contains(&x) && chance.below(7) < 7);
            low += i32::from(x < 0.0);
            let normal = f64::from(chance.normal());
            sum += normal;
            squares += normal * normal;
        }
        // Six standard deviations.
        assert!(
            (low - 25_000).abs() < 6 * 137 && (sum / 1e5).abs() < 6.0 / 316.0 && (squares / 1e5 - 1.0).abs() < 6.0 * 1.42 / 316.0
        );
        assert_ne!(Chance::of(1, 2).bits(), Chance::of(1, 3).bits());
        assert_ne!(Chance::of(1, 2).bits(), Chance::of(2, 1).bits());
    }
}
