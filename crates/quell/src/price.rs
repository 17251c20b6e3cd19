//! What a release costs, the distance of its noise from the ideal noise included.

use quell_privacy::{Bound, units::Delta};

use crate::Error;

/// The largest ε that is tried first: no budget is larger.
const LARGEST: f64 = 30.0;

/// A search for an ε that holds its own excess ends here, where no promise is left.
const HOPELESS: f64 = 500.0;

/// ε at δ of a mechanism that is within `distance` in total variation of one that `ideal` judges, as an interval.
///
/// # Theorem
/// (THEORY, Noise) If the ideal mechanism is (ε, δ')-DP, this one is (ε, δ' + (1 + e^ε)·distance)-DP. Let f(x) be the ideal ε at δ - (1 + e^x)·distance, which
/// rises with x. If f(x) ≤ x, then f(x) is an ε at δ: the excess at f(x) is no more than the one at x, which was set aside. Rounded up by `ideal`.
pub(crate) fn epsilon(ideal: &dyn Fn(Delta) -> Result<Bound, Error>, distance: f64, delta: Delta) -> Result<Bound, Error> {
    let upper = upper(ideal, distance, delta)?;
    let above = Delta::new((delta.get() + excess(upper, distance)).min(1.0 - f64::EPSILON))?;
    let lower = if upper.is_finite() { ideal(above)?.lower } else { 0.0 };
    Ok(Bound { lower: lower.min(upper), upper })
}

/// The upper end alone.
pub(crate) fn upper(ideal: &dyn Fn(Delta) -> Result<Bound, Error>, distance: f64, delta: Delta) -> Result<f64, Error> {
    let held = |x: f64| match Delta::new((delta.get() - excess(x, distance)) * (1.0 - 1e-12)) {
        Ok(left) if left.get() > 0.0 => Ok::<_, Error>(ideal(left)?.upper),
        _ => Ok(f64::INFINITY),
    };
    let mut x = LARGEST;
    let mut found = held(x)?;
    if found > x {
        // From below: f(x) is more than x, until it is not.
        (x, found) = (0.0, held(0.0)?);
        while found > x {
            if found > HOPELESS {
                return Ok(f64::INFINITY);
            }
            x = found * (1.0 + 1e-4);
            found = held(x)?;
        }
    }
    // Down, while something is gained: f(f(x)) ≤ f(x).
    while excess(x, distance) > 1e-6 * delta.get() && found < x * (1.0 - 1e-4) {
        x = found;
        found = held(x)?;
    }
    Ok(found)
}

/// (1 + e^ε)·distance, rounded up.
fn excess(epsilon: f64, distance: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { (1.0 + epsilon.exp()) * distance * (1.0 + 1e-12) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excess_at_the_claim_fits_into_delta() {
        let delta = Delta::new(1e-6).unwrap();
        // An ideal mechanism with ε = ln(1/δ) / 2.
        let ideal = |delta: Delta| {
            let epsilon = -0.5 * delta.get().ln();
            Ok(Bound { lower: epsilon * 0.999, upper: epsilon })
        };
        for distance in [0.0, 1e-30, 1e-12, 1e-10, 2e-10] {
            let found = epsilon(&ideal, distance, delta).unwrap();
            let spent = (-2.0 * found.upper).exp();
            let total = spent + (1.0 + found.upper.exp()) * distance;
            assert!(
                total <= 1e-6 * (1.0 + 1e-9) && total > 0.999e-6 && found.lower <= found.upper,
                "{distance}: {found:?} {total}"
            );
        }
        // At no ε there is room for (1 + e^ε)·distance.
        assert_eq!(epsilon(&ideal, 1e-6, delta).unwrap().upper, f64::INFINITY);
    }
}
