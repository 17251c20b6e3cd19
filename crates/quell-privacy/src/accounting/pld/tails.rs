//! Tails of the privacy loss: probabilities on both sides of a threshold.
//!
//! Both are under P and under Q. All later computations (discretisation, profiles, Rényi bounds) use only
//! these tails and the bounds on their errors.

use super::law::Law;
use crate::special::{ROUNDOFF, normal_below};

/// Generous bound on the relative error of every tail below.
///
/// `erfc` is precise to one ulp, and a few operations follow it. An error of the threshold is an error of the
/// loss, see [`Law::rounding`].
pub(crate) const TAIL_ERROR: f64 = 64.0 * ROUNDOFF;

/// Bound on the absolute error of a tail whose terms underflow.
///
/// A number below 10⁻³⁰⁸ is off by up to 5·10⁻³²⁴. A tail is a sum of at most a few million such numbers, or
/// one of them times at most e⁴⁰ ([`Law::BoundedRange`]).
const UNDERFLOW: f64 = 1e-305;

/// Bound on the rounding error of a tail of this mass.
///
/// The argument z of a normal tail is off by a few units in its last place. The tail is then off by z² times
/// as many units, and z² is at most 2 ln(1/tail). A tail that underflows has an absolute error.
pub(crate) fn tail_error(mass: f64) -> f64 {
    mass * (TAIL_ERROR - 16.0 * ROUNDOFF * mass.clamp(f64::MIN_POSITIVE, 1.0).ln()) + UNDERFLOW
}

/// Probabilities on both sides of a threshold x, each accurate where it is small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sides {
    /// Pr[L > x], including an infinite loss.
    pub(crate) above: f64,
    /// Pr[L ≤ x].
    pub(crate) below: f64,
}

impl Sides {
    const ALL_ABOVE: Self = Self { above: 1.0, below: 0.0 };
    const ALL_BELOW: Self = Self { above: 0.0, below: 1.0 };

    fn from_above(above: f64) -> Self {
        Self { above, below: 1.0 - above }
    }

    fn from_below(below: f64) -> Self {
        Self { above: 1.0 - below, below }
    }

    /// The sides of a standard normal variable at z.
    fn normal(z: f64) -> Self {
        let small = normal_below(-z.abs());
        if z > 0.0 { Self::from_above(small) } else { Self::from_below(small) }
    }

    fn mix(self, weight: f64, other: Self) -> Self {
        Self {
            above: (1.0 - weight) * self.above + weight * other.above,
            below: (1.0 - weight) * self.below + weight * other.below,
        }
    }

    /// Pr[x < L ≤ y] with its error bound; `self` is at x, `upper` at y.
    pub(crate) fn between(self, upper: Self) -> (f64, f64) {
        let (low, high) =
            if self.above < 0.5 { (upper.above, self.above) } else { (self.below, upper.below) };
        ((high - low).max(0.0), tail_error(high) + tail_error(low))
    }
}

/// Tails of the loss at one threshold, under P and under Q.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tails {
    pub(crate) p: Sides,
    pub(crate) q: Sides,
}

impl Tails {
    const ALL_ABOVE: Self = Self { p: Sides::ALL_ABOVE, q: Sides::ALL_ABOVE };
    const ALL_BELOW: Self = Self { p: Sides::ALL_BELOW, q: Sides::ALL_BELOW };
}

