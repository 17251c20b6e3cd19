//! Means and variances of numbers between public bounds, from noisy sums and a noisy count.

use super::{Bounds, Price, grid::Grid};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{IntegerNoise, Mechanism, Noise, Release, Sealed, Sensitive, Within},
    noise::{random::Stream, rounded::DISTANCE},
    number::format_brief,
    units::NoiseMultiplier,
};

/// A noisy sum or count with its stated error.
#[derive(Clone, Copy, Debug)]
struct Noisy {
    value: f64,
    error: f64,
}

impl Noisy {
    /// Releases a sum on a grid, with its error.
    ///
    /// The error covers the noise and one step per rounded record. The noise exceeds `error` as rarely as the
    /// caller states.
    fn sum(grid: Grid, noise: Noise, sum: i128, error: f64, count: Noisy, stream: &mut Stream) -> Self {
        let rounded = (count.value + count.error).max(0.0) * grid.value(1);
        Self { value: grid.release(noise, sum, stream), error: error + rounded }
    }

    fn count(noise: IntegerNoise, count: i128, one_in: f64, stream: &mut Stream) -> Self {
        Self { value: (count + i128::from(noise.draw(stream))) as f64, error: noise.error_beyond(one_in) }
    }

    /// The noisy count, raised to at least one so that it can be a divisor.
    fn at_least_one(self) -> f64 {
        self.value.max(1.0)
    }
}

/// The means in [-radius, radius] that a noisy sum and count allow.
///
/// # Theorem
/// (THEORY, Stated errors) [Fie54] The sum is m times the count, so noisy sum - m · noisy count is a sum of
/// two independent noises, whatever the count is. That sum exceeds the root of the sum of their squared
/// errors no more often than either noise exceeds its own error. So the set of all m for which it does not
/// contains the mean as often. The set is an interval if the count exceeds its error, and can be anything
/// otherwise.
fn means(sum: Noisy, count: Noisy, radius: f64) -> (f64, f64) {
    let Noisy { value: n, error: e } = count;
    if n <= e {
        return (-radius, radius);
    }
    let squares = (n - e) * (n + e);
    let half = (sum.value * e).hypot(sum.error * squares.sqrt());
    (((sum.value * n - half) / squares).max(-radius), ((sum.value * n + half) / squares).min(radius))
}

/// The largest distance of a released number from a number in [low, high].
///
/// The result is at least half the width of that interval.
fn farthest(value: f64, low: f64, high: f64) -> f64 {
    (value - low).max(high - value).max((high - low).abs() / 2.0)
}

/// The mean of numbers clamped to bounds, as a noisy sum over a noisy count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The bounds to which every number is clamped.
    pub bounds: Bounds,
    /// Noise on the sum of differences from the middle of the bounds …
    pub noise: Noise,
    /// … and its scale divided by half the distance between the bounds.
    pub noise_multiplier: NoiseMultiplier,
    /// Noise on the count.
    pub count: IntegerNoise,
}

impl Mean {
    /// A mean of numbers clamped to these bounds, at this price.
    ///
    /// Half of the price is for the sum and half for the count.
    pub fn for_epsilon(bounds: Bounds, price: impl Into<Price>) -> Result<Self, Error> {
        let half = price.into().divided_by(2)?;
        Ok(Self {
            bounds,
            noise: half.noise(),
            noise_multiplier: half.noise_multiplier()?,
            count: half.integer_noise(1)?,
        })
    }
}

impl Sealed for Mean {}

impl Mechanism for Mean {
    /// The event of a sum and a count.
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
            "mean of numbers clamped to {}: sum with {} noise multiplier {}, count with {}",
            self.bounds,
            self.noise,
            format_brief(self.noise_multiplier.get()),
            self.count
        )
    }
}

impl Paid<Mean> {
    /// Returns the mean, clamped to the bounds.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        self.mechanism.release(values.0.iter().map(|value| (*value, 1)), &mut stream)
    }
}

impl Mean {
    /// Releases the mean of values, each paired with the number of records that have it.
    pub(super) fn release(
        &self,
        values: impl Iterator<Item = (f64, u64)>,
        stream: &mut Stream,
    ) -> Result<Release, Error> {
        let Mean { bounds, noise, noise_multiplier, count } = *self;
        let (radius, scale) = (bounds.radius(), noise_multiplier.get() * bounds.radius());
        let grid = Grid::new(scale)?;
        let (sum, number) = self.totals(grid, values);
        let number = Noisy::count(count, number, 20.0, stream);
        let sum = Noisy::sum(grid, noise, sum, noise.error(scale), number, stream);
        let offset = (sum.value / number.at_least_one()).clamp(-radius, radius);
        let (low, high) = means(sum, number, radius);
        let error = farthest(offset, low, high).min(2.0 * radius);
        let value = (bounds.center() + offset).clamp(bounds.lower(), bounds.upper());
        Ok(Release { value, within: Within::Value(error) })
    }

