//! Quadrature of losses: points and masses that integrate smooth functions of the loss.
//!
//! There is a fine and a coarse rule; their difference estimates the error.

use realfft::num_complex::Complex64;

use crate::{
    accounting::{
        pld::{Law, sampled_loss},
        search::golden_section,
    },
    special::normal_quantile,
};

/// Losses with their probabilities under P.
type Points = Vec<(f64, f64)>;

/// How the transform of one law is computed.
enum Rule {
    /// By its formula, for Gaussian noise.
    Gaussian { mu: f64 },
    /// By quadrature.
    Points { points: Points, decay: Decay },
}

/// How the transform of a law behaves far out.
#[derive(Clone, Copy)]
enum Decay {
    /// It only falls from the end of a line on.
    ///
    /// This holds if the loss is a smooth function of Gaussian noise.
    Monotone,
    /// It falls to that of two atoms.
    ///
    /// Laplace noise of scale one, shifted by ε, has two atoms and a density between them.
    ToAtoms { epsilon: f64 },
    /// It may rise again.
    Unknown,
}

impl Rule {
    /// ln E_P[e^(zL)].
    fn cumulant(&self, z: Complex64) -> Complex64 {
        match self {
            Self::Gaussian { mu } => 0.5 * mu * mu * z * (z + 1.0),
            Self::Points { points, .. } => {
                // Scaled by the largest tilted mass, so that no relevant term overflows or underflows.
                let top = points
                    .iter()
                    .map(|(loss, mass)| z.re * loss + mass.ln())
                    .fold(f64::NEG_INFINITY, f64::max);
                let moment: Complex64 = points.iter().map(|(loss, mass)| mass * (z * loss - top).exp()).sum();
                moment.ln() + top
            }
        }
    }

    /// A bound on ln |E[e^((θ+it)L)]/E[e^(θL)]| for all t from `end` on.
    fn beyond(&self, theta: f64, end: f64) -> f64 {
        let at_zero = self.cumulant(Complex64::new(theta, 0.0)).re;
        let at_end = || self.cumulant(Complex64::new(theta, end)).re - at_zero;
        match self {
            Self::Gaussian { .. } | Self::Points { decay: Decay::Monotone, .. } => at_end(),
            Self::Points { decay: Decay::ToAtoms { epsilon }, .. } => {
                // The atoms contribute e^(θε)/2 + e^(-(θ+1)ε)/2; the integral of a density that rises to
                // e^(θε)/4 is at most e^(θε)/2t.
                let ln_top = theta * epsilon - at_zero;
                let rest = 0.5 + 0.5 * (-(2.0 * theta + 1.0) * epsilon).exp() + 0.5 / end;
                (ln_top + rest.ln()).min(0.0)
            }
            Self::Points { decay: Decay::Unknown, .. } => 0.0,
        }
    }

    /// Variance of the loss when tilted by θ.
    fn variance(&self, theta: f64) -> f64 {
        match self {
            Self::Gaussian { mu } => mu * mu,
            Self::Points { points, .. } => {
                let top = points
                    .iter()
                    .map(|(loss, mass)| theta * loss + mass.ln())
                    .fold(f64::NEG_INFINITY, f64::max);
                let weighted =
                    || points.iter().map(|(loss, mass)| (*loss, mass * (theta * loss - top).exp()));
                let total: f64 = weighted().map(|(_, weight)| weight).sum();
                let mean = weighted().map(|(loss, weight)| weight * loss).sum::<f64>() / total;
                weighted().map(|(loss, weight)| weight * (loss - mean).powi(2)).sum::<f64>() / total
            }
        }
    }
}

/// The laws of a composition as rules, each with its number of occurrences.
pub(super) struct Rules {
    fine: Vec<(Rule, f64)>,
    coarse: Vec<(Rule, f64)>,
    /// Number of releases.
    pub(super) steps: f64,
    /// Probability of an infinite loss.
    pub(super) infinite: f64,
    /// Probability that the rules leave out.
    pub(super) left_out: f64,
}

impl Rules {
    /// Leaves out a probability of about `tail`.
    ///
    /// The tail would otherwise dominate the moments far from the origin.
    pub(super) fn of(factors: &[(Law, u64)], tail: f64) -> Self {
        let steps: f64 = factors.iter().map(|(_, count)| *count as f64).sum();
        let tail = (tail / steps.max(1.0)).max(1e-300);
        let rules = |fineness: f64| {
            factors.iter().map(|(law, count)| (rule(law, tail, fineness), *count as f64)).collect()
        };
        let finite: f64 =
            factors.iter().map(|(law, count)| *count as f64 * (-law.infinite().min(1.0)).ln_1p()).sum();
        // The probability beyond the low end of each rule is as small as beyond its high end, or less than
        // 1e-14.
        Self {
            fine: rules(2.0),
            coarse: rules(1.0),
            steps,
            infinite: -finite.exp_m1(),
            left_out: 2.0 * steps * tail,
        }
    }

    pub(super) fn fine(&self, z: Complex64) -> Complex64 {
        transform(&self.fine, z)
    }

    pub(super) fn coarse(&self, z: Complex64) -> Complex64 {
        transform(&self.coarse, z)
    }

    /// K(θ) on the real line.
    pub(super) fn cumulant(&self, theta: f64) -> f64 {
        transform(&self.coarse, Complex64::new(theta, 0.0)).re
    }

    /// Standard deviation of the sum when tilted by θ.
    pub(super) fn deviation(&self, theta: f64) -> f64 {
        self.coarse.iter().map(|(rule, count)| count * rule.variance(theta)).sum::<f64>().sqrt()
    }