impl Law {
    /// Tails of the loss at the threshold `x`.
    pub(crate) fn tails(&self, x: f64) -> Tails {
        match self {
            Self::Gaussian { mu, .. } => Tails {
                p: Sides::normal((x - mu * mu / 2.0) / mu),
                q: Sides::normal((x + mu * mu / 2.0) / mu),
            },
            Self::Laplace { epsilon } => {
                if x < -epsilon {
                    return Tails::ALL_ABOVE;
                }
                if x >= *epsilon {
                    return Tails::ALL_BELOW;
                }
                // L = |y - ε| - |y| is above x exactly if y < (ε - x)/2.
                Tails {
                    p: Sides::from_below(0.5 * (0.5 * (x - epsilon)).exp()),
                    q: Sides::from_above(0.5 * (-0.5 * (x + epsilon)).exp()),
                }
            }
            Self::BoundedRange { epsilon } => {
                if x < -epsilon {
                    return Tails::ALL_ABOVE;
                }
                if x >= *epsilon {
                    return Tails::ALL_BELOW;
                }
                // The profile is the largest of those of the two-point pairs with losses t and t - ε [DDR20]:
                // sup_t gives δ(x) = (1 - e^((x-ε)/2))² / (1 - e^-ε), and Q[L > x] = -dδ/de^x, P[L > x] = δ +
                // e^x Q[L > x].
                let mass = -(-epsilon).exp_m1();
                // e^-ε (e^y - 1), also where e^y is out of range.
                let shrunk =
                    |y: f64| if y > 40.0 { (y - epsilon).exp() } else { y.exp_m1() * (-epsilon).exp() };
                Tails {
                    p: Sides {
                        above: -(0.5 * (x - epsilon)).exp_m1() / mass,
                        below: shrunk(0.5 * (x + epsilon)) / mass,
                    },
                    q: Sides {
                        above: shrunk(0.5 * (epsilon - x)) / mass,
                        below: -(-0.5 * (x + epsilon)).exp_m1() / mass,
                    },
                }
            }
            Self::Atoms(atoms) | Self::Between { upper: atoms, .. } => atoms.tails(x),
            Self::Removed { rate, inner } => removed_tails(*rate, inner, x),
            Self::Added { rate, inner } => added_tails(*rate, inner, x),
            Self::Exchanged { rate, mu } => {
                let y = exchanged_threshold(*rate, *mu, x);
                let (none, towards, away) = (Sides::normal(y), Sides::normal(y - mu), Sides::normal(y + mu));
                Tails { p: none.mix(*rate, towards), q: none.mix(*rate, away) }
            }
            Self::FixedSize { rate, inner } => {
                if x >= 0.0 {
                    let Tails { p, q } = removed_tails(*rate, inner, x);
                    Tails { p: Sides::from_above(p.above), q: Sides::from_above(q.above) }
                } else {
                    let Tails { p, q } = added_tails(*rate, inner, x);
                    Tails { p: Sides::from_below(p.below), q: Sides::from_below(q.below) }
                }
            }
            Self::Replaced { bound, .. } => bound.tails(x),
            Self::Mixture(parts) => {
                let zero = Sides { above: 0.0, below: 0.0 };
                let mut sum = Tails { p: zero, q: zero };
                for (weight, law) in parts {
                    let Tails { p, q } = law.tails(x);
                    for (total, part) in [(&mut sum.p, p), (&mut sum.q, q)] {
                        total.above += weight * part.above;
                        total.below += weight * part.below;
                    }
                }
                sum
            }
            Self::Perturbed { mu, shift, tails } => {
                let half = mu * mu / 2.0;
                // P[L > x] = tails · Φ(-y) and Q[L > x] = e^-shift · tails · Φ(-y - μ) from the atom on.
                let beyond = |y: f64| {
                    let (p, q) = (tails * normal_below(-y), tails * normal_below(-y - mu));
                    (p.min(1.0), (-shift).exp() * q)
                };
                if x >= shift + half {
                    let (p, q) = beyond((x - shift - half) / mu);
                    return Tails { p: Sides::from_above(p), q: Sides::from_above(q) };
                }
                // Below the atom lies all of P, and the mass of Q where P has none.
                let atom = (1.0 - 0.5 * tails) * (-shift - half).exp();
                Tails { p: Sides::ALL_ABOVE, q: Sides::from_above(atom + beyond(0.0).1) }
            }
        }
    }
}

/// The l with ln(1 - q + q e^l) = x; -∞ if x is below ln(1 - q).
fn unsampled_loss(rate: f64, x: f64) -> f64 {
    if x > 600.0 || rate == 1.0 {
        return x - rate.ln();
    }
    // e^l = (e^x - (1 - q))/q, or 1 + (e^x - 1)/q: whichever keeps the digits of e^x.
    if x < -0.5 {
        let lifted = x.exp() - (1.0 - rate);
        return if lifted <= 0.0 { f64::NEG_INFINITY } else { (lifted / rate).ln() };
    }
    let lifted = x.exp_m1() / rate;
    if lifted <= -1.0 { f64::NEG_INFINITY } else { lifted.ln_1p() }
}

/// Tails of ((1-q)Q + qP, Q), whose loss is ln(1 - q + q e^l).
fn removed_tails(rate: f64, inner: &Law, x: f64) -> Tails {
    let threshold = unsampled_loss(rate, x);
    if threshold == f64::NEG_INFINITY {
        return Tails::ALL_ABOVE;
    }
    let Tails { p, q } = inner.tails(threshold);
    Tails { p: q.mix(rate, p), q }
}

/// Tails of (P, (1-q)P + qQ), whose loss is -ln(1 - q + q e^-l).
fn added_tails(rate: f64, inner: &Law, x: f64) -> Tails {
    let threshold = -unsampled_loss(rate, -x);
    if threshold == f64::INFINITY {
        return Tails::ALL_BELOW;
    }
    let Tails { p, q } = inner.tails(threshold);
    Tails { p, q: p.mix(rate, q) }
}

/// The y at which the loss of [`Law::Exchanged`] is x.
///
/// The loss is ln((r + ce^(μy))/(r + ce^(-μy))), with r = 1 - q and c = q e^(-μ²/2).
///
/// w = e^(μy) solves cw² - r(K - 1)w - Kc = 0 for K = e^x. The function is odd in x, so the root is computed
/// on the side without cancellation.
fn exchanged_threshold(rate: f64, mu: f64, x: f64) -> f64 {
    if x < 0.0 {
        return -exchanged_threshold(rate, mu, -x);
    }
    let (rest, ln_c) = (1.0 - rate, rate.ln() - mu * mu / 2.0);
    if rest == 0.0 {
        return x / (2.0 * mu);
    }
    let ln_half = if x < 30.0 { (rest * x.exp_m1() / 2.0).ln() } else { (rest / 2.0).ln() + x } - ln_c;
    // w = t + √(t² + K) with ln t = ln_half; beyond e^300 the term K is negligible.
    if ln_half > 300.0 {
        return (ln_half + std::f64::consts::LN_2) / mu;
    }
    let t = ln_half.exp();
    (t + t.hypot((x / 2.0).exp())).ln() / mu
}
