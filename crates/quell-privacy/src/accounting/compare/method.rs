//! All accountants by name, each with its theorem.

use super::{Clt, classical, closed, closed::Guarantee, fourier};
use crate::{
    Error, Event, Neighbors,
    accounting::{Bound, Conversion, Pld, Renyi},
    units::{Delta, Epsilon, NoiseMultiplier, SamplingRate},
};

/// A method to compute ε at a given δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Privacy loss distributions.
    Pld,
    /// Rényi divergences with the best conversion.
    Renyi,
    /// Rényi divergences with Mironov's conversion.
    RenyiClassic,
    /// The moments accountant: integer moments up to 32.
    Moments,
    /// Characteristic functions; an estimate.
    Fourier,
    /// The exact profile of one release or of Gaussians.
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

/// An ε with its theorem.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Answer {
    /// The interval.
    pub epsilon: Bound,
    /// The theorem behind it.
    pub theorem: &'static str,
    /// False for estimates, which must not be claimed.
    pub claimable: bool,
}

/// A δ with its theorem.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct DeltaAnswer {
    /// The interval.
    pub delta: Bound,
    /// The theorem behind it.
    pub theorem: &'static str,
    /// False for estimates, which must not be claimed.
    pub claimable: bool,
}

impl Method {
    /// All methods, in the order in which they are listed.
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

    /// The theorem behind the method's numbers, or a note that they are not bounds.
    #[must_use]
    pub fn theorem(self) -> &'static str {
        match self {
            Self::Pld => {
                "dominating pairs compose [ZDW22, Theorem 10], discretised from above and below [DGKKM22]"
            }
            Self::Renyi => {
                "Rényi divergences add [Mir17, Proposition 1], converted by [CKS20, Proposition 12]"
            }
            Self::RenyiClassic => {
                "Rényi divergences add [Mir17, Proposition 1], converted by [Mir17, Proposition 3]"
            }
            Self::Moments => "integer moments add, and Markov's inequality [ACGMMTZ16, Theorem 2]",
            Self::Fourier => "inversion of characteristic functions [ZDW22]: an estimate, not a bound",
            Self::Closed => "exact privacy profile [BW18, Theorems 5 and 8]",
            Self::Basic => "basic composition [DR14, Theorem 3.16]",
            Self::Advanced => "advanced composition [DRV10, in the form of BD24]",
            Self::Optimal => "optimal composition of (ε, δ) guarantees [KOV15, Theorem 3.3]",
            Self::Clt => "central limit theorem [BDLS20]: an approximation, not a bound",
        }
    }

    /// Whether its answers are bounds.
    fn is_bound(self) -> bool {
        !matches!(self, Self::Fourier | Self::Clt)
    }

    /// ε of the event at δ.
    pub fn epsilon(self, event: &Event, neighbors: Neighbors, delta: Delta) -> Result<Answer, Error> {
        self.epsilon_by(&Pld::default(), event, neighbors, delta)
    }

    /// ε of the event at δ, with the precision of `pld` for privacy loss distributions.
    pub fn epsilon_by(
        self,
        pld: &Pld,
        event: &Event,
        neighbors: Neighbors,
        delta: Delta,
    ) -> Result<Answer, Error> {
        let renyi = || Renyi::for_delta(event, neighbors, delta);
        let from_above = |upper: f64| Bound { lower: 0.0, upper };
        let epsilon = match self {
            Self::Pld => pld.epsilon(event, neighbors, delta)?,
            Self::Renyi => renyi()?.epsilon(delta, Conversion::Tight),
            Self::RenyiClassic => renyi()?.epsilon(delta, Conversion::Classic),
            Self::Moments => renyi()?.moments_accountant(delta, 32),
            Self::Fourier => {
                let estimate = fourier::epsilon(event, neighbors, delta)?;
                Bound {
                    lower: (estimate.value - estimate.error).max(0.0),
                    upper: estimate.value + estimate.error,
                }
            }
            Self::Closed => closed::epsilon(event, neighbors, delta)?,
            Self::Basic => from_above(classical::basic(event, neighbors, delta)?),
            Self::Advanced => {
                from_above(classical::repeated(self.name(), event, neighbors, delta, |one, count, delta| {
                    Delta::new(delta.get() - one.delta * count as f64)
                        .map_or(f64::INFINITY, |slack| one.advanced(count, slack).epsilon)
                })?)
            }
            Self::Optimal => {
                from_above(classical::repeated(self.name(), event, neighbors, delta, Guarantee::optimal)?)
            }
            Self::Clt => {
                let (sampled, steps) = classical::unrepeated(event)?;
                let (noise, rate) = self.sampled_gaussian(sampled, neighbors)?;
                let gaussian = NoiseMultiplier::new(1.0 / Clt::Poisson.mu(noise, rate, steps))?;
                closed::epsilon(&Event::gaussian(gaussian), neighbors, delta)?
            }
        };
        Ok(Answer { epsilon, theorem: self.theorem(), claimable: self.is_bound() })
    }

    /// δ of the event at ε, with the precision of `pld` for privacy loss distributions.
    pub fn delta_by(
        self,
        pld: &Pld,
        event: &Event,
        neighbors: Neighbors,
        epsilon: Epsilon,
    ) -> Result<DeltaAnswer, Error> {
        let delta = match self {
            Self::Pld => pld.delta(event, neighbors, epsilon.get())?,
            Self::Closed => closed::delta(event, neighbors, epsilon)?,
            Self::Renyi => match Renyi::new(event, neighbors) {
                Ok(renyi) => renyi.delta(epsilon.get()),
                Err(_) => self.least_delta(event, neighbors, epsilon)?,
            },
            Self::Fourier => {
                let estimate = fourier::delta(event, neighbors, epsilon.get())?;
                let upper = (estimate.value + estimate.error).min(1.0);
                Bound { lower: (estimate.value - estimate.error).clamp(0.0, upper), upper }
            }
            Self::RenyiClassic | Self::Moments | Self::Basic | Self::Advanced | Self::Optimal | Self::Clt => {
                self.least_delta(event, neighbors, epsilon)?
            }
        };
        Ok(DeltaAnswer { delta, theorem: self.theorem(), claimable: self.is_bound() })
    }

    /// The least δ at which this method's ε is at most the given one.
    ///
    /// It is accurate to one part in a thousand. Each δ that is tried is a bound.
    fn least_delta(self, event: &Event, neighbors: Neighbors, epsilon: Epsilon) -> Result<Bound, Error> {
        let fits = |ln_delta: f64| -> Result<bool, Error> {
            let delta = Delta::new(ln_delta.exp())?;
            Ok(self.epsilon(event, neighbors, delta)?.epsilon.upper <= epsilon.get())
        };
        let (mut low, mut high) = (-690.0, -1e-9);
        if !fits(high)? {
            return Ok(Bound { lower: 0.0, upper: 1.0 });
        }
        while high - low > 1e-3 {
            let middle = 0.5 * (low + high);
            if fits(middle)? { high = middle } else { low = middle }
        }
        Ok(Bound { lower: 0.0, upper: high.exp() })
    }

    fn unsupported(self, event: &Event, because: &'static str) -> Error {
        Error::Unsupported { accountant: self.name(), event: event.to_string(), because }
    }

    fn sampled_gaussian(
        self,
        event: &Event,
        neighbors: Neighbors,
    ) -> Result<(NoiseMultiplier, SamplingRate), Error> {
        match event {
            Event::PoissonSampled { rate, event: inner } if neighbors == Neighbors::AddRemove => {
                match **inner {
                    Event::Gaussian { noise_multiplier } => Ok((noise_multiplier, *rate)),
                    _ => Err(self.unsupported(
                        event,
                        "because it approximates Gaussian noise on Poisson samples only",
                    )),
                }
            }
            _ => Err(self.unsupported(
                event,
                "because it approximates repeated Gaussian noise on Poisson samples only",
            )),
        }
    }
}

