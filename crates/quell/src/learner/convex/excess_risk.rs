//! Bounds on the excess risk of noisy gradient descent, with explicit constants.
//!
//! Each function takes the number of steps T and the variance of a gradient estimate, and returns the bound
//! with the step size that reaches it. What noise costs is in `noise`, and how T and the batch are chosen is in
//! `planner`. The derivations: THEORY, Noisy descent; Smoothing and variance reduction.

use super::{Loss, Problem, search::minimum};
use crate::Error;

/// How the step size depends on the step t = 1, 2, …, T.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepSize {
    /// η in every step.
    Constant(f64),
    /// 2/(λ(t + 1)), for the strong convexity λ.
    Decreasing {
        /// λ.
        strong_convexity: f64,
    },
    /// γt in step t of accelerated descent.
    Growing(f64),
}

/// Which weights the bound holds for, as a function of the iterates w₁, …, w_T.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Average {
    /// The mean of all iterates.
    Uniform,
    /// 2/(T(T + 1)) Σ t wₜ.
    Linear,
    /// The mean with weights in proportion to this number to the power t.
    Geometric(f64),
    /// An iterate that is drawn uniformly at random.
    Drawn,
    /// The aggregate of accelerated descent after the last step.
    Accelerated,
}

/// A bound on the risk, with the step size and the average for which it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Bound on the expected excess risk, or on the expected squared gradient of a loss that is not convex.
    pub risk: f64,
    /// The step size.
    pub step_size: StepSize,
    /// The average.
    pub average: Average,
}

/// The variance of a gradient estimate over L²: that of a Poisson sample, and that of the noise.
///
/// The estimate is the noisy sum over a batch of expected size b, divided by b. The noise on the sum has the
/// standard deviation zL in each coordinate.
///
/// # Theorem
/// (THEORY, Noisy descent) At most (1 - b/n)/b + dz²/b².
#[must_use]
pub fn variance(problem: &Problem, batch_size: f64, noise_multiplier: f64) -> f64 {
    let n = problem.records as f64;
    let sampling = (1.0 - batch_size / n).max(0.0) / batch_size;
    sampling + noise_variance(problem, batch_size, noise_multiplier)
}

/// The part of the variance that the noise adds: dz²/b².
pub(super) fn noise_variance(problem: &Problem, batch_size: f64, noise_multiplier: f64) -> f64 {
    problem.dimension as f64 * (noise_multiplier / batch_size).powi(2)
}

/// Bounds the risk of T noisy steps whose gradient estimates have this variance, over L².
///
/// `NoisyGD` and `NoisySGD` differ in the variance alone ([`variance`]).
///
/// # Theorem
/// (THEORY, Noisy descent) The estimates are unbiased given the past. Projection onto a convex set that contains
/// w* is allowed, except where the loss is not convex.
///
/// - Convex: E F(w̄) - F* ≤ R²/(2ηT) + ηL²(1 + v)/2.
/// - Smooth convex, η ≤ 1/β, ∇F(w*) = 0: ≤ R²/(2ηT) + ηL²v/2.
/// - Strongly convex, ηₜ = 2/(λ(t + 1)): ≤ 2L²(1 + v)/(λ(T + 1)).
/// - Smooth strongly convex, η ≤ 1/(2β), ∇F(w*) = 0: ≤ λR²/(4((1 - ηλ/2)^-T - 1)) + ηL²v/2.
/// - Smooth, η ≤ 1/β: E‖∇F‖² ≤ 2(F(w₁) - F*)/(ηT) + βηL²v.
pub fn of_descent(problem: &Problem, loss: Loss, steps: u64, variance: f64) -> Result<Reached, Error> {
    let (l, r, t) = (problem.lipschitz, problem.radius, steps as f64);
    Ok(match loss {
        Loss::Convex => {
            let length = l * (t * (1.0 + variance)).sqrt();
            let (risk, eta) = (r * length / t, r / length);
            //  = RL √((1 + v)/T)
            Reached { risk, step_size: StepSize::Constant(eta), average: Average::Uniform }
        }
        Loss::SmoothConvex | Loss::SmoothGlm => {
            let eta = (r / (l * (t * variance).sqrt())).min(problem.beta()?.recip());
            let risk = r * r / (2.0 * eta * t) + 0.5 * eta * l * l * variance;
            Reached { risk, step_size: StepSize::Constant(eta), average: Average::Uniform }
        }
        Loss::StronglyConvex => {
            let strong_convexity = problem.lambda()?;
            let risk = 2.0 * l * l * (1.0 + variance) / (strong_convexity * (t + 1.0));
            Reached { risk, step_size: StepSize::Decreasing { strong_convexity }, average: Average::Linear }
        }
        Loss::SmoothStronglyConvex => {
            let lambda = problem.lambda()?;
            let risk = |eta: f64| {
                // (1 - ηλ/2)^-T - 1
                let growth = (-t * (-0.5 * eta * lambda).ln_1p()).exp_m1();
                lambda * r * r / (4.0 * growth) + 0.5 * eta * l * l * variance
            };
            let most = 0.5 / problem.beta()?;
            let eta = minimum(most * 1e-12, most, risk);
            let average = Average::Geometric((1.0 - 0.5 * eta * lambda).recip());
            Reached { risk: risk(eta), step_size: StepSize::Constant(eta), average }
        }
        Loss::SmoothNonConvex => {
            let (beta, start) = (problem.beta()?, problem.start(loss));
            let eta = ((2.0 * start / (beta * t * variance)).sqrt() / l).min(beta.recip());
            let risk = 2.0 * start / (eta * t) + beta * eta * l * l * variance;
            Reached { risk, step_size: StepSize::Constant(eta), average: Average::Drawn }
        }
    })
}

