//! Fits a graphical model to noisy counts.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    junction::JunctionTree,
    minimize::minimize,
    propagation::{Beliefs, Propagation, sums},
};

/// Noisy counts of the cells of a few columns, to which a model is fitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Factor {
    /// The columns, ascending.
    pub(super) columns: Vec<usize>,
    /// The estimated count of each cell.
    pub(super) counts: Vec<f64>,
    /// How much the potential of each cell is held back: in proportion to the variance of its count.
    pub(super) ridge: Vec<f64>,
}

/// A factor at its place.
struct Placed<'f> {
    factor: &'f Factor,
    clique: usize,
    /// The cell of the factor for each cell of the clique.
    map: Vec<u32>,
    /// Its numbers among all potentials.
    range: Range<usize>,
}

/// The objective n ln Z(λ) - ⟨λ, y⟩ + ½ Σ ρ λ², with counts y of n records and ridges ρ.
///
/// Without ridges, this is the dual of the most random distribution with the counts y (THEORY, Synthetic data).
/// With ridges, the counts of the minimum differ from y by ρλ: noise is not followed to impossible counts.
pub(super) struct Fit<'t> {
    propagation: Propagation<'t>,
    placed: Vec<Placed<'t>>,
    /// The factors of each clique.
    within: Vec<Vec<usize>>,
    records: f64,
}

impl<'t> Fit<'t> {
    /// The objective for a tree with a clique for each factor. Factors without one are left out.
    pub(super) fn new(tree: &'t JunctionTree, factors: &'t [Factor], records: f64) -> Self {
        let (mut placed, mut within, mut length) = (Vec::new(), vec![Vec::new(); tree.cliques.len()], 0);
        for factor in factors {
            let Some(clique) = tree.smallest_with(&factor.columns) else { continue };
            let map = tree.projection(&tree.cliques[clique].columns, &factor.columns);
            within[clique].push(placed.len());
            let range = length..length + factor.counts.len();
            length = range.end;
            placed.push(Placed { factor, clique, map, range });
        }
        Self { propagation: Propagation::new(tree), placed, within, records }
    }

    /// The distributions of the cliques for the potentials of all factors.
    pub(super) fn beliefs(&self, potentials: &[f64]) -> Beliefs {
        let tree = self.propagation.tree;
        let table = |(number, factors): (usize, &Vec<usize>)| {
            let mut table = vec![0.0; tree.cells_of(&tree.cliques[number].columns)];
            for Placed { map, range, .. } in factors.iter().map(|factor| &self.placed[*factor]) {
                let own = &potentials[range.clone()];
                table.iter_mut().zip(map).for_each(|(x, cell)| *x += own[*cell as usize]);
            }
            table
        };
        self.propagation.run(self.within.par_iter().enumerate().map(table).collect())
    }

    /// The value of the objective and its gradient.
    fn differentiate(&self, potentials: &[f64]) -> (f64, Vec<f64>) {
        let beliefs = self.beliefs(potentials);
        let parts: Vec<(f64, Vec<f64>)> = self
            .placed
            .par_iter()
            .map(|Placed { factor, clique, map, range }| {
                let mut value = 0.0;
                let mut gradient = sums(&beliefs.cliques[*clique], map, range.len());
                let numbers = factor.counts.iter().zip(&factor.ridge).zip(&potentials[range.clone()]);
                for (slope, ((y, ridge), x)) in gradient.iter_mut().zip(numbers) {
                    *slope = self.records * *slope - y + ridge * x;
                    value += x * (0.5 * ridge * x - y);
                }
                (value, gradient)
            })
            .collect();
        let value = self.records * beliefs.log_constant + parts.iter().map(|part| part.0).sum::<f64>();
        (value, parts.into_iter().flat_map(|part| part.1).collect())
    }

