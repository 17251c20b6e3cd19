//! The settings of a DP-SGD run, some of which may be missing.

use serde::{Deserialize, Serialize};

use crate::learner::{
    Augmentation, Privacy,
    average::Average,
    loss::Loss,
    optimizer::Optimizer,
    prepared::{Preparation, Recalibration},
    schedule::Schedule,
    section::Guaranteed,
};

/// The settings of a training run. Missing settings are chosen from public facts alone.
///
/// At least one of ε and the noise multiplier must be given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// The privacy guarantee.
    pub privacy: Privacy,
    /// How the batch of a step is sampled.
    pub sampling: Sample,
    /// Number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Number of epochs, if the number of steps is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// How gradients are clipped; by default to a norm that fits the kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clipping: Option<Clip>,
    /// The loss. By default it is cross-entropy for classes and half the squared error for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// The optimizer; by default SGD with a momentum of 0.9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<Optimizer>,
    /// The learning rate over the steps; by default a constant that follows from the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The average of the iterates that becomes the model; by default one that covers a tenth of the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<Average>,
    /// What is found about all records first, in the same plan, and used to transform them.
    ///
    /// A run standardises the columns of a table for a network that is named, unless a setting says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Preparation>,
    /// Whether a last release corrects the predicted probabilities of a network on prepared records.
    ///
    /// By default it does where ε is given, the noise is not, and there are enough records for its noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Recalibration>,
    /// Augmentation of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub augmentation: Option<Augmentation>,
    /// Seed of the initial weights and of other public randomness. It does not determine the noise.
    pub seed: u64,
}

impl Guaranteed for Recipe {
    fn guarantee(&mut self) -> (&mut Privacy, &mut Option<u64>) {
        (&mut self.privacy, &mut self.sampling.records)
    }
}

/// How the batch of a step is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sample {
    /// The sampling scheme.
    pub by: Sampler,
    /// Probability that a record is in the batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Expected batch size, if the rate is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// A public number of records (or users). It need not be exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

/// The sampling scheme of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampler {
    /// Poisson sampling: each record independently.
    #[default]
    Poisson,
    /// Full batches: every record in every step.
    Full,
    /// Batches of a fixed size, for the neighbouring relation that replaces one record.
    ///
    /// The number of records is then public.
    WithoutReplacement,
    /// Every record once per epoch, in a random batch, without privacy amplification.
    Shuffled,
}

/// How gradients are clipped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Clip {
    /// Clips the whole gradient to a norm.
    Flat {
        /// The clip norm.
        norm: f64,
    },
    /// Clips each layer separately, to equal norms. The whole gradient has at most norm `norm`.
    PerLayer {
        /// The clip norm.
        norm: f64,
    },
    /// Automatic clipping: scales every gradient to nearly the same norm.
    Automatic {
        /// The norm after scaling.
        norm: f64,
        /// Stability constant. Gradients much shorter than it stay short.
        #[serde(default = "hundredth")]
        stability: f64,
    },
    /// Adaptive clipping: the clip norm follows a quantile of the gradient norms.
    Adaptive {
        /// The clip norm of the first step.
        #[serde(default = "one")]
        norm: f64,
        /// The target share of gradients that are shorter than the clip norm.
        #[serde(default = "half")]
        quantile: f64,
        /// Learning rate of the clip norm.
        #[serde(default = "fifth")]
        learning_rate: f64,
        /// Standard deviation of the noise on the count, in records.
        ///
        /// By default it is a twentieth of the batch, and at least twice the noise multiplier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count_noise: Option<f64>,
    },
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
