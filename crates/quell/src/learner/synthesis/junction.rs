//! Junction trees: cliques of columns in which any set of measured pairs fits.

/// A set of columns whose joint distribution a model holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clique {
    /// The columns, ascending. The last one changes fastest in the table of the clique.
    pub(super) columns: Vec<usize>,
    /// The parent; `None` for a root.
    pub(super) parent: Option<usize>,
    /// The columns that this clique has in common with its parent, ascending.
    pub(super) separator: Vec<usize>,
}

/// Cliques such that the cliques with any one column are connected. Parents come before children.
///
/// The distribution of all columns is the product of the distributions of each clique given its separator
/// (THEORY, Synthetic data).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JunctionTree {
    /// Number of values of each column.
    pub(super) sizes: Vec<usize>,
    pub(super) cliques: Vec<Clique>,
}

impl JunctionTree {
    /// A tree in which every pair is in some clique. Columns are eliminated, the smallest clique first.
    pub(super) fn new(sizes: &[usize], pairs: &[(usize, usize)]) -> Self {
        let count = sizes.len();
        let mut neighbors = vec![vec![false; count]; count];
        for (a, b) in pairs {
            (neighbors[*a][*b], neighbors[*b][*a]) = (true, true);
        }
        let mut is_left = vec![true; count];
        // Each clique is that of its eliminated column. A column's place is its place in this list.
        let (mut eliminated, mut places): (Vec<(usize, Vec<usize>)>, Vec<usize>) =
            (Vec::new(), vec![0; count]);
        for place in 0..count {
            let around = |column: usize| (0..count).filter(move |other| *other != column);
            let cells = |column: usize| {
                let others = around(column).filter(|other| is_left[*other] && neighbors[column][*other]);
                others.map(|other| sizes[other] as f64).product::<f64>() * sizes[column] as f64
            };
            let left = (0..count).filter(|column| is_left[*column]);
            let Some(column) = left.map(|column| (cells(column), column)).min_by(|a, b| a.0.total_cmp(&b.0))
            else {
                break;
            };
            let column = column.1;
            let rest: Vec<usize> =
                around(column).filter(|other| is_left[*other] && neighbors[column][*other]).collect();
            for a in &rest {
                for b in &rest {
                    neighbors[*a][*b] |= a != b;
                }
            }
            is_left[column] = false;
            places[column] = place;
            eliminated.push((column, rest));
        }
        Self { sizes: sizes.to_vec(), cliques: connect(&eliminated, &places) }
    }

    /// Number of cells of a set of columns.
    pub(super) fn cells_of(&self, columns: &[usize]) -> usize {
        columns.iter().map(|column| self.sizes[*column]).product()
    }

    /// Number of cells of all cliques. It is a float, because it may be enormous.
    pub(super) fn cells(&self) -> f64 {
        let cells = |clique: &Clique| clique.columns.iter().map(|c| self.sizes[*c] as f64).product::<f64>();
        self.cliques.iter().map(cells).sum()
    }

    /// The smallest clique that holds all these columns.
    pub(super) fn smallest_with(&self, columns: &[usize]) -> Option<usize> {
        let holds = |clique: &&usize| {
            columns.iter().all(|column| self.cliques[**clique].columns.binary_search(column).is_ok())
        };
        let numbers: Vec<usize> = (0..self.cliques.len()).collect();
        numbers
            .iter()
            .filter(holds)
            .min_by_key(|clique| self.cells_of(&self.cliques[**clique].columns))
            .copied()
    }

    /// For each cell of a table of columns, the cell of a table of fewer columns that it belongs to.
    pub(super) fn projection(&self, from: &[usize], onto: &[usize]) -> Vec<u32> {
        let mut strides = vec![0; from.len()];
        let mut stride = 1;
        for column in onto.iter().rev() {
            if let Ok(place) = from.binary_search(column) {
                strides[place] = stride;
            }
            stride *= self.sizes[*column];
        }
        let (mut digits, mut cell) = (vec![0; from.len()], 0);
        let mut cells = Vec::with_capacity(self.cells_of(from));
        for _ in 0..self.cells_of(from) {
            cells.push(cell as u32);
            for place in (0..from.len()).rev() {
                digits[place] += 1;
                cell += strides[place];
                if digits[place] < self.sizes[from[place]] {
                    break;
                }
                cell -= digits[place] * strides[place];
                digits[place] = 0;
            }
        }
        cells
    }
}

/// Connects the cliques of eliminated columns, and leaves out those that are part of another one.
fn connect(eliminated: &[(usize, Vec<usize>)], places: &[usize]) -> Vec<Clique> {
    // The clique at a place is kept as a clique of the result, or is part of one.
    let mut kept: Vec<Option<usize>> = vec![None; eliminated.len()];
    let mut cliques: Vec<Clique> = Vec::new();
    // From the last eliminated column to the first, so that parents come first.
    for (place, (column, rest)) in eliminated.iter().enumerate().rev() {
        let mut columns = rest.clone();
        columns.push(*column);
        columns.sort_unstable();
        let parent = rest.iter().map(|other| places[*other]).min().and_then(|next| kept[next]);
        kept[place] = Some(match parent {
            // The parent's columns are the rest: it grows by the eliminated column.
            Some(parent) if cliques[parent].columns == *rest => {
                cliques[parent].columns = columns;
                parent
            }
            _ => {
                cliques.push(Clique { columns, parent, separator: rest.clone() });
                cliques.len() - 1
            }
        });
    }
    cliques
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::PublicRandom;

    #[test]
    fn every_pair_is_in_a_clique_and_columns_are_connected() {
        let mut random = PublicRandom::new(2);
        for case in 0..200 {
            let count = 1 + case % 9;
            let sizes: Vec<usize> = (0..count).map(|_| 1 + random.below(4)).collect();
            let pairs: Vec<(usize, usize)> = (0..random.below(2 * count))
                .map(|_| (random.below(count), random.below(count)))
                .filter(|(a, b)| a < b)
                .collect();
            let tree = JunctionTree::new(&sizes, &pairs);
            for (a, b) in &pairs {
                assert!(tree.smallest_with(&[*a, *b]).is_some(), "{pairs:?} {tree:?}");
            }
            for column in 0..count {
                let with: Vec<usize> =
                    (0..tree.cliques.len()).filter(|c| tree.cliques[*c].columns.contains(&column)).collect();
                // All but one of the cliques with a column share it with their parents.
                let tops = with.iter().filter(|c| !tree.cliques[**c].separator.contains(&column));
                assert_eq!(tops.count(), 1, "{column} {tree:?}");
            }
            for (number, clique) in tree.cliques.iter().enumerate() {
                let Some(parent) = clique.parent else {
                    assert!(clique.separator.is_empty());
                    continue;
                };
                let common = clique.columns.iter().filter(|c| tree.cliques[parent].columns.contains(c));
                assert!(parent < number && common.eq(&clique.separator), "{tree:?}");
                assert!(clique.columns.len() > clique.separator.len());
            }
        }
    }

    #[test]
    fn a_chain_has_a_clique_for_each_pair() {
        let tree = JunctionTree::new(&[2, 3, 4], &[(0, 1), (1, 2)]);
        assert_eq!((tree.cliques.len(), tree.cells()), (2, 18.0));
        let projected = tree.projection(&[0, 1, 2], &[0, 2]);
        assert_eq!(projected[..8], [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(projected[12..16], [4, 5, 6, 7]);
        assert_eq!(tree.projection(&[0, 1], &[]), [0; 6]);
    }
}
