//! Searches of the planner.
//!
//! They only choose. Every choice is a valid plan, and its bound is computed for that choice. So a bad choice
//! makes a plan worse, and no bound wrong.

use crate::Error;

/// The golden ratio, less one.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// A point between two positive numbers where a function is about least, if it has one minimum there.
pub(super) fn minimum(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut a, mut b) = (low.ln(), high.ln());
    let at = |x: f64| f(x.exp().clamp(low, high));
    let (mut x, mut y) = (b - GOLDEN * (b - a), a + GOLDEN * (b - a));
    let (mut fx, mut fy) = (at(x), at(y));
    for _ in 0..60 {
        if fx <= fy {
            (b, y, fy) = (y, x, fx);
            x = b - GOLDEN * (b - a);
            fx = at(x);
        } else {
            (a, x, fx) = (x, y, fy);
            y = a + GOLDEN * (b - a);
            fy = at(y);
        }
    }
    let inside = (0.5 * (a + b)).exp().clamp(low, high);
    // The minimum may lie at an end.
    [high, low].into_iter().fold(inside, |best, end| if f(end) < f(best) { end } else { best })
}

/// The largest number of steps that is tried.
const MOST_STEPS: u64 = 1 << 50;

/// The least number of steps that fits, if fitting is monotone. `None` if none fits.
pub(super) fn least_steps(fits: impl Fn(u64) -> Result<bool, Error>) -> Result<Option<u64>, Error> {
    let (mut low, mut high) = (0, 1);
    while !fits(high)? {
        if high >= MOST_STEPS {
            return Ok(None);
        }
        (low, high) = (high, 2 * high);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle)? { high = middle } else { low = middle }
    }
    Ok(Some(high))
}

/// Steps and batch size with the least work among those that fit. `None` if none fits.
///
/// The work of a step is its batch, and one more for the noise and the update. Steps and sizes are tried on grids
/// with a ratio of about 1.1.
pub(super) fn least_work(records: u64, fits: impl Fn(u64, u64) -> bool) -> Option<(u64, u64)> {
    let grown = |count: u64| count + (count / 10).max(1);
    let mut batches = vec![1];
    while let Some(last) = batches.last().copied().filter(|last| *last < records) {
        batches.push(grown(last).min(records));
    }
    let mut best: Option<(u64, u64)> = None;
    let work = |(steps, batch): (u64, u64)| steps as f64 * (batch as f64 + 1.0);
    let mut steps = 1;
    // Larger batches fit where smaller ones do.
    while steps < MOST_STEPS && best.is_none_or(|best| work((steps, 1)) < work(best)) {
        let at = batches.partition_point(|batch| !fits(steps, *batch));
        if let Some(batch) = batches.get(at)
            && best.is_none_or(|best| work((steps, *batch)) < work(best))
        {
            best = Some((steps, *batch));
        }
        steps = grown(steps);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_is_found_inside_and_at_the_ends() {
        assert!((minimum(1e-3, 1e3, |x| x + 4.0 / x) - 2.0).abs() < 1e-6);
        assert!((minimum(3.0, 1e3, |x| x + 4.0 / x) - 3.0).abs() < 1e-12);
        assert!((minimum(1e-3, 1.0, |x| x + 4.0 / x) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_least_steps_are_found_exactly() {
        for least in [1, 2, 3, 1000, 1 << 40] {
            assert_eq!(least_steps(|steps| Ok(steps >= least)).unwrap(), Some(least));
        }
        assert_eq!(least_steps(|_| Ok(false)).unwrap(), None);
    }

    #[test]
    fn the_least_work_is_near_the_best() {
        // Batches of 7 and more fit from 100 steps on.
        let found = least_work(1000, |steps, batch| steps >= 100 && batch >= 7).unwrap();
        assert!((100..=110).contains(&found.0) && (7..=8).contains(&found.1), "{found:?}");
        assert_eq!(least_work(1000, |_, _| false), None);
    }
}
