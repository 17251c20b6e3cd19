//! The vector of each record in each run, of length at most one.
//!
//! Why no vector is longer is in THEORY, Synthetic data. The mechanism clips in any case, so privacy does not
//! depend on it.

use quell_privacy::mechanism::{Clipper, Contributions};

use super::{Domain, query::Query};
use crate::{
    kernel::numbers::squared_length,
    learner::{Supervised, blocks::add_blocks},
    network::Task,
};

/// The rows of each record, as values of the columns.
pub struct Records {
    width: usize,
    /// The values of all rows, one row after the other.
    values: Vec<u16>,
    /// The first row of each record, and the end.
    starts: Vec<usize>,
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
        Self { width, values, starts }
    }

    /// Number of records. It is private, unless the neighbouring relation is replacement.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
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

/// The vectors of all records in one run.
///
/// A record with several rows has the mean of their vectors.
pub struct Vectors<'a> {
    records: &'a Records,
    query: &'a Query,
    /// Numbers of a release of the mechanism, at least as many as those of a vector.
    dimension: usize,
}

/// The numbers of a vector that are not zero, and their places.
#[derive(Default)]
struct Sparse {
    places: Vec<usize>,
    values: Vec<f32>,
    all: Vec<(usize, f64)>,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(records: &'a Records, query: &'a Query, dimension: usize) -> Self {
        Self { records, query, dimension }
    }

    /// Writes the vector of a record.
    fn write(&self, record: usize, vector: &mut Sparse) {
        let Sparse { places, values, all } = vector;
        places.clear();
        values.clear();
        all.clear();
        let rows = self.records.rows(record);
        let count = rows.len();
        for row in rows {
            all.extend(self.query.cells(row).map(|(place, weight)| (place, weight / count as f64)));
        }
        if count > 1 {
            // Rows of one record may be in the same cell. The order of rows does not matter.
            all.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        }
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            places.push(same[0].0);
            values.push(same.iter().map(|cell| cell.1).sum::<f64>() as f32);
        }
    }

    /// Adds the clipped vectors of some blocks.
    fn total(&self, blocks: &[&[usize]], clipper: &Clipper) -> Vec<f64> {
        let (mut total, mut vector) = (vec![0.0; self.query.length], Sparse::default());
        for record in blocks.iter().flat_map(|block| *block) {
            self.write(*record, &mut vector);
            let mut scale = [0.0];
            clipper.scales(&[squared_length(&vector.values)], &mut scale);
            for (place, value) in vector.places.iter().zip(&vector.values) {
                total[*place] += f64::from(scale[0]) * f64::from(*value);
            }
        }
        total
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        add_blocks(blocks, sum, |blocks| self.total(blocks, clipper));
    }
}

#[cfg(test)]
mod tests {
    use quell_privacy::{Neighbors, laws, ledger::Unit};

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
            assert_eq!(records.count(), task.records());
            let all: Vec<usize> = (0..records.count()).collect();
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
