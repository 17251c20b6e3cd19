//! Belief propagation: the distribution of each clique, from potentials.

use rayon::prelude::*;

use super::junction::JunctionTree;

/// A junction tree with the maps between its tables.
pub(super) struct Propagation<'t> {
    pub(super) tree: &'t JunctionTree,
    /// For each clique with a parent: its own cells and those of the parent, by cells of the separator.
    maps: Vec<Option<Maps>>,
}

/// The cell of the separator for each cell of a clique, and for each cell of its parent.
type Maps = (Vec<u32>, Vec<u32>);

/// The distribution of each clique, and the logarithm of the normalising constant.
pub(super) struct Beliefs {
    pub(super) cliques: Vec<Vec<f64>>,
    pub(super) log_constant: f64,
}

impl<'t> Propagation<'t> {
    pub(super) fn new(tree: &'t JunctionTree) -> Self {
        let map = |clique: &super::junction::Clique| {
            let parent = &tree.cliques[clique.parent?];
            let onto = |columns: &[usize]| tree.projection(columns, &clique.separator);
            Some((onto(&clique.columns), onto(&parent.columns)))
        };
        Self { tree, maps: tree.cliques.iter().map(map).collect() }
    }

    /// The distribution ∏ exp(potential) / Z of all columns, as that of each clique, and ln Z.
    ///
    /// One pass from the leaves to the roots and one back make each table the marginal of its clique (Lauritzen and
    /// Spiegelhalter 1988). The result does not depend on the number of threads.
    pub(super) fn run(&self, mut potentials: Vec<Vec<f64>>) -> Beliefs {
        let largest = potentials.par_iter_mut().map(|table| {
            let largest = table.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for x in table.iter_mut() {
                *x = (*x - largest).exp();
            }
            largest
        });
        let mut log_constant: f64 = largest.collect::<Vec<_>>().iter().sum();
        let mut messages: Vec<Vec<f64>> = vec![Vec::new(); potentials.len()];
        for (number, clique) in self.tree.cliques.iter().enumerate().rev() {
            let (Some(parent), Some((own, of_parent))) = (clique.parent, &self.maps[number]) else {
                let sum: f64 = potentials[number].iter().sum();
                if sum > 0.0 && sum.is_finite() {
                    log_constant += sum.ln();
                    potentials[number].iter_mut().for_each(|x| *x /= sum);
                } else {
                    // All cells underflow. No search stays at such a point, and all cells are equally likely.
                    log_constant = f64::INFINITY;
                    let share = (potentials[number].len() as f64).recip();
                    potentials[number].fill(share);
                }
                continue;
            };
            let mut message = sums(&potentials[number], own, self.tree.cells_of(&clique.separator));
            let largest = message.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            for x in &mut message {
                *x /= largest;
            }
            potentials[number].iter_mut().for_each(|x| *x /= largest);
            log_constant += largest.ln();
            for (x, cell) in potentials[parent].iter_mut().zip(of_parent) {
                *x *= message[*cell as usize];
            }
            messages[number] = message;
        }
        for (number, clique) in self.tree.cliques.iter().enumerate() {
            let (Some(parent), Some((own, of_parent))) = (clique.parent, &self.maps[number]) else {
                continue;
            };
            let mut factors = sums(&potentials[parent], of_parent, messages[number].len());
            for (factor, message) in factors.iter_mut().zip(&messages[number]) {
                // Where nothing is possible, nothing is likely.
                *factor = if *message > 0.0 { *factor / message } else { 0.0 };
            }
            for (x, cell) in potentials[number].iter_mut().zip(own) {
                *x *= factors[*cell as usize];
            }
        }
        Beliefs { cliques: potentials, log_constant }
    }

    /// The distribution of the separator of each clique, from the distributions of the cliques.
    pub(super) fn separators(&self, cliques: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let separator = |(number, map): (usize, &Option<Maps>)| {
            let cells = self.tree.cells_of(&self.tree.cliques[number].separator);
            map.as_ref().map_or_else(Vec::new, |(own, _)| sums(&cliques[number], own, cells))
        };
        self.maps.iter().enumerate().map(separator).collect()
    }

    /// Carries a part of the distribution of one clique over to its neighbour, across the separator of `child`.
    ///
    /// `table` is the part, `onto` the distribution of the neighbour, which is the parent if `is_upwards`.
    pub(super) fn pass(
        &self,
        child: usize,
        table: &[f64],
        onto: &[f64],
        separator: &[f64],
        is_upwards: bool,
    ) -> Vec<f64> {
        let Some((own, of_parent)) = &self.maps[child] else { return onto.to_vec() };
        let (from, to) = if is_upwards { (own, of_parent) } else { (of_parent, own) };
        let mut factors = sums(table, from, separator.len());
        for (factor, p) in factors.iter_mut().zip(separator) {
            *factor = if *p > 0.0 { *factor / p } else { 0.0 };
        }
        onto.iter().zip(to).map(|(p, cell)| p * factors[*cell as usize]).collect()
    }
}

/// Sums the cells of a table to those of a smaller one.
pub(super) fn sums(table: &[f64], map: &[u32], cells: usize) -> Vec<f64> {
    let mut sums = vec![0.0; cells];
    for (x, cell) in table.iter().zip(map) {
        sums[*cell as usize] += x;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::PublicRandom;

    /// Every cell of the whole table is enumerated.
    #[test]
    fn beliefs_are_the_marginals_of_the_whole_table() {
        let mut random = PublicRandom::new(5);
        for case in 0..60 {
            let count = 1 + case % 6;
            let sizes: Vec<usize> = (0..count).map(|_| 1 + random.below(3)).collect();
            let mut pairs: Vec<(usize, usize)> =
                (0..=count).map(|_| (random.below(count), random.below(count))).collect();
            pairs.retain(|(a, b)| a < b);
            let tree = JunctionTree::new(&sizes, &pairs);
            let potentials: Vec<Vec<f64>> = (tree.cliques.iter())
                .map(|c| (0..tree.cells_of(&c.columns)).map(|_| f64::from(2.0 * random.normal())).collect())
                .collect();
            let all: Vec<usize> = (0..count).collect();
            let maps: Vec<Vec<u32>> =
                tree.cliques.iter().map(|c| tree.projection(&all, &c.columns)).collect();
            let whole: Vec<f64> = (0..tree.cells_of(&all))
                .map(|cell| maps.iter().zip(&potentials).map(|(m, p)| p[m[cell] as usize]).sum::<f64>().exp())
                .collect();
            let constant: f64 = whole.iter().sum();
            let beliefs = Propagation::new(&tree).run(potentials.clone());
            assert!((beliefs.log_constant - constant.ln()).abs() < 1e-9);
            for ((belief, map), potentials) in beliefs.cliques.iter().zip(&maps).zip(&potentials) {
                let expected = sums(&whole, map, potentials.len());
                for (found, expected) in belief.iter().zip(expected) {
                    assert!((found - expected / constant).abs() < 1e-12, "{found} {expected}");
                }
            }
        }
    }

    #[test]
    fn impossible_cells_have_probability_zero_and_never_nan() {
        let tree = JunctionTree::new(&[2, 2, 2], &[(0, 1), (1, 2)]);
        let potentials =
            tree.cliques.iter().map(|c| vec![-2000.0; tree.cells_of(&c.columns) - 1]).map(|mut table| {
                table.push(700.0);
                table
            });
        let beliefs = Propagation::new(&tree).run(potentials.collect());
        for belief in beliefs.cliques {
            assert_eq!(belief, [0.0, 0.0, 0.0, 1.0]);
        }
    }
}
