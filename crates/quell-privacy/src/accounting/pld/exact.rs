//! Single pairs, whose profile has a closed form.

use super::{
    law::Law,
    privacy_loss::Direction,
    tails::{Tails, tail_error},
};
use crate::{
    Bound,
    special::{ROUNDOFF, bisect_smallest, ln_gaussian_delta},
};

/// δ(ε) = P[L > ε] - e^ε Q[L > ε] of a single pair, rounded outward.
///
/// The profile decreases with ε. So the upper bound is taken at a threshold below ε, and the lower bound at a
/// threshold above it. The distance covers the rounding of a loss ([`Law::rounding`]). Tails that may have
/// underflowed count as the largest value that would underflow.
pub(crate) fn exact_delta(law: &Law, epsilon: f64) -> Bound {
    if law.is_trivial() {
        return Bound { lower: 0.0, upper: 0.0 };
    }
    if let Law::Gaussian { mu, attained } = law {
        let upper = gaussian_delta(*mu, epsilon);
        let lower = if attained == mu { upper } else { gaussian_delta(*attained, epsilon) };
        return Bound { lower: lower.lower, upper: upper.upper };
    }
    let slack = law.rounding(epsilon);
    // The relative error of e^ε Q[L > ε] is that of the tail itself.
    let error = |tails: Tails, q: f64| {
        let tail = tails.q.above.max(SMALLEST_TAIL);
        tail_error(tails.p.above) + q * (tail_error(tail) / tail)
    };
    let upper = {
        let (at, tails) = (epsilon - slack, law.tails(epsilon - slack));
        let q = if tails.q.above > SMALLEST_TAIL { (at + tails.q.above.ln()).exp() } else { 0.0 };
        tails.p.above - q + error(tails, q) * (1.0 + epsilon) + f64::MIN_POSITIVE
    };
    let lower = if law.is_attained() {
        let (at, tails) = (epsilon + slack, law.tails(epsilon + slack));
        let q = (at + tails.q.above.max(SMALLEST_TAIL).ln()).exp();
        tails.p.above - q - error(tails, q) * (1.0 + epsilon)
    } else {
        exact_delta(&law.attained(Direction::Remove), epsilon).lower
    };
    let upper = if upper.is_nan() { 1.0 } else { upper.clamp(0.0, 1.0) };
    Bound { lower: if lower.is_nan() { 0.0 } else { lower.clamp(0.0, upper) }, upper }
}

/// δ(ε) of N(μ, 1) against N(0, 1), rounded outward. [BW18, Theorem 8]
fn gaussian_delta(mu: f64, epsilon: f64) -> Bound {
    let delta = ln_gaussian_delta(mu, epsilon).exp();
    // The argument a = ε/μ - μ/2 of the density is off by a few units in the last place of its terms.
    let argument = 1.0 + (epsilon / mu - mu / 2.0).abs();
    let error = 1e-10 + 8.0 * ROUNDOFF * argument * (mu + epsilon / mu);
    Bound {
        lower: delta * (1.0 - error).max(0.0),
        upper: (delta * (1.0 + error) + f64::MIN_POSITIVE).min(1.0),
    }
}

/// Tails above this are normal numbers, with full precision.
const SMALLEST_TAIL: f64 = 1e-290;

/// The least ε ≥ 0 with δ(ε) ≤ δ of a single pair.
pub(crate) fn exact_epsilon(law: &Law, delta: f64) -> Bound {
    if law.infinite() > delta {
        // Mass that is treated as infinite because it is small proves nothing from below.
        let attained = law.attained(Direction::Remove);
        let lower =
            if attained.infinite() > delta { f64::INFINITY } else { exact_epsilon(&attained, delta).lower };
        return Bound { lower, upper: f64::INFINITY };
    }
    let solve = |side: &dyn Fn(Bound) -> f64| {
        let fits = |epsilon: f64| side(exact_delta(law, epsilon)) <= delta;
        if fits(0.0) {
            return 0.0;
        }
        let mut far = 1.0;
        while !fits(far) && far < 1e15 {
            far *= 2.0;
        }
        if far >= 1e15 {
            return f64::INFINITY;
        }
        bisect_smallest(0.0, far, 80, fits)
    };
    let upper = solve(&|b| b.upper);
    // The last step of the bisection is below one part in 1e15, so subtracting one more step gives a lower
    // bound.
    let lower = solve(&|b| b.lower) * (1.0 - 1e-14);
    Bound { lower: lower.min(upper), upper }
}

/// The ε of N(μ, 1) against N(0, 1) at δ, rounded up. [BW18, Theorem 8]
pub(crate) fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    if mu == 0.0 { 0.0 } else { exact_epsilon(&Law::gaussian(mu), delta).upper }
}
