//! Averages of the weights during training.
//!
//! Every iterate has been paid for, so an average of the iterates is post-processing and costs nothing more.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Error, range::BELOW_ONE};

/// The average of the iterates x₁, x₂, … that becomes the model.
///
/// ```
/// use quell::learner::average::Average;
/// let mut mean = Average::Linear.start(1)?;
/// for x in [3.0, 6.0, 9.0] {
///     mean.add(&[x])?;
/// }
/// assert_eq!(mean.weights().unwrap(), [7.0]);
/// //                    = 2/(3·4) (1·3 + 2·6 + 3·9)
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Average {
    /// No average: the last iterate.
    #[default]
    None,
    /// The mean of all iterates after the first `skip`.
    Uniform {
        /// Number of iterates that are left out.
        #[serde(default)]
        skip: u64,
    },
    /// An exponential moving average.
    ///
    /// Each iterate counts `decay` times as much as the one after it. The weights of the iterates add up to
    /// one from the first step on, so the initial weights have no influence.
    Exponential {
        /// The decay factor.
        decay: f64,
    },
    /// 2/(T(T+1)) Σ t·xₜ, which has the rate of a strongly convex loss (Lacoste-Julien, Schmidt and Bach
    /// 2012).
    Linear,
}

impl Average {
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Self::Exponential { decay } = *self { BELOW_ONE.check("decay", decay) } else { Ok(()) }
    }

    /// Creates an empty average of iterates with `dimension` weights.
    pub fn start(self, dimension: usize) -> Result<Mean, Error> {
        self.check()?;
        let length = if self == Self::None { 0 } else { dimension };
        Ok(Mean { average: self, dimension, count: 0, weights: vec![0.0; length] })
    }

    /// The weight of iterate number `count`, counted from one, in the average after it.
    fn share(self, count: u64) -> f64 {
        let t = count as f64;
        match self {
            Self::None => 1.0,
            Self::Uniform { skip } => count.saturating_sub(skip).max(1) as f64,
            Self::Exponential { decay } => (1.0 - decay.powf(t)) / (1.0 - decay),
            // x̄ₜ = (1 - 2/(t+1)) x̄ₜ₋₁ + 2/(t+1) xₜ
            Self::Linear => 0.5 * (t + 1.0),
        }
        .recip()
    }
}

/// A running average of iterates.
///
/// It is in double precision, because late iterates change it by less than single precision can represent.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    average: Average,
    dimension: usize,
    count: u64,
    weights: Vec<f64>,
}

/// Numbers that one parallel task works on.
const CHUNK: usize = 1 << 14;

/// From this many numbers on, the work is divided among cores.
const PARALLEL: usize = 100_000;

impl Mean {
    /// The kind of average.
    #[must_use]
    pub fn average(&self) -> Average {
        self.average
    }

    /// Number of iterates added, including those that are left out.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds the iterate after a step, in one pass. An error leaves the average unchanged.
    pub fn add(&mut self, weights: &[f32]) -> Result<(), Error> {
        if weights.len() != self.dimension {
            return Err(Error::Length { what: "weights", found: weights.len(), expected: self.dimension });
        }
        self.count = self.count.saturating_add(1);
        let share = self.average.share(self.count);
        let chunk = move |(mean, weights): (&mut [f64], &[f32])| {
            mean.iter_mut().zip(weights).for_each(|(mean, w)| *mean += share * (f64::from(*w) - *mean));
        };
        if self.weights.len() < PARALLEL {
            chunk((&mut self.weights, weights));
        } else {
            self.weights.par_chunks_mut(CHUNK).zip(weights.par_chunks(CHUNK)).for_each(chunk);
        }
        Ok(())
    }

    /// The average; `None` for [`Average::None`], or if no iterate was added yet.
    #[must_use]
    pub fn weights(&self) -> Option<Vec<f32>> {
        (self.average != Average::None && self.count > 0)
            .then(|| self.weights.iter().map(|mean| *mean as f32).collect())
    }

    /// The state that [`Mean::restore`] needs, besides the count.
    #[must_use]
    pub fn state(&self) -> &[f64] {
        &self.weights
    }

    /// Restores a saved state of the same kind of average. An error leaves the average unchanged.
    pub fn restore(&mut self, count: u64, state: &[f64]) -> Result<(), Error> {
        if state.len() != self.weights.len() {
            return Err(Error::Length { what: "average", found: state.len(), expected: self.weights.len() });
        }
        if !state.iter().all(|x| x.is_finite()) {
            return Err(Error::SavedState {
                part: "average".into(),
                found: "not finite",
                expected: "finite numbers",
            });
        }
        self.count = count;
        self.weights.copy_from_slice(state);
        Ok(())
    }
}
