//! Closed forms: exact profiles of single releases, and classical theorems for comparison.

pub use super::iterates::{bounded_domain_rho, strongly_convex_rho};
use crate::{
    Error, Event, Neighbors,
    accounting::{
        Bound, Pld,
        pld::{Law, exact_delta, exact_epsilon, one_law_each_way},
    },
    special::bisect_smallest,
    units::{Delta, Epsilon, NoiseMultiplier, Order, Rho, SamplingRate},
};

/// The exact ε of an event that is one release, or any composition of Gaussians.
///
/// # Theorem
/// δ(ε) = P[L > ε] - e^ε Q[L > ε], in closed form for every pair [BW18, Theorem 5]; for Gaussians [BW18,
/// Theorem 8].
pub fn epsilon(event: &Event, neighbors: Neighbors, delta: Delta) -> Result<Bound, Error> {
    refuse_search(event)?;
    let laws = one_law_each_way(event, neighbors)?;
    if laws.is_empty() {
        return Ok(Bound { lower: f64::INFINITY, upper: f64::INFINITY });
    }
    let bounds = laws.iter().map(|law| exact_epsilon(law, delta.get()));
    Ok(bounds.fold(Bound { lower: 0.0, upper: 0.0 }, Bound::max))
}

/// The exact δ of one release, or of any composition of Gaussians, at ε ≥ 0.
pub fn delta(event: &Event, neighbors: Neighbors, epsilon: Epsilon) -> Result<Bound, Error> {
    refuse_search(event)?;
    let laws = one_law_each_way(event, neighbors)?;
    if laws.is_empty() {
        return Ok(Bound { lower: 1.0, upper: 1.0 });
    }
    let bounds = laws.iter().map(|law| exact_delta(law, epsilon.get()));
    Ok(bounds.fold(Bound { lower: 0.0, upper: 0.0 }, Bound::max))
}

/// The best of several trials has a bound, and no exact profile.
fn refuse_search(event: &Event) -> Result<(), Error> {
    match event {
        Event::BestOf { .. } => Err(Error::Unsupported {
            accountant: "closed",
            event: event.to_string(),
            because: "because the profile of the best of several trials is known from above alone",
        }),
        _ => Ok(()),
    }
}

/// The least σ over sensitivity of (ε, δ)-DP Gaussian noise, rounded up. [BW18, Algorithm 1]
///
/// ```
/// use quell_privacy::{accounting::closed, units::{Delta, Epsilon}};
/// let exact = closed::gaussian_sigma(Epsilon::new(0.5)?, Delta::new(1e-5)?)?.get();
/// let classic = closed::classic_gaussian_sigma(Epsilon::new(0.5)?, Delta::new(1e-5)?)?.get();
/// assert!(exact < 0.8 * classic);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub fn gaussian_sigma(epsilon: Epsilon, delta: Delta) -> Result<NoiseMultiplier, Error> {
    let fits =
        |ln_sigma: f64| exact_delta(&Law::gaussian((-ln_sigma).exp()), epsilon.get()).upper <= delta.get();
    let ln_sigma = bisect_smallest(-13.8, 27.6, 80, fits);
    if !fits(ln_sigma) {
        return Err(Error::Unreachable { what: "noise multiplier", range: "[1e-6, 1e12]" });
    }
    NoiseMultiplier::new(ln_sigma.exp() * (1.0 + 4.0 * f64::EPSILON))
}

/// σ = √(2 ln(1.25/δ))/ε, the textbook's Gaussian mechanism, for ε < 1. [DR14, Theorem A.1]
pub fn classic_gaussian_sigma(epsilon: Epsilon, delta: Delta) -> Result<NoiseMultiplier, Error> {
    if !(epsilon.get() > 0.0 && epsilon.get() < 1.0) {
        return Err(Error::OutOfRange { what: "epsilon", value: epsilon.get(), range: "(0, 1)" });
    }
    NoiseMultiplier::new((2.0 * (1.25 / delta.get()).ln()).sqrt() / epsilon.get())
}

/// Noise per step that makes T steps of DP-GD (ε, δ)-DP. [Bro26, Claim 2.3]
///
/// Over the sensitivity, it is T√(2 ln(2T/δ))/ε by basic composition, for ε ≤ 1 and δ ≤ 1/2. The lecture's λ
/// is this times the sensitivity 2C/n.
pub fn dp_gd_sigma(epsilon: Epsilon, delta: Delta, steps: u64) -> Result<NoiseMultiplier, Error> {
    if !(epsilon.get() > 0.0 && epsilon.get() <= 1.0) {
        return Err(Error::OutOfRange { what: "epsilon", value: epsilon.get(), range: "(0, 1]" });
    }
    if delta.get() > 0.5 {
        return Err(Error::OutOfRange { what: "delta", value: delta.get(), range: "(0, 1/2]" });
    }
    let steps = steps as f64;
    NoiseMultiplier::new(steps * (2.0 * (2.0 * steps / delta.get()).ln()).sqrt() / epsilon.get())
}

