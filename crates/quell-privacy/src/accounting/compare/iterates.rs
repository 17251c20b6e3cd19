//! Older Rényi bounds of the last iterate, for comparison with [`last_iterate`].
//!
//! [`last_iterate`]: crate::accounting::last_iterate

use crate::{
    Error, Neighbors,
    units::{Contraction, Diameter, NoiseMultiplier, Rho},
};

/// ρ of the last iterate for strongly convex and smooth losses. [CYS21, Corollary 1]
///
/// The Rényi divergence of order α is at most ρα. Ye and Shokri (2022) extend this to mini-batches.
///
/// # Theorem
/// For a loss that is λ-strongly convex and β-smooth, steps η < 1/β and gradients of sensitivity S, noise
/// √(2η)σ for each step and a first iterate from the projection of N(0, 2σ²/λ), ε(α) is at most
/// αS²/(λσ²) (1 - e^(-ληt/2)). In our numbers ηλ = 1 - c and ηS²/2σ² = (s/z)². The contraction must be in
/// (0, 1), and the first iterate is a condition of the caller.
///
/// ```
/// use quell_privacy::{Neighbors, accounting::closed, units::{Contraction, NoiseMultiplier}};
/// let (noise, contraction) = (NoiseMultiplier::new(10.0)?, Contraction::new(0.98)?);
/// let rho = closed::strongly_convex_rho(noise, contraction, 100, Neighbors::AddRemove)?;
/// assert!((rho.get() - (1.0 - (-1.0_f64).exp())).abs() < 1e-12);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub fn strongly_convex_rho(
    noise_multiplier: NoiseMultiplier,
    contraction: Contraction,
    steps: u64,
    neighbors: Neighbors,
) -> Result<Rho, Error> {
    let gap = 1.0 - contraction.get();
    if !(gap > 0.0 && gap < 1.0) {
        return Err(Error::OutOfRange { what: "contraction", value: contraction.get(), range: "(0, 1)" });
    }
    let step = (neighbors.reach() / noise_multiplier.get()).powi(2);
    Rho::new(2.0 * step / gap * -(-0.5 * gap * steps as f64).exp_m1())
}

/// ρ of the last iterate for convex and smooth losses on a bounded domain. [AT22, Theorem 3.1]
///
/// The Rényi divergence of order α is at most ρα.
///
/// # Theorem
/// The proof of the theorem, with every record in every step and its constants kept: half of the noise of
/// the last m steps hides that the iterates were up to a diameter d apart, α d²/m, and half hides the record,
/// α m s², both over z². The result is the least over m, and at most αts²/2z² by composition. Conditions:
/// convex and M-smooth losses, steps η ≤ 2/M.
///
/// ```
/// use quell_privacy::{Neighbors, accounting::closed, units::{Diameter, NoiseMultiplier}};
/// let (noise, diameter) = (NoiseMultiplier::new(10.0)?, Diameter::new(20.0)?);
/// let rho = closed::bounded_domain_rho(noise, 1_000_000, diameter, Neighbors::AddRemove)?;
/// assert!((rho.get() - 2.0 * 20.0 / 100.0).abs() < 1e-12);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub fn bounded_domain_rho(
    noise_multiplier: NoiseMultiplier,
    steps: u64,
    diameter: Diameter,
    neighbors: Neighbors,
) -> Result<Rho, Error> {
    let (s, d, z) = (neighbors.reach(), diameter.get(), noise_multiplier.get());
    let steps = steps as f64;
    let late = |m: f64| {
        let m = m.clamp(1.0, (steps - 1.0).max(1.0));
        d * d / m + m * s * s
    };
    let late = if steps < 2.0 { f64::INFINITY } else { late((d / s).floor()).min(late((d / s).ceil())) };
    Rho::new(late.min(0.5 * steps * s * s) / (z * z))
}
