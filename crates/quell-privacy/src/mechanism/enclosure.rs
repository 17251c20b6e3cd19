//! Bounds for a column of which nobody knows any: two round numbers between which nearly all values lie.

use super::{Bounds, Mechanism, Sealed, Sensitive};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{
        ladder::{Candidates, Ladder, RECORD},
        random::Stream,
    },
    number::brief,
    units::Epsilon,
};

/// Two round numbers between which nearly all values of a column lie, chosen by the exponential mechanism.
///
/// Each interval is paid for by the values outside it and by its width: a narrower interval is taken if it leaves out few values. Of intervals that do
/// equally well, rounder ones are likelier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enclosure {
    /// Where numbers are looked for; what every number is held to.
    pub within: Bounds,
    /// ε, at least 10⁻⁷.
    pub epsilon: Epsilon,
}

const LEAST_EPSILON: f64 = 1e-7;

/// ln T of a ladder strays from a straight line by less than this: 2⁻³⁸ (THEORY, Enclosures).
const STRAY: f64 = 1.0 / (1_u64 << 38) as f64;

/// Decades of width at most that are told apart, and the smallest unit where the bounds leave room for it.
const DECADES: i32 = 11;
const SMALLEST: i32 = -2;

/// An interval that may be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    low: f64,
    high: f64,
    /// The rounder, the more.
    mass: u64,
}

impl Sealed for Enclosure {}

impl Mechanism for Enclosure {
    /// # Theorem
    /// (THEORY, Enclosures) A value that comes or goes changes the number outside by 0 or 1, one that is exchanged by -1, 0 or 1. Widths and masses are public. So
    /// weights mass · e^(-γ(outside + width's price)) with γ = ε or ε/2, less what rounding takes, make a mechanism of bounded range ε [DDR20].
    fn event(&self, _: Neighbors) -> Event {
        Event::Exponential { epsilon: self.epsilon }
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        if self.epsilon.get() >= LEAST_EPSILON {
            return Ok(());
        }
        Err(Error::OutOfRange { what: "epsilon of an enclosure", value: self.epsilon.get(), range: "[1e-7, inf)" })
    }
}

impl std::fmt::Display for Enclosure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "round bounds of numbers held to {} by the exponential mechanism with epsilon {}",
            self.within,
            brief(self.epsilon.get())
        )
    }
}

impl Enclosure {
    /// What a value outside counts, in the exponent.
    fn gamma(&self, neighbors: Neighbors) -> f64 {
        let left = self.epsilon.get() - 2.0 * STRAY;
        let reach = if neighbors == Neighbors::Replace { 2.0 } else { 1.0 };
        left / reach * (1.0 - 1e-15)
    }

    /// What a factor e of width counts, in the exponent.
    ///
    /// A choice by trial, on tables of 500 to 50,000 rows: more, and few records are taken for none; less, and intervals are far too wide. Public, like ε.
    fn slope(gamma: f64) -> f64 {
        (1.25 * (gamma / 0.03).cbrt()).clamp(1.25, 6.0)
    }

    /// The units of which ends are multiples, as powers of ten.
    fn units(&self) -> std::ops::Range<i32> {
        let largest = self.within.lower().abs().max(self.within.upper().abs());
        let top = largest.log10().ceil() as i32;
        let lowest = (top - 5).min(SMALLEST).max(top - DECADES);
        lowest..top
    }

    /// All intervals that may be chosen: a public list.
    fn intervals(&self) -> Vec<Interval> {
        let whole = Interval { low: self.within.lower(), high: self.within.upper(), mass: 1 };
        let mut intervals = vec![whole];
        let units = self.units();
        for unit in units.clone() {
            let decimal = |multiple: i32| format!("{multiple}e{unit}").parse::<f64>().unwrap_or(f64::NAN);
            let mut add = |low: i32, high: i32, mass: u64| {
                let (low, high) = (decimal(low), decimal(high));
                if low >= whole.low && high <= whole.high && Bounds::new(low, high).is_ok() {
                    intervals.push(Interval { low, high, mass });
                }
            };
            for low in -10..10 {
                for high in low + 1..=10 {
                    // A multiple of ten units is one of the next unit.
                    if low % 10 != 0 || high % 10 != 0 || unit + 1 == units.end {
                        add(low, high, 3 * round(low) * round(high) * shape(low, high));
                    }
                }
            }
            // Away from zero, with one digit more.
            for low in -100..100_i32 {
                for high in [1, 2, 3, 4, 5, 6, 8, 10].map(|width| low + width) {
                    if (low < -10 || high > 10) && high <= 100 {
                        let half = |end: i32| if end % 5 == 0 { 2 } else { 1 };
                        add(low, high, half(low) * half(high));
                    }
                }
            }
        }
        intervals
    }

