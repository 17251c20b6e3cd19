//! A quantile of the records with each key.

use super::{KeyedNumber, Quantile, grouped::release_each, quantile::check};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Release, Sealed, Sensitive},
    units::Epsilon,
};

/// A quantile for each of the keys known in advance. Records with another key or none are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedQuantile {
    /// The keys. Public: they must not be computed from the data.
    pub keys: Vec<String>,
    /// The quantile of each group. Its ε is that of all groups together.
    pub quantile: Quantile,
}

impl GroupedQuantile {
    /// The quantile of one group, for a record that appears in the group or vanishes from it.
    ///
    /// # Theorem
    /// (THEORY, Groups) A record has at most one key, so adding or removing it changes one group. A replacement
    /// with another key removes it from one group and adds it to another, where each change has a range of ε/2:
    /// ranges of independent choices add up to ε [DDR20]. A replacement with the same key is a removal and an
    /// addition in one group, so its range is at most twice ε/2.
    fn of_group(&self, neighbors: Neighbors) -> Result<Quantile, Error> {
        let share = match neighbors {
            Neighbors::AddRemove => 1.0,
            Neighbors::Replace => 0.5,
        };
        Ok(Quantile { epsilon: Epsilon::new(share * self.quantile.epsilon.get())?, ..self.quantile })
    }
}

impl Sealed for GroupedQuantile {}

impl Mechanism for GroupedQuantile {
    /// A choice of bounded range ε, for all groups together.
    fn event(&self, neighbors: Neighbors) -> Event {
        self.quantile.event(neighbors)
    }

    fn check(&self, neighbors: Neighbors) -> Result<(), Error> {
        check(self.of_group(neighbors)?.epsilon)
    }
}

impl std::fmt::Display for GroupedQuantile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, for each of {} known keys", self.quantile, self.keys.len())
    }
}

impl Paid<GroupedQuantile> {
    /// Returns the quantile for every key, in the order of the keys.
    ///
    /// A key that was given twice gets the same quantile twice.
    pub fn run(mut self, records: &Sensitive<Vec<KeyedNumber>>) -> Result<Vec<(String, Release)>, Error> {
        let mut stream = self.key()?.stream(0);
        let quantile = self.mechanism.of_group(self.neighbors)?;
        release_each(&self.mechanism.keys, &records.0, |values| {
            let runs = Quantile::runs(quantile.bounds, values);
            // A record is added to a group or removed from it, under either relation.
            Ok(quantile.choose(Neighbors::AddRemove, &runs, 20.0, &mut stream))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::grouped::groups, *};
    use crate::{mechanism::Bounds, noise::tests::stream, units::Probability};

    fn medians(epsilon: f64) -> GroupedQuantile {
        GroupedQuantile {
            keys: vec!["a".into(), "b".into()],
            quantile: Quantile {
                bounds: Bounds::new(0.0, 10.0).unwrap(),
                quantile: Probability::new(0.5).unwrap(),
                epsilon: Epsilon::new(epsilon).unwrap(),
            },
        }
    }

    /// How often the median of a is below 1 or not, and the median of b is above 9 or not.
    fn drawn(medians: &GroupedQuantile, neighbors: Neighbors, records: &[KeyedNumber]) -> [f64; 4] {
        let (quantile, mut stream) = (medians.of_group(neighbors).unwrap(), stream(5));
        let groups = groups(&medians.keys, records);
        let [one, other] = ["a", "b"].map(|key| Quantile::runs(quantile.bounds, &groups[key]));
        let mut counts = [0.0; 4];
        for _ in 0..100_000 {
            let mut median = |runs| quantile.choose(Neighbors::AddRemove, runs, 20.0, &mut stream).value;
            let (is_low, is_high) = (median(&one) < 1.0, median(&other) > 9.0);
            counts[2 * usize::from(is_low) + usize::from(is_high)] += 1.0;
        }
        counts
    }

    #[test]
    fn a_record_that_moves_between_groups_changes_no_answer_by_more_than_epsilon() {
        let record = |key: &str, number: f64| (Some(key.to_owned()), number);
        let base = [record("a", 1.0), record("a", 1.0), record("b", 9.0), record("b", 9.0)];
        let with = |more: &[KeyedNumber]| [&base[..], more].concat();
        let epsilon = 1.5;
        let mut largest = [0.0_f64; 2];
        for (relation, here, there) in [
            (Neighbors::AddRemove, with(&[]), with(&[record("a", 9.0)])),
            (Neighbors::Replace, with(&[record("a", 9.0)]), with(&[record("b", 10.0)])),
            (Neighbors::Replace, with(&[record("a", 9.0)]), with(&[record("a", 0.0)])),
            (Neighbors::Replace, with(&[record("a", 9.0)]), with(&[(None, 1.0)])),
        ] {
            let medians = medians(epsilon);
            let (one, other) = (drawn(&medians, relation, &here), drawn(&medians, relation, &there));
            for (a, b) in one.into_iter().zip(other) {
                // ln(a/b) of two counts has a deviation of √(1/a + 1/b).
                let (error, loss) = (5.2 * (1.0 / a + 1.0 / b).sqrt(), (a / b).ln().abs());
                assert!(loss <= epsilon + error, "{relation:?}: {a} {b}");
                let place = usize::from(relation == Neighbors::Replace);
                largest[place] = largest[place].max(loss - error);
            }
        }
        // Power: much of ε is used, so answers for twice the ε would be seen.
        assert!(largest.iter().all(|loss| *loss > 0.6 * epsilon), "{largest:?}");
    }

    #[test]
    fn groups_cost_one_epsilon_together() {
        let one = medians(0.7);
        for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
            assert_eq!(one.event(neighbors), one.quantile.event(neighbors));
        }
        assert!(medians(1.5e-11).check(Neighbors::AddRemove).is_ok());
        assert!(medians(1.5e-11).check(Neighbors::Replace).is_err());
    }
}
