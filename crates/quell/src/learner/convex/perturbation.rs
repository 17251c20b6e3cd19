//! Bounds on the excess risk of output and objective perturbation, with explicit constants.
//!
//! Both add noise once, and both need the exact minimiser. How it is found is not part of the theorems. The
//! derivations are in THEORY, Minimisers with noise.

use quell_privacy::{
    Neighbors,
    accounting::closed,
    units::{Delta, Epsilon},
};

use super::{Loss, Privacy, Problem, search::minimum};
use crate::Error;

/// A bound on the risk of a perturbed minimiser, with the settings for which it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perturbed {
    /// Bound on the expected excess risk.
    pub risk: f64,
    /// Weight r of the regulariser r‖w - w₁‖²/2 that is added to the mean loss.
    pub regularization: f64,
    /// Standard deviation of the noise in each coordinate.
    pub noise: f64,
}

/// Bounds the excess risk of the regularised minimiser plus Gaussian noise.
///
/// `one_release` is the noise multiplier of one release. The noise is that times L/(nr): one record moves the
/// minimiser by at most the neighbours' reach times L/(nr).
///
/// # Theorem
/// (THEORY, Minimisers with noise) For strongly convex losses r = 0, and λ stands for r in the noise s.
///
/// - Convex: E F - F* ≤ rR²/2 + L√d s.
/// - Smooth convex, not projected: ≤ rR²/2 + βds²/2.
/// - Strongly convex, projected onto a convex set: ≤ L√d s.
/// - Smooth strongly convex, ∇F(w*) = 0: ≤ min(L√d s, βds²/2).
pub fn of_output(problem: &Problem, loss: Loss, one_release: f64) -> Result<Perturbed, Error> {
    let (n, d) = (problem.records as f64, problem.dimension as f64);
    let (l, r) = (problem.lipschitz, problem.radius);
    let noise = |curvature: f64| one_release * l / (n * curvature);
    let lipschitz = |s: f64| l * d.sqrt() * s;
    Ok(match loss {
        Loss::Convex => {
            let weight = (2.0 * d.sqrt() * one_release / n).sqrt() * l / r;
            let risk = 0.5 * weight * r * r + lipschitz(noise(weight));
            //       = RL √(2√d z₁/n)
            Perturbed { risk, regularization: weight, noise: noise(weight) }
        }
        Loss::SmoothConvex | Loss::SmoothGlm => {
            let beta = problem.beta()?;
            let weight = (2.0 * beta * d * (one_release * l / (n * r)).powi(2)).cbrt();
            let risk = 0.5 * weight * r * r + 0.5 * beta * d * noise(weight).powi(2);
            //       = (3/4) R² (2βdz₁²L²/(n²R²))^(1/3)
            Perturbed { risk, regularization: weight, noise: noise(weight) }
        }
        Loss::StronglyConvex | Loss::SmoothStronglyConvex => {
            let noise = noise(problem.lambda()?);
            let smooth = match loss {
                Loss::SmoothStronglyConvex => 0.5 * problem.beta()? * d * noise * noise,
                _ => f64::INFINITY,
            };
            Perturbed { risk: lipschitz(noise).min(smooth), regularization: 0.0, noise }
        }
        Loss::SmoothNonConvex => return Err(no_theorem("output perturbation")),
    })
}

/// Bounds the excess risk of the minimiser of F(w) + r‖w - w₁‖²/2 + ⟨b, w⟩, where b is Gaussian.
///
/// # Theorem
/// (THEORY, Minimisers with noise) E F - F* ≤ rR²/2 + ds²/(2r) for convex losses, where s is the standard
/// deviation of b. The losses are convex, L-Lipschitz and β-smooth everywhere, and w is not constrained.
pub fn of_objective(problem: &Problem, loss: Loss, privacy: Privacy) -> Result<Perturbed, Error> {
    let is_linear = match loss {
        Loss::SmoothConvex => false,
        Loss::SmoothGlm => true,
        _ => return Err(no_theorem("objective perturbation")),
    };
    let epsilon = privacy.epsilon.get();
    if epsilon == 0.0 {
        return Err(Error::OutOfRange { what: "epsilon", value: 0.0, range: "(0, inf)" });
    }
    let (n, d) = (problem.records as f64, problem.dimension as f64);
    let (l, r, beta) = (problem.lipschitz, problem.radius, problem.beta()?);
    let rank = if is_linear { 1.0 } else { d };
    let risk = |weight: f64| -> Option<(f64, f64)> {
        // Weight and noise of the sum of losses, of which F is the mean.
        let sum_weight = n * weight;
        let left = epsilon - rank * (beta / sum_weight).ln_1p();
        let noise = l * noise_multiplier(problem.dimension, is_linear, left, privacy)? / n;
        Some((0.5 * weight * r * r + 0.5 * d * noise * noise / weight, noise))
    };
    // Below this, the change of the Hessian alone costs ε.
    let least = beta / (n * (epsilon / rank).exp_m1());
    let weight = minimum(least.max(f64::MIN_POSITIVE) * (1.0 + 1e-9), least.max(l / r) * 1e9, |weight| {
        risk(weight).map_or(f64::INFINITY, |(risk, _)| risk)
    });
    let (risk, noise) = risk(weight).ok_or(quell_privacy::Error::Unreachable {
        what: "noise of objective perturbation",
        range: "[1e-6, 1e12]",
    })?;
    Ok(Perturbed { risk, regularization: weight, noise })
}

/// The standard deviation of b for the sum of the losses, over L. `None` if no noise is enough.
///
/// `left` is what remains of ε after the change of the Hessian.
///
/// # Theorem
/// (THEORY, Minimisers with noise) Let μ be the reach of the neighbours over the multiplier, and let k be the
/// dimension of the space in which the gradients of the changed records lie: 1 or 2 in a linear model, else d. The
/// privacy loss is at most ε - left + μ²/2 + μχ, where χ is the length of a standard normal vector of k numbers.
///
/// - k = 1: this is (ε, δ)-DP if μ²/2 ≤ left and the Gaussian mechanism of this μ is (left, δ/2)-DP.
/// - else: it is if μ²/2 + μq ≤ left for a q that χ exceeds with probability at most δ.
fn noise_multiplier(dimension: u64, is_linear: bool, left: f64, privacy: Privacy) -> Option<f64> {
    if left.is_nan() || left <= 0.0 {
        return None;
    }
    let changed = match privacy.neighbors {
        Neighbors::AddRemove => 1,
        Neighbors::Replace => 2,
    };
    let space = if is_linear { dimension.min(changed) } else { dimension };
    let reach = privacy.neighbors.reach();
    if space == 1 {
        let half = Delta::new(0.5 * privacy.delta.get()).ok()?;
        let gaussian = closed::gaussian_sigma(Epsilon::new(left).ok()?, half).ok()?.get();
        return Some(reach * gaussian.max((2.0 * left).sqrt().recip()));
    }
    let tail = (-2.0 * privacy.delta.get().ln()).sqrt();
    // P[χ > q] is e^(-q²/2) for two numbers, and at most δ at √k + √(2 ln(1/δ)) by concentration.
    let q = if space == 2 { tail } else { (space as f64).sqrt() + tail };
    // μ = -q + √(q² + 2 left), without cancellation.
    let mu = 2.0 * left / (q + (q * q + 2.0 * left).sqrt());
    Some(reach / mu)
}

fn no_theorem(method: &str) -> Error {
    Error::Setting {
        name: "loss",
        found: format!("of a class for which {method} has no theorem"),
        expected: "another loss or method",
    }
}
