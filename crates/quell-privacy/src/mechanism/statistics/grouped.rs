//! Noisy sums and means of the records with each key.

use std::collections::BTreeMap;

use super::{Bounds, Mean, Price, Sum, grid::Grid};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Noise, Release, Sealed, Sensitive},
    noise::rounded::DISTANCE,
};

/// The key and the number of a record. A missing number is NaN.
pub type KeyedNumber = (Option<String>, f64);

/// Sums for keys known in advance. Records with another key or none add nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedSum {
    /// The keys. Public: they must not be computed from the data.
    pub keys: Vec<String>,
    /// The sum of each group.
    pub sum: Sum,
}

impl GroupedSum {
    /// Sums of numbers clamped to these bounds, one for each key, at this price.
    ///
    /// All sums together cost what one sum costs.
    ///
    /// ```
    /// use quell_privacy::{Neighbors, mechanism::{Bounds, GroupedSum, Mechanism, Sum}, units::Epsilon};
    /// let (bounds, epsilon) = (Bounds::new(0.0, 100.0)?, Epsilon::new(0.5)?);
    /// let one = Sum::for_epsilon(bounds, epsilon)?;
    /// let many = GroupedSum::for_epsilon(vec!["a".into(), "b".into()], bounds, epsilon)?;
    /// assert_eq!(many.event(Neighbors::AddRemove), one.event(Neighbors::AddRemove));
    /// # Ok::<(), quell_privacy::Error>(())
    /// ```
    pub fn for_epsilon(keys: Vec<String>, bounds: Bounds, price: impl Into<Price>) -> Result<Self, Error> {
        Ok(Self { keys, sum: Sum::for_epsilon(bounds, price)? })
    }

    /// Scale of the noise on each sum.
    ///
    /// # Theorem
    /// (THEORY, Groups) A record has at most one key. So adding or removing it moves one sum, by at most C =
    /// max(|lower|, |upper|). A replacement with the same key moves one sum by at most max(C, upper - lower).
    /// A replacement with another key moves two sums by at most C each, which is 2C in L1 and √2C in L2.
    fn scale(&self, neighbors: Neighbors) -> f64 {
        let Sum { bounds, noise, noise_multiplier } = self.sum;
        let replacement = match noise {
            Noise::Laplace => 2.0 * bounds.largest(),
            Noise::Gaussian => (2.0_f64.sqrt() * bounds.largest()).max(bounds.upper() - bounds.lower()),
        };
        bounds.scale(neighbors, noise_multiplier, replacement)
    }
}

impl Sealed for GroupedSum {}

impl Mechanism for GroupedSum {
    /// The event of one sum: a record adds to one group only.
    fn event(&self, neighbors: Neighbors) -> Event {
        self.sum.event(neighbors)
    }

    fn distance(&self) -> f64 {
        self.keys.len() as f64 * DISTANCE
    }
}

impl std::fmt::Display for GroupedSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, for each of {} known keys", self.sum, self.keys.len())
    }
}

impl Paid<GroupedSum> {
    /// Returns a noisy sum for every key, in the order of the keys.
    ///
    /// A key that was given twice gets the same noisy sum twice.
    pub fn run(mut self, records: &Sensitive<Vec<KeyedNumber>>) -> Result<Vec<(String, Release)>, Error> {
        let mut stream = self.key()?.stream(0);
        let GroupedSum { keys, sum } = &self.mechanism;
        let scale = self.mechanism.scale(self.neighbors);
        let grid = Grid::new(scale)?;
        release_each(keys, &records.0, |values| {
            let total = sum.total(grid, values.iter().map(|value| (*value, 1)));
            Ok(sum.release_total(grid, total, scale, &mut stream))
        })
    }
}

/// Means for keys known in advance. Records with another key or none are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedMean {
    /// The keys. Public: they must not be computed from the data.
    pub keys: Vec<String>,
    /// The mean of each group.
    pub mean: Mean,
}

impl GroupedMean {
    /// Means of numbers clamped to these bounds, one for each key, at this price.
    ///
    /// Half of the price is for the sums and half for the counts. Adding or removing a record moves one
    /// count. Replacing a record moves two.
    pub fn for_epsilon(keys: Vec<String>, bounds: Bounds, price: impl Into<Price>) -> Result<Self, Error> {
        let price = price.into();
        let moves = match price.neighbors() {
            Neighbors::AddRemove => 1,
            Neighbors::Replace => 2,
        };
        let count = price.divided_by(2)?.integer_noise(moves)?;
        Ok(Self { keys, mean: Mean { count, ..Mean::for_epsilon(bounds, price)? } })
    }
}

impl Sealed for GroupedMean {}

impl Mechanism for GroupedMean {
    /// The event of one sum and of the counts of a histogram.
    ///
    /// # Theorem
    /// (THEORY, Groups) A record has at most one key. It adds a number of at most half the distance between
    /// the bounds to one sum, and one to one count. A replacement is a removal and an addition, so it moves
    /// the sums by at most twice that number in L1 and in L2, and at most two counts by one each.
    fn event(&self, neighbors: Neighbors) -> Event {
        let Mean { noise, noise_multiplier, count, .. } = self.mean;
        Event::Composed(vec![noise.event(noise_multiplier), count.event(neighbors, 2)])
    }

    fn distance(&self) -> f64 {
        self.keys.len() as f64 * DISTANCE
    }
}

impl std::fmt::Display for GroupedMean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, for each of {} known keys", self.mean, self.keys.len())
    }
}

impl Paid<GroupedMean> {
    /// Returns the mean for every key, in the order of the keys, clamped to the bounds.
    ///
    /// A key that was given twice gets the same noisy mean twice.
    pub fn run(mut self, records: &Sensitive<Vec<KeyedNumber>>) -> Result<Vec<(String, Release)>, Error> {
        let mut stream = self.key()?.stream(0);
        let GroupedMean { keys, mean } = &self.mechanism;
        release_each(keys, &records.0, |values| {
            mean.release(values.iter().map(|value| (*value, 1)), &mut stream)
        })
    }
}

/// The numbers of each key. Every key has a group, even if no record has this key.
pub(super) fn groups<'k>(keys: &'k [String], records: &[KeyedNumber]) -> BTreeMap<&'k str, Vec<f64>> {
    let mut groups: BTreeMap<&str, Vec<f64>> = keys.iter().map(|key| (key.as_str(), Vec::new())).collect();
    for (key, number) in records {
        if let Some(group) = key.as_deref().and_then(|key| groups.get_mut(key)) {
            group.push(*number);
        }
    }
    groups
}

/// Releases a number for each group, in the order of the keys.
pub(super) fn release_each(
    keys: &[String],
    records: &[KeyedNumber],
    mut release: impl FnMut(&[f64]) -> Result<Release, Error>,
) -> Result<Vec<(String, Release)>, Error> {
    let mut released = BTreeMap::new();
    for (key, values) in groups(keys, records) {
        released.insert(key, release(&values)?);
    }
    let of = |key: &String| released.get(key.as_str()).map(|release| (key.clone(), *release));
    Ok(keys.iter().filter_map(of).collect())
}

#[cfg(test)]
mod tests;