    /// A bound on ln |e^(K(θ+it) - K(θ))| for all t from `end` on.
    pub(super) fn beyond(&self, theta: f64, end: f64) -> f64 {
        self.coarse.iter().map(|(rule, count)| count * rule.beyond(theta, end).min(0.0)).sum()
    }

    /// The θ at which |e^(K(θ) - θε)/θ(θ+1)| is least: a convex function of θ.
    pub(super) fn saddle(&self, epsilon: f64) -> f64 {
        least(|theta| self.cumulant(theta) - theta * epsilon - theta.ln() - theta.ln_1p()).0
    }

    /// The ε at which Chernoff's bound is δ; slightly above the true ε.
    pub(super) fn epsilon_by_chernoff(&self, delta: f64) -> f64 {
        let remaining = (delta - self.infinite).max(1e-9 * delta);
        let epsilon = |theta: f64| {
            (self.cumulant(theta) - remaining.ln() - theta.ln_1p()) / theta + (theta / (1.0 + theta)).ln()
        };
        least(epsilon).1.max(0.0)
    }

    /// Chernoff's bound on δ(ε).
    pub(super) fn delta_by_chernoff(&self, epsilon: f64) -> f64 {
        let ln_delta = |theta: f64| {
            self.cumulant(theta) - theta * epsilon + theta * (theta / (1.0 + theta)).ln() - theta.ln_1p()
        };
        least(ln_delta).1.min(0.0).exp()
    }
}

/// The least value over θ between e^-9 and e^17, and its position.
fn least(value: impl Fn(f64) -> f64) -> (f64, f64) {
    let theta = golden_section((-9.0, 17.0), 0.02, |ln_theta| value(ln_theta.exp())).exp();
    (theta, value(theta))
}

/// K(z).
fn transform(rules: &[(Rule, f64)], z: Complex64) -> Complex64 {
    rules.iter().map(|(rule, count)| *count * rule.cumulant(z)).sum()
}

/// Losses and P-masses that integrate smooth functions of the loss.
///
/// The error is spectrally small for Gaussian noise and zero for atoms.
fn rule(law: &Law, tail: f64, fineness: f64) -> Rule {
    let reach = -normal_quantile(tail.min(0.1));
    // The trapezoidal rule in the noise y, with P-density `p` and loss `loss`.
    let normal = |from: f64, to: f64, step: f64, p: &dyn Fn(f64) -> f64, loss: &dyn Fn(f64) -> f64| {
        let step = step / fineness;
        let count = ((to - from) / step).ceil() as usize;
        let at = |i: usize| from + i as f64 * step;
        let points =
            (0..=count).map(|i| (loss(at(i)), p(at(i)) * step)).filter(|(_, mass)| *mass > 0.0).collect();
        Rule::Points { points, decay: Decay::Monotone }
    };
    let density = |y: f64| (-y * y / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let low = -reach.max(13.0);
    match law {
        Law::Gaussian { mu, .. } => Rule::Gaussian { mu: *mu },
        Law::Removed { rate, inner } => match **inner {
            Law::Gaussian { mu, .. } => {
                let p = |y: f64| (1.0 - rate) * density(y) + rate * density(y - mu);
                normal(low, mu + reach, 0.1_f64.min(0.6 / mu), &p, &|y| {
                    sampled_loss(*rate, mu * y - mu * mu / 2.0)
                })
            }
            _ => cells(law, tail, fineness, Decay::Unknown),
        },
        Law::Added { rate, inner } => match **inner {
            Law::Gaussian { mu, .. } => {
                let loss = |y: f64| -sampled_loss(*rate, -(mu * mu / 2.0 + mu * y));
                normal(low, reach, 0.1_f64.min(0.6 / mu), &density, &loss)
            }
            _ => cells(law, tail, fineness, Decay::Unknown),
        },
        Law::Exchanged { rate, mu } => {
            let p = |y: f64| (1.0 - rate) * density(y) + rate * density(y - mu);
            let side = |s: f64, y: f64| sampled_loss(*rate, s * y - mu * mu / 2.0);
            normal(low, mu + reach, 0.1_f64.min(0.6 / mu), &p, &|y| side(*mu, y) - side(-mu, y))
        }
        Law::Atoms(atoms) => {
            let points = atoms.list().into_iter().filter(|(_, mass)| *mass > 0.0).collect();
            Rule::Points { points, decay: Decay::Unknown }
        }
        Law::Laplace { epsilon } => cells(law, tail, fineness, Decay::ToAtoms { epsilon: *epsilon }),
        Law::BoundedRange { .. }
        | Law::FixedSize { .. }
        | Law::Replaced { .. }
        | Law::Between { .. }
        | Law::Mixture(_)
        | Law::Perturbed { .. } => cells(law, tail, fineness, Decay::Unknown),
    }
}

/// Narrow cells, each represented by its mean.
fn cells(law: &Law, tail: f64, fineness: f64, decay: Decay) -> Rule {
    let count = (600.0 * fineness) as usize;
    let (low, high) = law.range(tail.min(1e-14), tail);
    let width = (high - low) / count as f64;
    let mut points = Vec::with_capacity(count + 2);
    let mut left = law.tails(low - width);
    for j in 0..=count + 1 {
        let right = law.tails(low + j as f64 * width);
        let (p, q) = (left.p.between(right.p).0, left.q.between(right.q).0);
        if p > 0.0 && q > 0.0 {
            points.push(((p / q).ln(), p));
        }
        left = right;
    }
    Rule::Points { points, decay }
}
