//! The settings of a decision tree, some of which may be missing.

use serde::{Deserialize, Serialize};

use crate::learner::{Privacy, section::Guaranteed};

/// The settings of a decision tree. Missing settings are chosen from public facts alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// The privacy guarantee.
    pub privacy: Privacy,
    /// A public number of records (or users). It need not be exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// The largest depth of the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    /// How splits are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub splits: Option<Splits>,
    /// The public seed of random splits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree_seed: Option<u64>,
}

impl Guaranteed for Recipe {
    fn guarantee(&mut self) -> (&mut Privacy, &mut Option<u64>) {
        (&mut self.privacy, &mut self.records)
    }

    /// Zero stands for no seed.
    fn set_seed(&mut self, seed: u64) {
        self.tree_seed = Some(seed).filter(|seed| *seed != 0).or(self.tree_seed);
    }
}

/// How the splits of a tree are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Splits {
    /// By noisy histograms of all columns, one release for each level.
    Measured,
    /// At random, without looking at the records: all of the budget goes to the leaves.
    Random,
}
