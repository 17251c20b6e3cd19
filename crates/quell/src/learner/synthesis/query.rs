//! What a run counts: the cells of columns, or of pairs of columns.

use super::{Domain, groups::Groups, measured::Measured};

/// Counts of the cells of several columns or pairs of columns, each times a weight.
///
/// The squares of the weights sum to one. A row is in one cell of each part, so its vector has length one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    /// The cells: groups of values.
    pub(super) groups: Groups,
    pub(super) parts: Vec<Part>,
    /// Number of cells of all parts.
    pub(super) length: usize,
}

/// The counts of the cells of one column or of one pair.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// One column or two, ascending.
    pub(super) columns: Vec<usize>,
    pub(super) weight: f64,
    /// Its first cell among those of all parts.
    start: usize,
    cells: usize,
}

impl Query {
    /// The values of each column. Columns of more values get more weight: their counts are smaller.
    pub(super) fn columns(domain: &Domain) -> Self {
        let sizes = domain.sizes();
        let of = sizes.iter().map(|size| (0..*size as u16).collect()).collect();
        // The noise in v counts of weight w adds up to v / w, in proportion. With Σ w² = 1, the sum over all
        // columns is least for w ∝ v^(1/3).
        let weights: Vec<f64> = sizes.iter().map(|size| (*size as f64).cbrt()).collect();
        let length = weights.iter().map(|weight| weight * weight).sum::<f64>().sqrt();
        let weights = weights.into_iter().map(|weight| weight / length);
        let parts = weights.enumerate().map(|(column, weight)| (vec![column], weight)).collect();
        Self::new(Groups { of, sizes }, parts)
    }

    /// Pairs of columns, all with the same weight.
    pub(super) fn pairs(groups: Groups, pairs: &[(usize, usize)]) -> Self {
        let weight = (pairs.len() as f64).sqrt().recip();
        let parts = pairs.iter().map(|(a, b)| (vec![*a, *b], weight)).collect();
        Self::new(groups, parts)
    }

    fn new(groups: Groups, parts: Vec<(Vec<usize>, f64)>) -> Self {
        let mut length = 0;
        let part = |(columns, weight): (Vec<usize>, f64)| {
            let (start, cells) = (length, columns.iter().map(|column| groups.sizes[*column]).product());
            length += cells;
            Part { columns, weight, start, cells }
        };
        let parts = parts.into_iter().map(part).collect();
        Self { groups, parts, length }
    }

    /// The cell of a row in each part, and its weight.
    pub(super) fn cells<'a>(&'a self, values: &'a [u16]) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.parts.iter().map(move |part| {
            let cell = part.columns.iter().fold(0, |cell, column| {
                let group = self.groups.of[*column][usize::from(values[*column])];
                cell * self.groups.sizes[*column] + usize::from(group)
            });
            (part.start + cell, part.weight)
        })
    }

    /// Adds the part of a release that counts the cells of one part.
    pub(super) fn add(&self, part: usize, release: &[f64], noise: f64, to: &mut Measured) {
        let Part { weight, start, cells, .. } = &self.parts[part];
        to.add(&release[*start..start + cells], *weight, noise);
    }
}

/// All pairs of a number of columns.
pub(super) fn all_pairs(columns: usize) -> Vec<(usize, usize)> {
    (0..columns).flat_map(|a| (a + 1..columns).map(move |b| (a, b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Schema;

    #[test]
    fn a_row_is_in_one_cell_of_each_part_and_its_vector_has_length_one() {
        let schema = "[[column]]\nname = 'a'\nbounds = [0, 1]\n[[column]]\nname = 'b'\ncategories = ['u', 'v']\n\
            [[column]]\nname = 'c'\ncategories = ['w']\n";
        let domain = Domain::new(&Schema::parse(schema).unwrap()).unwrap();
        let groups = Groups { of: vec![vec![0; 35], vec![0, 1, 1], vec![1, 0]], sizes: vec![1, 2, 2] };
        let pairs = Query::pairs(groups, &all_pairs(3));
        assert_eq!(pairs.length, 2 + 2 + 4);
        assert_eq!(pairs.cells(&[7, 2, 0]).map(|cell| cell.0).collect::<Vec<_>>(), [1, 3, 7]);
        for query in [Query::columns(&domain), pairs] {
            for values in [[0, 0, 0], [34, 2, 1]] {
                let squared: f64 = query.cells(&values).map(|(_, weight)| weight * weight).sum();
                assert!((squared - 1.0).abs() < 1e-12);
                assert!(query.cells(&values).all(|(cell, _)| cell < query.length));
            }
        }
    }
}
