//! Laws of the privacy loss L = ln dP/dQ of dominating pairs (P, Q).
//!
//! Unsampled pairs are symmetric: (P, Q) and (Q, P) have the same law of the loss. Sampling breaks the
//! symmetry, so a sampled law exists once for each direction. The probabilities of a law are in
//! [`tails`](super::tails); which laws an event has is in [`events`](super::events).

use std::sync::Arc;

use super::{atoms::Atoms, privacy_loss::Direction, tails::TAIL_ERROR};

/// Evenly spaced losses with positive probability.
pub(in crate::accounting) struct Lattice {
    /// A likely loss of the lattice.
    pub(super) atom: f64,
    /// Distance between adjacent losses.
    pub(in crate::accounting) spacing: f64,
}

/// The law of the loss of one dominating pair.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Law {
    /// N(μ, 1) against N(0, 1): L ~ N(μ²/2, μ²) under P. [BW18]
    ///
    /// Some mechanism with the event attains the same pair with `attained` in place of μ.
    Gaussian { mu: f64, attained: f64 },
    /// Laplace noise of scale one, shifted by ε.
    Laplace { epsilon: f64 },
    /// The least pair that dominates every mechanism of bounded range ε, see [`Law::tails`].
    BoundedRange { epsilon: f64 },
    /// Finitely many losses.
    Atoms(Arc<Atoms>),
    /// ((1-q)Q + qP, Q): with the record, perhaps sampled, against without it. [ZDW22, Theorem 11]
    Removed { rate: f64, inner: Box<Law> },
    /// (P, (1-q)P + qQ): the other direction. [ZDW22, Theorem 11]
    Added { rate: f64, inner: Box<Law> },
    /// (1-q)N(0, 1) + qN(μ, 1) against (1-q)N(0, 1) + qN(-μ, 1).
    ///
    /// Poisson sampling with one record replaced. [THEORY, Replace]
    Exchanged { rate: f64, mu: f64 },
    /// A sample of fixed size with one record replaced.
    ///
    /// `Removed` for losses above zero, `Added` below. [ZDW22, Theorem 11]
    FixedSize { rate: f64, inner: Box<Law> },
    /// A Poisson sample with one record replaced and noise other than Gaussian.
    ///
    /// The law is dominated by `bound`; `one` is the law of a lost record.
    Replaced { rate: f64, one: Box<Law>, bound: Box<Law> },
    /// Several releases on one sample: a pair that is dominated by `upper` and dominates `lower`.
    Between { lower: Arc<Atoms>, upper: Arc<Atoms> },
    /// One of several pairs, drawn with known weights; the choice is revealed.
    Mixture(Vec<(f64, Law)>),
    /// L = shift + μ²/2 + μ max(0, N) for one tail, shift + μ²/2 + μ|N| for two, with N normal.
    ///
    /// Q has the rest of its mass where P has none. [THEORY, Objective perturbation]
    Perturbed { mu: f64, shift: f64, tails: f64 },
}

impl Law {
    /// N(μ, 1) against N(0, 1), which some mechanism attains.
    pub(crate) fn gaussian(mu: f64) -> Self {
        Self::Gaussian { mu, attained: mu }
    }

    /// The pair that dominates objective perturbation of multiplier 1/μ and curvature ratio r.
    ///
    /// # Theorem
    /// (THEORY, Objective perturbation) With the record against without it, the loss is at most ln(1 + r) +
    /// μ²/2 + μ max(0, N). In the other direction it is at most μ²/2 + μ|N|. Here N is normal under the first
    /// distribution. This sharpens [RKW23, Theorem 3.1], which has |ln(1 - r)| + μ²/2 + μ|N| for r < 1.
    pub(super) fn perturbed_objective(mu: f64, ratio: f64, direction: Direction) -> Self {
        match direction {
            Direction::Remove => Self::Perturbed { mu, shift: ratio.ln_1p(), tails: 1.0 },
            Direction::Add => Self::Perturbed { mu, shift: 0.0, tails: 2.0 },
        }
    }

