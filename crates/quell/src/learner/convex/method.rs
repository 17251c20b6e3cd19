//! Methods of private empirical risk minimisation, and the theorems behind their bounds.

use super::Loss;

/// A method of private empirical risk minimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Noise on the minimiser.
    OutputPerturbation,
    /// A random linear term in the objective.
    ObjectivePerturbation,
    /// Gradient descent with noise, on all records in every step.
    NoisyGd,
    /// Gradient descent with noise, on Poisson samples.
    NoisySgd,
    /// Accelerated descent with noise on Poisson samples, on a smoothed loss.
    SmoothedSgd,
    /// Variance-reduced descent with noise, on Poisson samples.
    NoisySvrg,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 6] = [
        Self::OutputPerturbation,
        Self::ObjectivePerturbation,
        Self::NoisyGd,
        Self::NoisySgd,
        Self::SmoothedSgd,
        Self::NoisySvrg,
    ];

    /// The name of the method, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OutputPerturbation => "output-perturbation",
            Self::ObjectivePerturbation => "objective-perturbation",
            Self::NoisyGd => "noisy-gd",
            Self::NoisySgd => "noisy-sgd",
            Self::SmoothedSgd => "smoothed-sgd",
            Self::NoisySvrg => "noisy-svrg",
        }
    }

    /// Whether a theorem bounds the risk of this method on this class of losses.
    #[must_use]
    pub fn applies_to(self, loss: Loss) -> bool {
        match self {
            Self::OutputPerturbation => loss != Loss::SmoothNonConvex,
            Self::ObjectivePerturbation => matches!(loss, Loss::SmoothConvex | Loss::SmoothGlm),
            Self::NoisyGd | Self::NoisySgd => true,
            Self::SmoothedSgd => loss == Loss::Convex,
            Self::NoisySvrg => matches!(loss, Loss::SmoothConvex | Loss::SmoothGlm),
        }
    }

    /// The theorem behind the bound, with the hypotheses that the class of losses does not state.
    #[must_use]
    pub fn theorem(self, loss: Loss) -> &'static str {
        match (self, loss) {
            (Self::OutputPerturbation, Loss::Convex) => "rR²/2 + L√d s, regularised minimiser",
            (Self::OutputPerturbation, Loss::SmoothConvex | Loss::SmoothGlm) => {
                "rR²/2 + βds²/2, regularised minimiser, not projected"
            }
            (Self::OutputPerturbation, Loss::StronglyConvex) => "L√d s, s = z₁L/(nλ)",
            (Self::OutputPerturbation, _) => "min(L√d s, βds²/2), s = z₁L/(nλ), ∇F(w*) = 0",
            (Self::ObjectivePerturbation, Loss::SmoothGlm) => {
                "rR²/2 + ds²/(2r), Hessians of rank one, not projected"
            }
            (Self::ObjectivePerturbation, _) => "rR²/2 + ds²/(2r), any Hessian, not projected",
            (Self::SmoothedSgd, _) => {
                "Ls√d + R²/(γT(T+1)) + γL²v(1 + 2βγ)(2T+1)/6, losses Lipschitz everywhere"
            }
            (Self::NoisySvrg, _) => "(R²/(ηT) + a(F(w₁) - F*)/S + ηL²v)/(2 - 2a), ∇F(w*) = 0",
            (_, Loss::Convex) => "R²/(2ηT) + ηL²(1 + v)/2",
            (_, Loss::SmoothConvex | Loss::SmoothGlm) => "R²/(2ηT) + ηL²v/2, ∇F(w*) = 0",
            (_, Loss::StronglyConvex) => "2L²(1 + v)/(λ(T + 1)), projected",
            (_, Loss::SmoothStronglyConvex) => "λR²/(4((1 - ηλ/2)^-T - 1)) + ηL²v/2, ∇F(w*) = 0",
            (_, Loss::SmoothNonConvex) => "E‖∇F‖² ≤ 2(F(w₁) - F*)/(ηT) + βηL²v",
        }
    }
}
