//! Moments of losses with finitely many values: ln E_P[e^(θL)], rounded up.
//!
//! A moment that cannot be computed is infinite, never zero. Sums here are scaled by their largest term,
//! which is positive, so that they neither overflow nor vanish.

use crate::{accounting::pld::Masses, special::ROUNDOFF};

/// ln E[e^(θL)] over a grid, given that L is finite; infinite where it is NaN.
///
/// A pair (P, Q) with P[L = ∞] = τ is replaced by (P', Q), P' being P given that L is finite: the density of
/// P' is that of P over 1 - τ, so losses rise by -ln(1 - τ) and so do logarithms of probabilities. The caller
/// charges for τ elsewhere.
pub(super) fn ln_moment(masses: &Masses, h: f64, theta: f64) -> f64 {
    let exponents = masses.indices.iter().zip(&masses.weights).filter(|(_, weight)| **weight != 0.0);
    let exponents: Vec<f64> =
        exponents.map(|(&index, weight)| weight.ln() + theta * (masses.offset + index as f64 * h)).collect();
    ln_sum(&exponents) - (theta + 1.0) * (-masses.infinite).ln_1p()
}

/// ln Σ e^x; infinite if there are no terms or a term is NaN.
fn ln_sum(exponents: &[f64]) -> f64 {
    let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = exponents.iter().map(|x| (x - largest).exp()).sum();
    let total = largest + sum.ln();
    // The largest term is one, so the sum is at least one.
    if sum >= 1.0 && total.is_finite() {
        total + 2.0 * ROUNDOFF * exponents.len() as f64
    } else {
        f64::INFINITY
    }
}

/// ln E[e^(θL)]/θ of losses with their probabilities, and a bound on its rounding error.
pub(super) fn ln_moment_of_atoms(atoms: &[(f64, f64)], theta: f64) -> (f64, f64) {
    let likely = || atoms.iter().filter(|(_, p)| *p != 0.0);
    let top = likely().map(|(loss, _)| *loss).fold(f64::NEG_INFINITY, f64::max);
    let below: f64 = likely().map(|(loss, p)| p * (theta * (loss - top)).exp_m1()).sum();
    let count = atoms.len() as f64;
    if below > -0.9 {
        // Nearly all mass is at the top, or the divergence is small: nothing cancels.
        return (
            top + below.ln_1p() / theta,
            16.0 * ROUNDOFF * top.abs() + 2.0 * count * ROUNDOFF * below.abs() / theta,
        );
    }
    let exponents: Vec<f64> = likely().map(|(loss, p)| p.ln() + theta * loss).collect();
    let largest = exponents.iter().copied().fold(0.0, |most: f64, x| most.max(x.abs()));
    (ln_sum(&exponents) / theta, 16.0 * ROUNDOFF * largest / theta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masses(losses: &[(i64, f64)], infinite: f64) -> Masses {
        let (indices, weights) = losses.iter().copied().unzip();
        Masses { offset: 0.0, indices, weights, infinite }
    }

    #[test]
    fn a_node_without_mass_does_not_set_the_scale() {
        // The last node is empty, and e^(-2000) next to it would vanish.
        let moment = ln_moment(&masses(&[(-1, 0.5), (1, 0.5), (2001, 0.0)], 0.0), 1.0, 1.0);
        assert!((moment - 1.0_f64.cosh().ln()).abs() < 1e-12, "{moment}");
    }

    #[test]
    fn what_cannot_be_computed_is_infinite_and_never_zero() {
        assert_eq!(ln_moment(&masses(&[(1, 0.0)], 0.0), 1.0, 1.0), f64::INFINITY);
        assert_eq!(ln_moment(&masses(&[], 0.0), 1.0, 1.0), f64::INFINITY);
        assert_eq!(ln_moment(&masses(&[(1, 0.5), (2, f64::NAN)], 0.0), 1.0, 1.0), f64::INFINITY);
        assert_eq!(ln_moment(&masses(&[(1, 0.5), (2, -0.5)], 0.0), 1.0, 1.0), f64::INFINITY);
        assert_eq!(ln_moment(&masses(&[(0, 0.0)], 1.0), 1.0, 1.0), f64::INFINITY);
    }

    #[test]
    fn losses_that_nobody_has_do_not_count_and_rare_ones_do() {
        let (value, lost) = ln_moment_of_atoms(&[(-1.0, 0.5), (1.0, 0.5), (1e6, 0.0)], 1.0);
        assert!((value - 1.0_f64.cosh().ln()).abs() <= lost + 1e-12, "{value} {lost}");
        // Nearly all mass lies below the top: E = 1e-20 e^100, up to small terms.
        let (value, lost) = ln_moment_of_atoms(&[(0.0, 1.0), (100.0, 1e-20)], 1.0);
        assert!((value - (1e-20_f64.ln() + 100.0)).abs() <= lost + 1e-12, "{value} {lost}");
    }
}
