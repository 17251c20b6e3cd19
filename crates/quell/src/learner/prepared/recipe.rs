//! The settings of a preparation.

use serde::{Deserialize, Serialize};

/// What is found about all records first, and used to transform each of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Preparation {
    /// Projects every record on the directions of most variance.
    Components {
        /// Number of components, which become the features.
        count: usize,
        /// Noise multiplier of the preparation, as if it were one release.
        ///
        /// By default it is four times that of one release with the whole guarantee.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        noise_multiplier: Option<f64>,
    },
}
