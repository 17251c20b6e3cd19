//! Quantiles and ranges, chosen by the exponential mechanism.

use super::{Bounds, decimals::Decimals};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Release, Sealed, Sensitive, Within},
    noise::{
        ladder::{Candidates, Ladder, RECORD},
        random::Stream,
    },
    number::format_brief,
    units::{Epsilon, Probability},
};

/// A number below which a given part of the values lies.
///
/// The number is a decimal between the bounds, and values are rounded to such decimals first. Rounding moves
/// a value by less than 10⁻⁸ of the distance between the bounds, or in the fifteenth digit of the larger
/// bound. Records without a number are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The bounds to which every number is clamped.
    pub bounds: Bounds,
    /// The part of the values below the quantile: 0.5 for the median.
    pub quantile: Probability,
    /// ε, at least 10⁻¹¹.
    pub epsilon: Epsilon,
}

/// The smallest ε. A smaller one tells nothing about any number of records.
const LEAST_EPSILON: f64 = 1e-11;

impl Sealed for Quantile {}

impl Mechanism for Quantile {
    /// # Theorem
    /// (THEORY, Quantiles) [Smi11] with credit for ties. Between neighbours, distances of candidates from the
    /// wanted rank change by -m to m, where `reach` is 2m, or by zero or one, where `reach` is 1. Weights
    /// e^(-γ distance) with γ = ε/`reach` make a mechanism of bounded range ε [DDR20].
    fn event(&self, _: Neighbors) -> Event {
        Event::Exponential { epsilon: self.epsilon }
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        check(self.epsilon)
    }
}

pub(super) fn check(epsilon: Epsilon) -> Result<(), Error> {
    if epsilon.get() >= LEAST_EPSILON {
        return Ok(());
    }
    Err(Error::OutOfRange { what: "epsilon of a quantile", value: epsilon.get(), range: "[1e-11, inf)" })
}

impl std::fmt::Display for Quantile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (quantile, epsilon) = (format_brief(self.quantile.get()), format_brief(self.epsilon.get()));
        write!(
            f,
            "quantile {quantile} of numbers clamped to {} by the exponential mechanism with epsilon {epsilon}",
            self.bounds
        )
    }
}

/// Distinct values on the grid in order, with the number of records up to each.
pub(super) type Runs = [(i64, u64)];

impl Quantile {
    /// q in parts of a record, so that the wanted rank is an integer.
    fn part(&self) -> u128 {
        (self.quantile.get() * RECORD as f64).round() as u128
    }

    /// How much the changes of two distances can differ between neighbours, in records.
    ///
    /// # Theorem
    /// (THEORY, Quantiles) 1 for the lowest and the highest number. Otherwise 2 max(q, 1 - q) if a record is
    /// added or removed, or gains or loses its number, and 2 if its number is replaced.
    fn reach(&self, neighbors: Neighbors) -> f64 {
        let part = self.part();
        if part == 0 || part == RECORD {
            return 1.0;
        }
        match neighbors {
            Neighbors::AddRemove => 2.0 * (part.max(RECORD - part) as f64 / RECORD as f64),
            Neighbors::Replace => 2.0,
        }
    }

    /// The weights of candidates; the quotient is rounded down.
    fn ladder(&self, neighbors: Neighbors) -> Ladder {
        Ladder::new(self.epsilon.get() / self.reach(neighbors) * (1.0 - 1e-15))
    }

    /// The points between two values, or at one value, for candidate `number`.
    ///
    /// Returns the first point, the last point, the number of records below them, and the number of records
    /// up to them.
    fn points(grid: Decimals, runs: &Runs, number: usize) -> (i64, i64, u64, u64) {
        let ((first, last), run) = (grid.ends(), number / 2);
        let (before, below) = if run == 0 { (first - 1, 0) } else { runs[run - 1] };
        match runs.get(run) {
            Some(&(value, up_to)) if number % 2 == 1 => (value, value, below, up_to),
            Some(&(value, _)) => (before + 1, value - 1, below, below),
            None => (before + 1, last, below, below),
        }
    }

    /// The distance of a rank from the wanted rank, in parts of a record.
    fn distance(&self, records: u64, below: u64, up_to: u64) -> u128 {
        let wanted = self.part() * u128::from(records);
        let (below, up_to) = (u128::from(below) * RECORD, u128::from(up_to) * RECORD);
        below.saturating_sub(wanted).max(wanted.saturating_sub(up_to))
    }

