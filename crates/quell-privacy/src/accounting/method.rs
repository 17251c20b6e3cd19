//! Every way to an ε, by name, with the theorem that makes it one.

use super::{Bound, Clt, Conversion, Pld, Renyi, closed, closed::Guarantee, fourier};
use crate::{
    Error, Event, Neighbors,
    units::{Delta, NoiseMultiplier, SamplingRate},
};

/// A way to compute ε at a given δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Privacy loss distributions.
    Pld,
    /// Rényi, best conversion.
    Renyi,
    /// Rényi, Mironov's conversion.
    RenyiClassic,
    /// The moments accountant: integer moments up to 32.
    Moments,
    /// Characteristic functions; an estimate.
    Fourier,
    /// Exact profile of one release or of Gaussians.
    Closed,
    /// Basic composition of (ε, δ) guarantees.
    Basic,
    /// Advanced composition of equal (ε, δ) guarantees.
    Advanced,
    /// Optimal composition of equal (ε, δ) guarantees.
    Optimal,
    /// Central limit theorem for DP-SGD; an approximation.
    Clt,
}

/// An ε and what stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Answer {
    /// The interval.
    pub epsilon: Bound,
    /// Why it is one.
    pub theorem: &'static str,
    /// False for estimates, which must not be claimed.
    pub claimable: bool,
}

impl Method {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 10] = [
        Self::Pld,
        Self::Renyi,
        Self::RenyiClassic,
        Self::Moments,
        Self::Fourier,
        Self::Closed,
        Self::Basic,
        Self::Advanced,
        Self::Optimal,
        Self::Clt,
    ];

    /// The name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pld => "pld",
            Self::Renyi => "rdp",
            Self::RenyiClassic => "rdp-classic",
            Self::Moments => "moments",
            Self::Fourier => "fourier",
            Self::Closed => "closed",
            Self::Basic => "basic",
            Self::Advanced => "advanced",
            Self::Optimal => "optimal",
            Self::Clt => "clt",
        }
    }

    /// Why its numbers are bounds, or that they are not.
    #[must_use]
    pub fn theorem(self) -> &'static str {
        match self {
            Self::Pld => "dominating pairs compose [ZDW22, Theorem 10], laid on a grid from both sides [DGKKM22]",
            Self::Renyi => "Rényi divergences add [Mir17, Proposition 1], converted by [CKS20, Proposition 12]",
            Self::RenyiClassic => "Rényi divergences add [Mir17, Proposition 1], converted by [Mir17, Proposition 3]",
            Self::Moments => "integer moments add, and Markov's inequality [ACGMMTZ16, Theorem 2]",
            Self::Fourier => "inversion of characteristic functions [ZDW22]: an estimate, not a bound",
            Self::Closed => "exact privacy profile [BW18, Theorems 5 and 8]",
            Self::Basic => "basic composition [DR14, Theorem 3.16]",
            Self::Advanced => "advanced composition [DRV10, in the form of BD24]",
            Self::Optimal => "optimal composition of (ε, δ) guarantees [KOV15, Theorem 3.3]",
            Self::Clt => "central limit theorem [BDLS20]: an approximation, not a bound",
        }
    }

    /// ε of the event at δ.
    pub fn epsilon(self, event: &Event, neighbors: Neighbors, delta: Delta) -> Result<Answer, Error> {
        let renyi = || Renyi::new(event, neighbors);
        let from_above = |upper: f64| Bound { lower: 0.0, upper };
        let epsilon = match self {
            Self::Pld => Pld::default().epsilon(event, neighbors, delta)?,
            Self::Renyi => renyi()?.epsilon(delta, Conversion::Tight),
            Self::RenyiClassic => renyi()?.epsilon(delta, Conversion::Classic),
            Self::Moments => renyi()?.moments_accountant(delta, 32),
            Self::Fourier => {
                let estimate = fourier::epsilon(event, neighbors, delta)?;
                Bound { lower: (estimate.value - estimate.error).max(0.0), upper: estimate.value + estimate.error }
            }
            Self::Closed => closed::epsilon(event, neighbors, delta)?,
            Self::Basic => from_above(self.classical(event, neighbors, delta, |one, count, delta| {
                let spent = one.basic(count);
                if spent.delta <= delta.get() { spent.epsilon } else { f64::INFINITY }
            })?),
            Self::Advanced => from_above(self.classical(event, neighbors, delta, |one, count, delta| {
                Delta::new(delta.get() - one.delta * count as f64)
                    .map_or(f64::INFINITY, |slack| one.advanced(count, slack).epsilon)
            })?),
            Self::Optimal => from_above(self.classical(event, neighbors, delta, Guarantee::optimal)?),
            Self::Clt => {
                let (sampled, steps) = repeated(event);
                let (noise, rate) = self.sampled_gaussian(sampled, neighbors)?;
                let gaussian = NoiseMultiplier::new(1.0 / Clt::Poisson.mu(noise, rate, steps))?;
                closed::epsilon(&Event::gaussian(gaussian), neighbors, delta)?
            }
        };
        Ok(Answer { epsilon, theorem: self.theorem(), claimable: !matches!(self, Self::Fourier | Self::Clt) })
    }

    fn unsupported(self, event: &Event, because: &'static str) -> Error {
        Error::Unsupported { accountant: self.name(), event: event.to_string(), because }
    }

    fn sampled_gaussian(self, event: &Event, neighbors: Neighbors) -> Result<(NoiseMultiplier, SamplingRate), Error> {
        match event {
            Event::PoissonSampled { rate, event: inner } if neighbors == Neighbors::AddRemove => match **inner {
                Event::Gaussian { noise_multiplier } => Ok((noise_multiplier, *rate)),
                _ => Err(self.unsupported(event, "because it approximates Gaussian noise on Poisson samples only")),
            },
            _ => Err(self.unsupported(event, "because it approximates repeated Gaussian noise on Poisson samples only")),
        }
    }

    /// Classical composition of one (ε, δ) guarantee, repeated. Where the release has a whole profile, half of δ goes to
    /// the steps, shared equally, as one would by hand.
    fn classical(
        self,
        event: &Event,
        neighbors: Neighbors,
        delta: Delta,
        compose: impl Fn(Guarantee, u64, Delta) -> f64,
    ) -> Result<f64, Error> {
        let (one, count) = repeated(event);
        let guarantee = match one {
            Event::Pure { epsilon } | Event::Exponential { epsilon } => Guarantee { epsilon: epsilon.get(), delta: 0.0 },
            Event::Approximate { epsilon, delta } => Guarantee { epsilon: epsilon.get(), delta: delta.get() },
            Event::NonPrivate => return Ok(f64::INFINITY),
            Event::Composed(_) => return Err(self.unsupported(one, "because its theorem is about equal guarantees")),
            _ => {
                let each = Delta::new(delta.get() / 2.0 / count.max(1) as f64)?;
                Guarantee { epsilon: closed::epsilon(one, neighbors, each)?.upper, delta: each.get() }
            }
        };
        Ok(compose(guarantee, count, delta))
    }
}

