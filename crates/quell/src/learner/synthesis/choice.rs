//! Which pairs of columns are measured next. It follows from releases alone.

use super::{junction::JunctionTree, query::all_pairs};

/// The most cells of all cliques of a model. Time and memory of a fit follow from them.
const MOST_CELLS: f64 = 200_000.0;
/// The sum of absolute errors of cells, in parts of √(cells · sum of squares). It is √(2/π) for normal errors,
/// and less where a few cells have most of the error.
const ABSOLUTE: f64 = 0.7;

/// What is known about pairs when a choice is made.
pub(super) struct Candidates<'a> {
    /// Number of groups of each column.
    pub(super) sizes: &'a [usize],
    /// For all pairs: the estimated sum of squared errors of the counts of the current model.
    pub(super) errors: &'a [f64],
    /// Standard deviation of the noise of the next measurement if it were of one pair.
    pub(super) noise: f64,
    /// The most cells that one run can release.
    pub(super) most_released: usize,
}

impl Candidates<'_> {
    fn cells(&self, (a, b): (usize, usize)) -> usize {
        self.sizes[a].saturating_mul(self.sizes[b])
    }

    /// How much less the absolute errors of a pair are expected to be if it is measured with a number of others.
    fn benefit(&self, pair: (usize, usize), error: f64, measured: usize) -> f64 {
        let cells = self.cells(pair) as f64;
        let gain = ABSOLUTE * error.signum() * (error.abs() * cells).sqrt();
        gain - std::f64::consts::FRAC_2_PI.sqrt() * self.noise * (measured as f64).sqrt() * cells
    }

    /// The pairs that are not chosen and have cells to measure, with their errors.
    fn others(&self, chosen: &[(usize, usize)]) -> Vec<((usize, usize), f64)> {
        let pairs = all_pairs(self.sizes.len()).into_iter().zip(self.errors.iter().copied());
        pairs.filter(|(pair, _)| !chosen.contains(pair) && self.cells(*pair) > 1).collect()
    }

    /// Pairs with a benefit, the largest benefit first, if a number of pairs is measured.
    fn ranked(&self, measured: usize, pairs: &[((usize, usize), f64)]) -> Vec<(f64, (usize, usize))> {
        let mut ranked: Vec<(f64, (usize, usize))> = pairs
            .iter()
            .map(|(pair, error)| (self.benefit(*pair, *error, measured), *pair))
            .filter(|(benefit, _)| *benefit > 0.0)
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked
    }

    /// The pairs of a tree with the largest benefits (Kruskal's algorithm). Pairs without a benefit are left out.
    pub(super) fn tree(&self) -> Vec<(usize, usize)> {
        let columns = self.sizes.len();
        let mut part: Vec<usize> = (0..columns).collect();
        let (mut chosen, mut released, mut cells) = (Vec::new(), 0, 0.0);
        for (_, (a, b)) in self.ranked(columns.saturating_sub(1), &self.others(&[])) {
            let more = self.cells((a, b));
            let fits = released + more <= self.most_released && cells + more as f64 <= MOST_CELLS;
            if part[a] != part[b] && fits {
                let (from, to) = (part[b], part[a]);
                part.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
                (released, cells) = (released + more, cells + more as f64);
                chosen.push((a, b));
            }
        }
        chosen
    }

    /// Further pairs, as many as have the largest benefit together.
    pub(super) fn more(&self, chosen: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let (columns, others) = (self.sizes.len(), self.others(chosen));
        let total = |count: usize| -> f64 {
            self.ranked(count, &others).iter().take(count).map(|(benefit, _)| benefit).sum()
        };
        let totals = (1..=2 * columns).map(|count| (total(count), count));
        let Some((_, count)) = totals.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) else {
            return Vec::new();
        };
        let (mut all, mut more, mut released) = (chosen.to_vec(), Vec::new(), 0);
        // Small pairs of strong dependence come first: cliques that are full of large pairs have no room for them.
        let mut ranked = self.ranked(count, &others);
        ranked.truncate(2 * count);
        let strength = |(benefit, pair): &(f64, (usize, usize))| benefit / (self.cells(*pair) as f64).sqrt();
        ranked.sort_by(|a, b| strength(b).total_cmp(&strength(a)).then(a.1.cmp(&b.1)));
        // A pair that makes the cliques too large is passed over, but not too many of them.
        for (_, pair) in ranked {
            let cells = released + self.cells(pair);
            if more.len() == count || cells > self.most_released {
                continue;
            }
            all.push(pair);
            if JunctionTree::new(self.sizes, &all).cells() <= MOST_CELLS {
                more.push(pair);
                released = cells;
            } else {
                all.pop();
            }
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_the_largest_benefits_and_no_cycle() {
        // Pairs 01, 02, 03, 12, 13, 23.
        let errors = [1e6, 9e5, 10.0, 8e5, 10.0, 5e5];
        let candidates = Candidates { sizes: &[4; 4], errors: &errors, noise: 1.0, most_released: 1000 };
        assert_eq!(candidates.tree(), [(0, 1), (0, 2), (2, 3)]);
        assert_eq!(candidates.more(&candidates.tree()), [(1, 2)]);
    }

    #[test]
    fn pairs_that_noise_would_hide_are_not_measured() {
        let candidates =
            Candidates { sizes: &[4; 3], errors: &[50.0, -90.0, 0.0], noise: 100.0, most_released: 1000 };
        assert!(candidates.tree().is_empty() && candidates.more(&[]).is_empty());
    }

    #[test]
    fn cliques_and_releases_stay_within_their_limits() {
        let errors = vec![1e12; 15];
        let candidates = Candidates { sizes: &[60; 6], errors: &errors, noise: 1.0, most_released: 4 * 3600 };
        let tree = candidates.tree();
        assert_eq!(tree.len(), 4);
        let more = candidates.more(&tree);
        let all = [tree, more].concat();
        assert!(JunctionTree::new(&[60; 6], &all).cells() <= MOST_CELLS);
    }
}