    /// Chooses the quantile. One in `one_in` answers is farther off than stated.
    pub(super) fn choose(
        &self,
        neighbors: Neighbors,
        runs: &Runs,
        one_in: f64,
        stream: &mut Stream,
    ) -> Release {
        let (grid, ladder) = (Decimals::new(self.bounds), self.ladder(neighbors));
        let records = runs.last().map_or(0, |(_, records)| *records);
        let candidates = (0..=2 * runs.len()).map(|number| {
            let (from, to, below, up_to) = Self::points(grid, runs, number);
            Candidates { mass: grid.mass(from, to), distance: self.distance(records, below, up_to) }
        });
        let index = ladder.choose(&candidates, stream).map_or(grid.ends().0, |(number, place)| {
            let (from, to, ..) = Self::points(grid, runs, number);
            grid.point(from, to, place)
        });
        // Some point has distance 0 and mass at least one: P[distance > k] ≤ total · e^(-γk), up to a part in
        // 10⁹.
        let records = ((one_in * grid.total() as f64).ln() / ladder.gamma() * (1.0 + 1e-9)).ceil();
        Release { value: grid.value(index), within: Within::Rank(records) }
    }

    /// Values on the grid of these bounds. NaN is left out.
    pub(super) fn runs(bounds: Bounds, values: &[f64]) -> Vec<(i64, u64)> {
        let grid = Decimals::new(bounds);
        let mut places: Vec<i64> = values.iter().filter_map(|value| grid.place(*value)).collect();
        places.sort_unstable();
        let mut runs: Vec<(i64, u64)> = Vec::new();
        for (place, up_to) in places.into_iter().zip(1..) {
            match runs.last_mut() {
                Some(last) if last.0 == place => last.1 = up_to,
                _ => runs.push((place, up_to)),
            }
        }
        runs
    }
}

impl Paid<Quantile> {
    /// Returns the quantile.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        let runs = Quantile::runs(self.mechanism.bounds, &values.0);
        Ok(self.mechanism.choose(self.neighbors, &runs, 20.0, &mut stream))
    }
}

/// Two numbers between which a given part of the values lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The bounds to which every number is clamped.
    pub bounds: Bounds,
    /// Part of the values that lies between the two numbers.
    pub inside: Probability,
    /// ε of each of the two ends, at least 10⁻¹¹.
    pub epsilon: Epsilon,
}

impl Range {
    fn ends(&self) -> [Quantile; 2] {
        let outside = 0.5 * (1.0 - self.inside.get());
        // Both are in [0, 1].
        let at = |quantile: f64| Probability::new(quantile.clamp(0.0, 1.0)).ok();
        let zero = Quantile { bounds: self.bounds, quantile: self.inside, epsilon: self.epsilon };
        [outside, 1.0 - outside].map(|q| Quantile { quantile: at(q).unwrap_or(self.inside), ..zero })
    }

    /// Chooses both ends. Both are within their stated errors with probability 95 %.
    ///
    /// Each end fails in one case of forty. Two ends that are out of order are within each other's error.
    fn choose(&self, neighbors: Neighbors, runs: &Runs, stream: &mut Stream) -> [Release; 2] {
        let mut ends = self.ends().map(|end| end.choose(neighbors, runs, 40.0, stream));
        ends.sort_by(|a, b| a.value.total_cmp(&b.value));
        ends
    }
}

impl Sealed for Range {}

impl Mechanism for Range {
    /// The event of two quantiles.
    fn event(&self, neighbors: Neighbors) -> Event {
        Event::Composed(self.ends().iter().map(|end| end.event(neighbors)).collect())
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        check(self.epsilon)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (inside, epsilon) = (format_brief(self.inside.get()), format_brief(self.epsilon.get()));
        write!(
            f,
            "range that contains {inside} of the numbers clamped to {}, by two quantiles with epsilon {epsilon} each",
            self.bounds
        )
    }
}

impl Paid<Range> {
    /// Returns both ends, the smaller first.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<[Release; 2], Error> {
        let mut stream = self.key()?.stream(0);
        let runs = Quantile::runs(self.mechanism.bounds, &values.0);
        Ok(self.mechanism.choose(self.neighbors, &runs, &mut stream))
    }
}

#[cfg(test)]
mod tests;
