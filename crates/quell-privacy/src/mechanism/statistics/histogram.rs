//! Noisy counts of the records with each key.

use std::collections::BTreeMap;

use super::Price;
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{IntegerNoise, Mechanism, Release, Sealed, Sensitive, Within, unit_event},
    units::{Delta, Epsilon},
};

/// Counts for keys known in advance. Records with another key or none are not counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The keys. Public: they must not be computed from the data.
    pub keys: Vec<String>,
    /// Noise added to each count.
    pub noise: IntegerNoise,
}

impl Histogram {
    /// Counts of these keys at this price.
    ///
    /// Adding or removing a record moves one count. Replacing a record moves two.
    pub fn for_epsilon(keys: Vec<String>, price: impl Into<Price>) -> Result<Self, Error> {
        let price = price.into();
        let moves = match price.neighbors() {
            Neighbors::AddRemove => 1,
            Neighbors::Replace => 2,
        };
        Ok(Self { keys, noise: price.integer_noise(moves)? })
    }
}

impl Sealed for Histogram {}

impl Mechanism for Histogram {
    /// A record has one key, so adding or removing it moves one count.
    ///
    /// Replacing it moves two counts.
    fn event(&self, neighbors: Neighbors) -> Event {
        self.noise.event(neighbors, 2)
    }
}

impl std::fmt::Display for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "histogram of {} known keys with {}", self.keys.len(), self.noise)
    }
}

impl Paid<Histogram> {
    /// Returns a noisy count for every key, in the order of the keys.
    ///
    /// A key that was given twice gets the same noisy count twice.
    pub fn run(mut self, keys: &Sensitive<Vec<Option<String>>>) -> Result<Vec<(String, Release)>, Error> {
        let mut stream = self.key()?.stream(0);
        let mut counts: BTreeMap<&str, i64> =
            self.mechanism.keys.iter().map(|key| (key.as_str(), 0)).collect();
        for key in keys.0.iter().flatten() {
            if let Some(count) = counts.get_mut(key.as_str()) {
                *count += 1;
            }
        }
        let noise = self.mechanism.noise;
        for count in counts.values_mut() {
            *count = count.saturating_add(noise.draw(&mut stream));
        }
        let release = |key: &String| {
            let value = counts.get(key.as_str()).map_or(0.0, |count| *count as f64);
            (key.clone(), Release { value, within: Within::Value(noise.error()) })
        };
        Ok(self.mechanism.keys.iter().map(release).collect())
    }
}

/// Counts for keys not known in advance, if the noisy count reaches a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StableHistogram {
    noise: IntegerNoise,
    /// A noisy count must reach this to be released.
    threshold: u64,
    epsilon: Epsilon,
    delta: Delta,
}

impl StableHistogram {
    /// (ε, δ) for adding or removing one record.
    ///
    /// # Theorem
    /// [KKMN09; BNS19]. Either the key of that record occurs elsewhere: then its count moves by one, and ε =
    /// 1/scale. Or the key occurs nowhere else: then it is released with probability δ = P[1 + X ≥ threshold]
    /// = e^(-(t-1)/s)/(1 + e^(-1/s)). The threshold is the least with that property.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        if delta.get() < 1e-290 {
            return Err(Error::OutOfRange { what: "delta", value: delta.get(), range: "[1e-290, 1)" });
        }
        let noise = IntegerNoise::for_epsilon(epsilon, 1)?;
        let scale = noise.scale();
        let least = 1.0 - scale * (delta.get() * (1.0 - 1e-9) * (1.0 + (-1.0 / scale).exp())).ln();
        Ok(Self { noise, threshold: least.ceil().max(2.0) as u64, epsilon, delta })
    }

    /// (ε, δ) under a neighbour relation. A replacement is a removal and an addition.
    ///
    /// # Theorem
    /// (ε/2, δ/(1 + e^(ε/2))) under addition and removal is (ε, δ) under replacement. [Vad17, Lemma 2.2]
    pub fn for_epsilon(epsilon: Epsilon, delta: Delta, neighbors: Neighbors) -> Result<Self, Error> {
        match neighbors {
            Neighbors::AddRemove => Self::new(epsilon, delta),
            Neighbors::Replace => {
                let half = 0.5 * epsilon.get();
                Self::new(Epsilon::new(half)?, Delta::new(delta.get() / (1.0 + half.exp()))?)
            }
        }
    }

    /// The least noisy count that is released.
    #[must_use]
    pub fn threshold(&self) -> u64 {
        self.threshold
    }
}

impl Sealed for StableHistogram {}

impl Mechanism for StableHistogram {
    /// A replacement is a removal and an addition: (2ε, (1 + e^ε)δ). [Vad17, Lemma 2.2]
    fn event(&self, neighbors: Neighbors) -> Event {
        let (epsilon, delta) = (self.epsilon.get(), self.delta.get());
        let (epsilon, delta) = match neighbors {
            Neighbors::AddRemove => (epsilon, delta),
            Neighbors::Replace => (2.0 * epsilon, (1.0 + epsilon.exp()) * delta * (1.0 + 1e-12)),
        };
        unit_event(Epsilon::new(epsilon).and_then(|e| Ok((e, Delta::new(delta)?))), |(epsilon, delta)| {
            Event::Approximate { epsilon, delta }
        })
    }
}

impl std::fmt::Display for StableHistogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "histogram of the keys whose count with {} reaches {}", self.noise, self.threshold)
    }
}

impl Paid<StableHistogram> {
    /// The noisy count from which a key is shown.
    #[must_use]
    pub fn threshold(&self) -> u64 {
        self.mechanism.threshold
    }

    /// Returns the keys whose noisy count reaches the threshold, in alphabetical order.
    ///
    /// A key that no record has is never released.
    pub fn run(mut self, keys: &Sensitive<Vec<Option<String>>>) -> Result<Vec<(String, Release)>, Error> {
        let mut stream = self.key()?.stream(0);
        let StableHistogram { noise, threshold, .. } = self.mechanism;
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for key in keys.0.iter().flatten() {
            *counts.entry(key).or_default() += 1;
        }
        let mut shown = Vec::new();
        for (key, count) in counts {
            let noisy = i128::from(count) + i128::from(noise.draw(&mut stream));
            if noisy >= i128::from(threshold) {
                shown.push((
                    key.to_owned(),
                    Release { value: noisy as f64, within: Within::Value(noise.error()) },
                ));
            }
        }
        Ok(shown)
    }
}
