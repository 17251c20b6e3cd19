//! Means and variances of numbers between public bounds, from noisy sums and a noisy count.

use super::{Bounds, IntegerNoise, Mechanism, Noise, Release, Sealed, Sensitive, Within, grid::Grid};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{random::Stream, rounded::DISTANCE},
    number::brief,
    units::NoiseMultiplier,
};

/// A sum or a count, after noise, and how far off it may be.
#[derive(Clone, Copy, Debug)]
struct Noisy {
    value: f64,
    error: f64,
}

impl Noisy {
    /// A sum on a grid: noise as seldom as stated, and a step for each record that was rounded.
    fn sum(grid: Grid, noise: Noise, sum: i128, error: f64, count: Noisy, stream: &mut Stream) -> Self {
        let rounded = (count.value + count.error).max(0.0) * grid.value(1);
        Self { value: grid.release(noise, sum, stream), error: error + rounded }
    }

    fn count(noise: IntegerNoise, count: i128, one_in: f64, stream: &mut Stream) -> Self {
        Self { value: (count + i128::from(noise.draw(stream))) as f64, error: noise.error_beyond(one_in) }
    }

    /// A noisy count that can be divided by.
    fn at_least_one(self) -> f64 {
        self.value.max(1.0)
    }
}

/// Means m in [-radius, radius] that a noisy sum and a noisy count do not rule out.
///
/// # Theorem
/// (THEORY, Stated errors) [Fie54] The sum is m times the count, so noisy sum - m · noisy count is a sum of two independent noises, whatever the count is. It
/// exceeds the root of the sum of their squared errors no more often than either exceeds its own. So all m for which it does not are a set that holds the
/// mean as often; it is an interval if the count exceeds its error, and anything otherwise.
fn means(sum: Noisy, count: Noisy, radius: f64) -> (f64, f64) {
    let Noisy { value: n, error: e } = count;
    if n <= e {
        return (-radius, radius);
    }
    let squares = (n - e) * (n + e);
    let half = (sum.value * e).hypot(sum.error * squares.sqrt());
    (((sum.value * n - half) / squares).max(-radius), ((sum.value * n + half) / squares).min(radius))
}

/// How far a released number may be from one that lies between two others; at least as far as these are apart if it lies beyond both.
fn farthest(value: f64, low: f64, high: f64) -> f64 {
    (value - low).max(high - value).max((high - low).abs() / 2.0)
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

impl Paid<Mean> {
    /// The mean, held to the bounds.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        self.mechanism.release(values.0.iter().map(|value| (*value, 1)), &mut stream)
    }
}

impl Mean {
    /// Of values, each with the number of records that have it.
    pub(super) fn release(&self, values: impl Iterator<Item = (f64, u64)>, stream: &mut Stream) -> Result<Release, Error> {
        let Mean { bounds, noise, noise_multiplier, count } = *self;
        let (radius, scale) = (bounds.radius(), noise_multiplier.get() * bounds.radius());
        let grid = Grid::new(scale)?;
        let (mut sum, mut number) = (0_i128, 0_i128);
        for (value, records) in values.filter_map(|(value, records)| Some((bounds.hold(value)?, i128::from(records)))) {
            sum += i128::from(grid.toward_zero((value - bounds.center()).clamp(-radius, radius))) * records;
            number += records;
        }
        let number = Noisy::count(count, number, 20.0, stream);
        let sum = Noisy::sum(grid, noise, sum, noise.error(scale), number, stream);
        let offset = (sum.value / number.at_least_one()).clamp(-radius, radius);
        let (low, high) = means(sum, number, radius);
        let error = farthest(offset, low, high).min(2.0 * radius);
        let value = (bounds.center() + offset).clamp(bounds.lower(), bounds.upper());
        Ok(Release { value, within: Within::Value(error) })
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
        let mut stream = self.key()?.stream(0);
        self.mechanism.release(values.0.iter().map(|value| (*value, 1)), &mut stream)
    }
}

impl Variance {
    /// Of values, each with the number of records that have it.
    pub(super) fn release(&self, values: impl Iterator<Item = (f64, u64)>, stream: &mut Stream) -> Result<Release, Error> {
        let Variance { bounds, noise, noise_multiplier, count } = *self;
        let radius = bounds.radius();
        // In units of the radius: x in [-1, 1], and x² - 1/2 in [-1/2, 1/2].
        let (scale, square_scale) = (noise_multiplier.get(), 0.5 * noise_multiplier.get());
        let (grid, square_grid) = (Grid::new(scale)?, Grid::new(square_scale)?);
        let (mut sum, mut squares, mut number) = (0_i128, 0_i128, 0_i128);
        for (value, records) in values.filter_map(|(value, records)| Some((bounds.hold(value)?, i128::from(records)))) {
            let x = ((value - bounds.center()) / radius).clamp(-1.0, 1.0);
            sum += i128::from(grid.toward_zero(x)) * records;
            squares += i128::from(square_grid.toward_zero(x * x - 0.5)) * records;
            number += records;
        }
        let number = Noisy::count(count, number, 25.0, stream);
        let sum = Noisy::sum(grid, noise, sum, noise.error_beyond(scale, 25.0), number, stream);
        let squares = Noisy::sum(square_grid, noise, squares, noise.error_beyond(square_scale, 25.0), number, stream);
        let n = number.at_least_one();
        let (mean, square) = ((sum.value / n).clamp(-1.0, 1.0), (squares.value / n + 0.5).clamp(0.0, 1.0));
        let variance = (square - mean * mean).clamp(0.0, 1.0);
        // One in a hundred for the mean, one in twenty-five for the rest: together one in twenty.
        let seldom = |noisy: Noisy, factor: f64| Noisy { error: noisy.error * factor, ..noisy };
        let rarer = noise.error_beyond(1.0, 100.0) / noise.error_beyond(1.0, 25.0);
        let rarer_count = count.error_beyond(100.0) / count.error_beyond(25.0);
        let means = means(seldom(sum, rarer), seldom(number, rarer_count), 1.0);
        let error = match variances(squares, sum, number, means) {
            Some((low, high)) => farthest(variance, low, high).min(1.0),
            None => 1.0,
        };
        let unit = radius * radius;
        Ok(Release { value: variance * unit, within: Within::Value(error * unit) })
    }
}

/// Variances in [0, 1] that noisy sums and a noisy count do not rule out, if the mean is between two numbers; nothing if all are possible.
///
/// # Theorem
/// (THEORY, Stated errors) With mean m and variance v of n numbers Σ(x - m)² = nv. So Q + N/2 - 2mS + m²N - vN, in noisy sums Q of x² - 1/2 and S of x and a noisy count N, is noise
/// of Q - 2m · noise of S + (1/2 + m² - v) · noise of N, and |1/2 + m² - v| ≤ 1/2 + m² because m² + v ≤ 1. Its first terms are N(v̂ + (m - S/N)²) with v̂ = Q/N + 1/2 - (S/N)².
fn variances(squares: Noisy, sum: Noisy, count: Noisy, (low, high): (f64, f64)) -> Option<(f64, f64)> {
    let n = count.value;
    if n <= count.error {
        return None;
    }
    let (mean, most) = (sum.value / n, low.abs().max(high.abs()));
    let estimate = squares.value / n + 0.5 - mean * mean;
    let noise = squares.error.hypot(2.0 * most * sum.error).hypot((0.5 + most * most) * count.error) / n;
    let apart = (mean - low).abs().max((high - mean).abs());
    Some(((estimate - noise).max(0.0), (estimate + apart * apart + noise).min(1.0)))
}

#[cfg(test)]
mod tests;