/// 13αγ²ρ: the Rényi bound of any ρ-zCDP mechanism on a sample, in its valid range.
///
/// # Theorem
/// [BDRS18, Theorem 11], for ρ and γ at most 0.1, ln(1/γ) ≥ 3ρ(2 + log₂(1/ρ)), and orders α < ln(1/γ)/(4ρ).
pub fn truncated_cdp(order: Order, rate: SamplingRate, rho: Rho) -> Result<f64, Error> {
    let (alpha, gamma, rho) = (order.get(), rate.get(), rho.get());
    if !(rho > 0.0 && rho <= 0.1) {
        return Err(Error::OutOfRange { what: "rho", value: rho, range: "(0, 0.1]" });
    }
    if gamma > 0.1 || -gamma.ln() < 3.0 * rho * (2.0 - rho.log2()) {
        return Err(Error::OutOfRange {
            what: "sampling_rate",
            value: gamma,
            range: "(0, 0.1], and below e^-(3ρ(2 + log2(1/ρ)))",
        });
    }
    if alpha >= -gamma.ln() / (4.0 * rho) {
        return Err(Error::OutOfRange { what: "order", value: alpha, range: "(1, ln(1/γ)/4ρ)" });
    }
    Ok(13.0 * alpha * gamma * gamma * rho)
}

/// Largest number of runs for which losses are summed one by one.
const LONGEST_SUM: u64 = 10_000_000;

/// An (ε, δ) guarantee, as the classical theorems use it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Guarantee {
    /// ε.
    pub epsilon: f64,
    /// δ, zero allowed.
    pub delta: f64,
}

impl Guarantee {
    /// T times: (Tε, Tδ). Adaptive choice allowed. [DMNS06; DR14, Theorem 3.16]
    #[must_use]
    pub fn basic(self, count: u64) -> Self {
        Self { epsilon: self.epsilon * count as f64, delta: (self.delta * count as f64).min(1.0) }
    }

    /// T times: advanced composition. Adaptive choice allowed. [DRV10, in the form of BD24]
    ///
    /// The result is ε√(2T ln(1/δ')) + Tε(e^ε - 1)/(e^ε + 1) at Tδ + δ'.
    #[must_use]
    pub fn advanced(self, count: u64, slack: Delta) -> Self {
        let (count, e) = (count as f64, self.epsilon);
        let drift = count * e * (e / 2.0).tanh();
        //        = Tε     (e^ε - 1)/(e^ε + 1)
        Self {
            epsilon: e * (2.0 * count * -slack.get().ln()).sqrt() + drift,
            delta: count * self.delta + slack.get(),
        }
    }

    /// T times: the optimal ε at `delta`, if nothing else is known about the mechanism.
    ///
    /// # Theorem
    /// [KOV15, Theorem 3.3]: 1 - δ' = (1-δ)^T (1 - δ_T(ε')), δ_T the profile of T-fold randomized response.
    /// Infinite if the δs alone exceed `delta`.
    #[must_use]
    pub fn optimal(self, count: u64, delta: Delta) -> f64 {
        // The number of terms of the sum below is forty times the square root of the number of runs.
        if count > LONGEST_SUM {
            return self.optimal_by_pld(count, delta);
        }
        let n = count as f64;
        // 1 - (1-δ')/(1-δ)^T, rounded down.
        let remaining = if count == 1 {
            (delta.get() - self.delta) / (1.0 - self.delta) * (1.0 - 1e-15)
        } else {
            // Both logarithms are precise to a few units in the last place.
            let (target, lost) = ((-delta.get()).ln_1p(), n * (-self.delta).ln_1p());
            -(target - lost + 8.0 * f64::EPSILON * (target.abs() + lost.abs())).exp_m1()
        };
        if remaining < 0.0 {
            return f64::INFINITY;
        }
        let profile = |epsilon: f64| self.profile_of_responses(count, epsilon);
        if profile(0.0) <= remaining {
            return 0.0;
        }
        // Losses and the end of the bisection are rounded to nearest.
        bisect_smallest(0.0, n * self.epsilon, 60, |epsilon| profile(epsilon) <= remaining) * (1.0 + 1e-12)
    }

