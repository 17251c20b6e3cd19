//! Rényi divergences of single releases, as functions of the order.

use std::sync::Arc;

use super::{
    moment::{ln_moment, ln_moment_of_atoms},
    sampled::{self, FixedSizeMoments},
};
use crate::{
    Neighbors,
    accounting::pld::Masses,
    special::{ROUNDOFF, ln_normal_below, ln_sum_exp},
};

/// A bound ε(α) on the Rényi divergence between neighbours, for every order α > 1.
#[derive(Clone, Debug)]
pub(crate) enum Curve {
    /// ρα: any ρ-zCDP mechanism [BS16].
    ///
    /// Gaussian noise is one, continuous [Mir17, Corollary 3] or discrete [CKS20, Theorem 4].
    Linear { rho: f64 },
    /// Laplace noise. [Mir17, Proposition 6]
    Laplace { epsilon: f64 },
    /// The worst pair of bounded range ε at each order. [DDR20]
    BoundedRange { epsilon: f64 },
    /// Finitely many losses with their probabilities under P.
    Atoms { atoms: Vec<(f64, f64)> },
    /// Bounds given at some orders.
    Given { points: Vec<(f64, f64)> },
    /// Several releases on the same records, each with its number of occurrences. [Mir17, Proposition 1]
    Sum { parts: Vec<(Curve, f64)> },
    /// Gaussian noise on a Poisson sample, for adding or removing a record. [MTZ19]
    SampledGaussian { rate: f64, sigma: f64 },
    /// Grids that dominate a pair, one for each direction, given that the loss is finite.
    ///
    /// A grid is finite. So this is only for losses that are bounded, or that are cut off where the caller
    /// charges for the tail ([`super::Renyi::for_delta`]).
    Grid { directions: Arc<Vec<Masses>>, h: f64 },
    /// Any curve on a Poisson sample, for adding or removing a record. [ZW19, Theorem 5]
    ///
    /// `symmetric`: some pair with this curve dominates, and exchanging its two sides changes nothing
    /// (THEORY, Rényi on samples).
    Sampled { rate: f64, inner: Box<Curve>, symmetric: bool },
    /// Any curve on a Poisson sample, for replacing a record.
    ///
    /// The bound reveals whether the record was sampled.
    RevealedSample { rate: f64, inner: Box<Curve> },
    /// A sample of fixed size, for replacing a record. [WBK19, Theorems 9 and 27]
    FixedSize { rate: f64, inner: Box<Curve>, moments: FixedSizeMoments },
    /// No bound at any order.
    Infinite,
    /// Objective perturbation with μ = L/σ and shift = ln(1 + β/Λ). (THEORY, Objective perturbation)
    PerturbedObjective { mu: f64, shift: f64, neighbors: Neighbors },
    /// The best of e^`log_expected` trials on average. [PS22, Theorem 2]
    BestOf { log_expected: f64, spread: f64, trials: Vec<Curve> },
}

/// Orders at which [`Curve::best_of`] looks for the least spread.
const SPREAD_ORDERS: [f64; 16] =
    [1.05, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0, 1024.0];

impl Curve {
    /// The best of trials, after each of which the search ends with probability one over `expected`.
    ///
    /// # Theorem
    /// [PS22, Theorem 2] with η = 1 (THEORY, Best of several trials): the curve of the worst trial at α, plus
    /// ln(1/γ)/(α - 1), plus a spread that is 2((1 - 1/λ)ε(λ) + ln(1/γ)/λ) for any order λ. 1/γ is `expected`.
    pub(super) fn best_of(expected: u32, trials: Vec<Self>) -> Self {
        let log_expected = f64::from(expected).ln();
        let spread = |order: f64| {
            2.0 * ((1.0 - 1.0 / order) * largest(&trials, order) + log_expected / order) * (1.0 + 1e-14)
        };
        // `f64::min` ignores NaN: an order without a bound is no candidate.
        let spread = SPREAD_ORDERS.into_iter().map(spread).fold(f64::INFINITY, f64::min);
        Self::BestOf { log_expected, spread, trials }
    }

