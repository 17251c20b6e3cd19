//! All mechanisms: each has an event, a contract and a theorem.
//!
//! A mechanism is a value with public settings. Its effect on private data is a method of
//! [`Paid`](crate::ledger::Paid), so nothing here runs before it is paid for. The trait is sealed, because a
//! mechanism written elsewhere would be a hole in the proof. Settings are fields; data is an argument. Once a
//! mechanism is paid for, no property of the data can stop it: a value that is not a number counts as
//! missing.

mod convex;
mod descent;
mod selection;
mod statistics;
mod votes;

pub use convex::{
    ConvexLoss, HiddenDescent, LinearObjective, LinearRecords, LogConcaveSample, ObjectivePerturbation,
    OutputPerturbation, PosteriorSample, Rows,
};
pub(crate) use descent::{BLOCK, DRIFT, LENGTH_ERROR, TERM_ROUNDINGS};
pub use descent::{
    Batches, Clipper, Clipping, Contributions, Descends, Descent, PerRecord, Sampling, StagedDescent, Step,
    Vectors,
};
pub use selection::{
    AboveThreshold, AllTrials, Best, BestOf, GaussianSparseVector, RandomizedResponse, Selection,
    SparseVector, TotalScores, TrialPlan,
};
use statistics::grid;
pub use statistics::{
    Additive, Bounds, Count, Enclosure, GroupedMean, GroupedQuantile, GroupedSum, Histogram, KeyedNumber,
    Mean, NoisyThreshold, PerUser, Price, Quantile, Quantiles, Range, SmoothMedian, StableHistogram, Sum,
    Together, Variance,
};
pub use votes::{
    Answer, Asked, Ballot, Electorate, Finding, Form, NoisyMax, Poll, Polling, ReleasedCost, Rule, Screening,
    SmoothCost, Stability, StableMax, Survey, Surveying, VoteCost, Voters, Votes,
};

use crate::{
    Error, Event, Neighbors,
    noise::{
        exact::{Ratio, discrete_gaussian, discrete_laplace},
        random::Stream,
    },
    special::normal_quantile,
    units::{Epsilon, Rho, Scale},
};

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// A way to release something, and its privacy cost.
///
/// # Contract
/// One run is within `distance` in total variation of a mechanism to which `event` applies, for every
/// dataset. Of a plan with several runs, run number k is a run of `at_run(k)`. The first n runs together are
/// within `distance_of_runs(n)` of mechanisms to which `event_of_runs(n)` applies, where each run may depend
/// on what earlier runs released. The `Display` text tells the reader of the ledger what is done, and contains
/// only public settings.
pub trait Mechanism: Sealed + Clone + std::fmt::Display {
    /// The privacy event of one run.
    fn event(&self, neighbors: Neighbors) -> Event;

    /// Checks whether the settings are valid under this relation, before anything is paid for.
    fn check(&self, _: Neighbors) -> Result<(), Error> {
        Ok(())
    }

    /// Total variation distance between the drawn noise and the accounted noise.
    ///
    /// It is zero for noise drawn in exact arithmetic.
    fn distance(&self) -> f64 {
        0.0
    }

    /// The mechanism of a run, by its number in the plan, counted from 0.
    #[must_use]
    fn at_run(self, _: u64) -> Self {
        self
    }

    /// The privacy event of the first runs of a plan.
    fn event_of_runs(&self, neighbors: Neighbors, runs: u64) -> Event {
        let event = self.event(neighbors);
        if runs == 1 { event } else { event.repeated(runs) }
    }

    /// The distance of the first runs of a plan together.
    fn distance_of_runs(&self, runs: u64) -> f64 {
        self.distance() * runs as f64
    }
}

/// What a charge pays for: runs of a mechanism, by their event and their distance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PaidRuns {
    pub(crate) event: Event,
    pub(crate) distance: f64,
}

impl PaidRuns {
    pub(crate) fn new<M: Mechanism>(mechanism: &M, neighbors: Neighbors, runs: u64) -> Self {
        Self { event: mechanism.event_of_runs(neighbors, runs), distance: mechanism.distance_of_runs(runs) }
    }

    /// Whether a charge for these runs is a charge for the given ones, too.
    ///
    /// # Contract
    /// They have the same event, and are no farther from the noise that the event describes.
    pub(crate) fn covers(&self, asked: &Self) -> bool {
        asked.event == self.event && asked.distance <= self.distance
    }
}

/// Private data, which only a mechanism that has been paid for can read.
pub struct Sensitive<T>(pub(crate) T);

impl<T> Sensitive<T> {
    /// Wraps private data.
    #[cfg(not(feature = "exact-statistics"))]
    pub fn new(data: T) -> Self {
        Self(data)
    }
}

#[cfg(feature = "exact-statistics")]
impl<T: Default + 'static> Sensitive<T> {
    /// Wraps private data.
    ///
    /// If a test observes this data, the data is recorded and the default value is stored instead.
    pub fn new(data: T) -> Self {
        Self(if crate::exact::withhold_records(&data) { T::default() } else { data })
    }
}