/// Bounds the risk of T accelerated steps on a convex loss that is smoothed by a Gaussian.
///
/// A record's gradient is taken at w + sg, where g is standard normal, drawn anew for each record and step, and
/// s is the `width`.
///
/// # Theorem
/// (THEORY, Smoothing and variance reduction) The smoothed loss exceeds F by at most Ls√d, and is smooth with
/// β = √(2/π)L/s. With γ ≤ 1/(2β), E F - F* ≤ Ls√d + R²/(γT(T + 1)) + γL²v(1 + 2βγ)(2T + 1)/6.
#[must_use]
pub fn of_smoothed_descent(problem: &Problem, width: f64, steps: u64, variance: f64) -> Reached {
    let (l, r, t) = (problem.lipschitz, problem.radius, steps as f64);
    let beta = std::f64::consts::FRAC_2_PI.sqrt() * l / width;
    let risk = |gamma: f64| {
        r * r / (gamma * t * (t + 1.0))
            + gamma * l * l * variance * (1.0 + 2.0 * beta * gamma) * (2.0 * t + 1.0) / 6.0
    };
    let most = 0.5 / beta;
    let gamma = minimum(most * 1e-12, most, risk);
    let bias = l * width * (problem.dimension as f64).sqrt();
    Reached { risk: bias + risk(gamma), step_size: StepSize::Growing(gamma), average: Average::Accelerated }
}

/// Bounds the risk of T variance-reduced steps on a smooth convex loss, in epochs of equal length.
///
/// A step uses the gradient at a reference point, which is the mean of the last epoch, and corrects it on a
/// Poisson sample of expected size b. Both have noise of their own. `variance` is the variance of both noises
/// together, over L².
///
/// # Theorem
/// (THEORY, Smoothing and variance reduction) With η ≤ 1/β and a = 4βη(1 - b/n)/b < 1,
/// E F(w̄) - F* ≤ (R²/(ηT) + a(F(w₁) - F*)/S + ηL²v)/(2 - 2a) after S epochs.
pub fn of_reduced_descent(
    problem: &Problem,
    batch_size: f64,
    epochs: u64,
    steps: u64,
    variance: f64,
) -> Result<Reached, Error> {
    let (l, r, t) = (problem.lipschitz, problem.radius, steps as f64);
    let (beta, start) = (problem.beta()?, problem.start(Loss::SmoothConvex));
    let share = (1.0 - batch_size / problem.records as f64).max(0.0) / batch_size;
    let risk = |eta: f64| {
        let a = 4.0 * beta * eta * share;
        (r * r / (eta * t) + a * start / epochs as f64 + eta * l * l * variance) / (2.0 - 2.0 * a)
    };
    // The bound holds below 1/(4β(1 - b/n)/b), where it is infinite.
    let most = beta.recip().min(0.999 / (4.0 * beta * share));
    let eta = minimum(most * 1e-12, most, risk);
    Ok(Reached { risk: risk(eta), step_size: StepSize::Constant(eta), average: Average::Uniform })
}

/// What the bound of [`of_descent`] tends to with full batches, as the number of steps grows.
///
/// `one_release` is the noise multiplier z₁ of one release. T steps have the multiplier √T z₁.
///
/// # Theorem
/// (THEORY, Noisy descent) With c = √d z₁/n: RLc for convex losses; 2L²c²/λ for strongly convex ones; the least
/// value over u of λR²/(4(e^(uλ/2) - 1)) + uL²c²/2 for smooth and strongly convex ones; 2√(2β(F(w₁) - F*)) Lc
/// for the squared gradient.
pub fn limit(problem: &Problem, loss: Loss, one_release: f64) -> Result<f64, Error> {
    let (l, r) = (problem.lipschitz, problem.radius);
    let c = (problem.dimension as f64).sqrt() * one_release / problem.records as f64;
    Ok(match loss {
        Loss::Convex | Loss::SmoothConvex | Loss::SmoothGlm => r * l * c,
        Loss::StronglyConvex => 2.0 * (l * c).powi(2) / problem.lambda()?,
        Loss::SmoothStronglyConvex => {
            let lambda = problem.lambda()?;
            let risk =
                |u: f64| lambda * r * r / (4.0 * (0.5 * u * lambda).exp_m1()) + 0.5 * u * (l * c).powi(2);
            risk(minimum(1e-12 / lambda, 1e3 / lambda, risk))
        }
        Loss::SmoothNonConvex => 2.0 * (2.0 * problem.beta()? * problem.start(loss)).sqrt() * l * c,
    })
}