/// An event and how often it is repeated.
fn repeated(event: &Event) -> (&Event, u64) {
    match event {
        Event::Repeated { count, event } => {
            let (inner, times) = repeated(event);
            (inner, times.saturating_mul(*count))
        }
        other => (other, 1),
    }
}

/// The least upper bound that may be claimed, with the method that gave it and its theorem; the lower bound is the best there is.
///
/// ```
/// use quell_privacy::{Event, Neighbors, accounting::{Method, best}, units::{Delta, Rho}};
/// let event = Event::ZeroConcentrated { rho: Rho::new(0.5)? };
/// let (method, answer) = best(&event, Neighbors::AddRemove, Delta::new(1e-5)?)?;
/// assert_eq!(method, Method::Renyi); // no dominating pair is known
/// assert!(answer.epsilon.upper < 4.7284);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub fn best(event: &Event, neighbors: Neighbors, delta: Delta) -> Result<(Method, Answer), Error> {
    let mut best: Option<(Method, Answer)> = None;
    let mut refused = None;
    for method in [Method::Closed, Method::Pld, Method::Renyi] {
        match method.epsilon(event, neighbors, delta) {
            Ok(answer) => {
                let lower = best.map_or(0.0, |(_, b): (Method, Answer)| b.epsilon.lower).max(answer.epsilon.lower);
                if best.is_none_or(|(_, b)| answer.epsilon.upper < b.epsilon.upper) {
                    best = Some((method, answer));
                }
                if let Some((_, b)) = &mut best {
                    b.epsilon.lower = lower.min(b.epsilon.upper);
                }
                if method == Method::Closed {
                    break; // exact
                }
            }
            Err(error @ Error::Unsupported { .. }) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    best.ok_or_else(|| refused.unwrap_or_else(|| Method::Pld.unsupported(event, "of any kind")))
}
