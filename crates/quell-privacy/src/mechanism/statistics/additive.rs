//! Noise on a vector whose sensitivity the caller has bounded.

use super::grid::Grid;
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Noise, Sealed, Sensitive},
    noise::rounded::{self, DISTANCE, GRID},
    number::format_brief,
    units::{ClipNorm, NoiseMultiplier},
};

/// A vector plus Laplace or Gaussian noise.
///
/// # Contract
/// The caller must ensure one clause that is not enforced here. Adding or removing one record moves the
/// vector by at most `contribution` in L1 (Laplace) or L2 (Gaussian), and replacing one record moves it by at
/// most twice that. Where records can be passed in one by one, [`Descent`](crate::mechanism::Descent)
/// enforces this clause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Additive {
    /// Distribution of the noise.
    pub noise: Noise,
    /// Largest contribution of one record.
    pub contribution: ClipNorm,
    /// Scale of the noise divided by `contribution`.
    pub noise_multiplier: NoiseMultiplier,
    /// Length of the vector.
    pub dimension: usize,
}

impl Additive {
    /// The factor by which the noise grows to cover rounding to the grid.
    ///
    /// # Theorem
    /// Each coordinate of two neighbours is rounded by at most half a step, so their distance grows by at
    /// most w = d steps in L1 and √d in L2. With s the scale and s/2³⁰ the step it is enough that s = z(C +
    /// ws/2³⁰). The code uses 2w, which costs next to nothing. (THEORY, Noise)
    fn inflation(&self) -> Option<f64> {
        let d = self.dimension as f64;
        let width = match self.noise {
            Noise::Laplace => d,
            Noise::Gaussian => d.sqrt(),
        };
        let factor = 1.0 - 2.0 * self.noise_multiplier.get() * width / GRID as f64;
        (factor > 0.5).then(|| (1.0 + 1e-12) / factor)
    }
}

impl Sealed for Additive {}

impl Mechanism for Additive {
    fn event(&self, _: Neighbors) -> Event {
        // A vector that is too long for the grid has no guarantee.
        self.inflation().map_or(Event::NonPrivate, |_| self.noise.event(self.noise_multiplier))
    }

    fn distance(&self) -> f64 {
        self.dimension as f64 * DISTANCE
    }
}

impl std::fmt::Display for Additive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (multiplier, contribution) =
            (format_brief(self.noise_multiplier.get()), format_brief(self.contribution.get()));
        write!(
            f,
            "vector of {} numbers with {} noise multiplier {multiplier} for contributions up to {contribution}",
            self.dimension, self.noise
        )
    }
}

impl Paid<Additive> {
    /// Returns the vector plus noise. A coordinate that is not a number counts as zero.
    pub fn run(mut self, vector: &Sensitive<Vec<f64>>) -> Result<Vec<f64>, Error> {
        let mechanism = self.mechanism;
        let wrong =
            Error::OutOfRange { what: "dimension", value: vector.0.len() as f64, range: "what was paid for" };
        let inflation =
            mechanism.inflation().filter(|_| vector.0.len() == mechanism.dimension).ok_or(wrong)?;
        let grid = Grid::new(mechanism.noise_multiplier.get() * mechanism.contribution.get() * inflation)?;
        let mut indices: Vec<i64> = vector.0.iter().map(|value| grid.nearest(*value)).collect();
        rounded::add(mechanism.noise.shape(), &self.key()?, &mut indices);
        Ok(indices.into_iter().map(|index| grid.value(i128::from(index))).collect())
    }
}
