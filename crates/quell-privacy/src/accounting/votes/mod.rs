//! Data-dependent costs of votes: a vote costs little if the teachers agree.
//!
//! Functions here take counts as plain numbers, for votes that are *public* or invented: to plan, to compare,
//! to test. Their results depend on the votes and reveal information about them. A run keeps its votes in
//! [`Votes`](crate::mechanism::Votes), which is not readable. It adds costs up in a
//! [`VoteCost`](crate::mechanism::VoteCost), which is not readable either, and pays to release the sum.
//!
//! A neighbour of a dataset changes one ballot of each question: the ballot moves to another candidate, is
//! added or is removed. A divergence is that of the dataset's own outputs from any neighbour's, D(P‖Q), not
//! the reverse; THEORY, Votes, says what may be claimed with it.

mod ladder;
mod likely;
#[cfg(test)]
mod tests;

pub(crate) use ladder::{Ladder, Place, smooth_sum};

use likely::{concentrated, moment, pure};

use crate::{
    special::{ln_normal_below, ln_sum_exp},
    units::{NoiseMultiplier, Order, Scale},
};

/// The candidate with the most votes after Gaussian noise on every count (GNMax).
///
/// ```
/// use quell_privacy::{accounting::votes::GaussianMax, units::{NoiseMultiplier, Order}};
/// let (max, order) = (GaussianMax { deviation: NoiseMultiplier::new(40.0)? }, Order::new(8.0)?);
/// assert!(max.divergence(&[230, 10, 5, 5], order) < 0.02 * max.independent(order)); // they agree
/// assert_eq!(max.divergence(&[80, 75, 50, 45], order), max.independent(order)); // they do not
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianMax {
    /// Standard deviation of the noise, in votes.
    pub deviation: NoiseMultiplier,
}

impl GaussianMax {
    /// ln of the probability that a candidate other than the plurality wins, rounded up.
    ///
    /// # Theorem
    /// [PSMRTE18, Proposition 7]: by the union bound at most Σ ½ erfc((n* - nᵢ)/2σ) over the others; and
    /// 1 - 1/m, because no one of m candidates is likelier than the plurality.
    #[must_use]
    pub fn ln_error(&self, counts: &[u64]) -> f64 {
        ln_error(counts, self.deviation.get(), 0.0)
    }

    /// Divergence at these votes, rounded up: at most [`independent`](Self::independent).
    ///
    /// # Theorem
    /// [PSMRTE18, Theorem 6]: the mechanism is 1/σ²-zCDP and the plurality is likely.
    #[must_use]
    pub fn divergence(&self, counts: &[u64], order: Order) -> f64 {
        concentrated(self.ln_error(counts), rho(self.deviation.get()), order.get())
    }

    /// Divergence for arbitrary votes. [Mir17, Corollary 3]
    ///
    /// A ballot that moves changes the counts by √2 in L2, so the divergence is α(√2)²/2σ².
    #[must_use]
    pub fn independent(&self, order: Order) -> f64 {
        concentrated(0.0, rho(self.deviation.get()), order.get())
    }
}

/// ρ of the noisy maximum, (√2)²/2σ².
pub(crate) fn rho(deviation: f64) -> f64 {
    1.0 / (deviation * deviation)
}

/// [`GaussianMax::ln_error`], with all others moved towards the plurality.
///
/// They are closer by `closer` standard deviations of a difference.
pub(crate) fn ln_error(counts: &[u64], deviation: f64, closer: f64) -> f64 {
    let width = std::f64::consts::SQRT_2 * deviation;
    union(counts, |gap| ln_normal_below(closer - gap / width))
}

/// ln of the probability that a candidate other than the plurality wins, rounded up.
///
/// By the union bound it is Σ e^beats(n* - nᵢ) over the others, and at most 1 - 1/m.
///
/// With fewer than two candidates no other candidate can win.
fn union(counts: &[u64], beats: impl Fn(f64) -> f64) -> f64 {
    let Some(plurality) = (0..counts.len()).max_by_key(|&i| counts[i]) else { return f64::NEG_INFINITY };
    let others = counts.iter().enumerate().filter(|(i, _)| *i != plurality);
    let terms: Vec<f64> = others.map(|(_, &count)| beats((counts[plurality] - count) as f64)).collect();
    let sum = ln_sum_exp(&terms);
    // The error of the tails is a few ulps of their logarithms.
    let largest = (-1.0 / counts.len() as f64).ln_1p();
    if sum == f64::NEG_INFINITY { sum } else { (sum + 4e-15 * (4.0 - sum.min(0.0))).min(largest) }
}

/// The candidate with the most votes after Laplace noise on every count (LNMax).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaplaceMax {
    /// Scale of the noise, in votes.
    pub scale: Scale,
}

impl LaplaceMax {
    /// ln of the probability that a candidate other than the plurality wins, rounded up.
    ///
    /// # Theorem
    /// [PAEGT17, Lemma 4]: at most Σ (2 + g)/4 e^-g over the others, g = (n* - nᵢ)/scale; and 1 - 1/m.
    #[must_use]
    pub fn ln_error(&self, counts: &[u64]) -> f64 {
        union(counts, |gap| (0.5 + 0.25 * gap / self.scale.get()).ln() - gap / self.scale.get())
    }

