//! When two datasets count as neighbours.

use serde::{Deserialize, Serialize};

/// Which change of one record a guarantee hides.
///
/// # Contract
/// Additive noise is stated relative to the largest contribution of one record. Adding or removing the record
/// moves a sum by at most that much, replacing it by at most twice that much ([`Neighbors::reach`]).
/// Guarantees given as numbers (pure, approximate, concentrated, Rényi) are stated for the relation in force
/// and are not scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Neighbors {
    /// One record more or less.
    #[default]
    AddRemove,
    /// One record exchanged for another; the number of records is public.
    Replace,
}

impl Neighbors {
    /// How far a sum of contributions of length at most one moves between neighbours.
    #[must_use]
    pub fn reach(self) -> f64 {
        match self {
            Self::AddRemove => 1.0,
            Self::Replace => 2.0,
        }
    }
}

impl std::fmt::Display for Neighbors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AddRemove => "add or remove one record",
            Self::Replace => "replace one record",
        })
    }
}
