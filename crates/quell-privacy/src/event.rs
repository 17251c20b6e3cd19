//! Privacy events: what was done to the data, in the terms that accountants need.

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    units::{
        Contraction, CurvatureRatio, Delta, Diameter, Epsilon, NoiseMultiplier, Order, Probability, Rho,
        SamplingRate, Scale,
    },
};

/// One release, or several, in the form that an accountant reads.
///
/// # Contract
/// Variants are added, never changed: every event in an old ledger must parse forever. Every accountant names
/// every variant, so a new variant does not compile until each accountant supports it or rejects it.
///
/// ```
/// use quell_privacy::{Event, units::{NoiseMultiplier, SamplingRate}};
/// let step = Event::gaussian(NoiseMultiplier::new(1.1)?).poisson_sampled(SamplingRate::new(0.01)?);
/// let run = step.repeated(10_000);
/// let text = serde_json::to_string(&run).unwrap();
/// assert_eq!(text, r#"{"repeated":{"count":10000,"event":{"poisson_sampled":{"rate":0.01,"event":{"gaussian":{"noise_multiplier":1.1}}}}}}"#);
/// assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), run);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// A sum of contributions of L2 length at most C, plus N(0, (zC)² I).
    Gaussian {
        /// z = σ/C.
        noise_multiplier: NoiseMultiplier,
    },
    /// A sum of contributions of L1 length at most C, plus Laplace noise of scale zC.
    Laplace {
        /// z = b/C.
        noise_multiplier: NoiseMultiplier,
    },
    /// An integer plus discrete Gaussian noise, Pr[n] ∝ exp(-n²/2σ²).
    DiscreteGaussian {
        /// σ.
        deviation: Scale,
        /// The most that one record contributes to the integer.
        sensitivity: u32,
    },
    /// An integer plus discrete Laplace noise, Pr[n] ∝ exp(-|n|/s).
    DiscreteLaplace {
        /// s.
        scale: Scale,
        /// The most that one record contributes to the integer.
        sensitivity: u32,
    },
    /// Each record gives its true answer or, with probability `randomized`, a uniformly random one.
    RandomizedResponse {
        /// Number of possible answers, at least two.
        choices: u32,
        /// Probability of a random answer.
        randomized: Probability,
    },
    /// A selection whose log-probabilities shift within a range of ε: the exponential mechanism.
    ///
    /// Permute and flip is excluded.
    Exponential {
        /// Width of that range.
        epsilon: Epsilon,
    },
    /// Anything that is ε-DP.
    Pure {
        /// ε.
        epsilon: Epsilon,
    },
    /// Anything that is (ε, δ)-DP.
    Approximate {
        /// ε.
        epsilon: Epsilon,
        /// δ.
        delta: Delta,
    },
    /// Anything that is ρ-zCDP.
    ZeroConcentrated {
        /// ρ.
        rho: Rho,
    },
    /// Anything whose Rényi divergences are bounded at the given orders, in increasing order.
    Renyi {
        /// Pairs of order α and bound ε(α).
        curve: Vec<(Order, Epsilon)>,
    },
    /// `event` runs on a Poisson sample: each record enters independently with probability `rate`.
    PoissonSampled {
        /// Probability of entering.
        rate: SamplingRate,
        /// What runs on the batch.
        event: Box<Event>,
    },
    /// `event` runs on a uniformly random set of `batch` out of `records` records.
    SampledWithoutReplacement {
        /// Size of the batch.
        batch: u64,
        /// Size of the dataset.
        records: u64,
        /// What runs on the batch.
        event: Box<Event>,
    },
    /// `event` runs on `batch` records drawn independently and uniformly out of `records`.
    SampledWithReplacement {
        /// Number of draws.
        batch: u64,
        /// Size of the dataset.
        records: u64,
        /// What runs on the batch; a record drawn k times contributes k times.
        event: Box<Event>,
    },
    /// A sequence of events, each with independent randomness.
    Composed(Vec<Event>),
    /// `event`, `count` times, each with independent randomness.
    Repeated {
        /// Number of repetitions.
        count: u64,
        /// The repeated event.
        event: Box<Event>,
    },
    /// No guarantee at all: every accountant answers infinity.
    NonPrivate,
    /// The exact minimiser of Σ ℓ(⟨w, xᵢ⟩; yᵢ) + Λ/2 ‖w‖² + ⟨b, w⟩ with b ~ N(0, σ² I).
    ///
    /// One record is one convex loss of a linear prediction, with ‖xᵢ‖ ≤ 1, |ℓ'| ≤ L and ℓ'' ≤ β.
    PerturbedObjective {
        /// σ/L.
        noise_multiplier: NoiseMultiplier,
        /// β/Λ.
        curvature_ratio: CurvatureRatio,
    },
    /// The last of several iterates yₖ₊₁ = ψₖ(yₖ) + N(0, (zC)² I), which is the only one released.
    ///
    /// The first iterate is public, each step has fresh noise, and for every step, all neighbours and all y
    /// and y', ‖ψ(y) - ψ'(y')‖ ≤ c·min(‖y - y'‖, dC) + C; 2C in place of the last C where a record is
    /// replaced (THEORY, Hidden state).
    HiddenState {
        /// z: noise of one step over what one record contributes to that step.
        noise_multiplier: NoiseMultiplier,
        /// c, for every dataset.
        contraction: Contraction,
        /// Number of steps, at least one.
        steps: u64,
        /// d: diameter of the domain on which iterates are projected; `None` if it is unbounded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diameter: Option<Diameter>,
    },
    /// The best of a random number of trials, which is the only one released.
    ///
    /// Each trial is one of `trials`, drawn independently of the data and of all other trials. After each
    /// trial the search ends with probability one over `expected`. Trials have scores, and the best trial is
    /// released with its score. The number of trials stays hidden (THEORY, Best of several trials).
    BestOf {
        /// Expected number of trials, at least one.
        expected: u32,
        /// What a trial may be, at least one kind.
        trials: Vec<Event>,
    },
}

