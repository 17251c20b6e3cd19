//! The settings of synthetic data, some of which may be missing.

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    learner::{Privacy, section::Guaranteed},
};

/// The name of the model, as settings write it.
pub const NAME: &str = "synthesizer";

/// The model in words, for a title.
pub const TITLE: &str = "Synthetic data";

/// One sentence on the model and its use.
pub const PURPOSE: &str =
    "Synthetic rows of a table, from noisy counts of columns and pairs: quell synthesize.";

/// The settings of synthetic data. Missing settings are chosen from public facts alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// The privacy guarantee.
    pub privacy: Privacy,
    /// A public number of records (or users). It need not be exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Number of synthetic rows; the number of records if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The seed with which rows are drawn. It is not that of the noise.
    #[serde(skip_serializing_if = "is_zero")]
    pub seed: u64,
}

impl Guaranteed for Recipe {
    fn guarantee(&mut self) -> (&mut Privacy, &mut Option<u64>) {
        (&mut self.privacy, &mut self.records)
    }

    /// Zero stands for no seed.
    fn set_seed(&mut self, seed: u64) {
        self.seed = if seed == 0 { self.seed } else { seed };
    }
}

/// Whether a seed is the default.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(seed: &u64) -> bool {
    *seed == 0
}

/// The most rows that are drawn at once. They are held in memory.
pub const MOST_ROWS: u64 = 50_000_000;

impl Recipe {
    /// The number of rows to draw, for a public number of records.
    pub(super) fn row_count(&self, records: u64) -> Result<usize, Error> {
        let rows = self.rows.unwrap_or(records);
        if rows > MOST_ROWS {
            let (found, expected) = (rows.to_string(), "at most 50,000,000 rows at once");
            return Err(Error::Setting { name: "rows", found, expected });
        }
        Ok(rows as usize)
    }
}
