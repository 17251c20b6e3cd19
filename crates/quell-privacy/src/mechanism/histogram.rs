//! How many records have each key.

use std::collections::BTreeMap;

use super::{IntegerNoise, Mechanism, Release, Sealed, Sensitive, Within, unit_event};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    units::{Delta, Epsilon},
};

/// Counts for keys that are known in advance. A record with another key, or none, is not counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The keys. Public: they must not be read off the data.
    pub keys: Vec<String>,
    /// What is added to each count.
    pub noise: IntegerNoise,
}

impl Sealed for Histogram {}

impl Mechanism for Histogram {
    /// A record has one key: coming or going it moves one count, exchanged it moves two.
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
    /// A noisy count for every key, in the order of the keys. A key that was given twice gets its count twice, on the same noise.
    pub fn run(mut self, keys: &Sensitive<Vec<Option<String>>>) -> Result<Vec<(String, Release)>, Error> {
        let mut stream = self.key()?.stream(0);
        let mut counts: BTreeMap<&str, i64> = self.mechanism.keys.iter().map(|key| (key.as_str(), 0)).collect();
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

/// Counts for keys that are not known in advance: those whose noisy count reaches a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StableHistogram {
    noise: IntegerNoise,
    /// A noisy count must reach this.
    threshold: u64,
    epsilon: Epsilon,
    delta: Delta,
}

impl StableHistogram {
    /// For one record that comes or goes: (ε, δ).
    ///
    /// # Theorem
    /// [KKMN09; BNS19]. The key of that record occurs elsewhere, and then its count moves by one, ε = 1/scale; or it does not, and then it shows with
    /// probability δ = P[1 + X ≥ threshold] = e^(-(t-1)/s)/(1 + e^(-1/s)). The threshold is the least with that property.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        if delta.get() < 1e-290 {
            return Err(Error::OutOfRange { what: "delta", value: delta.get(), range: "[1e-290, 1)" });
        }
        let noise = IntegerNoise::for_epsilon(epsilon, 1)?;
        let scale = noise.scale();
        let least = 1.0 - scale * (delta.get() * (1.0 - 1e-9) * (1.0 + (-1.0 / scale).exp())).ln();
        Ok(Self { noise, threshold: least.ceil().max(2.0) as u64, epsilon, delta })
    }

    /// The least noisy count that is shown.
    #[must_use]
    pub fn threshold(&self) -> u64 {
        self.threshold
    }
}

impl Sealed for StableHistogram {}

impl Mechanism for StableHistogram {
    /// An exchange is a removal and an addition: (2ε, (1 + e^ε)δ). [Vad17, Lemma 2.2]
    fn event(&self, neighbors: Neighbors) -> Event {
        let (epsilon, delta) = (self.epsilon.get(), self.delta.get());
        let (epsilon, delta) = match neighbors {
            Neighbors::AddRemove => (epsilon, delta),
            Neighbors::Replace => (2.0 * epsilon, (1.0 + epsilon.exp()) * delta * (1.0 + 1e-12)),
        };
        unit_event(Epsilon::new(epsilon).and_then(|e| Ok((e, Delta::new(delta)?))), |(epsilon, delta)| Event::Approximate {
            epsilon,
            delta,
        })
    }
}

impl std::fmt::Display for StableHistogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "histogram of unknown keys that reach {} with {}", self.threshold, self.noise)
    }
}

impl Paid<StableHistogram> {
    /// The keys whose noisy count reaches the threshold, in alphabetical order. Keys that no record has cannot show.
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
                shown.push((key.to_owned(), Release { value: noisy as f64, within: Within::Value(noise.error()) }));
            }
        }
        Ok(shown)
    }
}
