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

    /// The largest absolute value between the bounds.
    pub(super) fn largest(self) -> f64 {
        self.lower.abs().max(self.upper.abs())
    }

    /// Scale of the noise on sums, under the given neighbour relation.
    ///
    /// The scale is the noise multiplier times the largest contribution of one record. Under replacement it
    /// is the multiplier times half of `replacement`, which is what a replacement can move.
    ///
    /// # Theorem
    /// A replacement moves the sums by at most R = `replacement`, and by one grid step more because two values
    /// are rounded. With scale s and step s/2³⁰ it is enough that s = z(R + s/2³⁰)/2.
    pub(super) fn scale(
        self,
        neighbors: Neighbors,
        noise_multiplier: NoiseMultiplier,
        replacement: f64,
    ) -> f64 {
        let z = noise_multiplier.get();
        match neighbors {
            Neighbors::AddRemove => z * self.largest(),
            Neighbors::Replace => 0.5 * z * replacement * (1.0 + 1e-14) / (1.0 - 0.5 * z / GRID as f64),
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
    ///
    /// # Theorem
    /// A record with a value may also be replaced by a record that is not counted, so a replacement moves the
    /// sum by at most max(|lower|, |upper|, upper - lower).
    pub(super) fn release(
        &self,
        neighbors: Neighbors,
        values: impl Iterator<Item = (f64, u64)>,
        stream: &mut Stream,
    ) -> Result<Release, Error> {
        let bounds = self.bounds;
        let replacement = bounds.largest().max(bounds.upper - bounds.lower);
        let scale = bounds.scale(neighbors, self.noise_multiplier, replacement);
        let grid = Grid::new(scale)?;
        let total = self.total(grid, values);
        Ok(self.release_total(grid, total, scale, stream))
    }

    /// Adds up values on a grid, each paired with the number of records that have it.
    pub(super) fn total(&self, grid: Grid, values: impl Iterator<Item = (f64, u64)>) -> i128 {
        let held = values.filter_map(|(value, records)| Some((self.bounds.hold(value)?, records)));
        held.map(|(value, records)| i128::from(grid.toward_zero(value)) * i128::from(records)).sum()
    }

    /// Adds noise of this scale to a total on the grid of that scale.
    pub(super) fn release_total(&self, grid: Grid, total: i128, scale: f64, stream: &mut Stream) -> Release {
        let value = grid.release(self.noise, total, stream);
        Release { value, within: Within::Value(self.noise.error(scale)) }
    }
}
