//! The vector of each record in each run, of length at most one.
//!
//! Why no vector is longer is in THEORY, Synthetic data. The mechanism clips in any case, so privacy does not
//! depend on it.

use quell_privacy::{
    ledger::Unit,
    mechanism::{Clipper, Contributions},
};

use super::{Domain, query::Query};
use crate::{
    learner::{
        ProtectedRecords, Supervised,
        sums::{Sparse, add_sparse},
    },
    network::Task,
};

/// The rows of each record, as values of the columns.
pub struct Records {
    width: usize,
    /// The values of all rows, one row after the other.
    values: Vec<u16>,
    /// The first row of each record, and the end.
    starts: Vec<usize>,
    unit: Unit,
}

impl Records {
    /// Reads the values of all records.
    pub(super) fn new(domain: &Domain, records: &Supervised<'_>) -> Self {
        let width = domain.columns.len();
        let (mut values, mut starts) = (Vec::new(), vec![0]);
        let (mut example, mut row) = (vec![0.0; domain.features], vec![0; width]);
        for record in 0..records.records() {
            for number in 0..records.examples(record) {
                records.gather(record, number, &mut example);
                domain.write(&example, &mut row);
                values.extend_from_slice(&row);
            }
            starts.push(values.len() / width);
        }
        Self { width, values, starts, unit: records.unit() }
    }

    /// The number of rows in each cell of a query. It is exact, not private.
    pub(super) fn counts(&self, query: &Query) -> Vec<f64> {
        let mut counts = vec![0.0; query.length];
        for row in self.values.chunks_exact(self.width) {
            query.cells(row).for_each(|(cell, _)| counts[cell] += 1.0);
        }
        counts
    }

    /// The rows of a record.
    fn rows(&self, record: usize) -> impl ExactSizeIterator<Item = &[u16]> {
        let [start, end] = [self.starts[record], self.starts[record + 1]];
        self.values[start * self.width..end * self.width].chunks_exact(self.width)
    }
}

impl ProtectedRecords for Records {
    fn records(&self) -> usize {
        self.starts.len() - 1
    }

    fn unit(&self) -> Unit {
        self.unit
    }
}

/// The vectors of all records in one run.
///
/// A record with several rows has the mean of their vectors.
pub struct Vectors<'a> {
    records: &'a Records,
    query: &'a Query,
    /// Numbers of a release of the mechanism, at least as many as those of a vector.
    dimension: usize,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(records: &'a Records, query: &'a Query, dimension: usize) -> Self {
        Self { records, query, dimension }
    }

    /// Writes the vector of a record. Returns whether it has several rows, which may be in the same cell.
    fn write(&self, record: usize, vector: &mut Sparse) -> bool {
        let rows = self.records.rows(record);
        let count = rows.len();
        for row in rows {
            self.query.cells(row).for_each(|(place, weight)| vector.add(place, weight / count as f64));
        }
        count > 1
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        add_sparse(
            blocks,
            clipper,
            sum,
            self.query.length,
            || (),
            |record, vector, ()| self.write(record, vector),
        );
    }
}

#[cfg(test)]
mod tests {
    use quell_privacy::{Neighbors, laws};

    use super::*;
    use crate::{
        data::{Examples, Schema, Targets},
        learner::{
            loss::Loss,
            synthesis::{groups::Groups, query::all_pairs},
        },
        random::PublicRandom,
    };

    /// The contract of contributions, for columns and pairs, rows and users, with hostile values.
    #[test]
    fn vectors_keep_the_contract_of_contributions() {
        let schema = "[label]\ncolumn = 'y'\nbounds = [-1, 1]\n[[column]]\nname = 'a'\nbounds = [0, 1]\nunknown = true\n\
            [[column]]\nname = 'b'\ncategories = ['u', 'v', 'w']\n";
        let domain = Domain::new(&Schema::parse(schema).unwrap()).unwrap();
        let mut random = PublicRandom::of(3, 1);
        let hostile = [0.4, -1.0, 1.0, 0.0, 1e30, f32::MAX, 1e-40, -7.0, f32::NAN, f32::INFINITY];
        let values = (0..40 * domain.features).map(|_| hostile[random.below(hostile.len())]).collect();
        let users: Vec<_> = (0..40).map(|_| Some([random.below(15) as u8])).collect();
        let targets = Targets::Numbers(vec![0.0; 40]);
        let examples = Examples::numbers(&[domain.features], values, targets).unwrap();
        let examples = examples.with_users(&users).unwrap();
        let counts: Vec<Vec<f64>> = domain.sizes().iter().map(|size| vec![1.0; *size]).collect();
        let coarse = Groups::similar(&domain, &counts, 4);
        let queries = [
            Query::columns(&domain),
            Query::pairs(coarse.clone(), &all_pairs(3)),
            Query::pairs(coarse, &[(0, 2)]),
        ];
        for (unit, neighbors) in [
            (Unit::Example, Neighbors::AddRemove),
            (Unit::Example, Neighbors::Replace),
            (Unit::User, Neighbors::AddRemove),
            (Unit::User, Neighbors::Replace),
        ] {
            let task =
                Supervised::new(&examples, Loss::Squared, None).protecting(unit, neighbors, 9).unwrap();
            let records = Records::new(&domain, &task);
            assert_eq!(records.records(), task.records());
            let all: Vec<usize> = (0..records.records()).collect();
            for query in &queries {
                let mut vectors = Vectors::new(&records, query, query.length + 3);
                assert_eq!(laws::check_contributions(&mut vectors, &all), Ok(()), "{unit:?} {neighbors:?}");
                for record in &all {
                    let vector = laws::sum(&mut vectors, &[*record]);
                    assert!(
                        vector.iter().map(|x| x * x).sum::<f64>() <= 1.0 + 1e-6,
                        "{unit:?} {neighbors:?}"
                    );
                }
            }
        }
    }

    /// What is summed is the weighted count of each cell: nothing is clipped.
    #[test]
    fn sums_are_weighted_counts() {
        let schema =
            "[[column]]\nname = 'a'\ncategories = ['u', 'v']\n[[column]]\nname = 'b'\ncategories = ['w']\n";
        let domain = Domain::new(&Schema::parse(schema).unwrap()).unwrap();
        // Rows (u, w), (u, w), (v, unknown), (u, unknown).
        let rows = [
            [1.0, 0.0, 0.0, 1.0, 0.0],
            [1.0, 0.0, 0.0, 1.0, 0.0],
            [0.0, 1.0, 0.0, 0.0, 1.0],
            [1.0, 0.0, 0.0, 0.0, 1.0],
        ];
        let targets = Targets::Numbers(vec![0.0; 4]);
        let examples = Examples::numbers(&[5], rows.concat(), targets).unwrap();
        let task = Supervised::new(&examples, Loss::Squared, None);
        let records = Records::new(&domain, &task);
        let query = Query::columns(&domain);
        let mut vectors = Vectors::new(&records, &query, query.length);
        let sum = laws::sum(&mut vectors, &[0, 1, 2, 3]);
        let counts = [3.0, 1.0, 0.0, 2.0, 2.0];
        let weights = [0, 0, 0, 1, 1].map(|part| query.parts[part].weight);
        for ((sum, count), weight) in sum.iter().zip(counts).zip(weights) {
            assert!((sum - count * weight).abs() < 1e-6, "{sum} {count}");
        }
    }
}
