//! Everything that can be released, each with its event, its contract and its theorem.
//!
//! A mechanism is a value with public settings. What it does with people's data is a method of [`Paid`](crate::ledger::Paid), so nothing here runs
//! before it was paid for. The trait is sealed: a mechanism written elsewhere would be a hole in the proof. Settings are fields, data is
//! an argument, and once a mechanism is paid for nothing about the data can stop it: a value that is no number counts as missing.

mod additive;
mod bounded;
mod clipped_sum;
mod clipping;
mod contributions;
mod count;
mod decimals;
mod enclosure;
mod epoch;
mod grid;
mod histogram;
mod median;
mod moments;
mod noisy_max;
mod poll;
mod quantile;
mod randomized_response;
mod sampling;
mod selection;
mod sparse_vector;
mod stable_max;
mod summation;
mod survey;
mod vote_cost;

pub use additive::Additive;
pub use bounded::{Bounds, Sum};
pub use clipped_sum::ClippedSum;
pub use clipping::{Clip, Clipping};
pub use contributions::{Contributions, Vectors};
pub use count::{Count, NoisyThreshold};
pub use enclosure::Enclosure;
pub use epoch::{Epoch, Running};
pub use histogram::{Histogram, StableHistogram};
pub use median::SmoothMedian;
pub use moments::{Mean, Variance};
pub use noisy_max::{NoisyMax, Rule, Votes};
pub use poll::{Answer, Electorate, Poll, Polling, Screening, Voters};
pub use quantile::{Quantile, Range};
pub use randomized_response::RandomizedResponse;
pub use sampling::Sampling;
pub use selection::Selection;
pub use sparse_vector::{AboveThreshold, GaussianSparseVector, SparseVector};
pub use stable_max::{Stability, StableMax};
pub use summation::Step;
pub(crate) use summation::{BLOCK, DRIFT, LENGTH_ERROR, TERM_ROUNDINGS};
pub use survey::{Ballot, Finding, Form, Survey, Surveying};
pub use vote_cost::{Asked, ReleasedCost, SmoothCost, VoteCost};

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

/// A way to release something, and what it costs.
///
/// # Contract
/// One run is within `distance` in total variation of a mechanism to which `event` applies, for every dataset. Its words say what is done, for
/// the reader of the ledger, and hold nothing but public settings.
pub trait Mechanism: Sealed + Clone + std::fmt::Display {
    /// What one run costs.
    fn event(&self, neighbors: Neighbors) -> Event;

    /// Whether the settings make sense under this relation: asked before anything is paid for.
    fn check(&self, _: Neighbors) -> Result<(), Error> {
        Ok(())
    }

    /// How far the noise that is drawn is from the noise that is accounted for. Zero for noise drawn in exact arithmetic.
    fn distance(&self) -> f64 {
        0.0
    }
}

/// People's data. It can be put in and not taken out: only a mechanism that has been paid for looks inside.
pub struct Sensitive<T>(pub(crate) T);

impl<T> Sensitive<T> {
    /// Closes the lid.
    #[cfg(not(feature = "exact-statistics"))]
    pub fn new(data: T) -> Self {
        Self(data)
    }
}

#[cfg(feature = "exact-statistics")]
impl<T: Default + 'static> Sensitive<T> {
    /// Closes the lid. What is watched is written down, and nothing is put in.
    pub fn new(data: T) -> Self {
        Self(if crate::exact::withhold_records(&data) { T::default() } else { data })
    }
}

/// A number that was released, and how far off the noise may have put it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Release {
    /// The answer.
    pub value: f64,
    /// In nineteen cases of twenty the noise moves the answer by no more than this.
    pub within: Within,
}

/// A distance from the answer without noise.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// In units of the answer.
    Value(f64),
    /// In records: values below the answer are at most so many more than the wanted part of all, and values up to it at most so many fewer. Values are
    /// those held to the bounds and rounded to the grid that answers are on.
    Rank(f64),
    /// How much noise was added is a secret of the data.
    Secret,
}

/// Which noise is added to a real number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// Laplace noise: a pure guarantee.
    #[default]
    Laplace,
    /// Gaussian noise: lighter tails, cheaper in the long run.
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

/// Noise for integers, drawn exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntegerNoise {
    noise: Noise,
    scale: Ratio,
}

impl IntegerNoise {
    /// Rounds the scale up, by a part in a million at most, to one that can be drawn exactly; that scale is charged for.
    #[must_use]
    pub fn new(noise: Noise, scale: Scale) -> Self {
        Self { noise, scale: Ratio::above(scale) }
    }

    /// Laplace noise for an ε of its own, if one record moves the number by `moves`.
    pub fn for_epsilon(epsilon: Epsilon, moves: u32) -> Result<Self, Error> {
        // A part in 10¹² covers the rounding of the quotient.
        Ok(Self::new(Noise::Laplace, Scale::new(f64::from(moves) / epsilon.get() * (1.0 + 1e-12))?))
    }

    /// The scale that is drawn.
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

    /// What it costs to add this to integers of which one record moves one by one, when it comes or goes, and at most `exchanged` by one each, when it is
    /// exchanged.
    ///
    /// # Theorem
    /// One number moves: the pair is that of the distribution and its shift. Several move by one: each shift costs 1/scale [DMNS06], or
    /// ρ = 1/2σ² [CKS20].
    pub(crate) fn event(self, neighbors: Neighbors, exchanged: u32) -> Event {
        let scale = self.scale.get();
        // Twice the number of shifts is far from the end of the range, and the scale was in it.
        match (neighbors, self.noise) {
            (Neighbors::AddRemove, Noise::Laplace) => {
                unit_event(Scale::new(scale), |scale| Event::DiscreteLaplace { scale, sensitivity: 1 })
            }
            (Neighbors::AddRemove, Noise::Gaussian) => {
                unit_event(Scale::new(scale), |deviation| Event::DiscreteGaussian { deviation, sensitivity: 1 })
            }
            (Neighbors::Replace, Noise::Laplace) => {
                unit_event(Epsilon::new(f64::from(exchanged) / scale * (1.0 + 1e-15)), |epsilon| Event::Pure { epsilon })
            }
            (Neighbors::Replace, Noise::Gaussian) => {
                unit_event(Rho::new(f64::from(exchanged) / (2.0 * scale * scale) * (1.0 + 1e-15)), |rho| {
                    Event::ZeroConcentrated { rho }
                })
            }
        }
    }

    /// What the noise exceeds in one case of twenty, at most.
    pub(crate) fn error(self) -> f64 {
        self.error_beyond(20.0)
    }

    /// What the noise exceeds in one case of so many, at most.
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
        write!(f, "discrete {} noise of scale {}", self.noise, crate::number::brief(self.scale.get()))
    }
}

/// What a standard normal number exceeds in size in one case of so many, rounded up.
pub(crate) fn normal_beyond(one_in: f64) -> f64 {
    -normal_quantile(0.5 / one_in) * (1.0 + 1e-9)
}

/// An event of a number that was checked before; what was not is charged as no guarantee at all.
pub(crate) fn unit_event<U>(unit: Result<U, Error>, event: impl FnOnce(U) -> Event) -> Event {
    unit.map_or(Event::NonPrivate, event)
}