/// A released number, and the error that the noise may have caused.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Release {
    /// The answer.
    pub value: f64,
    /// In nineteen of twenty cases the noise moves the answer by no more than this.
    pub within: Within,
}

/// A distance from the answer without noise.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// In units of the answer.
    Value(f64),
    /// In records.
    ///
    /// At most this many more values lie below the answer than the requested fraction of all values, and at
    /// most this many fewer lie at or below it. Values are clamped to the bounds and rounded to the grid of
    /// the answers.
    Rank(f64),
    /// Unknown: the amount of noise depends on private data and is not released.
    Secret,
}

/// The distribution of the noise that is added to a real number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// Laplace noise: gives a pure guarantee.
    #[default]
    Laplace,
    /// Gaussian noise: lighter tails, and cheaper over many releases.
    Gaussian,
}

impl std::fmt::Display for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Laplace => "Laplace",
            Self::Gaussian => "Gaussian",
        })
    }
}

/// Discrete noise for integers, drawn exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntegerNoise {
    noise: Noise,
    scale: Ratio,
}

impl IntegerNoise {
    /// Rounds the scale up to one that can be drawn exactly.
    ///
    /// The rounded scale is the one that is charged for. The rounding is by a part in a million at most.
    #[must_use]
    pub fn new(noise: Noise, scale: Scale) -> Self {
        Self { noise, scale: Ratio::above(scale) }
    }

    /// Laplace noise for ε, if one record moves the number by at most `moves`.
    pub fn for_epsilon(epsilon: Epsilon, moves: u32) -> Result<Self, Error> {
        // A part in 10¹² covers the rounding of the quotient.
        Ok(Self::new(Noise::Laplace, Scale::new(f64::from(moves) / epsilon.get() * (1.0 + 1e-12))?))
    }

    /// The scale of the noise that is drawn, after rounding.
    #[must_use]
    pub fn scale(self) -> f64 {
        self.scale.get()
    }

    pub(crate) fn draw(self, stream: &mut Stream) -> i64 {
        match self.noise {
            Noise::Laplace => discrete_laplace(self.scale, stream),
            Noise::Gaussian => discrete_gaussian(self.scale, stream),
        }
    }

    /// The cost of adding this noise to a vector of integers.
    ///
    /// When a record is added or removed, it moves one integer by one. When a record is replaced, it moves at
    /// most `exchanged` integers by one each.
    ///
    /// # Theorem
    /// One number moves: the pair is that of the distribution and its shift. Several move by one: each shift
    /// costs 1/scale [DMNS06], or ρ = 1/2σ² [CKS20].
    pub(crate) fn event(self, neighbors: Neighbors, exchanged: u32) -> Event {
        let scale = self.scale.get();
        // Twice the number of shifts is far from the end of the range, and the scale was in it.
        match (neighbors, self.noise) {
            (Neighbors::AddRemove, Noise::Laplace) => {
                unit_event(Scale::new(scale), |scale| Event::DiscreteLaplace { scale, sensitivity: 1 })
            }
            (Neighbors::AddRemove, Noise::Gaussian) => unit_event(Scale::new(scale), |deviation| {
                Event::DiscreteGaussian { deviation, sensitivity: 1 }
            }),
            (Neighbors::Replace, Noise::Laplace) => {
                unit_event(Epsilon::new(f64::from(exchanged) / scale * (1.0 + 1e-15)), |epsilon| {
                    Event::Pure { epsilon }
                })
            }
            (Neighbors::Replace, Noise::Gaussian) => {
                unit_event(Rho::new(f64::from(exchanged) / (2.0 * scale * scale) * (1.0 + 1e-15)), |rho| {
                    Event::ZeroConcentrated { rho }
                })
            }
        }
    }

    /// A bound that the absolute noise exceeds in at most one of twenty cases.
    pub(crate) fn error(self) -> f64 {
        self.error_beyond(20.0)
    }

    /// A bound that the absolute noise exceeds in at most one of `one_in` cases.
    pub(crate) fn error_beyond(self, one_in: f64) -> f64 {
        let scale = self.scale.get();
        match self.noise {
            // P[|X| ≥ m] = 2e^(-m/s)/(1 + e^(-1/s))
            Noise::Laplace => (scale * (2.0 * one_in / (1.0 + (-1.0 / scale).exp())).ln()).ceil(),
            // P[X ≥ m + 1] ≤ P[N ≥ m/s]: THEORY, Votes.
            Noise::Gaussian => (normal_beyond(one_in) * scale).ceil(),
        }
    }
}

impl std::fmt::Display for IntegerNoise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "discrete {} noise of scale {}", self.noise, crate::number::format_brief(self.scale.get()))
    }
}

/// The bound on |N(0, 1)| that is exceeded in one of `one_in` cases, rounded up.
pub(crate) fn normal_beyond(one_in: f64) -> f64 {
    -normal_quantile(0.5 / one_in) * (1.0 + 1e-9)
}

/// Makes an event from a checked number; an invalid number is charged as no guarantee.
pub(crate) fn unit_event<U>(unit: Result<U, Error>, event: impl FnOnce(U) -> Event) -> Event {
    unit.map_or(Event::NonPrivate, event)
}
