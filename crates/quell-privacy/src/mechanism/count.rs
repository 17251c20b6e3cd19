//! How many records there are.

use super::{IntegerNoise, Mechanism, Release, Sealed, Sensitive, Within};
use crate::{Error, Event, Neighbors, ledger::Paid};

/// A number of records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// What is added to it.
    pub noise: IntegerNoise,
}

impl Sealed for Count {}

impl Mechanism for Count {
    /// A record that comes, goes or is exchanged for another moves the count by one.
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
    /// The count, plus noise. It may be negative; putting it right is post-processing.
    pub fn run(mut self, count: &Sensitive<u64>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        let noise = self.mechanism.noise;
        let noisy = i128::from(count.0) + i128::from(noise.draw(&mut stream));
        Ok(Release { value: noisy as f64, within: Within::Value(noise.error()) })
    }
}

/// Whether a number of records reaches a threshold: one bit, at the price of the count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyThreshold {
    /// The threshold.
    pub threshold: u64,
    /// What is added to the count.
    pub noise: IntegerNoise,
}

impl Sealed for NoisyThreshold {}

impl Mechanism for NoisyThreshold {
    /// That of the count, of which the bit is post-processing.
    fn event(&self, neighbors: Neighbors) -> Event {
        self.noise.event(neighbors, 1)
    }
}

impl std::fmt::Display for NoisyThreshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "whether a count reaches {} with {}", self.threshold, self.noise)
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
