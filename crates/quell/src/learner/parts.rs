//! Exact sums of bounded numbers, on a grid.
//!
//! Sums of floating-point numbers depend on their order, and one number more can move all later roundings. On a
//! grid, a record moves a sum by its own number and by nothing else.

/// Parts of the bound into which every number is rounded.
const PARTS: f64 = (1 << 30) as f64;

/// The number in parts of its bound, clamped to [-bound, bound] and rounded towards zero.
///
/// NaN becomes zero.
pub(super) fn parts(number: f64, bound: f64) -> i64 {
    // |number| ≤ bound, so the quotient is at most one in floating-point arithmetic, too.
    (number.clamp(-bound, bound) / bound * PARTS) as i64
}

/// The number of parts of any number, rounded towards zero. The ends of the range stand for all beyond.
pub(super) fn unbounded_parts(number: f64, bound: f64) -> i128 {
    (number / bound * PARTS) as i128
}

/// The number that this many parts of a bound are.
pub(super) fn number(parts: i128, bound: f64) -> f64 {
    parts as f64 * (bound / PARTS)
}

/// Adds the parts of numbers in [-bound, bound] to totals.
///
/// Only totals that start at the end of the range can reach it. They stop there, which brings two totals no
/// further apart.
pub(super) fn add(totals: &mut [i128], numbers: &[f64], bound: f64) {
    for (total, number) in totals.iter_mut().zip(numbers) {
        *total = total.saturating_add(parts(*number, bound).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In floating-point arithmetic, these sums drift apart. Numbers are finer below a power of two than above
    /// it, so a tiny number moves one sum, and the other one not at all.
    #[test]
    fn one_record_moves_a_sum_by_its_own_number_whatever_follows() {
        let (start, later) = (65_536, -0.45 * 0.5_f64.powi(36));
        let sums = |first: f64| {
            let (mut float, mut exact) = (f64::from(start), vec![i128::from(start) << 30]);
            float += first;
            add(&mut exact, &[first], 1.0);
            for _ in 0..1_000_000 {
                float += later;
                add(&mut exact, &[later], 1.0);
            }
            (float, exact[0])
        };
        let (below, above) = (sums(-0.25), sums(0.25));
        assert!(above.0 - below.0 > 0.500_007, "{}", above.0 - below.0);
        assert_eq!(above.1 - below.1, 1 << 29);
    }

    #[test]
    fn parts_are_within_their_bound_and_rounded_towards_zero() {
        for bound in [1.0, 0.3, 1e-12, 7e5] {
            for number in [0.0, 0.1, 0.999_999_999_9, 1.0, 1.5, f64::INFINITY] {
                let part = parts(number * bound, bound);
                assert!(part <= 1 << 30 && super::number(part.into(), bound) <= (number * bound).min(bound));
                assert_eq!(parts(-number * bound, bound), -part);
            }
        }
        assert_eq!(parts(f64::NAN, 1.0), 0);
        let mut total = [i128::MAX - 5];
        add(&mut total, &[1.0], 1.0);
        assert_eq!(total, [i128::MAX]);
    }
}
