//! The optimizers by name, with their settings.

use serde::{Deserialize, Serialize};

use super::Stepper;
use crate::{
    Error,
    range::{BELOW_ONE, NOT_NEGATIVE, POSITIVE},
};

/// How weights follow gradients. In the formulas g is the released gradient, w the weights and η the learning rate.
///
/// ```
/// use quell::optimizer::{Optimizer, Step};
/// let optimizer: Optimizer = serde_json::from_str(r#"{"momentum": {"momentum": 0.5}}"#)?;
/// let mut weights = [1.0, 1.0];
/// let mut stepper = optimizer.start(&[2])?;
/// let step = Step { learning_rate: 0.5, ..Step::default() };
/// stepper.step(&mut weights, &[1.0, 0.0], step)?;
/// stepper.step(&mut weights, &[0.0, 0.0], step)?;
/// assert_eq!(weights, [0.25, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Optimizer {
    /// w - η(g + λw).
    Sgd {
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// u ← μu + g + λw, then w - ηu: the heavy ball. Nesterov's looks one step ahead: w - η(g + λw + μu).
    Momentum {
        /// μ.
        #[serde(default = "nine_tenths")]
        momentum: f64,
        /// Whether to look ahead.
        #[serde(default)]
        nesterov: bool,
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Kingma and Ba 2015: w - ηm̂/(√v̂ + ε), with m and v the running means of g + λw and its square.
    Adam {
        /// Of m, how much is kept.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Of v, how much is kept.
        #[serde(default = "most")]
        beta2: f64,
        /// ε.
        #[serde(default = "tiny")]
        epsilon: f64,
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Loshchilov and Hutter 2019: Adam of g alone, with weights that shrink by ηλw apart from it.
    #[serde(rename = "adamw")]
    AdamW {
        /// Of m, how much is kept.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Of v, how much is kept.
        #[serde(default = "most")]
        beta2: f64,
        /// ε.
        #[serde(default = "tiny")]
        epsilon: f64,
        /// λ.
        #[serde(default = "hundredth")]
        weight_decay: f64,
    },
    /// DP-AdamBC (Tang, Shpilevskiy and Lécuyer 2024): w - ηm̂/√max(v̂ - Φ, γ), where Φ is the variance of the noise.
    ///
    /// Noise adds its variance to the second moment of every weight alike. Where it outweighs the gradient, Adam divides
    /// everything by the same number, and is SGD with momentum. The variance is public, so it is taken out again. Where
    /// it changes from step to step, Φ is its running mean, with the weights of v̂. Weights shrink by ηλw, as in AdamW.
    AdamBc {
        /// Of m, how much is kept.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Of v, how much is kept.
        #[serde(default = "most")]
        beta2: f64,
        /// γ, least that a second moment counts as. It bounds how much longer steps get where the noise hides the gradient.
        #[serde(default = "floor")]
        floor: f64,
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Duchi, Hazan and Singer 2011: s ← s + (g + λw)², then w - η(g + λw)/(√s + ε).
    #[serde(rename = "adagrad")]
    AdaGrad {
        /// s before the first step.
        #[serde(default)]
        initial: f64,
        /// ε.
        #[serde(default = "tiniest")]
        epsilon: f64,
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// LAMB (You et al. 2020): with r = m̂/(√v̂ + ε) + λw, each layer takes the step η‖w‖/‖r‖ r, or ηr where a norm is zero.
    Lamb {
        /// Of m, how much is kept.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Of v, how much is kept.
        #[serde(default = "most")]
        beta2: f64,
        /// ε.
        #[serde(default = "millionth")]
        epsilon: f64,
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
}

fn nine_tenths() -> f64 {
    0.9
}
fn most() -> f64 {
    0.999
}
fn hundredth() -> f64 {
    0.01
}
fn millionth() -> f64 {
    1e-6
}
fn tiny() -> f64 {
    1e-8
}
fn floor() -> f64 {
    5e-8
}
fn tiniest() -> f64 {
    1e-10
}

impl Optimizer {
    /// Whether every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        // In single precision, as they are used: what is kept must be less than all, and no weight divided by zero.
        let betas = |beta1, beta2| {
            BELOW_ONE.check("beta1", single(beta1))?;
            BELOW_ONE.check("beta2", single(beta2))
        };
        let weight_decay = match *self {
            Self::Sgd { weight_decay } => weight_decay,
            Self::Momentum { momentum, weight_decay, .. } => {
                BELOW_ONE.check("momentum", momentum)?;
                weight_decay
            }
            Self::Adam { beta1, beta2, epsilon, weight_decay }
            | Self::AdamW { beta1, beta2, epsilon, weight_decay }
            | Self::Lamb { beta1, beta2, epsilon, weight_decay } => {
                betas(beta1, beta2)?;
                POSITIVE.check("epsilon", single(epsilon))?;
                weight_decay
            }
            Self::AdamBc { beta1, beta2, floor, weight_decay } => {
                betas(beta1, beta2)?;
                POSITIVE.check("floor", single(floor))?;
                weight_decay
            }
            Self::AdaGrad { initial, epsilon, weight_decay } => {
                NOT_NEGATIVE.check("initial", initial)?;
                POSITIVE.check("epsilon", single(epsilon))?;
                weight_decay
            }
        };
        NOT_NEGATIVE.check("weight_decay", weight_decay)
    }

    /// Ready for the first step on weights that stand layer after layer, of these lengths. Only LAMB looks at layers.
    pub fn start(self, layers: &[usize]) -> Result<Stepper, Error> {
        self.check()?;
        Ok(Stepper::new(self, layers))
    }
}

fn single(value: f64) -> f64 {
    f64::from(value as f32)
}