    /// The law of a pair that some mechanism attains, for lower bounds.
    ///
    /// A dominating pair bounds every mechanism at every ε at once. Where no mechanism attains it everywhere,
    /// its own composition is not a lower bound on anything.
    /// - Bounded range: the two-point pair with losses ±ε/2 has bounded range ε.
    /// - Sample of fixed size: let the record contribute as much as it may in one direction in one dataset,
    ///   and exactly what all others contribute in the other dataset. Then a batch without it looks like a
    ///   batch with its replacement, and the pair is that of Poisson sampling in the given direction.
    /// - With replacement, the record may be drawn several times. Noise that is shifted farther only makes
    ///   every threshold a better test, so the pair for one draw with the probability of at least one draw is
    ///   a lower bound.
    /// - Objective perturbation: a loss of constant slope makes the minimiser a sum with Gaussian noise.
    pub(crate) fn attained(&self, direction: Direction) -> Self {
        match self {
            Self::Gaussian { attained, .. } => Self::gaussian(*attained),
            Self::Laplace { .. } | Self::Atoms(_) | Self::Exchanged { .. } => self.clone(),
            Self::BoundedRange { epsilon } => Self::Atoms(Arc::new(Atoms::pure(epsilon / 2.0))),
            Self::Between { lower, .. } => Self::Atoms(Arc::clone(lower)),
            Self::Removed { rate, inner } => {
                Self::Removed { rate: *rate, inner: Box::new(inner.attained(direction)) }
            }
            Self::Added { rate, inner } => {
                Self::Added { rate: *rate, inner: Box::new(inner.attained(direction)) }
            }
            // A replacement that contributes nothing has the same effect as a lost record.
            Self::FixedSize { rate, inner } | Self::Replaced { rate, one: inner, .. } => {
                let inner = Box::new(inner.attained(direction));
                match direction {
                    Direction::Remove => Self::Removed { rate: *rate, inner },
                    Direction::Add => Self::Added { rate: *rate, inner },
                }
            }
            Self::Mixture(parts) => {
                parts.first().map_or_else(|| self.clone(), |(_, law)| law.attained(direction))
            }
            Self::Perturbed { mu, .. } => Self::gaussian(*mu),
        }
    }

    /// Whether at each ε some single release attains the profile of the law.
    ///
    /// Different releases may attain it at different ε.
    pub(super) fn is_attained(&self) -> bool {
        match self {
            Self::Gaussian { mu, attained } => mu == attained,
            Self::Laplace { .. } | Self::BoundedRange { .. } | Self::Atoms(_) | Self::Exchanged { .. } => {
                true
            }
            Self::Removed { inner, .. } | Self::Added { inner, .. } | Self::FixedSize { inner, .. } => {
                inner.is_attained()
            }
            Self::Mixture(_) | Self::Replaced { .. } | Self::Between { .. } | Self::Perturbed { .. } => false,
        }
    }

    /// All finite losses with their probabilities under P, and P[L = ∞].
    ///
    /// `None` for a law with a density.
    pub(super) fn finite(&self) -> Option<(Vec<(f64, f64)>, f64)> {
        let inside = |inner: &Self| match inner {
            Self::Atoms(atoms) => Some(Arc::clone(atoms)),
            _ => None,
        };
        let losses = match self {
            Self::Atoms(atoms) => atoms.list(),
            Self::Removed { rate, inner } => {
                let atoms = inside(inner)?;
                let at =
                    |(loss, p, q): (f64, f64, f64)| (sampled_loss(*rate, loss), (1.0 - rate) * q + rate * p);
                // Where P has no mass, the mixture has some.
                let without =
                    (atoms.infinite() > 0.0).then(|| ((-rate).ln_1p(), (1.0 - rate) * atoms.infinite()));
                without.into_iter().chain(atoms.triples().map(at)).collect()
            }
            Self::Added { rate, inner } => {
                let atoms = inside(inner)?;
                let at = |(loss, p, _): (f64, f64, f64)| (-sampled_loss(*rate, -loss), p);
                // Where Q has no mass, the mixture has some.
                let only =
                    (atoms.infinite() > 0.0 && *rate < 1.0).then(|| (-(-rate).ln_1p(), atoms.infinite()));
                atoms.triples().map(at).chain(only).collect()
            }
            Self::FixedSize { rate, inner } => {
                let atoms = inside(inner)?;
                let mut losses: Vec<(f64, f64)> = Vec::new();
                for (loss, p, q) in atoms.triples() {
                    if loss > 0.0 {
                        losses.push((sampled_loss(*rate, loss), (1.0 - rate) * q + rate * p));
                    } else if loss < 0.0 {
                        losses.push((-sampled_loss(*rate, -loss), p));
                    }
                }
                let rest = 1.0 - self.infinite() - losses.iter().map(|(_, mass)| mass).sum::<f64>();
                if rest > 0.0 {
                    losses.push((0.0, rest));
                }
                losses
            }
            Self::Replaced { bound, .. } => return bound.finite(),
            Self::Gaussian { .. }
            | Self::Laplace { .. }
            | Self::BoundedRange { .. }
            | Self::Exchanged { .. }
            | Self::Between { .. }
            | Self::Mixture(_)
            | Self::Perturbed { .. } => {
                return None;
            }
        };
        Some((losses, self.infinite()))
    }