    /// ε(α), rounded up.
    pub(crate) fn at(&self, alpha: f64) -> f64 {
        // A divergence is never negative. A value below zero by more than rounding is invalid, so nothing is
        // known.
        let (value, error) = self.computed(alpha);
        // Bound on the loss by rounding and quadrature. The relative loss grows at large orders, where many
        // terms are added, and next to one, where terms cancel. The absolute loss matters where a small
        // divergence is the difference of larger numbers.
        let relative = 1e-11 + 1e-13 * alpha + 1e-14 / (alpha - 1.0);
        let rounded = value.max(0.0) * (1.0 + relative) + error;
        if value >= -(1e-9 + error) && rounded >= 0.0 { rounded } else { f64::INFINITY }
    }

    /// ε(α) as computed, and a bound on its absolute error.
    fn computed(&self, alpha: f64) -> (f64, f64) {
        let exact = |value: f64| (value, 0.0);
        match self {
            Self::Linear { rho } => exact(rho * alpha),
            Self::Laplace { epsilon } => {
                // ln( α/(2α-1) e^((α-1)ε) + (α-1)/(2α-1) e^(-αε) ) / (α-1), less its leading term (α-1)ε.
                let weight = (alpha - 1.0) / (2.0 * alpha - 1.0);
                let value =
                    epsilon + (weight * (-(2.0 * alpha - 1.0) * epsilon).exp_m1()).ln_1p() / (alpha - 1.0);
                (value, 16.0 * ROUNDOFF * epsilon)
            }
            Self::BoundedRange { epsilon } if *epsilon < SMALL_RANGE => {
                exact((alpha * epsilon * epsilon / 8.0).min(*epsilon)) // ε²/8-zCDP, and tight enough where the exact form cancels
            }
            Self::BoundedRange { epsilon } => {
                (bounded_range(alpha, *epsilon), 16.0 * ROUNDOFF * (epsilon + 1.0 / (alpha - 1.0)))
            }
            Self::Atoms { atoms } => ln_moment_of_atoms(atoms, alpha - 1.0),
            Self::Given { points } => exact(given(alpha, points)),
            Self::Sum { parts } => exact(sum(parts, alpha)),
            Self::SampledGaussian { rate, sigma } => exact(sampled::gaussian(alpha, *rate, *sigma)),
            Self::Grid { directions, h } => {
                let moments = directions.iter().map(|masses| ln_moment(masses, *h, alpha - 1.0));
                // `f64::max` would ignore NaN.
                let largest =
                    moments.fold(
                        0.0,
                        |most: f64, moment| if moment.is_nan() { f64::INFINITY } else { most.max(moment) },
                    );
                exact(largest / (alpha - 1.0))
            }
            Self::Sampled { rate, inner, symmetric } => {
                // The bound for a revealed sample is also valid, and the only one if the curve has no integer
                // orders.
                let revealed = sampled::revealed(alpha, *rate, inner.at(alpha));
                let hidden =
                    between_integers(alpha, |a| sampled::general(a, *rate, |k| inner.at(k), *symmetric));
                exact(if hidden < revealed { hidden } else { revealed })
            }
            Self::RevealedSample { rate, inner } => exact(sampled::revealed(alpha, *rate, inner.at(alpha))),
            Self::FixedSize { rate, inner, moments } => {
                // As above: the bound for a revealed sample is also valid.
                let revealed = sampled::revealed(alpha, *rate, inner.at(alpha));
                let hidden =
                    between_integers(alpha, |a| sampled::fixed_size(a, *rate, |k| inner.at(k), moments));
                exact(if hidden < revealed { hidden } else { revealed })
            }
            Self::Infinite => exact(f64::INFINITY),
            Self::BestOf { log_expected, spread, trials } => {
                let value = largest(trials, alpha) + spread + log_expected / (alpha - 1.0);
                (value, 8.0 * ROUNDOFF * value)
            }
            Self::PerturbedObjective { mu, shift, neighbors } => {
                let value = match neighbors {
                    Neighbors::AddRemove => {
                        perturbed(alpha, *mu, *shift, 1.0).max(perturbed(alpha, *mu, 0.0, 2.0))
                    }
                    Neighbors::Replace => perturbed(alpha, 2.0 * mu, *shift, 2.0),
                };
                // The logarithm of a moment near one is off by a few units of roundoff.
                (value, 64.0 * ROUNDOFF / (alpha - 1.0))
            }
        }
    }
}

