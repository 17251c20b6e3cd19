//! The available optimizers and their settings.

use serde::{Deserialize, Serialize};

use super::Stepper;
use crate::{
    Error,
    range::{BELOW_ONE, NOT_NEGATIVE, POSITIVE},
};

/// An optimizer and its settings.
///
/// In the formulas, g is the released gradient, w the weights, η the learning rate and λ the weight decay.
///
/// ```
/// use quell::learner::optimizer::{Optimizer, Update};
/// let optimizer: Optimizer = serde_json::from_str(r#"{"momentum": {"momentum": 0.5}}"#)?;
/// let mut weights = [1.0, 1.0];
/// let mut stepper = optimizer.start(&[2])?;
/// let step = Update { learning_rate: 0.5, ..Update::default() };
/// stepper.step(&mut weights, &[1.0, 0.0], step)?;
/// stepper.step(&mut weights, &[0.0, 0.0], step)?;
/// assert_eq!(weights, [0.25, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Optimizer {
    /// Stochastic gradient descent: w - η(g + λw).
    Sgd {
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Momentum: u ← μu + g + λw, then w - ηu. With Nesterov momentum: w - η(g + λw + μu).
    Momentum {
        /// μ.
        #[serde(default = "nine_tenths")]
        momentum: f64,
        /// Whether to use Nesterov momentum.
        #[serde(default)]
        nesterov: bool,
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Adam (Kingma and Ba 2015): w - ηm̂/(√v̂ + ε).
    ///
    /// m and v are the running means of g + λw and its square.
    Adam {
        /// Decay factor of m.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Decay factor of v.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// ε.
        #[serde(default = "tiny")]
        epsilon: f64,
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// AdamW (Loshchilov and Hutter 2019): Adam of g alone, and decoupled weight decay by ηλw.
    #[serde(rename = "adamw")]
    AdamW {
        /// Decay factor of m.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Decay factor of v.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// ε.
        #[serde(default = "tiny")]
        epsilon: f64,
        /// λ.
        #[serde(default = "hundredth")]
        weight_decay: f64,
    },
    /// DP-AdamBC (Tang, Shpilevskiy and Lécuyer 2024): w - ηm̂/√max(v̂ - Φ, γ).
    ///
    /// Φ is the variance of the noise. The noise adds its variance to the second moment of every weight.
    /// Where the noise outweighs the gradient, Adam divides every step by the same number and is SGD with
    /// momentum. The variance of the noise is public, so this optimizer subtracts it. If the variance changes
    /// from step to step, Φ is its running mean, with the weights of v̂. Weights decay by ηλw, as in AdamW.
    AdamBc {
        /// Decay factor of m.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Decay factor of v.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// γ: the least value of the corrected second moment. It limits steps where noise hides the gradient.
        #[serde(default = "floor")]
        floor: f64,
        /// λ.
        #[serde(default)]
        weight_decay: f64,
    },
    /// AdaGrad (Duchi, Hazan and Singer 2011): s ← s + (g + λw)², then w - η(g + λw)/(√s + ε).
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
    /// LAMB (You et al. 2020): with r = m̂/(√v̂ + ε) + λw, each layer takes the step η‖w‖/‖r‖ r, or ηr where
    /// a norm is zero.
    Lamb {
        /// Decay factor of m.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Decay factor of v.
        #[serde(default = "default_beta2")]
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
fn default_beta2() -> f64 {
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
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        // Check in single precision, in which the settings are used: a decay factor must stay below one, and
        // a divisor must not become zero.
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

    /// Creates the state before the first step. `layers` are the numbers of weights of each layer.
    ///
    /// Only LAMB treats layers separately.
    pub fn start(self, layers: &[usize]) -> Result<Stepper, Error> {
        self.check()?;
        Ok(Stepper::new(self, layers))
    }
}

/// Rounds to single precision.
fn single(value: f64) -> f64 {
    f64::from(value as f32)
}
