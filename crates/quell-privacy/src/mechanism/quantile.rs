//! Quantiles and ranges, chosen by the exponential mechanism.

use super::{Bounds, Mechanism, Release, Sealed, Sensitive, Within};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{
        random::Stream,
        select::{Coefficient, Interval, Ladder},
    },
    number::brief,
    units::{Epsilon, Probability},
};

/// A number below which a given part of the values lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// What every number is held to.
    pub bounds: Bounds,
    /// Which part: 0.5 for the median.
    pub quantile: Probability,
    /// ε.
    pub epsilon: Epsilon,
}

/// Points of the grid between the bounds.
const POINTS: u64 = 1 << 32;

/// Steps of the ladder at most; beyond them all ranks count as equally far.
const STEPS: usize = 1 << 20;

impl Sealed for Quantile {}

impl Mechanism for Quantile {
    /// # Theorem
    /// [Smi11] The rank of a point moves by at most one against the wanted rank when a record comes, goes or is exchanged, so
    /// weights e^(-ε/2 · distance) make a mechanism of bounded range ε [DDR20].
    fn event(&self, _: Neighbors) -> Event {
        Event::Exponential { epsilon: self.epsilon }
    }
}

impl std::fmt::Display for Quantile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (quantile, epsilon) = (brief(self.quantile.get()), brief(self.epsilon.get()));
        write!(f, "quantile {quantile} of numbers held to {} by the exponential mechanism with epsilon {epsilon}", self.bounds)
    }
}

impl Quantile {
    fn choose(&self, positions: &[u64], stream: &mut Stream) -> Release {
        // The nearest integer to qn in integers, so that one record more moves it by at most one.
        let part = (self.quantile.get() * (1_u64 << 53) as f64) as u128;
        let wanted = ((part * positions.len() as u128 + (1 << 52)) >> 53) as u64;
        // Points t in (positions[j-1], positions[j]] have j values below them.
        let mut intervals = Vec::with_capacity(positions.len() + 1);
        let mut last = None;
        for (rank, &position) in (0..).zip(positions.iter().chain([&POINTS])) {
            let points = last.map_or(position + 1, |last| position - last);
            intervals.push(Interval { points, distance: wanted.abs_diff(rank) });
            last = Some(position);
        }
        let sensitivity = std::num::NonZero::<u64>::MIN;
        let ladder = Ladder::new(Coefficient::new(self.epsilon, sensitivity), STEPS);
        let point = ladder.choose(&intervals, stream).map_or(POINTS / 2, |(interval, place)| {
            let first = if interval == 0 { 0 } else { positions[interval - 1] + 1 };
            first + place
        });
        let part = point as f64 / POINTS as f64;
        let value = self.bounds.lower() * (1.0 - part) + self.bounds.upper() * part;
        // P[distance ≥ k] ≤ POINTS e^(-εk/2)
        let rank = 2.0 / self.epsilon.get().max(1e-300) * (20.0 * POINTS as f64).ln();
        // Beyond the ladder all ranks are alike.
        let within = if rank < STEPS as f64 { Within::Rank(rank.ceil()) } else { Within::Secret };
        Release { value: value.clamp(self.bounds.lower(), self.bounds.upper()), within }
    }

    /// Values as places on the grid, in order. What is no number is left out.
    fn positions(bounds: Bounds, values: &[f64]) -> Vec<u64> {
        let place = |value: f64| {
            let part = (value - bounds.lower()) / (bounds.upper() - bounds.lower());
            ((part * POINTS as f64) as u64).min(POINTS - 1)
        };
        let mut positions: Vec<u64> = values.iter().filter_map(|value| bounds.hold(*value)).map(place).collect();
        positions.sort_unstable();
        positions
    }
}

impl Paid<Quantile> {
    /// The quantile.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        Ok(self.mechanism.choose(&Quantile::positions(self.mechanism.bounds, &values.0), &mut stream))
    }
}

/// Two numbers between which a given part of the values lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// What every number is held to.
    pub bounds: Bounds,
    /// Part of the values that lies between.
    pub inside: Probability,
    /// ε of each of the two ends.
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
}

impl Sealed for Range {}

impl Mechanism for Range {
    /// Two quantiles.
    fn event(&self, neighbors: Neighbors) -> Event {
        Event::Composed(self.ends().iter().map(|end| end.event(neighbors)).collect())
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (inside, epsilon) = (brief(self.inside.get()), brief(self.epsilon.get()));
        write!(f, "range of {inside} of numbers held to {} by two quantiles with epsilon {epsilon} each", self.bounds)
    }
}

impl Paid<Range> {
    /// Both ends, the smaller first.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<[Release; 2], Error> {
        let mut stream = self.key()?.stream(0);
        let positions = Quantile::positions(self.mechanism.bounds, &values.0);
        let mut ends = self.mechanism.ends().map(|end| end.choose(&positions, &mut stream));
        ends.sort_by(|a, b| a.value.total_cmp(&b.value));
        Ok(ends)
    }
}