    /// δ at ε of T-fold randomized response, rounded up.
    fn profile_of_responses(self, count: u64, epsilon: f64) -> f64 {
        let n = count as f64;
        let (ln_yes, ln_no) = (-(-self.epsilon).exp().ln_1p(), -self.epsilon.exp().ln_1p());
        // By Hoeffding's inequality, fewer false answers than `first`, or more than `last`, have probability
        // below e^-700.
        let (mean, reach) = (n * ln_no.exp(), (350.0 * n).sqrt());
        let (first, last) = ((mean - reach).floor().max(0.0), (mean + reach).ceil().min(n));
        let mut ln_binomial = if first == 0.0 {
            0.0
        } else {
            libm::lgamma(n + 1.0) - libm::lgamma(first + 1.0) - libm::lgamma(n - first + 1.0)
        };
        let mut sum = 1e-300;
        for k in (first as u64..=last as u64).map(|k| k as f64) {
            let loss = (n - 2.0 * k) * self.epsilon;
            if loss <= epsilon {
                break;
            }
            sum += (ln_binomial + (n - k) * ln_yes + k * ln_no).exp() * -(epsilon - loss).exp_m1();
            ln_binomial += ((n - k) / (k + 1.0)).ln();
        }
        // Logarithms of the size of n ln n lose that many units in the last place.
        sum * (1.0 + 1e-10 + 64.0 * f64::EPSILON * n * n.ln_1p())
    }

    /// An upper bound on the same ε, for more runs than can be summed.
    ///
    /// It uses the privacy loss distribution of the same randomized response. Infinite if there is no bound.
    fn optimal_by_pld(self, count: u64, delta: Delta) -> f64 {
        let event = match (Epsilon::new(self.epsilon), Delta::new(self.delta)) {
            (Ok(epsilon), Ok(delta)) => Event::Approximate { epsilon, delta },
            (Ok(epsilon), Err(_)) if self.delta == 0.0 => Event::Pure { epsilon },
            _ => return f64::INFINITY,
        };
        let upper = Pld::default().epsilon(&event.repeated(count), Neighbors::Replace, delta);
        // Both products are rounded to nearest.
        let Self { epsilon, delta: total } = self.basic(count);
        let basic = Self { epsilon: epsilon * (1.0 + 1e-15), delta: total * (1.0 + 1e-15) };
        upper.map_or(f64::INFINITY, |epsilon| epsilon.upper).min(basic.epsilon_at(delta))
    }

    /// ε if δ is at most `delta`, infinite otherwise.
    fn epsilon_at(self, delta: Delta) -> f64 {
        if self.delta <= delta.get() { self.epsilon } else { f64::INFINITY }
    }

    /// On a sample: (ln(1 + γ(e^ε - 1)), γδ). [BBG18, Theorems 8 and 9]
    ///
    /// The sample is a Poisson sample if records are added or removed, and one of fixed size if they are
    /// replaced.
    #[must_use]
    pub fn sampled(self, rate: SamplingRate) -> Self {
        Self { epsilon: (rate.get() * self.epsilon.exp_m1()).ln_1p(), delta: rate.get() * self.delta }
    }

    /// For groups of k records: (kε, δ(e^(kε) - 1)/(e^ε - 1)). [DR14, Theorem 2.2; Vad17, Lemma 2.2]
    ///
    /// This δ is at most the lecture's k e^((k-1)ε) δ.
    #[must_use]
    pub fn group(self, size: u32) -> Self {
        let k = f64::from(size);
        let grown = if self.epsilon == 0.0 { k } else { (k * self.epsilon).exp_m1() / self.epsilon.exp_m1() };
        let delta = if self.delta == 0.0 { 0.0 } else { (self.delta * grown).min(1.0) };
        Self { epsilon: k * self.epsilon, delta }
    }
}

/// The least ε at `delta` for groups of `size` records. [Vad17, Lemma 2.2]
///
/// It is computed from the profile of one record.
pub fn group_epsilon(
    pld: &Pld,
    event: &Event,
    neighbors: Neighbors,
    delta: Delta,
    size: u32,
) -> Result<f64, Error> {
    if size == 0 {
        return Ok(0.0);
    }
    // ε ↦ δ(ε)(e^(kε) - 1)/(e^ε - 1) falls where δ falls faster than the factor grows, which is where it is
    // small. Every ε that fits is valid, so the search needs no more than that.
    let mut high = pld.epsilon(event, neighbors, delta)?.upper.max(1e-9);
    let fits = |epsilon: f64| -> Result<bool, Error> {
        let one = Guarantee { epsilon, delta: pld.delta(event, neighbors, epsilon)?.upper };
        Ok(one.group(size).delta <= delta.get())
    };
    let mut tries = 0;
    while !fits(high)? {
        high *= 1.5;
        tries += 1;
        if tries > 60 {
            return Ok(f64::INFINITY);
        }
    }
    let mut low = 0.0;
    // Near ε = 0 a relative precision cannot be reached.
    while high - low > 1e-4 * high + 1e-9 {
        let middle = 0.5 * (low + high);
        if fits(middle)? { high = middle } else { low = middle }
    }
    Ok(high * f64::from(size))
}
