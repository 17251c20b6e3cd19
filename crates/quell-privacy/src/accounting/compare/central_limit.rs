//! The central limit theorem for DP-SGD: an estimate that must not be claimed.

use crate::{
    special::normal_below,
    units::{NoiseMultiplier, SamplingRate},
};

/// The central limit theorem's μ for DP-SGD. [BDLS20]
///
/// It is an approximation, neither an upper nor a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clt {
    /// q√(T(e^(1/σ²) - 1)), Poisson sampling.
    Poisson,
    /// √2 q√T √(e^(1/σ²)Φ(1.5/σ) + 3Φ(-0.5/σ) - 2), sampling without replacement.
    Uniform,
}

impl Clt {
    /// μ.
    #[must_use]
    pub fn mu(self, noise_multiplier: NoiseMultiplier, rate: SamplingRate, steps: u64) -> f64 {
        let (sigma, q, steps) = (noise_multiplier.get(), rate.get(), steps as f64);
        let square = sigma.powi(-2);
        match self {
            Self::Poisson => q * (steps * square.exp_m1()).sqrt(),
            Self::Uniform => {
                let spread =
                    square.exp() * normal_below(1.5 / sigma) + 3.0 * normal_below(-0.5 / sigma) - 2.0;
                2.0_f64.sqrt() * q * (steps * spread).sqrt()
            }
        }
    }
}
