//! Noisy counts of records, and noisy threshold tests on counts.

use super::Price;
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{IntegerNoise, Mechanism, Release, Sealed, Sensitive, Within},
};

/// The number of records, plus noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Noise added to the count.
    pub noise: IntegerNoise,
}

impl Count {
    /// A count at this price. One record moves it by one under either relation.
    ///
    /// ```
    /// use quell_privacy::{Event, Neighbors, mechanism::{Count, Mechanism}, units::Epsilon};
    /// let count = Count::for_epsilon(Epsilon::new(0.1)?)?;
    /// assert!(matches!(count.event(Neighbors::AddRemove), Event::DiscreteLaplace { .. }));
    /// # Ok::<(), quell_privacy::Error>(())
    /// ```
    pub fn for_epsilon(price: impl Into<Price>) -> Result<Self, Error> {
        Ok(Self { noise: price.into().integer_noise(1)? })
    }
}

impl Sealed for Count {}

impl Mechanism for Count {
    /// Adding, removing or replacing a record moves the count by one.
    fn event(&self, neighbors: Neighbors) -> Event {
        self.noise.event(neighbors, 1)
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "count with {}", self.noise)
    }
}

impl Paid<Count> {
    /// Returns the count plus noise. It may be negative; clamping it is post-processing.
    pub fn run(mut self, count: &Sensitive<u64>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        let noise = self.mechanism.noise;
        let noisy = i128::from(count.0) + i128::from(noise.draw(&mut stream));
        Ok(Release { value: noisy as f64, within: Within::Value(noise.error()) })
    }
}

/// Whether a noisy count reaches a threshold: one bit, at the price of the count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyThreshold {
    /// The threshold.
    pub threshold: u64,
    /// Noise added to the count.
    pub noise: IntegerNoise,
}

impl NoisyThreshold {
    /// A threshold test at this price.
    pub fn for_epsilon(threshold: u64, price: impl Into<Price>) -> Result<Self, Error> {
        Ok(Self { threshold, noise: price.into().integer_noise(1)? })
    }
}

impl Sealed for NoisyThreshold {}

impl Mechanism for NoisyThreshold {
    /// The event of the count; the bit is post-processing of the noisy count.
    fn event(&self, neighbors: Neighbors) -> Event {
        self.noise.event(neighbors, 1)
    }
}

impl std::fmt::Display for NoisyThreshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "test whether a count with {} reaches {}", self.noise, self.threshold)
    }
}

impl Paid<NoisyThreshold> {
    /// Whether the noisy count reaches the threshold.
    pub fn run(mut self, count: &Sensitive<u64>) -> Result<bool, Error> {
        let mut stream = self.key()?.stream(0);
        let noisy = i128::from(count.0) + i128::from(self.mechanism.noise.draw(&mut stream));
        Ok(noisy >= i128::from(self.mechanism.threshold))
    }
}
