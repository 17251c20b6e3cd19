//! Hypothesis testing: how well the best attacker can tell neighbours apart.
//!
//! The trade-off function β(α) is the least false-negative rate of any test with false-positive rate α. It is dual to the
//! profile: a test with rate α has power at most δ(ε) + e^ε α for every ε, and the best test attains the infimum. [DRS22, Prop. 2.12]

use super::{
    Bound, Pld,
    pld::{Direction, Profiles, directions},
};
use crate::{
    Error, Event, Neighbors,
    special::{bisect_smallest, ln_gaussian_delta, normal_below, normal_quantile},
    units::{Delta, NoiseMultiplier, Probability, SamplingRate},
};

/// The trade-off function of an event, from above and from below.
///
/// ```
/// use quell_privacy::{Event, Neighbors, accounting::{Pld, TradeOff}, units::{NoiseMultiplier, Probability, SamplingRate}};
/// let run = Event::dp_sgd(NoiseMultiplier::new(1.0)?, SamplingRate::new(0.01)?, 1000);
/// let attack = TradeOff::new(&Pld::default(), &run, Neighbors::AddRemove)?;
/// let power = attack.power(Probability::new(0.01)?);
/// assert!(power.lower > 0.0290 && power.upper < 0.0293, "{power:?}");
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub struct TradeOff {
    kind: Kind,
    pld: Pld,
    event: Event,
    neighbors: Neighbors,
}

enum Kind {
    /// N(μ, 1) against N(0, 1), in closed form.
    Gaussian(f64),
    Profiles(Vec<Profiles>),
    NonPrivate,
}

/// False-positive rates down to about this are resolved well.
const SMALLEST_RATE: f64 = 1e-9;

impl TradeOff {
    /// Composes the event once for all questions.
    pub fn new(pld: &Pld, event: &Event, neighbors: Neighbors) -> Result<Self, Error> {
        let directions = directions(event, neighbors)?;
        let kind = if directions.iter().any(|direction| direction.non_private) {
            Kind::NonPrivate
        } else if let Some(mu) = directions.first().and_then(Direction::gaussian) {
            Kind::Gaussian(mu)
        } else {
            pld.profiles(event, neighbors, SMALLEST_RATE)?.map_or(Kind::NonPrivate, Kind::Profiles)
        };
        Ok(Self { kind, pld: *pld, event: event.clone(), neighbors })
    }

    /// The exact μ of an event that is N(μ, 1) against N(0, 1): a composition of Gaussians.
    pub(crate) fn exact_gaussian(event: &Event, neighbors: Neighbors) -> Result<Option<f64>, Error> {
        let directions = directions(event, neighbors)?;
        let non_private = directions.iter().any(|direction| direction.non_private);
        Ok(directions.first().filter(|_| !non_private).and_then(Direction::gaussian).map(|mu| mu * (1.0 + 1e-15)))
    }

    /// True-positive rate of the best test at a false-positive rate, the worse direction.
    #[must_use]
    pub fn power(&self, false_positive_rate: Probability) -> Bound {
        let alpha = false_positive_rate.get();
        match &self.kind {
            Kind::NonPrivate => Bound { lower: 1.0, upper: 1.0 },
            Kind::Gaussian(mu) => {
                let power = if alpha == 0.0 { 0.0 } else { normal_below(normal_quantile_ends(alpha) + mu) };
                Bound { lower: power * (1.0 - 1e-12), upper: (power * (1.0 + 1e-12)).min(1.0) }
            }
            Kind::Profiles(directions) => {
                directions.iter().map(|d| power(d, alpha)).fold(Bound { lower: alpha, upper: alpha }, Bound::max)
            }
        }
    }

    /// False-negative rate of the best test, 1 - power: only its lower end may be claimed.
    #[must_use]
    pub fn beta(&self, false_positive_rate: Probability) -> Bound {
        let power = self.power(false_positive_rate);
        Bound { lower: 1.0 - power.upper, upper: 1.0 - power.lower }
    }

