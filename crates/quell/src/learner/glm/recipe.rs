//! The settings of a linear model, some of which may be missing.

use serde::{Deserialize, Serialize};

use super::Algorithm;
use crate::{
    Error,
    learner::{Privacy, Subject, loss::Loss, section::Guaranteed},
    network::Architecture,
};

/// The settings of a linear model. Missing settings are chosen from public facts alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// The privacy guarantee.
    pub privacy: Privacy,
    /// The algorithm that fits the model.
    pub method: Algorithm,
    /// A public number of records (or users). It need not be exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Number of steps: gradients, noisy matrices (`adassp`) or corners (`frank-wolfe`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// The weight λ of the penalty λ/2 ‖w‖², relative to the mean loss.
    ///
    /// For methods that standardise, w are the weights of standardised columns, and waves count like columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regularization: Option<f64>,
    /// Probability that a record enters the batch of a step, for stochastic gradient descent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// The largest sum of absolute weights, for Frank-Wolfe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
    /// The quantile that quantile regression predicts; by default the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantile: Option<f32>,
    /// Whether the last steps calibrate the predictions. By default they do where the noise is small enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<bool>,
    /// Number of waves of each number, from which an additive model forms curves.
    ///
    /// At most eight. Zero gives lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waves: Option<u64>,
    /// Number of trees of a forest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trees: Option<u64>,
    /// The public seed of the trees of a forest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree_seed: Option<u64>,
}

impl Guaranteed for Recipe {
    fn guarantee(&mut self) -> (&mut Privacy, &mut Option<u64>) {
        (&mut self.privacy, &mut self.records)
    }
}

/// A linear model: what it predicts, and the loss that it minimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// A sum of smooth curves, one for each number, and of a value for each category.
    Additive,
    /// Random trees on top of an additive model: they see several columns together.
    Forest,
    /// Logistic regression: probabilities of two or more classes.
    Logistic,
    /// A support vector machine with a smoothed hinge loss.
    Svm,
    /// Linear regression.
    Linear,
    /// Linear regression with a penalty on the weights.
    Ridge,
    /// Poisson regression: expected counts.
    Poisson,
    /// Quantile regression.
    Quantile,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 8] = [
        Self::Additive,
        Self::Forest,
        Self::Logistic,
        Self::Svm,
        Self::Linear,
        Self::Ridge,
        Self::Poisson,
        Self::Quantile,
    ];

    /// The name, as settings write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Additive => "additive",
            Self::Forest => "forest",
            Self::Logistic => "logistic",
            Self::Svm => "svm",
            Self::Linear => "linear",
            Self::Ridge => "ridge",
            Self::Poisson => "poisson",
            Self::Quantile => "quantile",
        }
    }

    /// One sentence on the model and its use.
    #[must_use]
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Additive => {
                "A curve for each number, a value for each category: the default for most tables."
            }
            Self::Forest => "Random trees on top of an additive model: boosting, for large tables.",
            Self::Logistic => "Logistic regression, for classes.",
            Self::Svm => "Support vector machine with a smoothed hinge loss, for classes.",
            Self::Linear => "Linear regression, for a numeric target.",
            Self::Ridge => "Linear regression with a penalty on the weights.",
            Self::Poisson => "Poisson regression, for counts from 0 to a declared bound.",
            Self::Quantile => "Quantile regression: the median, or another quantile of a number.",
        }
    }

    /// The model in words, for a title.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Additive => "Additive model",
            Self::Forest => "Random forest",
            Self::Logistic => "Logistic regression",
            Self::Svm => "Support vector machine",
            Self::Linear => "Linear regression",
            Self::Ridge => "Ridge regression",
            Self::Poisson => "Poisson regression",
            Self::Quantile => "Quantile regression",
        }
    }

    /// The family with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// The family that a model names. By default it is additive, or linear for methods without such models.
    pub(super) fn of(model: &Architecture, subject: &Subject<'_>, method: Algorithm) -> Result<Self, Error> {
        let family = match &model.name {
            None if method == Algorithm::Standardized => Self::Additive,
            None => Self::Additive.linear(subject.facts.classes),
            Some(name) => Self::named(name).ok_or_else(|| Error::Setting {
                name: "model",
                found: name.clone(),
                expected: "a model of tables: additive, forest, logistic, svm, linear, ridge, poisson or quantile",
            })?,
        };
        if family.is_additive() && method != Algorithm::Standardized {
            return Err(Error::Setting {
                name: "method",
                found: format!("{}, and the model is {}", method.name(), family.name()),
                expected: "standardized, or a linear model",
            });
        }
        Ok(family)
    }

    /// A remark on a model that was chosen because the method has no additive one.
    pub(super) fn remark(self, method: Algorithm, is_chosen: bool) -> Option<String> {
        (is_chosen && method != Algorithm::Standardized).then(|| {
            format!("the model is {}: the method {} fits no additive model", self.name(), method.name())
        })
    }

    /// The linear model with the loss of this family: an additive model is one on curves, a forest on leaves, too.
    pub(super) fn linear(self, classes: Option<usize>) -> Self {
        match classes {
            Some(_) if self.is_additive() => Self::Logistic,
            None if self.is_additive() => Self::Linear,
            _ => self,
        }
    }

    /// Whether the model adds curves, and predicts classes or numbers, whichever the targets are.
    pub(super) fn is_additive(self) -> bool {
        matches!(self, Self::Additive | Self::Forest)
    }

    /// Whether the family predicts classes alone.
    ///
    /// An additive model or a forest predicts classes or numbers, whichever the targets are.
    #[must_use]
    pub fn classifies(self) -> bool {
        matches!(self, Self::Logistic | Self::Svm)
    }

    /// The length of the weights of a good model for examples of length one: an assumption about all data.
    ///
    /// Numeric targets are in [-1, 1], and scores of classes are not.
    pub(super) fn weight_length(self) -> f64 {
        if self.classifies() { 10.0 } else { 2.0 }
    }

    /// The loss for a number of classes, or for numbers.
    pub(super) fn loss(self, classes: Option<usize>, quantile: Option<f32>) -> Result<Loss, Error> {
        let loss = match self {
            Self::Additive | Self::Forest => return self.linear(classes).loss(classes, quantile),
            Self::Logistic if classes > Some(2) => Loss::CrossEntropy { label_smoothing: 0.0 },
            Self::Logistic => Loss::BinaryCrossEntropy,
            Self::Svm => Loss::Hinge { smoothing: 0.5 },
            Self::Linear | Self::Ridge => Loss::Squared,
            Self::Poisson => Loss::Poisson,
            Self::Quantile => Loss::Pinball { quantile: quantile.unwrap_or(0.5), smoothing: 0.1 },
        };
        loss.check()?;
        Ok(loss)
    }
}
