//! What somebody wants, with gaps.

use quell_privacy::Neighbors;
use serde::{Deserialize, Serialize};

use super::Augmentation;
use crate::{average::Average, loss::Loss, optimizer::Optimizer, schedule::Schedule};

/// How to train. What is left out is chosen by public facts alone; of ε, noise, steps and rate, any may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// What is promised.
    pub privacy: Privacy,
    /// Who takes part in a step.
    pub sampling: Sample,
    /// Number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Or: how often, on average, a record takes part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// How long a gradient may be.
    pub clipping: Clip,
    /// What is minimised; cross-entropy for classes and half the square for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// How weights follow gradients; momentum of 0.9 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<Optimizer>,
    /// How fast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Which average of the iterates is the model.
    pub average: Average,
    /// Several versions of every image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub augmentation: Option<Augmentation>,
    /// What first weights and other public chance follow from. Noise does not.
    pub seed: u64,
}

/// What is promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Privacy {
    /// ε of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Standard deviation of the noise over the clip norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// When two datasets are neighbours.
    pub neighbors: Neighbors,
}

/// Who takes part in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sample {
    /// By which rule.
    pub by: Sampler,
    /// Probability that a record takes part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Or: records that take part on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Number of records (or users), as far as it is public: it need not be exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

/// By which rule a batch is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampler {
    /// Each record on its own coin.
    #[default]
    Poisson,
    /// Every record in every step.
    Full,
    /// A set of fixed size, where the number of records is public and one may only be replaced.
    WithoutReplacement,
    /// Every record once per epoch, in a batch of its own choosing; no amplification.
    Shuffled,
}

/// How long a gradient may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Clip {
    /// All of it together.
    Flat {
        /// Longest.
        norm: f64,
    },
    /// Each layer apart, to an equal share: the lengths of all together are at most this.
    PerLayer {
        /// Longest.
        norm: f64,
    },
    /// Brought to nearly this length, whatever it was.
    Automatic {
        /// The length.
        norm: f64,
        /// Gradients much shorter than this stay short.
        #[serde(default = "hundredth")]
        stability: f64,
    },
    /// To a length that follows a quantile of the lengths.
    Adaptive {
        /// Longest to begin with.
        #[serde(default = "one")]
        norm: f64,
        /// Share of gradients that are to be shorter.
        #[serde(default = "half")]
        quantile: f64,
        /// How fast it follows.
        #[serde(default = "fifth")]
        learning_rate: f64,
        /// Noise on the count, in records; a twentieth of the batch if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count_noise: Option<f64>,
    },
}

impl Default for Clip {
    fn default() -> Self {
        Self::Flat { norm: 1.0 }
    }
}

fn hundredth() -> f64 {
    0.01
}
fn one() -> f64 {
    1.0
}
fn half() -> f64 {
    0.5
}
fn fifth() -> f64 {
    0.2
}