    /// Divergence at these votes, rounded up: at most that of any (2/scale)-DP mechanism.
    ///
    /// # Theorem
    /// [PAEGT17, Theorem 3]. A ballot that moves changes two counts by one, each at a cost of 1/scale. The
    /// noise is continuous.
    #[must_use]
    pub fn divergence(&self, counts: &[u64], order: Order) -> f64 {
        pure(self.ln_error(counts), 2.0 / self.scale.get(), order.get())
    }

    /// Divergence for arbitrary votes. [BS16]
    #[must_use]
    pub fn independent(&self, order: Order) -> f64 {
        pure(0.0, 2.0 / self.scale.get(), order.get())
    }
}

/// Whether the largest count reaches a threshold after Gaussian noise.
///
/// This is the first half of Confident-GNMax.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Screen {
    /// The threshold.
    pub threshold: u64,
    /// Standard deviation of the noise, in votes.
    pub deviation: NoiseMultiplier,
}

impl Screen {
    /// By how many deviations the largest count exceeds the threshold.
    fn above(&self, counts: &[u64]) -> f64 {
        (counts.iter().copied().max().unwrap_or(0) as f64 - self.threshold as f64) / self.deviation.get()
    }

    /// ln of the probability that the question passes.
    #[must_use]
    pub fn ln_passes(&self, counts: &[u64]) -> f64 {
        ln_normal_below(self.above(counts))
    }

    /// Divergence at these votes, rounded up: at most [`independent`](Self::independent).
    ///
    /// # Theorem
    /// Exact: the outcome is a Bernoulli variable, the largest count moves by at most one, and the divergence
    /// is convex in the neighbour's probability, so it is largest where that count has moved by one (THEORY,
    /// Votes). Never above [PSMRTE18, Theorem 6], which uses less information.
    #[must_use]
    pub fn divergence(&self, counts: &[u64], order: Order) -> f64 {
        screen_divergence(self.above(counts), self.deviation.get(), 0.0, order.get())
    }

    /// Divergence for arbitrary votes. [Mir17, Corollary 3]
    ///
    /// One ballot moves the largest count by at most one.
    #[must_use]
    pub fn independent(&self, order: Order) -> f64 {
        0.5 * rho(self.deviation.get()) * order.get() * (1.0 + 1e-14)
    }

    /// The bound of [PSMRTE18, Theorem 6], for comparison.
    ///
    /// It uses only the likelier outcome and ρ = 1/2σ².
    #[must_use]
    pub fn by_likely_outcome(&self, counts: &[u64], order: Order) -> f64 {
        let rarer = ln_normal_below(-self.above(counts).abs());
        concentrated(rarer + 4e-15 * (4.0 - rarer), 0.5 * rho(self.deviation.get()), order.get())
    }
}

/// Divergence of a screen whose largest count is x deviations above the threshold, rounded up.
///
/// The step after a pass costs `after` more.
pub(crate) fn screen_divergence(x: f64, deviation: f64, after: f64, alpha: f64) -> f64 {
    // Two outcomes: the likelier one first, so that the distance of its probability from one keeps its
    // digits.
    let ways = [x - 1.0 / deviation, x + 1.0 / deviation].map(|y| {
        let sides = if x >= 0.0 { [(x, y, after), (-x, -y, 0.0)] } else { [(-x, -y, 0.0), (x, y, after)] };
        let [likely, rare] = sides.map(|(x, y, after)| {
            let (ours, theirs) = (ln_normal_below(x), ln_normal_below(y));
            // Bound on the error of the logarithms by the rounding of x.
            let error = 1e-15 * (8.0 + x * x) * (alpha * -ours + (alpha - 1.0) * -theirs);
            alpha * ours - (alpha - 1.0) * theirs + (alpha - 1.0) * after + error
            // p^α          q^(1-α)                 e^((α-1)·after)
        });
        moment(likely, rare, alpha)
    });
    ways[0].max(ways[1]).min(0.5 * rho(deviation) * alpha * (1.0 + 1e-14) + after)
}

/// A question that a noisy maximum answers if it passes a screen (Confident-GNMax).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confident {
    /// The screen, which decides whether the question is answered.
    pub screen: Screen,
    /// The noisy maximum, which answers it.
    pub max: GaussianMax,
}

impl Confident {
    /// Divergence at these votes of both steps together, rounded up.
    ///
    /// This is the cost before it is known whether the question passes.
    ///
    /// # Theorem
    /// The divergence of the answer counts by the weight of "passes" under P^α Q^(1-α) (THEORY, Votes). It
    /// adds up over questions that were chosen in advance. For adaptively chosen questions, the cost of each
    /// step is added as it happens: [`VoteCost`](crate::mechanism::VoteCost).
    #[must_use]
    pub fn divergence(&self, counts: &[u64], order: Order) -> f64 {
        let after = self.max.divergence(counts, order);
        screen_divergence(self.screen.above(counts), self.screen.deviation.get(), after, order.get())
    }

    /// Divergence for arbitrary votes and outcomes.
    #[must_use]
    pub fn independent(&self, order: Order) -> f64 {
        self.screen.independent(order) + self.max.independent(order)
    }

    /// The divergence that is reported for PATE, *not a bound*, for comparison only.
    ///
    /// It is the divergence of the screen plus the probability to pass times that of the maximum. An average
    /// of costs is no divergence: ln E[e^X] ≥ E[X]. [`divergence`](Self::divergence) is the bound.
    #[must_use]
    pub fn expected(&self, counts: &[u64], order: Order) -> f64 {
        let passes = self.screen.ln_passes(counts).exp();
        self.screen.by_likely_outcome(counts, order) + passes * self.max.divergence(counts, order)
    }
}