impl Event {
    /// A sum with Gaussian noise.
    #[must_use]
    pub fn gaussian(noise_multiplier: NoiseMultiplier) -> Self {
        Self::Gaussian { noise_multiplier }
    }

    /// A sum with Laplace noise.
    #[must_use]
    pub fn laplace(noise_multiplier: NoiseMultiplier) -> Self {
        Self::Laplace { noise_multiplier }
    }

    /// This event on a Poisson sample.
    #[must_use]
    pub fn poisson_sampled(self, rate: SamplingRate) -> Self {
        Self::PoissonSampled { rate, event: Box::new(self) }
    }

    /// This event, `count` times.
    #[must_use]
    pub fn repeated(self, count: u64) -> Self {
        Self::Repeated { count, event: Box::new(self) }
    }

    /// DP-SGD: `steps` Gaussian steps, each on a Poisson sample.
    #[must_use]
    pub fn dp_sgd(noise_multiplier: NoiseMultiplier, rate: SamplingRate, steps: u64) -> Self {
        Self::gaussian(noise_multiplier).poisson_sampled(rate).repeated(steps)
    }

    /// The variant's name in JSON, for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gaussian { .. } => "gaussian",
            Self::Laplace { .. } => "laplace",
            Self::DiscreteGaussian { .. } => "discrete_gaussian",
            Self::DiscreteLaplace { .. } => "discrete_laplace",
            Self::RandomizedResponse { .. } => "randomized_response",
            Self::Exponential { .. } => "exponential",
            Self::Pure { .. } => "pure",
            Self::Approximate { .. } => "approximate",
            Self::ZeroConcentrated { .. } => "zero_concentrated",
            Self::Renyi { .. } => "renyi",
            Self::PoissonSampled { .. } => "poisson_sampled",
            Self::SampledWithoutReplacement { .. } => "sampled_without_replacement",
            Self::SampledWithReplacement { .. } => "sampled_with_replacement",
            Self::Composed(_) => "composed",
            Self::Repeated { .. } => "repeated",
            Self::NonPrivate => "non_private",
            Self::PerturbedObjective { .. } => "perturbed_objective",
            Self::HiddenState { .. } => "hidden_state",
            Self::BestOf { .. } => "best_of",
        }
    }

    /// Whether the event is or contains the last iterate of a hidden sequence.
    ///
    /// Its bound is about steps on all records, so it is refused on a sample.
    pub(crate) fn has_hidden_state(&self) -> bool {
        match self {
            Self::HiddenState { .. } => true,
            Self::Gaussian { .. }
            | Self::Laplace { .. }
            | Self::DiscreteGaussian { .. }
            | Self::DiscreteLaplace { .. }
            | Self::RandomizedResponse { .. }
            | Self::Exponential { .. }
            | Self::Pure { .. }
            | Self::Approximate { .. }
            | Self::ZeroConcentrated { .. }
            | Self::Renyi { .. }
            | Self::NonPrivate
            | Self::PerturbedObjective { .. } => false,
            Self::PoissonSampled { event, .. }
            | Self::SampledWithoutReplacement { event, .. }
            | Self::SampledWithReplacement { event, .. }
            | Self::Repeated { event, .. } => event.has_hidden_state(),
            Self::Composed(events) | Self::BestOf { trials: events, .. } => {
                events.iter().any(Self::has_hidden_state)
            }
        }
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PoissonSampled { event, .. }
            | Self::SampledWithoutReplacement { event, .. }
            | Self::SampledWithReplacement { event, .. } => write!(f, "{}({event})", self.name()),
            Self::Repeated { count, event } => write!(f, "{event} × {count}"),
            Self::Composed(events) => write!(f, "a composition of {} events", events.len()),
            Self::BestOf { .. } => f.write_str("the best of a random number of trials"),
            _ => f.write_str(self.name()),
        }
    }
}

/// Largest number of releases in an event.
///
/// Larger counts are not exact in double precision.
pub(crate) const MOST_REPETITIONS: u64 = 1 << 53;

/// The error for an event with more than [`MOST_REPETITIONS`] releases.
pub(crate) fn too_many(event: &Event) -> Error {
    Error::Malformed { event: event.to_string(), because: "more than 2^53 repetitions" }
}

/// The error for a search without trials.
pub(crate) fn no_trials(event: &Event) -> Error {
    Error::Malformed {
        event: event.to_string(),
        because: "expected at least one trial, of at least one kind",
    }
}

/// An event with the version of its serialization format, as a ledger stores it.
///
/// ```
/// use quell_privacy::event::Record;
/// let old = r#"{"version":1,"event":{"gaussian":{"noise_multiplier":2.0}}}"#;
/// let record: Record = serde_json::from_str(old).unwrap();
/// assert_eq!(serde_json::to_string(&record).unwrap(), old);
/// assert!(serde_json::from_str::<Record>(&old.replace(":1,", ":2,")).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    version: Version,
    /// The event.
    pub event: Event,
}

impl From<Event> for Record {
    fn from(event: Event) -> Self {
        Self { version: Version, event }
    }
}

/// The only format version so far.
///
/// A later version adds variants and still reads this one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct Version;

impl TryFrom<u32> for Version {
    type Error = String;
    fn try_from(version: u32) -> Result<Self, String> {
        if version == 1 { Ok(Self) } else { Err(format!("event version is {version}, expected 1")) }
    }
}

impl From<Version> for u32 {
    fn from(_: Version) -> u32 {
        1
    }
}