    /// The lattice of the atoms of the loss, if the atoms are evenly spaced.
    pub(in crate::accounting) fn lattice(&self) -> Option<Lattice> {
        let ends =
            |low: f64, high: f64, heavy_end: f64| Some(Lattice { atom: heavy_end, spacing: high - low });
        match self {
            Self::Laplace { epsilon } => ends(-epsilon, *epsilon, *epsilon),
            Self::Atoms(atoms) => atoms.lattice(),
            Self::Removed { rate, inner } => {
                let (low, high) = inner.end_atoms()?;
                let (low, high) = (sampled_loss(*rate, low), sampled_loss(*rate, high));
                ends(low, high, low)
            }
            Self::Added { rate, inner } => {
                let (low, high) = inner.end_atoms()?;
                let (low, high) = (-sampled_loss(*rate, -low), -sampled_loss(*rate, -high));
                ends(low, high, high)
            }
            Self::FixedSize { rate, inner } => {
                let (_, high) = inner.end_atoms()?;
                let high = sampled_loss(*rate, high);
                ends(0.0, high, 0.0)
            }
            Self::Replaced { bound, .. } => bound.lattice(),
            Self::Gaussian { .. }
            | Self::BoundedRange { .. }
            | Self::Exchanged { .. }
            | Self::Between { .. }
            | Self::Mixture(_)
            | Self::Perturbed { .. } => None,
        }
    }

