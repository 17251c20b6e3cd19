//! The model: a distribution of the columns, from which rows are drawn.

use super::{
    Domain, ErrorSummary, PairError,
    distribution::{Distribution, shares},
    draw,
    groups::Groups,
    measured::Measured,
    measurements::COARSE,
    query::{Query, all_pairs},
    vectors::Records,
};
use crate::{
    data::{Examples, csv_cell},
    learner::{Evaluation, Supervised, loss::Loss},
    random::PublicRandom,
};

/// A distribution of the columns of a table, from which rows are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthesizer {
    pub(super) domain: Domain,
    pub(super) groups: Groups,
    /// The pairs that the model was fitted to.
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) tree: super::junction::JunctionTree,
    /// The probability of each cell of each clique, one clique after the other.
    pub(super) weights: Vec<f32>,
    /// The share of each value in its group, for each column. Values that must not be drawn have none.
    pub(super) shares: Vec<Vec<f32>>,
    pub(super) columns: Vec<MeasuredColumn>,
    pub(super) errors: Vec<PairError>,
    pub(super) records: f64,
}

/// The released shares of the values of one column, with noise.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredColumn {
    /// The share of the records with each value; empty if the release was lost.
    pub shares: Vec<f64>,
    /// Standard deviation of the noise in each share.
    pub deviation: f64,
}

impl Synthesizer {
    pub(super) fn new(
        (domain, groups): (Domain, Groups),
        pairs: Vec<(usize, usize)>,
        counts: &[Vec<f64>],
        distribution: Distribution,
        columns: &[Measured],
        (errors, records): (Vec<PairError>, f64),
    ) -> Self {
        let allowed = |(column, counts): (usize, &Vec<f64>)| {
            let is_allowed = |value: usize| domain.columns[column].allows(value);
            let mut left: Vec<f64> = counts.clone();
            (0..left.len()).filter(|value| !is_allowed(*value)).for_each(|value| left[value] = 0.0);
            let mut shares = groups.shares(column, &left);
            // In a group without a count, all values have the same share.
            (0..left.len()).filter(|value| !is_allowed(*value)).for_each(|value| shares[value] = 0.0);
            shares.into_iter().map(|share| share as f32).collect()
        };
        let measured = |measured: &Measured| MeasuredColumn {
            shares: measured.counts().iter().map(|count| count / records).collect(),
            deviation: if measured.is_empty() { 0.0 } else { measured.variance().sqrt() / records },
        };
        let shares = counts.iter().enumerate().map(allowed).collect();
        let columns = columns.iter().map(measured).collect();
        let weights = distribution.cliques.iter().flatten().map(|p| *p as f32).collect();
        Self { domain, groups, pairs, tree: distribution.tree, weights, shares, columns, errors, records }
    }

    /// The columns of the table, and their values.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The probability of each cell of each clique of the model.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The pairs of columns that the model was fitted to.
    #[must_use]
    pub fn measured_pairs(&self) -> &[(usize, usize)] {
        &self.pairs
    }

    /// The estimated errors of all pairs of columns; empty if the release was lost, or for one column.
    #[must_use]
    pub fn errors(&self) -> &[PairError] {
        &self.errors
    }

    /// The errors of the pairs that the model was fitted to, or of the others.
    #[must_use]
    pub fn error(&self, was_measured: bool) -> Option<ErrorSummary> {
        ErrorSummary::of(self.errors.iter().filter(|error| error.was_measured == was_measured))
    }

    /// The released shares of the values of each column.
    #[must_use]
    pub fn measured_columns(&self) -> &[MeasuredColumn] {
        &self.columns
    }

    /// The probability of each value of a column.
    #[must_use]
    pub fn column(&self, column: usize) -> Vec<f64> {
        let groups = self.distribution().column(column);
        let of = self.groups.of[column].iter().zip(&self.shares[column]);
        of.map(|(group, share)| groups[usize::from(*group)] * f64::from(*share)).collect()
    }

    /// The number of records that the rows stand for: a public number, or a released one.
    #[must_use]
    pub fn records(&self) -> f64 {
        self.records
    }

    fn distribution(&self) -> Distribution {
        let mut rest = self.weights.as_slice();
        let mut next = |cells: usize| {
            let (table, others) = rest.split_at(cells);
            rest = others;
            table.iter().map(|p| f64::from(*p)).collect()
        };
        let cliques = self.tree.cliques.iter().map(|c| next(self.tree.cells_of(&c.columns))).collect();
        Distribution { tree: self.tree.clone(), cliques }
    }

    /// Draws rows: for each column, the value of each row.
    #[must_use]
    pub fn draw(&self, rows: usize, random: &mut PublicRandom) -> Vec<Vec<u16>> {
        let drawn = draw::groups(&self.distribution(), rows, random);
        let columns = drawn.iter().zip(&self.shares).enumerate();
        columns
            .map(|(column, (drawn, shares))| draw::values(&self.groups, column, shares, drawn, random))
            .collect()
    }

    /// Draws rows as a CSV file with a header. The same seed gives the same rows.
    ///
    /// If the schema has a column for users, each row is a user of its own.
    #[must_use]
    pub fn csv(&self, rows: usize, seed: u64) -> String {
        let user = self.domain.user.as_deref();
        let mut random = PublicRandom::new(seed);
        let drawn = self.draw(rows, &mut random);
        let names = self.domain.columns.iter().map(|column| column.name.as_str()).chain(user);
        let mut text = line(names.map(str::to_owned));
        for row in 0..rows {
            let cells = self.domain.columns.iter().zip(&drawn);
            let cells = cells.map(|(column, values)| column.cell(usize::from(values[row]), &mut random));
            text.push_str(&line(cells.chain(user.map(|_| (row + 1).to_string()))));
        }
        text
    }

    /// Compares the pairs of columns of records with those of the model. The result is exact, not private.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        let count = examples.len() as u64;
        if examples.width() != self.domain.features {
            return Evaluation::Pairs { distance: f64::NAN, count };
        }
        if self.domain.columns.len() < 2 || count == 0 {
            return Evaluation::Pairs { distance: 0.0, count };
        }
        let counts: Vec<Vec<f64>> =
            (0..self.domain.columns.len()).map(|column| self.column(column)).collect();
        let coarse = Groups::similar(&self.domain, &counts, COARSE);
        let modelled = self.distribution().pairs(&shares(&self.groups, &coarse, &counts));
        let records = Records::new(&self.domain, &Supervised::new(examples, Loss::Squared, None));
        let query = Query::pairs(coarse, &all_pairs(counts.len()));
        let sums = records.counts(&query);
        let distances =
            modelled.concat().into_iter().zip(sums).map(|(p, sum)| (p - sum / count as f64).abs());
        Evaluation::Pairs { distance: 0.5 * distances.sum::<f64>() / modelled.len() as f64, count }
    }
}

/// A line of a CSV file.
fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| csv_cell(&cell)).collect();
    // A blank line is no row.
    let line = if cells.len() == 1 && cells[0].is_empty() { "\"\"".into() } else { cells.join(",") };
    line + "\n"
}