/// ln E[e^((α-1)L)]/(α - 1) for L = shift + μ²/2 + μ max(0, N), or with |N| for two tails.
///
/// E[e^(tμ max(0, N))] = 1/2 + e^(t²μ²/2) Φ(tμ), and E[e^(tμ|N|)] = 2e^(t²μ²/2) Φ(tμ).
fn perturbed(alpha: f64, mu: f64, shift: f64, tails: f64) -> f64 {
    let t = alpha - 1.0;
    let tail = tails.ln() + t * mu * t * mu / 2.0 + ln_normal_below(t * mu);
    let moment = if tails < 2.0 { ln_sum_exp(&[(1.0 - 0.5 * tails).ln(), tail]) } else { tail };
    shift + mu * mu / 2.0 + moment / t
}

/// The largest of several curves at one order; infinite if one is NaN.
fn largest(curves: &[Curve], alpha: f64) -> f64 {
    let at = |curve: &Curve| curve.at(alpha);
    curves
        .iter()
        .map(at)
        .fold(0.0, |most: f64, value| if value.is_nan() { f64::INFINITY } else { most.max(value) })
}

/// The sum of curves at one order; infinite if it is NaN.
pub(crate) fn sum(parts: &[(Curve, f64)], alpha: f64) -> f64 {
    let sum: f64 = parts.iter().map(|(curve, count)| count * curve.at(alpha)).sum();
    if sum.is_nan() { f64::INFINITY } else { sum }
}

/// Below this ε a bounded range is treated as ε²/8-zCDP.
const SMALL_RANGE: f64 = 0.01;

/// The largest divergence of a pair with losses t and t - ε, over all t.
///
/// It is ln E[(dP/dQ)^α]/(α - 1).
fn bounded_range(alpha: f64, epsilon: f64) -> f64 {
    // f(t) = (e^((α-1)t) (1 - e^(-αε)) - e^(αt) (e^-ε - e^(-αε))) / (1 - e^-ε), largest where f' = 0.
    let (a, b) = (-(-alpha * epsilon).exp_m1(), -(-(alpha - 1.0) * epsilon).exp_m1());
    // e^-ε - e^(-αε) = e^-ε b
    let t = (((alpha - 1.0) * a) / (alpha * b)).ln() + epsilon;
    let t = t.clamp(0.0, epsilon);
    // f(t) = e^((α-1)t) (a - e^(t-ε) b) / (1 - e^-ε)
    t + ((a - (t - epsilon).exp() * b) / -(-epsilon).exp_m1()).ln() / (alpha - 1.0)
}

/// Interpolates between given orders.
///
/// (α-1)ε(α) is convex, so between given orders a chord bounds it; ε(1) is at most ε at any given order.
fn given(alpha: f64, points: &[(f64, f64)]) -> f64 {
    let after = points.partition_point(|(order, _)| *order < alpha);
    let Some(&(high, at_high)) = points.get(after) else { return f64::INFINITY };
    let Some(&(low, at_low)) = after.checked_sub(1).and_then(|i| points.get(i)) else { return at_high };
    let share = (alpha - low) / (high - low);
    let chord = ((1.0 - share) * (low - 1.0) * at_low + share * (high - 1.0) * at_high) / (alpha - 1.0);
    chord.min(at_high)
}

/// The chord of (α-1)ε(α) between the integers next to α.
///
/// The function is convex, and zero at 1.
fn between_integers(alpha: f64, at: impl Fn(u32) -> f64) -> f64 {
    let (low, high) = (alpha.floor(), alpha.ceil());
    if high > 1e5 {
        return f64::INFINITY;
    }
    if low == high {
        return at(alpha as u32);
    }
    let scaled = |order: f64| if order <= 1.0 { 0.0 } else { (order - 1.0) * at(order as u32) };
    ((high - alpha) * scaled(low) + (alpha - low) * scaled(high)) / (alpha - 1.0)
}
