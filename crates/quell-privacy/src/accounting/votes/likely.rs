//! Divergence bounds from one likely outcome at this dataset.
//!
//! All bounds here have the form E[(P/Q)^(α-1)] = (likely outcome) + (all others), the first near one and the
//! second near zero.

use crate::special::ROUNDOFF;

/// Divergence of order α of a ρ-zCDP mechanism with a likely outcome, rounded up.
///
/// At this dataset the outcome fails to occur with probability at most q.
///
/// # Theorem
/// [PSMRTE18, Theorem 6], with the inner orders of [PSMRTE18, Proposition 7]: μ₂ = √(ln(1/q)/ρ) and
/// μ₁ = μ₂ + 1, which make A and B least, each for itself. Conditions, all checked: α ≤ μ₁, μ₂ > 1, y < 1,
/// y' ≥ μ₁/(μ₁ - 1), A ≤ B (THEORY, Votes). If one fails the answer is ρα, and it is never more.
pub(crate) fn concentrated(ln_q: f64, rho: f64, alpha: f64) -> f64 {
    let independent = rho * alpha * (1.0 + 1e-14);
    let surprise = -ln_q;
    let inner = (surprise / rho).sqrt();
    let outer = inner + 1.0;
    // A neighbour fails to show the likely outcome with probability at most y = (q e^ε₂)^((μ₂-1)/μ₂),
    // ε₂ = ρμ₂.
    let ln_y = (1.0 - 1.0 / inner) * (ln_q + rho * inner) + 1e-14 * (surprise + rho * inner);
    // y' = (μ₂-1)/μ₂ · y/q against μ₁/(μ₁-1) = (μ₂+1)/μ₂
    let rises =
        (-1.0 / inner).ln_1p() + ln_y - ln_q >= (1.0 / inner).ln_1p() + 1e-13 * (surprise + rho * inner);
    // Also false if a number is NaN.
    if !(surprise > 0.0 && inner > 1.0 && alpha <= outer && ln_y < 0.0 && rises) {
        return independent;
    }
    let ln_b = rho * outer + surprise / inner;
    //    B  = e^ε₁    / q^(1/(μ₁-1))
    bounded(ln_q, ln_y, ln_b, alpha).min(independent)
}

/// Divergence of order α of an ε-DP mechanism with a likely outcome, rounded up.
///
/// At this dataset the outcome fails to occur with probability at most q.
///
/// # Theorem
/// [PAEGT17, Theorem 3], for q ≤ 1/(e^ε + 1) (THEORY, Votes); else, and at most, ε and ε²α/2 [BS16].
pub(crate) fn pure(ln_q: f64, epsilon: f64, alpha: f64) -> f64 {
    let independent = (0.5 * epsilon * epsilon * alpha).min(epsilon) * (1.0 + 1e-14);
    // The condition, slightly stricter than necessary.
    if !(ln_q < 0.0 && ln_q <= -(epsilon.exp().ln_1p()) - 1e-13 * (1.0 + epsilon)) {
        return independent;
    }
    bounded(ln_q, ln_q + epsilon, epsilon, alpha).min(independent)
}

/// ln((1-q)A^(α-1) + qB^(α-1))/(α-1) with A = (1-q)/(1-y); infinite if A > B.
///
/// The theorems exclude A > B.
fn bounded(ln_q: f64, ln_y: f64, ln_b: f64, alpha: f64) -> f64 {
    let (ln_not_q, ln_not_y) = ((-ln_q.exp()).ln_1p(), (-ln_y.exp()).ln_1p());
    if ln_not_q - ln_not_y > ln_b {
        return f64::INFINITY;
    }
    let likely = alpha * ln_not_q - (alpha - 1.0) * ln_not_y;
    //         = ln (1-q)A^(α-1)
    let likely = likely + 1e-14 * (alpha * -ln_not_q + (alpha - 1.0) * -ln_not_y);
    let rare = ln_q + (alpha - 1.0) * ln_b + 1e-14 * (-ln_q + (alpha - 1.0) * ln_b);
    moment(likely, rare, alpha)
}

/// ln(e^likely + e^rare)/(α-1), rounded up; `likely` is near zero and keeps its digits.
///
/// The exponents are already upper bounds.
pub(super) fn moment(likely: f64, rare: f64, alpha: f64) -> f64 {
    let (first, second) = (likely.exp_m1(), rare.exp());
    let above_one = first + second + 4.0 * ROUNDOFF * (first.abs() + second);
    let divergence = above_one.ln_1p() / (alpha - 1.0) * (1.0 + 1e-14);
    // A value that is too small to represent is not zero; NaN is no bound.
    if divergence.is_nan() { f64::INFINITY } else { divergence.max(f64::MIN_POSITIVE) }
}
