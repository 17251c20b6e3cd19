//! Averages of the weights along the way. Every iterate has been paid for, so an average of them costs nothing more.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Error, range::BELOW_ONE};

/// Which average of the iterates x₁, x₂, … is the model.
///
/// ```
/// use quell::average::Average;
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
    /// None: the last iterate.
    #[default]
    None,
    /// The mean of all but the first ones.
    Uniform {
        /// Iterates that are left out.
        #[serde(default)]
        skip: u64,
    },
    /// Each iterate counts `decay` times as much as the one after it. The weights add up to one from the first step on, so
    /// the start, which nothing was learnt from, is not in it.
    Exponential {
        /// That factor.
        decay: f64,
    },
    /// 2/(T(T+1)) Σ t·xₜ: what has the rate of a strongly convex loss (Lacoste-Julien, Schmidt and Bach 2012).
    Linear,
}

impl Average {
    /// Whether every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Self::Exponential { decay } = *self { BELOW_ONE.check("decay", decay) } else { Ok(()) }
    }

    /// Ready for the first iterate of `dimension` weights.
    pub fn start(self, dimension: usize) -> Result<Mean, Error> {
        self.check()?;
        let length = if self == Self::None { 0 } else { dimension };
        Ok(Mean { average: self, dimension, count: 0, weights: vec![0.0; length] })
    }

    /// How much of the way from the mean to the next iterate one has to go, if it is number `count`, from one on.
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

/// An average of what was added so far. In double precision, because late iterates move it by less than single precision shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    average: Average,
    dimension: usize,
    count: u64,
    weights: Vec<f64>,
}

/// Numbers that one task works on.
const CHUNK: usize = 1 << 14;

/// From here on more than one core is asked.
const PARALLEL: usize = 100_000;

impl Mean {
    /// The recipe.
    #[must_use]
    pub fn average(&self) -> Average {
        self.average
    }

    /// Iterates added, those that are left out included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds the iterate after a step, in one pass. Nothing has changed if there is an error.
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

    /// The average; none if the last iterate is meant, or none was added yet.
    #[must_use]
    pub fn weights(&self) -> Option<Vec<f32>> {
        (self.average != Average::None && self.count > 0).then(|| self.weights.iter().map(|mean| *mean as f32).collect())
    }

    /// What [`Mean::restore`] needs besides the count.
    #[must_use]
    pub fn state(&self) -> &[f64] {
        &self.weights
    }

    /// Goes on from a saved state of the same recipe. Nothing has changed if there is an error.
    pub fn restore(&mut self, count: u64, state: &[f64]) -> Result<(), Error> {
        if state.len() != self.weights.len() {
            return Err(Error::Length { what: "average", found: state.len(), expected: self.weights.len() });
        }
        if !state.iter().all(|x| x.is_finite()) {
            return Err(Error::SavedState { part: "average".into(), found: "not finite", expected: "finite numbers" });
        }
        self.count = count;
        self.weights.copy_from_slice(state);
        Ok(())
    }
}
