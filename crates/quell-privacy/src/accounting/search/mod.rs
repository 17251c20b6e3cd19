//! Searches and estimates: code that only chooses orders, tilts and grids.
//!
//! A bad choice makes an interval wider, never wrong, because the code that proves a bound (`pld`, `renyi`)
//! holds for every choice. A value that a search returns is one that this code computed.

mod features;
mod orders;
mod sketch;
mod strategy;

pub(super) use orders::minimize_over_orders;
pub(super) use sketch::{Sketch, Tilt};
pub(super) use strategy::snapped;

/// Narrows an interval around the least value of a quasi-convex function, by golden section.
///
/// Returns the midpoint of the last interval, which is at most `width` wide. A value that is not a number is
/// taken for an overflow, and lies to the right of the least value.
pub(super) fn golden_section(
    (mut low, mut high): (f64, f64),
    width: f64,
    mut value: impl FnMut(f64) -> f64,
) -> f64 {
    const RATIO: f64 = 0.618_033_988_749_894_9;
    let (mut left, mut right) = (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut at_left, mut at_right) = (value(left), value(right));
    while high - low > width {
        if at_left < at_right || at_right.is_nan() {
            (high, right, at_right) = (right, left, at_left);
            left = high - RATIO * (high - low);
            at_left = value(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + RATIO * (high - low);
            at_right = value(right);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::golden_section;

    #[test]
    fn golden_section_finds_the_least_value() {
        let least = golden_section((-3.0, 5.0), 1e-6, |x| (x - 1.25).powi(2));
        assert!((least - 1.25).abs() < 1e-6, "{least}");
    }

    #[test]
    fn a_value_that_overflows_is_not_the_least() {
        let least = golden_section((-3.0, 5.0), 1e-6, |x| if x > 1.0 { f64::NAN } else { -x });
        assert!((least - 1.0).abs() < 1e-5, "{least}");
    }
}
