//! Public bounds, and sums of numbers clamped to them.

use serde::{Deserialize, Serialize};

use super::{Price, grid::Grid};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Noise, Release, Sealed, Sensitive, Within},
    noise::{
        random::Stream,
        rounded::{DISTANCE, GRID},
    },
    number::format_brief,
    units::NoiseMultiplier,
};

/// Bounds to which numbers are clamped. Public: they must not be computed from the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "(f64, f64)", into = "(f64, f64)")]
pub struct Bounds {
    lower: f64,
    upper: f64,
}

impl Bounds {
    /// Takes two finite numbers, the smaller first.
    pub fn new(lower: f64, upper: f64) -> Result<Self, Error> {
        if !(lower.abs() <= 1e150 && upper.abs() <= 1e150) {
            let value = if lower.abs() <= 1e150 { upper } else { lower };
            return Err(Error::OutOfRange { what: "a bound", value, range: "[-1e150, 1e150]" });
        }
        if upper - lower < 1e-150 {
            let range = "(lower bound, 1e150]";
            return Err(Error::OutOfRange { what: "the upper bound", value: upper, range });
        }
        Ok(Self { lower, upper })
    }

    /// The lower bound.
    #[must_use]
    pub fn lower(self) -> f64 {
        self.lower
    }

    /// The upper bound.
    #[must_use]
    pub fn upper(self) -> f64 {
        self.upper
    }

    /// Half the distance between the bounds.
    pub(crate) fn radius(self) -> f64 {
        0.5 * self.upper - 0.5 * self.lower
    }

    pub(crate) fn center(self) -> f64 {
        0.5 * self.lower + 0.5 * self.upper
    }

    /// Clamps a number to the bounds; `None` for NaN.
    pub(crate) fn hold(self, value: f64) -> Option<f64> {
        (!value.is_nan()).then(|| value.clamp(self.lower, self.upper))
    }

    /// Scale of the noise on a sum, under the given neighbour relation.
    ///
    /// The scale is the noise multiplier times the largest contribution of one record. Under replacement it
    /// is the multiplier times half of what a replacement can move.
    ///
    /// # Theorem
    /// A record with a value may also be replaced by a record that is not counted, so a replacement moves the
    /// sum by at most R = max(|lower|, |upper|, upper - lower), and by one grid step more because two values
    /// are rounded. With scale s and step s/2³⁰ it is enough that s = z(R + s/2³⁰)/2.
    fn scale(self, neighbors: Neighbors, noise_multiplier: NoiseMultiplier) -> f64 {
        let (z, largest) = (noise_multiplier.get(), self.lower.abs().max(self.upper.abs()));
        match neighbors {
            Neighbors::AddRemove => z * largest,
            Neighbors::Replace => {
                0.5 * z * largest.max(self.upper - self.lower) * (1.0 + 1e-14) / (1.0 - 0.5 * z / GRID as f64)
            }
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
        write!(f, "[{}, {}]", format_brief(self.lower), format_brief(self.upper))
    }
}

/// The sum of numbers clamped to bounds. Missing values and NaN add nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    /// The bounds to which every number is clamped.
    pub bounds: Bounds,
    /// Distribution of the noise.
    pub noise: Noise,
    /// Scale of the noise divided by the largest contribution of one record.
    pub noise_multiplier: NoiseMultiplier,
}

impl Sum {
    /// A sum of numbers clamped to these bounds, at this price.
    pub fn for_epsilon(bounds: Bounds, price: impl Into<Price>) -> Result<Self, Error> {
        let price = price.into();
        Ok(Self { bounds, noise: price.noise(), noise_multiplier: price.noise_multiplier()? })
    }
}

impl Sealed for Sum {}

impl Mechanism for Sum {
    /// The event of the noise, with the sensitivity that the bounds give.
    ///
    /// Rounding towards zero on the grid does not increase a contribution. (THEORY, Noise)
    fn event(&self, neighbors: Neighbors) -> Event {
        // Beyond this noise multiplier the grid is coarser than the bounds.
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
            "sum of numbers clamped to {} with {} noise multiplier {}",
            self.bounds,
            self.noise,
            format_brief(self.noise_multiplier.get())
        )
    }
}

impl Paid<Sum> {
    /// Returns the sum plus noise.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        self.mechanism.release(self.neighbors, values.0.iter().map(|value| (*value, 1)), &mut stream)
    }
}

impl Sum {
    /// Releases the sum of values, each paired with the number of records that have it.
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
        let sum =
            held.map(|(value, records)| i128::from(grid.toward_zero(value)) * i128::from(records)).sum();
        Ok(Release { value: grid.release(noise, sum, stream), within: Within::Value(noise.error(scale)) })
    }
}
