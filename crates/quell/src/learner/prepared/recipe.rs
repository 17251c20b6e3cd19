//! The settings of a preparation.

use serde::{Deserialize, Serialize};

/// What is found about all records first, and used to transform each of them.
///
/// Every preparation has a noise multiplier: that of all of its runs, as if they were one release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Preparation {
    /// Projects every record on the directions of most variance.
    Components {
        /// Number of components, which become the features.
        count: usize,
        /// Noise multiplier of the preparation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        noise_multiplier: Option<f64>,
    },
    /// Shifts and scales every column of numbers, so that it has mean zero and spread one.
    Standardize {
        /// Noise multiplier of the preparation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        noise_multiplier: Option<f64>,
    },
    /// Leaves every number as its declared bounds scale it. No release is made.
    None {},
    /// Replaces every number by the share of records with a smaller one, scaled to [-1, 1].
    Quantiles {
        /// Noise multiplier of the preparation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        noise_multiplier: Option<f64>,
    },
}

impl Preparation {
    /// The noise multiplier, if it is given.
    #[must_use]
    pub fn noise_multiplier(&self) -> Option<f64> {
        match *self {
            Self::None {} => None,
            Self::Components { noise_multiplier, .. }
            | Self::Standardize { noise_multiplier }
            | Self::Quantiles { noise_multiplier } => noise_multiplier,
        }
    }

    /// The same preparation with this noise multiplier.
    pub(super) fn with_noise(mut self, noise: f64) -> Self {
        match &mut self {
            Self::None {} => {}
            Self::Components { noise_multiplier, .. }
            | Self::Standardize { noise_multiplier }
            | Self::Quantiles { noise_multiplier } => *noise_multiplier = Some(noise),
        }
        self
    }

    /// The shape of a record after the preparation.
    pub(crate) fn output_shape(&self, shape: &[usize]) -> Vec<usize> {
        match self {
            Self::Components { count, .. } => vec![*count],
            Self::None {} | Self::Standardize { .. } | Self::Quantiles { .. } => shape.to_vec(),
        }
    }
}

/// What corrects the predicted probabilities of a network after its steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Recalibration {
    /// Nothing. No release is made.
    None {},
    /// One sum over all records, from which scale and offset of all scores follow.
    Scores {
        /// Noise multiplier of the release.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        noise_multiplier: Option<f64>,
    },
}
