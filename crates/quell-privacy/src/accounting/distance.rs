//! What the distance between a mechanism and its event adds to the bounds.
//!
//! An event describes an ideal mechanism, with noise that is drawn exactly. The mechanism that runs rounds its
//! noise, or is wrong with a small probability. [`Mechanism::distance`](crate::mechanism::Mechanism::distance)
//! bounds the total variation distance between the two. The accountants know only the event.

use super::Bound;
use crate::{Error, units::Delta};

/// The first ε that the search tries. No realistic budget is larger.
const LARGEST: f64 = 30.0;

/// The search gives up above this ε, where the guarantee means nothing.
const MEANINGLESS: f64 = 500.0;

/// The δ that a distance costs at ε: (1 + e^ε)·distance, rounded up.
///
/// # Theorem
/// (THEORY, Noise) Let M be (ε, δ)-DP, and let M̃ be within `distance` of M in total variation, on every
/// dataset. Then M̃ is (ε, δ + (1 + e^ε)·distance)-DP. Distances of several releases add up, also where a
/// release depends on the results of earlier ones.
///
/// If the distance is NaN, so is the excess, and callers must not accept it.
pub(crate) fn excess(epsilon: f64, distance: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { (1.0 + epsilon.exp()) * distance * (1.0 + 1e-12) }
}

/// Bounds ε at δ for a mechanism that is close to an ideal mechanism.
///
/// # Contract
/// The mechanism is within `distance` of the ideal one in total variation, on every dataset. `ideal` bounds
/// the ε of the ideal mechanism at any δ.
///
/// # Theorem
/// (THEORY, Noise) If the ideal mechanism is (ε, δ')-DP, this one is (ε, δ' + (1 + e^ε)·distance)-DP. Let
/// f(x) be the ideal ε at δ - (1 + e^x)·distance, which rises with x. If f(x) ≤ x, then f(x) is an ε at δ:
/// the excess (1 + e^f(x))·distance is no more than the excess at x, which was already subtracted from δ.
/// `upper` is rounded up and infinite if no such x was found; `lower` is rounded down.
///
/// ```
/// use quell_privacy::{
///     Neighbors,
///     accounting::{Pld, distance},
///     mechanism::{Bounds, Mean, Mechanism, Price},
///     units::{Delta, Epsilon},
/// };
/// let delta = Delta::new(1e-6)?;
/// let mean = Mean::for_epsilon(Bounds::new(0.0, 1.0)?, Price::gaussian(Epsilon::new(1.0)?, delta))?;
/// let event = mean.event(Neighbors::AddRemove);
/// let ideal = |delta| Pld::default().epsilon(&event, Neighbors::AddRemove, delta);
/// let claim = distance::epsilon(&ideal, mean.distance(), delta)?;
/// assert!(claim.upper >= ideal(delta)?.upper && claim.upper < 1.01 * ideal(delta)?.upper);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub fn epsilon(
    ideal: &dyn Fn(Delta) -> Result<Bound, Error>,
    distance: f64,
    delta: Delta,
) -> Result<Bound, Error> {
    let upper = upper(ideal, distance, delta)?;
    let above = Delta::new((delta.get() + excess(upper, distance)).min(1.0 - f64::EPSILON))?;
    let lower = if upper.is_finite() { ideal(above)?.lower } else { 0.0 };
    Ok(Bound { lower: lower.min(upper), upper })
}

/// Computes only the upper bound of [`epsilon`].
pub fn upper(
    ideal: &dyn Fn(Delta) -> Result<Bound, Error>,
    distance: f64,
    delta: Delta,
) -> Result<f64, Error> {
    if distance < 0.0 {
        return Err(Error::OutOfRange { what: "distance", value: distance, range: "[0, 1]" });
    }
    let f = |x: f64| match Delta::new((delta.get() - excess(x, distance)) * (1.0 - 1e-12)) {
        Ok(remaining) if remaining.get() > 0.0 => Ok(ideal(remaining)?.upper),
        _ => Ok(f64::INFINITY),
    };
    let mut x = LARGEST;
    let mut bound = f(x)?;
    if bound > x {
        // Search upwards from zero until f(x) ≤ x.
        (x, bound) = (0.0, f(0.0)?);
        while bound > x {
            if bound > MEANINGLESS {
                return Ok(f64::INFINITY);
            }
            x = bound * (1.0 + 1e-4);
            bound = f(x)?;
        }
    }
    // Move down while that improves the bound: f(f(x)) ≤ f(x).
    while excess(x, distance) > 1e-6 * delta.get() && bound < x * (1.0 - 1e-4) {
        x = bound;
        bound = f(x)?;
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excess_is_rounded_up_and_an_unknown_distance_has_none() {
        for (epsilon, distance) in [(0.0, 1e-30), (1.0, 2.5e-10), (30.0, 1e-20)] {
            assert!(excess(epsilon, distance) > (1.0 + epsilon.exp()) * distance);
        }
        // Without a cap ε is infinite, and exact noise still costs nothing.
        assert_eq!(excess(f64::INFINITY, 0.0), 0.0);
        assert!(excess(1.0, f64::NAN).is_nan());
    }

    #[test]
    fn the_excess_at_the_claim_fits_into_delta() {
        let delta = Delta::new(1e-6).unwrap();
        // An ideal mechanism with ε = ln(1/δ) / 2.
        let ideal = |delta: Delta| {
            let epsilon = -0.5 * delta.get().ln();
            Ok(Bound { lower: epsilon * 0.999, upper: epsilon })
        };
        for distance in [0.0, 1e-30, 1e-12, 1e-10, 2e-10] {
            let bound = epsilon(&ideal, distance, delta).unwrap();
            let spent = (-2.0 * bound.upper).exp();
            let total = spent + (1.0 + bound.upper.exp()) * distance;
            assert!(
                total <= 1e-6 * (1.0 + 1e-9) && total > 0.999e-6 && bound.lower <= bound.upper,
                "{distance}: {bound:?} {total}"
            );
        }
        assert!(matches!(epsilon(&ideal, -1e-12, delta), Err(Error::OutOfRange { .. })));
        // (1 + e^ε)·distance exceeds δ at every ε.
        assert_eq!(epsilon(&ideal, 1e-6, delta).unwrap().upper, f64::INFINITY);
    }
}
