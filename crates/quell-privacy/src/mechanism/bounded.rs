//! Public bounds, and sums of numbers between them.

use serde::{Deserialize, Serialize};

use super::{Mechanism, Noise, Release, Sealed, Sensitive, Within, grid::Grid};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{
        random::Stream,
        rounded::{DISTANCE, GRID},
    },
    number::brief,
    units::NoiseMultiplier,
};

/// Bounds to which numbers are held. Public: they must not be read off the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "(f64, f64)", into = "(f64, f64)")]
pub struct Bounds {
    lower: f64,
    upper: f64,
}

impl Bounds {
    /// Two finite numbers, the smaller first.
    pub fn new(lower: f64, upper: f64) -> Result<Self, Error> {
        let range = "numbers below 1e150 in size, at least 1e-150 apart, the smaller first";
        if !(lower.abs() <= 1e150 && upper.abs() <= 1e150 && upper - lower >= 1e-150) {
            return Err(Error::OutOfRange { what: "bounds", value: upper - lower, range });
        }
        Ok(Self { lower, upper })
    }

    /// The lower one.
    #[must_use]
    pub fn lower(self) -> f64 {
        self.lower
    }

    /// The upper one.
    #[must_use]
    pub fn upper(self) -> f64 {
        self.upper
    }

    /// Half the distance between them.
    pub(crate) fn radius(self) -> f64 {
        0.5 * self.upper - 0.5 * self.lower
    }

    pub(crate) fn center(self) -> f64 {
        0.5 * self.lower + 0.5 * self.upper
    }

    /// Held to the bounds; nothing if it is no number.
    pub(crate) fn hold(self, value: f64) -> Option<f64> {
        (!value.is_nan()).then(|| value.clamp(self.lower, self.upper))
    }

    /// Scale of the noise on a sum: a multiple of what one record contributes or, where records are exchanged, of half of what that can do.
    ///
    /// # Theorem
    /// A record with a value may also be exchanged for one that is not counted, so an exchange moves the sum by at most
    /// R = max(|lower|, |upper|, upper - lower), and by one grid step more because two values are rounded. With scale s and step s/2³⁰ it
    /// is enough that s = z(R + s/2³⁰)/2.
    fn scale(self, neighbors: Neighbors, noise_multiplier: NoiseMultiplier) -> f64 {
        let (z, largest) = (noise_multiplier.get(), self.lower.abs().max(self.upper.abs()));
        match neighbors {
            Neighbors::AddRemove => z * largest,
            Neighbors::Replace => 0.5 * z * largest.max(self.upper - self.lower) * (1.0 + 1e-14) / (1.0 - 0.5 * z / GRID as f64),
        }
    }
}

impl TryFrom<(f64, f64)> for Bounds {
    type Error = Error;
    fn try_from((lower, upper): (f64, f64)) -> Result<Self, Error> {
        Self::new(lower, upper)
    }
}

impl From<Bounds> for (f64, f64) {
    fn from(bounds: Bounds) -> (f64, f64) {
        (bounds.lower, bounds.upper)
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}, {}]", brief(self.lower), brief(self.upper))
    }
}

/// The sum of numbers held to bounds. A value that is missing or no number adds nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    /// What every number is held to.
    pub bounds: Bounds,
    /// Which noise.
    pub noise: Noise,
    /// Its scale over what one record contributes.
    pub noise_multiplier: NoiseMultiplier,
}

impl Sealed for Sum {}

impl Mechanism for Sum {
    /// Rounding towards zero on the grid does not make a contribution larger, so the sensitivity is that of the bounds. (THEORY, Noise)
    fn event(&self, neighbors: Neighbors) -> Event {
        // Beyond this the grid is coarser than the bounds.
        let too_coarse = neighbors == Neighbors::Replace && self.noise_multiplier.get() > GRID as f64;
        if too_coarse { Event::NonPrivate } else { self.noise.event(self.noise_multiplier) }
    }

    fn distance(&self) -> f64 {
        DISTANCE
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "sum of numbers held to {} with {} noise of {} times a contribution",
            self.bounds,
            self.noise,
            brief(self.noise_multiplier.get())
        )
    }
}

impl Paid<Sum> {
    /// The sum, plus noise.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        self.mechanism.release(self.neighbors, values.0.iter().map(|value| (*value, 1)), &mut stream)
    }
}

impl Sum {
    /// Of values, each with the number of records that have it.
    pub(super) fn release(
        &self,
        neighbors: Neighbors,
        values: impl Iterator<Item = (f64, u64)>,
        stream: &mut Stream,
    ) -> Result<Release, Error> {
        let Sum { bounds, noise, noise_multiplier } = *self;
        let scale = bounds.scale(neighbors, noise_multiplier);
        let grid = Grid::new(scale)?;
        let held = values.filter_map(|(value, records)| Some((bounds.hold(value)?, records)));
        let sum = held.map(|(value, records)| i128::from(grid.toward_zero(value)) * i128::from(records)).sum();
        Ok(Release { value: grid.release(noise, sum, stream), within: Within::Value(noise.error(scale)) })
    }
}
