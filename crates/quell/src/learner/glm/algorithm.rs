//! The algorithms that fit a linear model.
//!
//! Variance reduction follows Wang, Ye and Xu 2017 (DP-SVRG), sufficient statistics Wang 2018 (AdaSSP),
//! Newton's method with an upper bound of the Hessian Ganesh, Haghifam, Steinke and Thakurta 2023, output
//! perturbation Chaudhuri, Monteleoni and Sarwate 2011, objective perturbation Kifer, Smith and Thakurta 2012.

use serde::{Deserialize, Serialize};

/// An algorithm that fits a linear model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Gradient descent with momentum on columns that were standardised privately.
    #[default]
    Standardized,
    /// Gradient descent on the declared bounds, with every iterate released.
    NoisyGd,
    /// Stochastic gradient descent on the declared bounds.
    NoisySgd,
    /// Stochastic gradient descent whose variance is reduced by a full gradient in every other epoch.
    Svrg,
    /// Sufficient statistics: noisy second moments, and a ridge that adapts to their noise.
    Adassp,
    /// Newton's method with one noisy upper bound of the Hessian.
    Newton,
    /// The minimiser of a penalised loss, plus noise.
    OutputPerturbation,
    /// The minimiser of a penalised loss with a random linear term.
    ObjectivePerturbation,
    /// Gradient descent that releases its last iterate alone.
    HiddenState,
    /// Frank-Wolfe on a ball of the ℓ₁ norm, for sparse models of many features.
    FrankWolfe,
    /// One sample from the posterior of linear regression.
    OnePosterior,
    /// Langevin steps: stochastic gradient descent whose last iterate is nearly a posterior sample.
    Sgld,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 12] = [
        Self::Standardized,
        Self::NoisyGd,
        Self::NoisySgd,
        Self::Svrg,
        Self::Adassp,
        Self::Newton,
        Self::OutputPerturbation,
        Self::ObjectivePerturbation,
        Self::HiddenState,
        Self::FrankWolfe,
        Self::OnePosterior,
        Self::Sgld,
    ];

    /// The name, as settings write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Standardized => "standardized",
            Self::NoisyGd => "noisy-gd",
            Self::NoisySgd => "noisy-sgd",
            Self::Svrg => "svrg",
            Self::Adassp => "adassp",
            Self::Newton => "newton",
            Self::OutputPerturbation => "output-perturbation",
            Self::ObjectivePerturbation => "objective-perturbation",
            Self::HiddenState => "hidden-state",
            Self::FrankWolfe => "frank-wolfe",
            Self::OnePosterior => "one-posterior",
            Self::Sgld => "sgld",
        }
    }

    /// The algorithm with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// One sentence on the algorithm and its use.
    #[must_use]
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Standardized => {
                "Linear models: descent on privately standardised columns; the default for tables"
            }
            Self::NoisyGd => "Linear models: gradient descent on the declared bounds",
            Self::NoisySgd => "Linear models: stochastic gradient descent on the declared bounds",
            Self::Svrg => "Linear models: stochastic gradient descent with reduced variance",
            Self::Adassp => "Linear regression: noisy second moments and an adaptive ridge",
            Self::Newton => "Linear models: Newton's method",
            Self::OutputPerturbation => "Linear models: the minimiser of a penalised loss, plus noise",
            Self::ObjectivePerturbation => {
                "Linear models: the minimiser of a penalised loss with a random linear term"
            }
            Self::HiddenState => "Linear models: descent that releases its last iterate alone",
            Self::FrankWolfe => "Linear models: Frank-Wolfe, for sparse models of many features",
            Self::OnePosterior => "Linear regression: one sample from the posterior on a ball",
            Self::Sgld => {
                "Linear models: Langevin steps, whose last iterate is nearly a sample from the posterior"
            }
        }
    }

    /// Whether the algorithm has a setting, by the name of its field in a recipe.
    pub(super) fn has(self, setting: &str) -> bool {
        let settings: &[&str] = match self {
            Self::Standardized => &["steps", "learning_rate", "regularization", "waves", "trees"],
            Self::NoisyGd | Self::Svrg | Self::Newton | Self::HiddenState => {
                &["steps", "learning_rate", "regularization"]
            }
            Self::NoisySgd | Self::Sgld => &["steps", "learning_rate", "regularization", "sampling_rate"],
            Self::Adassp => &["steps", "regularization"],
            Self::OutputPerturbation | Self::ObjectivePerturbation | Self::OnePosterior => {
                &["regularization"]
            }
            Self::FrankWolfe => &["steps", "radius"],
        };
        settings.contains(&setting)
    }

    /// Whether means and spreads of the columns are released first.
    pub(super) fn standardizes(self) -> bool {
        matches!(self, Self::Standardized | Self::Adassp | Self::Newton)
    }
}
