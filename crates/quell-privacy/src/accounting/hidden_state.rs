//! What the last of many noisy steps reveals if all others stay hidden.
//!
//! The older Rényi bounds are in [`compare`](super::compare), and the ledger does not use them.

use super::Bound;
use crate::{
    Error, Event, Neighbors,
    event::MOST_REPETITIONS,
    units::{Contraction, Diameter, NoiseMultiplier},
};

/// Why accountants refuse a hidden state inside a sample.
pub(super) const HIDDEN_IN_A_SAMPLE: &str =
    "inside a sample: its bound is about steps on all records; account for the steps as sampled releases";

/// How much the result of [`shifted`] may be off, relative to it.
///
/// Each operation errs by a few units in the last place. The power cᵐ errs by |m ln c| times that, and
/// matters only where it is above e⁻¹⁰⁰.
const ROUNDING: f64 = 1e-12;

/// The μ for which the last of `steps` hidden iterates is μ-GDP.
///
/// # Contract
/// The upper end may be claimed for every [`Event::HiddenState`] with these numbers, and is rounded up. Some
/// mechanism with that event attains the lower end. Steps that are zero or more than 2⁵³ are refused.
///
/// # Theorem
/// [BSA24, Theorems 4.2 and 4.3], with the best shifts for all parameters (THEORY, Hidden state). Let C = 1,
/// s be the reach of one record, and Sₘ, Qₘ the sums of cʲ and c²ʲ over j < m. Then zμ is the least of
/// sSₜ/√Qₜ and, on a domain of diameter d, (sSₘ + cᵐd)/√Qₘ for any m < t. Conditions, all stated by the event:
/// - every step is ψ plus Gaussian noise of deviation z, independent of all that came before;
/// - ‖ψ(y) - ψ'(y')‖ ≤ c·min(‖y - y'‖, d) + s, for the maps ψ and ψ' of any two neighbours;
/// - the first iterate is public, and nothing but the last iterate is released.
///
/// ```
/// use quell_privacy::{Neighbors, accounting::last_iterate, units::{Contraction, NoiseMultiplier}};
/// let (noise, contraction) = (NoiseMultiplier::new(10.0)?, Contraction::new(0.98)?);
/// let mu = |steps| last_iterate(noise, contraction, steps, None, Neighbors::AddRemove).map(|mu| mu.upper);
/// assert!((mu(1)? - 0.1).abs() < 1e-12);
/// // All iterates of a thousand steps would have μ = 3.16.
/// assert!((mu(1_000)? - 0.99499).abs() < 1e-5 && (mu(1_000_000)? - 0.99499).abs() < 1e-5);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub fn last_iterate(
    noise_multiplier: NoiseMultiplier,
    contraction: Contraction,
    steps: u64,
    diameter: Option<Diameter>,
    neighbors: Neighbors,
) -> Result<Bound, Error> {
    if !(1..=MOST_REPETITIONS).contains(&steps) {
        let event = Event::HiddenState { noise_multiplier, contraction, steps, diameter };
        return Err(Error::Malformed {
            event: event.to_string(),
            because: "expected a number of steps from 1 to 2^53",
        });
    }
    let (s, c, z) = (neighbors.reach(), contraction.get(), noise_multiplier.get());
    // Both iterates begin at the same point.
    let unbounded = shifted(s, c, steps, 0.0);
    let bounded = diameter.map_or(f64::INFINITY, |diameter| best_start(s, c, steps, diameter.get()));
    // The linear maps cy and cy + s attain the bound without a domain. With a domain, maps that forget y
    // before the last step attain the bound of one step.
    let attained = if diameter.is_none() { unbounded } else { s };
    Ok(Bound {
        lower: attained / z * (1.0 - ROUNDING),
        upper: unbounded.min(bounded).min(s * (steps as f64).sqrt()) / z * (1.0 + ROUNDING),
    })
}

/// Least total shift over m steps, before which the iterates are `apart`, over the noise.
///
/// It is (s Σcʲ + cᵐ apart)/√Σc²ʲ, with sums over j < m.
fn shifted(s: f64, c: f64, m: u64, apart: f64) -> f64 {
    let m = m as f64;
    if c == 1.0 {
        return (s * m + apart) / m.sqrt();
    }
    // -∞ for c = 0, so that cᵐ is zero.
    let exponent = m * c.ln();
    let sum = -exponent.exp_m1() / (1.0 - c);
    //      = (1 - cᵐ)           / (1 - c)
    let squares = -(2.0 * exponent).exp_m1() / ((1.0 - c) * (1.0 + c));
    //          = (1 - c²ᵐ)                  / (1 - c²)
    (s * sum + exponent.exp() * apart) / squares.sqrt()
}

/// The least of [`shifted`] over 1 ≤ m < t, from iterates that are a diameter apart.
///
/// Every m gives a bound, so a wrong choice of m would be harmless. The minimum over real m is where
/// cᵐ = 1 - d(1 - c)/s. It has at most one such place, and none if d ≥ s/(1 - c): then a domain is no help.
fn best_start(s: f64, c: f64, steps: u64, diameter: f64) -> f64 {
    let best = if c == 1.0 { diameter / s } else { (-diameter * (1.0 - c) / s).ln_1p() / c.ln() };
    if steps < 2 || best.is_nan() {
        return f64::INFINITY;
    }
    // A cast takes infinity to the largest number.
    let candidates = [best.floor(), best.ceil()].map(|m| (m as u64).clamp(1, steps - 1));
    candidates.into_iter().map(|m| shifted(s, c, m, diameter)).fold(f64::INFINITY, f64::min)
}
