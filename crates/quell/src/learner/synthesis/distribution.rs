//! The distribution of all columns, and what follows from it for single columns and pairs.

use rayon::prelude::*;

use super::{
    groups::Groups,
    junction::JunctionTree,
    propagation::{Propagation, sums},
    query::all_pairs,
};

/// A distribution of all columns: the table of each clique of a junction tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distribution {
    pub(super) tree: JunctionTree,
    /// The probability of each cell of each clique.
    pub(super) cliques: Vec<Vec<f64>>,
}

/// For each column, the share of each group of the distribution that belongs to each coarse group.
pub(super) type Shares = Vec<Vec<Vec<f64>>>;

/// How the groups of a distribution divide into coarse groups, by the counts of all values.
pub(super) fn shares(fine: &Groups, coarse: &Groups, counts: &[Vec<f64>]) -> Shares {
    let of_column = |(column, counts): (usize, &Vec<f64>)| {
        let mut shares = vec![vec![0.0; fine.sizes[column]]; coarse.sizes[column]];
        for (value, share) in fine.shares(column, counts).into_iter().enumerate() {
            let [to, from] = [coarse, fine].map(|groups| usize::from(groups.of[column][value]));
            shares[to][from] += share;
        }
        shares
    };
    counts.iter().enumerate().map(of_column).collect()
}

impl Distribution {
    /// The probability of each group of a column.
    pub(super) fn column(&self, column: usize) -> Vec<f64> {
        let Some(clique) = self.tree.smallest_with(&[column]) else { return Vec::new() };
        let map = self.tree.projection(&self.tree.cliques[clique].columns, &[column]);
        sums(&self.cliques[clique], &map, self.tree.sizes[column])
    }

    /// The probability of each cell of each pair of columns, in the order of [`all_pairs`], in coarse groups.
    pub(super) fn pairs(&self, shares: &Shares) -> Vec<Vec<f64>> {
        let count = self.tree.sizes.len();
        let propagation = Propagation::new(&self.tree);
        let separators: Vec<Vec<f64>> = propagation.separators(&self.cliques);
        let with_column = |column: usize| -> Vec<Vec<f64>> {
            let joint: Vec<Vec<Vec<f64>>> = shares[column]
                .iter()
                .map(|of_group| self.jointly(column, of_group, &propagation, &separators))
                .collect();
            let pair = |other: usize| -> Vec<f64> {
                let clique = self.tree.smallest_with(&[other]).unwrap_or_default();
                let map = self.tree.projection(&self.tree.cliques[clique].columns, &[other]);
                let rows = joint.iter().flat_map(|tables| {
                    let groups = sums(&tables[clique], &map, self.tree.sizes[other]);
                    let coarse = |of_group: &Vec<f64>| of_group.iter().zip(&groups).map(|(s, p)| s * p).sum();
                    shares[other].iter().map(coarse).collect::<Vec<f64>>()
                });
                rows.collect()
            };
            (column + 1..count).map(pair).collect()
        };
        let pairs: Vec<Vec<f64>> = (0..count).into_par_iter().flat_map_iter(with_column).collect();
        debug_assert_eq!(pairs.len(), all_pairs(count).len());
        pairs
    }

    /// The table of each clique, times the probability of a coarse group of a column given the cells.
    ///
    /// `share` is the share of each group of the column that belongs to the coarse group.
    fn jointly(
        &self,
        column: usize,
        share: &[f64],
        propagation: &Propagation<'_>,
        separators: &[Vec<f64>],
    ) -> Vec<Vec<f64>> {
        let Some(start) = self.tree.smallest_with(&[column]) else { return self.cliques.clone() };
        let map = self.tree.projection(&self.tree.cliques[start].columns, &[column]);
        let weighted = |(p, group): (&f64, &u32)| p * share[*group as usize];
        let table: Vec<f64> = self.cliques[start].iter().zip(&map).map(weighted).collect();
        let total: f64 = table.iter().sum();
        let mut tables: Vec<Option<Vec<f64>>> = vec![None; self.cliques.len()];
        tables[start] = Some(table);
        // To the root, and from there to all others. Parents come before children.
        let mut at = start;
        while let Some(parent) = self.tree.cliques[at].parent {
            tables[parent] = tables[at]
                .as_ref()
                .map(|table| propagation.pass(at, table, &self.cliques[parent], &separators[at], true));
            at = parent;
        }
        for number in 0..tables.len() {
            if tables[number].is_none() {
                let parent = self.tree.cliques[number].parent.and_then(|parent| tables[parent].as_ref());
                tables[number] = Some(match parent {
                    Some(table) => {
                        propagation.pass(number, table, &self.cliques[number], &separators[number], false)
                    }
                    // A tree of its own is independent of the column.
                    None => self.cliques[number].iter().map(|p| p * total).collect(),
                });
            }
        }
        tables.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::PublicRandom;

    /// Every cell of the whole table is enumerated.
    #[test]
    fn pairs_are_those_of_the_whole_table() {
        let mut random = PublicRandom::new(6);
        for case in 0..40 {
            let count = 2 + case % 5;
            let sizes: Vec<usize> = (0..count).map(|_| 1 + random.below(3)).collect();
            let mut edges: Vec<(usize, usize)> =
                (0..count).map(|_| (random.below(count), random.below(count))).collect();
            edges.retain(|(a, b)| a < b);
            let tree = JunctionTree::new(&sizes, &edges);
            let potentials: Vec<Vec<f64>> = (tree.cliques.iter())
                .map(|c| (0..tree.cells_of(&c.columns)).map(|_| f64::from(random.normal())).collect())
                .collect();
            let all: Vec<usize> = (0..count).collect();
            let maps: Vec<Vec<u32>> =
                tree.cliques.iter().map(|c| tree.projection(&all, &c.columns)).collect();
            let whole: Vec<f64> = (0..tree.cells_of(&all))
                .map(|cell| maps.iter().zip(&potentials).map(|(m, p)| p[m[cell] as usize]).sum::<f64>().exp())
                .collect();
            let constant: f64 = whole.iter().sum();
            let cliques = Propagation::new(&tree).run(potentials).cliques;
            let distribution = Distribution { tree: tree.clone(), cliques };
            // Each value is half in one coarse group and half in another.
            let half: Shares = sizes.iter().map(|size| vec![vec![0.5; *size]; 2]).collect();
            let exact: Shares = sizes
                .iter()
                .map(|size| (0..*size).map(|at| (0..*size).map(|to| f64::from(at == to)).collect()).collect())
                .collect();
            let pairs = distribution.pairs(&exact);
            for ((a, b), pair) in all_pairs(count).into_iter().zip(&pairs) {
                let expected = sums(&whole, &tree.projection(&all, &[a, b]), sizes[a] * sizes[b]);
                for (found, expected) in pair.iter().zip(expected) {
                    assert!((found - expected / constant).abs() < 1e-12, "{a} {b} {tree:?}");
                }
            }
            assert!(distribution.pairs(&half).iter().flatten().all(|p| (p - 0.25).abs() < 1e-12));
        }
    }
}
