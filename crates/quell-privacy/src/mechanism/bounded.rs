//! Sums, means and variances of numbers between public bounds.

use serde::{Deserialize, Serialize};

use super::{IntegerNoise, Mechanism, Noise, Release, Sealed, Sensitive, Within, grid::Grid};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::rounded::{DISTANCE, GRID},
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

    fn center(self) -> f64 {
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
        let Sum { bounds, noise, noise_multiplier } = self.mechanism;
        let scale = bounds.scale(self.neighbors, noise_multiplier);
        let grid = Grid::new(scale)?;
        let mut stream = self.key()?.stream(0);
        let sum = values.0.iter().filter_map(|value| bounds.hold(*value)).map(|value| i128::from(grid.toward_zero(value))).sum();
        Ok(Release { value: grid.release(noise, sum, &mut stream), within: Within::Value(noise.error(scale)) })
    }
}

/// The mean of numbers held to bounds, as a noisy sum over a noisy count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// What every number is held to.
    pub bounds: Bounds,
    /// Noise of the sum of distances from the middle of the bounds …
    pub noise: Noise,
    /// … and its scale over half the distance of the bounds.
    pub noise_multiplier: NoiseMultiplier,
    /// Noise of the count.
    pub count: IntegerNoise,
}

impl Sealed for Mean {}

impl Mechanism for Mean {
    /// A sum and a count.
    fn event(&self, neighbors: Neighbors) -> Event {
        Event::Composed(vec![self.noise.event(self.noise_multiplier), self.count.event(neighbors, 1)])
    }

    fn distance(&self) -> f64 {
        DISTANCE
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "mean of numbers held to {} with {} noise of {} times a contribution, over a count with {}",
            self.bounds,
            self.noise,
            brief(self.noise_multiplier.get()),
            self.count
        )
    }
}

/// A noisy count that can be divided by.
fn at_least_one(count: i128) -> f64 {
    count.max(1) as f64
}

impl Paid<Mean> {
    /// The mean, held to the bounds.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let Mean { bounds, noise, noise_multiplier, count } = self.mechanism;
        let scale = noise_multiplier.get() * bounds.radius();
        let grid = Grid::new(scale)?;
        let mut stream = self.key()?.stream(0);
        let (mut sum, mut number) = (0_i128, 0_i128);
        for value in values.0.iter().filter_map(|value| bounds.hold(*value)) {
            sum += i128::from(grid.toward_zero((value - bounds.center()).clamp(-bounds.radius(), bounds.radius())));
            number += 1;
        }
        let number = at_least_one(number + i128::from(count.draw(&mut stream)));
        let offset = grid.release(noise, sum, &mut stream) / number;
        let value = (bounds.center() + offset).clamp(bounds.lower, bounds.upper);
        // d(s/n) = ds/n - (s/n) dn/n
        let error = noise.error(scale).hypot(offset.abs().min(bounds.radius()) * count.error()) / number;
        Ok(Release { value, within: Within::Value(error.min(2.0 * bounds.radius())) })
    }
}

/// The variance of numbers held to bounds, from noisy sums of distances, of their squares, and a noisy count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variance {
    /// What every number is held to.
    pub bounds: Bounds,
    /// Noise of both sums …
    pub noise: Noise,
    /// … and its scale over what a record contributes to each.
    pub noise_multiplier: NoiseMultiplier,
    /// Noise of the count.
    pub count: IntegerNoise,
}

impl Sealed for Variance {}

impl Mechanism for Variance {
    /// Two sums and a count.
    fn event(&self, neighbors: Neighbors) -> Event {
        let sum = self.noise.event(self.noise_multiplier);
        Event::Composed(vec![sum.clone(), sum, self.count.event(neighbors, 1)])
    }

    fn distance(&self) -> f64 {
        2.0 * DISTANCE
    }
}

impl std::fmt::Display for Variance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "variance of numbers held to {} with {} noise of {} times a contribution, over a count with {}",
            self.bounds,
            self.noise,
            brief(self.noise_multiplier.get()),
            self.count
        )
    }
}

impl Paid<Variance> {
    /// The variance, between zero and what the bounds allow.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let Variance { bounds, noise, noise_multiplier, count } = self.mechanism;
        let radius = bounds.radius();
        // In units of the radius: x in [-1, 1], and x² - 1/2 in [-1/2, 1/2].
        let (scale, square_scale) = (noise_multiplier.get(), 0.5 * noise_multiplier.get());
        let (grid, square_grid) = (Grid::new(scale)?, Grid::new(square_scale)?);
        let mut stream = self.key()?.stream(0);
        let (mut sum, mut squares, mut number) = (0_i128, 0_i128, 0_i128);
        for value in values.0.iter().filter_map(|value| bounds.hold(*value)) {
            let x = ((value - bounds.center()) / radius).clamp(-1.0, 1.0);
            sum += i128::from(grid.toward_zero(x));
            squares += i128::from(square_grid.toward_zero(x * x - 0.5));
            number += 1;
        }
        let number = at_least_one(number + i128::from(count.draw(&mut stream)));
        let mean = (grid.release(noise, sum, &mut stream) / number).clamp(-1.0, 1.0);
        let square = (square_grid.release(noise, squares, &mut stream) / number + 0.5).clamp(0.0, 1.0);
        let variance = (square - mean * mean).max(0.0);
        let error = (noise.error(square_scale) / number)
            .hypot(2.0 * mean.abs() * noise.error(scale) / number)
            .hypot((mean * mean + 0.5) * count.error() / number);
        let unit = radius * radius;
        Ok(Release { value: variance * unit, within: Within::Value(error.min(1.0) * unit) })
    }
}