    /// The least μ for which the event is μ-GDP up to `slack`: δ(ε) ≤ δ_μ(ε) + slack for every ε.
    ///
    /// # Contract
    /// `upper` is a true bound: no test has a false-negative rate more than `slack` below that of N(μ, 1) against N(0, 1).
    /// Without slack the answer for sampled noise would be that of no sampling at all, since far out in
    /// the tail a record that was sampled every time decides. Gaussians need no slack and get their exact μ.
    pub fn gaussian(&self, slack: Delta) -> Result<Bound, Error> {
        match &self.kind {
            Kind::NonPrivate => return Ok(Bound { lower: f64::INFINITY, upper: f64::INFINITY }),
            Kind::Gaussian(mu) => return Ok(Bound { lower: mu * (1.0 - 1e-15), upper: mu * (1.0 + 1e-15) }),
            Kind::Profiles(_) => {}
        }
        // From here on there is nothing left but the slack.
        let end = self.pld.epsilon(&self.event, self.neighbors, slack)?.upper;
        if end.is_infinite() {
            return Ok(Bound { lower: 0.0, upper: f64::INFINITY });
        }
        let mut bound = Bound { lower: 0.0, upper: 0.0 };
        for i in 0..TEST_POINTS {
            let at = |i: u32| end * f64::from(i) / f64::from(TEST_POINTS);
            let delta = self.pld.delta(&self.event, self.neighbors, at(i))?;
            // Both profiles fall: on [εᵢ, εᵢ₊₁] the one is at most δ(εᵢ), the other at least δ_μ(εᵢ₊₁). Negative ε are the other
            // direction's positive ones.
            raise(&mut bound.upper, at(i + 1), delta.upper - slack.get());
            raise(&mut bound.lower, at(i), delta.lower - slack.get());
        }
        Ok(Bound { lower: bound.lower.min(bound.upper), upper: bound.upper })
    }
}

/// How many ε are compared for [`TradeOff::gaussian`]; the answer is too large by about one part in as many.
const TEST_POINTS: u32 = 200;

/// Raises μ until δ_μ(ε) ≥ δ.
fn raise(mu: &mut f64, epsilon: f64, delta: f64) {
    if delta <= 0.0 {
        return;
    }
    if delta >= 1.0 {
        *mu = f64::INFINITY;
        return;
    }
    let reaches = |mu: f64| mu > 0.0 && ln_gaussian_delta(mu, epsilon) >= delta.ln();
    if *mu == f64::INFINITY || reaches(*mu) {
        return;
    }
    let mut high = mu.max(0.1) * 2.0;
    while !reaches(high) {
        high *= 2.0;
    }
    *mu = bisect_smallest(*mu, high, 60, reaches);
}

fn normal_quantile_ends(p: f64) -> f64 {
    if p >= 1.0 { f64::INFINITY } else { normal_quantile(p) }
}

fn power(profiles: &Profiles, alpha: f64) -> Bound {
    let price = |epsilon: f64| if alpha == 0.0 { 0.0 } else { epsilon.exp() * alpha };
    let least =
        |profile: &[(f64, f64)]| profile.iter().map(|(epsilon, delta)| delta + price(*epsilon)).fold(f64::INFINITY, f64::min);
    let upper = least(&profiles.upper).min(1.0);
    // The lower profile is linear in e^ε between its nodes, down to ε = -∞, and at least zero above them.
    let above = profiles.lower.first().map_or(0.0, |(epsilon, _)| price(*epsilon));
    let lower = least(&profiles.lower).min(above);
    Bound { lower: if lower.is_finite() { lower.clamp(0.0, upper) } else { 0.0 }, upper }
}

/// The central limit theorem's μ for DP-SGD: an approximation, neither an upper nor a lower bound. [BDLS20]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clt {
    /// q√(T(e^(1/σ²) - 1)), Poisson sampling.
    Poisson,
    /// √2 q√T √(e^(1/σ²)Φ(1.5/σ) + 3Φ(-0.5/σ) - 2), sampling without replacement.
    Uniform,
}

impl Clt {
    /// μ.
    #[must_use]
    pub fn mu(self, noise_multiplier: NoiseMultiplier, rate: SamplingRate, steps: u64) -> f64 {
        let (sigma, q, steps) = (noise_multiplier.get(), rate.get(), steps as f64);
        let square = sigma.powi(-2);
        match self {
            Self::Poisson => q * (steps * square.exp_m1()).sqrt(),
            Self::Uniform => {
                let spread = square.exp() * normal_below(1.5 / sigma) + 3.0 * normal_below(-0.5 / sigma) - 2.0;
                2.0_f64.sqrt() * q * (steps * spread).sqrt()
            }
        }
    }
}