/// The accountants that are asked by default, the one that is most often best first.
const ASKED: [Method; 5] = [Method::Closed, Method::Pld, Method::Renyi, Method::Basic, Method::Optimal];

/// The least upper bound that may be claimed, with its method and theorem.
///
/// The lower bound is the largest one of all methods that were asked.
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
    best_by(&Pld::default(), event, neighbors, delta)
}

/// [`best`], with the precision of `pld` for privacy loss distributions.
pub fn best_by(
    pld: &Pld,
    event: &Event,
    neighbors: Neighbors,
    delta: Delta,
) -> Result<(Method, Answer), Error> {
    let (method, epsilon) = least(
        event,
        |upper| (pld.relative * upper).max(pld.absolute),
        |method| Ok(method.epsilon_by(pld, event, neighbors, delta)?.epsilon),
    )?;
    Ok((method, Answer { epsilon, theorem: method.theorem(), claimable: true }))
}

/// The least δ that may be claimed at ε, with its method.
pub fn best_delta_by(
    pld: &Pld,
    event: &Event,
    neighbors: Neighbors,
    epsilon: Epsilon,
) -> Result<(Method, DeltaAnswer), Error> {
    let (method, delta) = least(
        event,
        |upper| pld.relative * upper,
        |method| Ok(method.delta_by(pld, event, neighbors, epsilon)?.delta),
    )?;
    Ok((method, DeltaAnswer { delta, theorem: method.theorem(), claimable: true }))
}

/// The least upper bound and the greatest lower bound of all methods that apply.
///
/// No further method is asked once these bounds are close.
fn least(
    event: &Event,
    close: impl Fn(f64) -> f64,
    ask: impl Fn(Method) -> Result<Bound, Error>,
) -> Result<(Method, Bound), Error> {
    let mut best: Option<(Method, Bound)> = None;
    let mut lower = 0.0_f64;
    let mut refused = None;
    for method in ASKED {
        match ask(method) {
            Ok(bound) => {
                lower = lower.max(bound.lower);
                if best.is_none_or(|(_, known)| bound.upper < known.upper) {
                    best = Some((method, bound));
                }
            }
            Err(error @ Error::Unsupported { .. }) => refused = Some(refused.unwrap_or(error)),
            Err(error) => return Err(error),
        }
        let settled = |upper: f64| upper <= lower || (upper.is_finite() && upper - lower <= close(upper));
        if best.is_some_and(|(_, bound)| settled(bound.upper)) {
            break;
        }
    }
    match best {
        Some((method, bound)) => Ok((method, Bound { lower: lower.min(bound.upper), upper: bound.upper })),
        None => Err(refused.unwrap_or_else(|| Method::Pld.unsupported(event, "of any kind"))),
    }
}
