//! The best order of a Rényi bound.
//!
//! Every order gives a valid bound, so any answer is safe.

use super::golden_section;

/// The largest order that is tried.
const LARGEST_ORDER: f64 = 1e9;

/// Searches for the order with the least value; returns the order and its value.
///
/// Scans orders on a coarse geometric grid, then narrows the interval around the best one. The scan uses
/// integer orders, whose divergences cost least.
pub(in crate::accounting) fn minimize_over_orders(value: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut best = (2.0, f64::INFINITY);
    let mut order = 2.0_f64;
    let mut worse = 0;
    while order <= LARGEST_ORDER {
        let here = value(order);
        if here < best.1 {
            best = (order, here);
            worse = 0;
        } else if here.is_finite() || best.1.is_finite() {
            worse += 1;
        }
        if worse >= 6 {
            break;
        }
        order = (order * 1.4).ceil();
    }
    if best.1.is_infinite() {
        // Some curves are finite only below order two.
        for halvings in 1..=40 {
            let alpha = 1.0 + 0.5_f64.powi(halvings);
            let here = value(alpha);
            if here < best.1 {
                best = (alpha, here);
            }
        }
    }
    if best.1.is_infinite() {
        return best;
    }
    let low = if best.0 == 2.0 { 1e-4 } else { (best.0 - 1.0) / 2.0 };
    let high = (best.0 - 1.0) * 2.0;
    golden_section((low.ln(), high.ln()), 3e-4, |ln| {
        let alpha = 1.0 + ln.exp();
        // Large orders: integers are dense enough, and cheaper.
        let alpha = if alpha > 64.0 { alpha.round() } else { alpha };
        let here = value(alpha);
        if here < best.1 {
            best = (alpha, here);
        }
        here
    });
    best
}