    /// The potentials with the least objective, from a start.
    ///
    /// `is_new` says which factors have no potentials yet. They start with the logarithm of how much more, or less,
    /// their counts are than those of the start. This is exact for the pairs of a tree.
    pub(super) fn minimize(&self, mut start: Vec<f64>, is_new: &[bool]) -> Vec<f64> {
        let beliefs = self.beliefs(&start);
        for (Placed { factor, clique, map, range }, _) in
            self.placed.iter().zip(is_new).filter(|(_, is)| **is)
        {
            let modelled = sums(&beliefs.cliques[*clique], map, range.len());
            let numbers = factor.counts.iter().zip(&modelled).zip(&factor.ridge);
            for (x, ((y, p), ridge)) in start[range.clone()].iter_mut().zip(numbers) {
                // Counts below the noise say nothing.
                let least = 1.0 + ridge;
                *x = ((y.max(0.0) + least) / (self.records * p + least)).ln();
            }
        }
        // The curvature in the direction of one potential is n p (1 - p) + ρ, where n p is near y.
        let curvatures: Vec<f64> = self
            .placed
            .iter()
            .flat_map(|placed| placed.factor.counts.iter().zip(&placed.factor.ridge))
            .map(|(y, ridge)| y.clamp(1.0, self.records.max(1.0)) + ridge)
            .collect();
        minimize(|potentials| self.differentiate(potentials), start, &curvatures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::PublicRandom;

    fn factors(tree: &JunctionTree, sets: &[&[usize]], random: &mut PublicRandom, ridge: f64) -> Vec<Factor> {
        let factor = |columns: &&[usize]| {
            let cells = tree.cells_of(columns);
            let counts = (0..cells).map(|_| f64::from(random.between(1.0, 9.0))).collect();
            Factor { columns: columns.to_vec(), counts, ridge: vec![ridge; cells] }
        };
        sets.iter().map(factor).collect()
    }

    #[test]
    fn the_gradient_is_that_of_the_objective() {
        let tree = JunctionTree::new(&[2, 3, 2, 2], &[(0, 1), (1, 2), (0, 2)]);
        let mut random = PublicRandom::new(3);
        let factors = factors(&tree, &[&[0, 1], &[1, 2], &[0, 2], &[1], &[3]], &mut random, 0.7);
        let fit = Fit::new(&tree, &factors, 40.0);
        let at: Vec<f64> = (0..21).map(|_| f64::from(random.normal())).collect();
        let (_, gradient) = fit.differentiate(&at);
        for place in 0..at.len() {
            let moved = |by: f64| {
                let mut at = at.clone();
                at[place] += by;
                fit.differentiate(&at).0
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((slope - gradient[place]).abs() < 1e-5, "{place}: {slope} {}", gradient[place]);
        }
    }

    /// Counts that a distribution has are met exactly, up to the ridge.
    #[test]
    fn possible_counts_are_met() {
        let tree = JunctionTree::new(&[3, 2, 4], &[(0, 1), (1, 2)]);
        let mut random = PublicRandom::new(8);
        let whole: Vec<f64> = (0..24).map(|_| f64::from(random.between(0.0, 50.0)).floor()).collect();
        let records: f64 = whole.iter().sum();
        let factor = |columns: &[usize]| {
            let counts = sums(&whole, &tree.projection(&[0, 1, 2], columns), tree.cells_of(columns));
            let ridge = vec![1e-6; counts.len()];
            Factor { columns: columns.to_vec(), counts, ridge }
        };
        let factors = [factor(&[0, 1]), factor(&[1, 2]), factor(&[0])];
        let fit = Fit::new(&tree, &factors, records);
        let beliefs = fit.beliefs(&fit.minimize(vec![0.0; 17], &[true, true, false]));
        for placed in &fit.placed {
            let found = sums(&beliefs.cliques[placed.clique], &placed.map, placed.range.len());
            for (found, expected) in found.iter().zip(&placed.factor.counts) {
                assert!((found * records - expected).abs() < 1.0, "{} {expected}", found * records);
            }
        }
    }

    /// Noise that asks for negative counts and sums other than n yields a distribution nevertheless.
    #[test]
    fn impossible_counts_yield_a_distribution() {
        let tree = JunctionTree::new(&[2, 2], &[(0, 1)]);
        let factors =
            [Factor { columns: vec![0, 1], counts: vec![-300.0, 80.0, 5.0, 900.0], ridge: vec![0.5; 4] }];
        let fit = Fit::new(&tree, &factors, 100.0);
        let beliefs = fit.beliefs(&fit.minimize(vec![0.0; 4], &[false])).cliques;
        assert!((beliefs[0].iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(beliefs[0][0] < 1e-9 && beliefs[0][3] > 0.9, "{beliefs:?}");
    }
}
