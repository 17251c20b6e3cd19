//! The settings of naive Bayes, some of which may be missing.

use serde::{Deserialize, Serialize};

use crate::learner::{Privacy, section::Guaranteed};

/// The settings of naive Bayes. Missing settings are chosen from public facts alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// The privacy guarantee.
    pub privacy: Privacy,
    /// A public number of records (or users). It need not be exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

impl Guaranteed for Recipe {
    fn guarantee(&mut self) -> (&mut Privacy, &mut Option<u64>) {
        (&mut self.privacy, &mut self.records)
    }
}