    /// The smallest and the largest loss, if they are the only atoms.
    fn end_atoms(&self) -> Option<(f64, f64)> {
        match self {
            Self::Laplace { epsilon } => Some((-epsilon, *epsilon)),
            Self::Atoms(atoms) => match atoms.losses() {
                [low, high] => Some((*low, *high)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Bound on the rounding error of a loss or threshold near `x`.
    ///
    /// A threshold is the result of a few operations on numbers of the size of x, of the corresponding loss
    /// of the unsampled release (at most |x| + ln(1/q), below |x| + 35) and of the parameter of the law.
    pub(crate) fn rounding(&self, x: f64) -> f64 {
        32.0 * crate::special::ROUNDOFF * (64.0 + x.abs() + self.size())
    }

    /// The size of the numbers from which the loss is computed.
    fn size(&self) -> f64 {
        match self {
            Self::Gaussian { mu, .. } | Self::Exchanged { mu, .. } => mu * mu,
            Self::Laplace { epsilon } | Self::BoundedRange { epsilon } => *epsilon,
            Self::Atoms(_) | Self::Between { .. } => 0.0, // every loss is computed by itself
            Self::Removed { inner, .. } | Self::Added { inner, .. } | Self::FixedSize { inner, .. } => {
                inner.size()
            }
            Self::Replaced { bound, .. } => bound.size(),
            Self::Mixture(parts) => parts.iter().map(|(_, law)| law.size()).fold(0.0, f64::max),
            Self::Perturbed { mu, shift, .. } => mu * mu + shift,
        }
    }

    /// P[L = ∞].
    pub(crate) fn infinite(&self) -> f64 {
        match self {
            Self::Gaussian { .. }
            | Self::Laplace { .. }
            | Self::BoundedRange { .. }
            | Self::Exchanged { .. }
            | Self::Perturbed { .. } => 0.0,
            Self::Atoms(atoms) | Self::Between { upper: atoms, .. } => atoms.infinite(),
            Self::Removed { rate, inner } | Self::FixedSize { rate, inner } => rate * inner.infinite(),
            // Where Q has no mass the mixture (1-q)P + qQ still has some.
            Self::Added { rate, inner } => {
                if *rate < 1.0 {
                    0.0
                } else {
                    inner.infinite()
                }
            }
            Self::Replaced { bound, .. } => bound.infinite(),
            Self::Mixture(parts) => parts.iter().map(|(weight, law)| weight * law.infinite()).sum(),
        }
    }

    /// The law of the same pair, conditioned on a finite loss.
    ///
    /// This is exact for pairs with P[L = ∞] = Q[L = -∞].
    pub(super) fn given_finite(&self) -> Self {
        let given = |atoms: &Arc<Atoms>| Arc::new(atoms.given_finite());
        match self {
            Self::Atoms(atoms) if atoms.infinite() > 0.0 => Self::Atoms(given(atoms)),
            Self::Between { lower, upper } => Self::Between { lower: given(lower), upper: given(upper) },
            _ => self.clone(),
        }
    }

    /// The law of a release that does not depend on the record.
    pub(super) fn nothing() -> Self {
        Self::Atoms(Arc::new(Atoms::pure(0.0)))
    }

    /// Whether the loss is always zero.
    pub(super) fn is_trivial(&self) -> bool {
        matches!(self, Self::Atoms(atoms) if atoms.infinite() == 0.0 && atoms.losses() == [0.0])
    }

    /// The largest loss, rounded up; infinite if the loss is unbounded.
    pub(super) fn largest(&self) -> f64 {
        if self.infinite() > 0.0 {
            return f64::INFINITY;
        }
        let largest = match self {
            Self::Gaussian { .. } | Self::Exchanged { .. } | Self::Perturbed { .. } => f64::INFINITY,
            Self::Laplace { epsilon } | Self::BoundedRange { epsilon } => *epsilon,
            Self::Atoms(atoms) | Self::Between { upper: atoms, .. } => {
                atoms.losses().iter().copied().fold(f64::NEG_INFINITY, f64::max)
            }
            Self::Removed { rate, inner } | Self::FixedSize { rate, inner } => {
                sampled_loss(*rate, inner.largest())
            }
            Self::Added { rate, .. } => -(-rate).ln_1p(),
            Self::Replaced { bound, .. } => bound.largest(),
            Self::Mixture(parts) => {
                parts.iter().map(|(_, law)| law.largest()).fold(f64::NEG_INFINITY, f64::max)
            }
        };
        largest + 1e-12 * largest.abs()
    }

    /// A range of losses with at most `low_tail` below and `high_tail` above.
    ///
    /// Both are probabilities of finite losses under P.
    pub(crate) fn range(&self, low_tail: f64, high_tail: f64) -> (f64, f64) {
        let infinite = self.infinite() * (1.0 + TAIL_ERROR);
        let reach = |fits: &dyn Fn(f64) -> bool| {
            let mut far = 1e-9;
            while !fits(far) && far < 1e12 {
                far *= 4.0;
            }
            crate::special::bisect_smallest(0.0, far, 24, fits)
        };
        let high = reach(&|x| self.tails(x).p.above - infinite <= high_tail);
        let low = reach(&|x| self.tails(-x).p.below <= low_tail);
        (-low, high)
    }
}

/// ln(1 - q + q e^l), also where e^l is out of range.
pub(crate) fn sampled_loss(rate: f64, l: f64) -> f64 {
    if l > 600.0 || rate == 1.0 {
        return l + rate.ln();
    }
    let lifted = rate * l.exp_m1();
    // Near -1 the logarithm of 1 + q(e^l - 1) has no digits left; here 1 - q is exact.
    if lifted < -0.5 { (1.0 - rate + rate * l.exp()).ln() } else { lifted.ln_1p() }
}