    /// Intervals with mass and distance, less the smallest distance: values outside, and the price of the width.
    fn candidates(&self, gamma: f64, intervals: &[Interval], sorted: &[(f64, u64)]) -> Vec<Candidates> {
        let records = sorted.last().map_or(0, |(_, up_to)| *up_to);
        let up_to = |place: usize| if place == 0 { 0 } else { sorted[place - 1].1 };
        let (slope, smallest) = (Self::slope(gamma), 10_f64.powi(self.units().start));
        let distance = |interval: &Interval| {
            let below = up_to(sorted.partition_point(|(value, _)| *value < interval.low));
            let inside = up_to(sorted.partition_point(|(value, _)| *value <= interval.high)) - below;
            let price = slope * ((interval.high - interval.low) / smallest).ln().max(0.0) / gamma;
            u128::from(records - inside) * RECORD + (price * RECORD as f64) as u128
        };
        let distances: Vec<u128> = intervals.iter().map(distance).collect();
        let least = distances.iter().min().copied().unwrap_or(0);
        let candidate = |(interval, distance): (&Interval, u128)| Candidates { mass: interval.mass, distance: distance - least };
        intervals.iter().zip(distances).map(candidate).collect()
    }

    /// Values held to where they are looked for, each once and in order, with the number of records up to it. What is no number is left out.
    fn sorted(&self, values: &[f64]) -> Vec<(f64, u64)> {
        let mut held: Vec<f64> = values.iter().filter_map(|value| self.within.hold(*value)).map(|value| value + 0.0).collect();
        held.sort_unstable_by(f64::total_cmp);
        let mut sorted: Vec<(f64, u64)> = Vec::new();
        for (value, up_to) in held.into_iter().zip(1..) {
            match sorted.last_mut() {
                Some(last) if last.0.to_bits() == value.to_bits() => last.1 = up_to,
                _ => sorted.push((value, up_to)),
            }
        }
        sorted
    }

    fn weigh(&self, neighbors: Neighbors, sorted: &[(f64, u64)]) -> Weighed {
        let ladder = Ladder::new(self.gamma(neighbors));
        let intervals = self.intervals();
        let candidates = self.candidates(ladder.gamma(), &intervals, sorted);
        Weighed { ladder, intervals, candidates }
    }
}

/// Intervals with their weights.
struct Weighed {
    ladder: Ladder,
    intervals: Vec<Interval>,
    candidates: Vec<Candidates>,
}

impl Weighed {
    fn choose(&self, stream: &mut Stream) -> Option<Interval> {
        self.ladder.choose(&self.candidates.iter().copied(), stream).map(|(number, _)| self.intervals[number])
    }
}

/// How much likelier an end is because it is round.
fn round(multiple: i32) -> u64 {
    match multiple.abs() {
        0 | 1 | 10 => 4,
        2 | 5 => 3,
        _ => 1,
    }
}

/// How much likelier an interval is because of where zero is in it: most columns begin there, and few are on both sides of it.
fn shape(low: i32, high: i32) -> u64 {
    match (low, high) {
        (0, _) => 32,
        (_, 0) => 8,
        _ if low == -high => 6,
        _ if low > 0 || high < 0 => 2,
        _ => 1,
    }
}

impl Paid<Enclosure> {
    /// Two round numbers.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Bounds, Error> {
        let mut stream = self.key()?.stream(0);
        let enclosure = self.mechanism;
        let chosen = enclosure.weigh(self.neighbors, &enclosure.sorted(&values.0)).choose(&mut stream);
        Ok(chosen.and_then(|interval| Bounds::new(interval.low, interval.high).ok()).unwrap_or(enclosure.within))
    }
}

#[cfg(test)]
mod tests;