    /// The sum of differences from the middle of the bounds, on a grid, and the number of records with a value.
    pub(super) fn totals(&self, grid: Grid, values: impl Iterator<Item = (f64, u64)>) -> (i128, i128) {
        let (bounds, radius) = (self.bounds, self.bounds.radius());
        let (mut sum, mut number) = (0_i128, 0_i128);
        for (value, records) in
            values.filter_map(|(value, records)| Some((bounds.hold(value)?, i128::from(records))))
        {
            sum += i128::from(grid.toward_zero((value - bounds.center()).clamp(-radius, radius))) * records;
            number += records;
        }
        (sum, number)
    }
}

/// The variance of numbers clamped to bounds, from noisy sums and a noisy count.
///
/// The sums are of differences from the middle of the bounds and of their squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variance {
    /// The bounds to which every number is clamped.
    pub bounds: Bounds,
    /// Noise on both sums …
    pub noise: Noise,
    /// … and its scale divided by the largest contribution of a record to each sum.
    pub noise_multiplier: NoiseMultiplier,
    /// Noise on the count.
    pub count: IntegerNoise,
}

impl Variance {
    /// A variance of numbers clamped to these bounds, at this price.
    ///
    /// A third of the price is for each sum and a third for the count.
    pub fn for_epsilon(bounds: Bounds, price: impl Into<Price>) -> Result<Self, Error> {
        let third = price.into().divided_by(3)?;
        Ok(Self {
            bounds,
            noise: third.noise(),
            noise_multiplier: third.noise_multiplier()?,
            count: third.integer_noise(1)?,
        })
    }
}

impl Sealed for Variance {}

impl Mechanism for Variance {
    /// The event of two sums and a count.
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
            "variance of numbers clamped to {}: sums with {} noise multiplier {}, count with {}",
            self.bounds,
            self.noise,
            format_brief(self.noise_multiplier.get()),
            self.count
        )
    }
}

impl Paid<Variance> {
    /// Returns the variance, between zero and the largest that the bounds allow.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        self.mechanism.release(values.0.iter().map(|value| (*value, 1)), &mut stream)
    }
}

impl Variance {
    /// Releases the variance of values, each paired with the number of records that have it.
    pub(super) fn release(
        &self,
        values: impl Iterator<Item = (f64, u64)>,
        stream: &mut Stream,
    ) -> Result<Release, Error> {
        let Variance { bounds, noise, noise_multiplier, count } = *self;
        let radius = bounds.radius();
        // In units of the radius: x in [-1, 1], and x² - 1/2 in [-1/2, 1/2].
        let (scale, square_scale) = (noise_multiplier.get(), 0.5 * noise_multiplier.get());
        let (grid, square_grid) = (Grid::new(scale)?, Grid::new(square_scale)?);
        let (mut sum, mut squares, mut number) = (0_i128, 0_i128, 0_i128);
        for (value, records) in
            values.filter_map(|(value, records)| Some((bounds.hold(value)?, i128::from(records))))
        {
            let x = ((value - bounds.center()) / radius).clamp(-1.0, 1.0);
            sum += i128::from(grid.toward_zero(x)) * records;
            squares += i128::from(square_grid.toward_zero(x * x - 0.5)) * records;
            number += records;
        }
        let number = Noisy::count(count, number, 25.0, stream);
        let sum = Noisy::sum(grid, noise, sum, noise.error_beyond(scale, 25.0), number, stream);
        let squares =
            Noisy::sum(square_grid, noise, squares, noise.error_beyond(square_scale, 25.0), number, stream);
        let n = number.at_least_one();
        let (mean, square) = ((sum.value / n).clamp(-1.0, 1.0), (squares.value / n + 0.5).clamp(0.0, 1.0));
        let variance = (square - mean * mean).clamp(0.0, 1.0);
        // The bound on the mean fails in one case of a hundred, the rest in one of twenty-five: together in
        // one of twenty.
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

/// The variances in [0, 1] that noisy sums and a noisy count allow.
///
/// The mean is assumed to lie in [low, high]. `None` means that all variances are possible.
///
/// # Theorem
/// (THEORY, Stated errors) With mean m and variance v of n numbers, Σ(x - m)² = nv. Let Q be the noisy sum of
/// x² - 1/2, S the noisy sum of x and N the noisy count. Then Q + N/2 - 2mS + m²N - vN is noise of Q - 2m ·
/// noise of S + (1/2 + m² - v) · noise of N, and |1/2 + m² - v| ≤ 1/2 + m² because m² + v ≤ 1. The terms
/// before -vN are N(v̂ + (m - S/N)²) with v̂ = Q/N + 1/2 - (S/N)².
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
