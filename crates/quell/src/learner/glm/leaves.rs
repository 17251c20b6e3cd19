//! The trees of a forest, as features of a linear model.

use super::{Columns, Plan, Standardization};
use crate::{
    Error,
    layer::{MOST_TREES, Trees},
};

/// Default number of trees of a forest.
pub(super) const TREES: u64 = 128;

/// The default seed of the trees: any number is as good.
pub(super) const TREE_SEED: u64 = 1;

/// The factor of leaves, relative to indicators, where noise is small enough for curves, and where it is not.
///
/// Smaller gains keep noise in the values of the many leaves from the scores (docs/evidence.md).
const LEAF_GAIN: f64 = 0.8;
const NOISY_LEAF_GAIN: f64 = 0.4;

/// Draws the trees of a forest: a public choice.
pub(super) fn grow(columns: &Columns, trees: u64, seed: u64) -> Result<Trees, Error> {
    let fits =
        |trees: &usize| (1..=MOST_TREES).contains(trees) && Trees::fit_in_memory(&columns.categories, *trees);
    let count = usize::try_from(trees).ok().filter(fits);
    let expected = "a number in [1, 4096], and less for columns with very many categories";
    let count = count.ok_or_else(|| Error::Setting { name: "trees", found: trees.to_string(), expected })?;
    Ok(Trees::new(&columns.categories, count, seed))
}

impl Plan {
    /// Number of leaves of all trees.
    pub(super) fn leaves(&self) -> usize {
        self.forest.as_ref().map_or(0, Trees::leaves)
    }

    /// The mean of the indicator of a leaf over examples that answer every question by a fair coin.
    pub(super) fn leaf_share(&self, leaf: usize) -> f32 {
        self.forest.as_ref().map_or(0.0, |trees| trees.shares[leaf])
    }

    /// The factor of the leaves before examples get the usual length: all trees count like all columns.
    pub(super) fn leaf_amplitude(&self) -> f64 {
        let trees = self.trees.map_or(1, |(trees, _)| trees);
        let gain = if self.waves.is_empty() { NOISY_LEAF_GAIN } else { LEAF_GAIN };
        gain * (self.columns.count as f64 / trees as f64).sqrt()
    }

    /// The squared length of the leaves of an example.
    pub(super) fn leaf_power(&self) -> f64 {
        self.forest.as_ref().map_or(0.0, |trees| self.leaf_amplitude().powi(2) * trees.squared_length())
    }

    /// The thresholds of all questions about numbers.
    pub(super) fn thresholds(&self, constants: &Standardization) -> Vec<f32> {
        let of = |trees: &Trees| trees.thresholds(&constants.centres, &constants.spreads);
        self.forest.as_ref().map_or_else(Vec::new, of)
    }
}
