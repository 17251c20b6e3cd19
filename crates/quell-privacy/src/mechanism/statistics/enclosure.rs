//! Bounds for a column with unknown bounds: two round numbers that enclose nearly all values.

use super::Bounds;
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Sealed, Sensitive},
    noise::{
        ladder::{Candidates, Ladder, RECORD},
        random::Stream,
    },
    number::format_brief,
    units::Epsilon,
};

/// Two round numbers that enclose nearly all values of a column, by the exponential mechanism.
///
/// The loss of an interval is one record for each value outside it, plus a thousandth of all records for each
/// doubling of its width. Halving the width is thus worth losing a thousandth of the values. So bounds get
/// sharper with ε, and a few far values do not widen them. Among intervals with equal loss, rounder ones are
/// likelier. Ends with two or three digits are chosen where ε is large enough to distinguish them.
///
/// With 1,000/ε or more values of an ordinary column, no interval of the list has a loss smaller by more than
/// 8/ε records, with probability 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enclosure {
    /// The outermost interval. Every number is clamped to it.
    pub within: Bounds,
    /// ε, at least 10⁻⁷.
    pub epsilon: Epsilon,
}

const LEAST_EPSILON: f64 = 1e-7;

/// Bound on how far ln T of a ladder deviates from a straight line.
///
/// It is 2⁻³⁸ (THEORY, Enclosures).
const STRAY: f64 = 1.0 / (1_u64 << 38) as f64;

/// Most decades of width that are distinguished.
///
/// This gives the smallest unit, where the bounds allow it.
const DECADES: i32 = 15;
const SMALLEST: i32 = -2;

/// What doubling the width costs, as a share of all records.
const DOUBLING: f64 = 0.001;

/// An interval, given by two indices into a list of ends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    low: usize,
    high: usize,
    /// Prior weight: larger for rounder ends.
    mass: u64,
}

/// The public list of intervals that may be chosen.
#[derive(Debug, Default)]
struct Intervals {
    ends: Vec<f64>,
    list: Vec<Interval>,
}

impl Intervals {
    fn bounds(&self, interval: &Interval) -> [f64; 2] {
        [self.ends[interval.low], self.ends[interval.high]]
    }
}

/// Allowed widths, in units, of an interval whose ends have three digits.
const WIDTHS: [i32; 18] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100];

impl Sealed for Enclosure {}

impl Mechanism for Enclosure {
    /// # Theorem
    /// (THEORY, Enclosures) Adding or removing a value changes the number outside by 0 or 1, and the cost of
    /// the width by a public number q in [0, Q]. Replacing a value changes the number outside by -1, 0 or 1.
    /// Widths, q and masses are public. So weights mass · e^(-γ(outside + records · q + price)) with γ = ε/(1
    /// + Q) or ε/2, less what rounding takes, make a mechanism of bounded range ε [DDR20].
    fn event(&self, _: Neighbors) -> Event {
        Event::Exponential { epsilon: self.epsilon }
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        if self.epsilon.get() >= LEAST_EPSILON {
            return Ok(());
        }
        Err(Error::OutOfRange {
            what: "epsilon of an enclosure",
            value: self.epsilon.get(),
            range: "[1e-7, inf)",
        })
    }
}

impl std::fmt::Display for Enclosure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "round bounds of numbers clamped to {} by the exponential mechanism with epsilon {}",
            self.within,
            format_brief(self.epsilon.get())
        )
    }
}

impl Enclosure {
    /// γ: the weight of one value outside, in the exponent.
    fn gamma(&self, neighbors: Neighbors) -> f64 {
        let left = self.epsilon.get() - 2.0 * STRAY;
        // Q is below 0.06, so a value that becomes missing changes less than a value that is replaced. A
        // rounded logarithm may fall by one part of a record although the width grows.
        let most = (self.toll(self.within.upper() - self.within.lower()) + 1) as f64 / RECORD as f64;
        let reach = if neighbors == Neighbors::Replace { 2.0 } else { 1.0 + most };
        left / reach * (1.0 - 1e-15)
    }

    /// q: what each record costs because of the width, in parts of a record.
    ///
    /// It grows with the width, except for rounding.
    fn toll(&self, width: f64) -> u128 {
        (DOUBLING * self.ln_width(width) / std::f64::consts::LN_2 * RECORD as f64) as u128
    }

    /// ln of a width in smallest units; zero for narrower widths.
    fn ln_width(&self, width: f64) -> f64 {
        (width / 10_f64.powi(self.units().start)).ln().max(0.0)
    }

    /// What a factor e of width costs in the exponent.
    ///
    /// It does not depend on the number of records. The constants were chosen by trial, for tables with so
    /// few rows that a thousandth of them says nothing. With a larger slope, a few records are treated like
    /// none; with a smaller slope, intervals are far too wide. Public, like ε. With 569 records and 31 columns at
    /// ε = 1, one in seventeen intervals is more than four times too wide, and one in seven excludes more than one
    /// in fifty records (docs/evidence.md).
    fn slope(gamma: f64) -> f64 {
        (1.75 * (gamma / 0.03).cbrt()).clamp(1.25, 6.0)
    }

    /// The units whose multiples are ends, as powers of ten.
    fn units(&self) -> std::ops::Range<i32> {
        let largest = self.within.lower().abs().max(self.within.upper().abs());
        let top = largest.log10().ceil() as i32;
        let lowest = (top - 5).min(SMALLEST).max(top - DECADES);
        lowest..top
    }

    /// All intervals that may be chosen.
    fn intervals(&self) -> Intervals {
        let (low, high) = (self.within.lower(), self.within.upper());
        let mut intervals =
            Intervals { ends: vec![low, high], list: vec![Interval { low: 0, high: 1, mass: 1 }] };
        for unit in self.units() {
            // For each unit, multiples up to this number are ends.
            const MOST: i32 = 1000;
            let first = intervals.ends.len();
            let decimal = |multiple: i32| format!("{multiple}e{unit}").parse::<f64>().unwrap_or(f64::NAN);
            intervals.ends.extend((-MOST..=MOST).map(decimal));
            let place = |multiple: i32| first + (multiple + MOST).unsigned_abs() as usize;
            let mut add = |one: i32, two: i32, mass: u64| {
                let found = Interval { low: place(one), high: place(two), mass };
                let [from, to] = intervals.bounds(&found);
                if from >= low && to <= high && Bounds::new(from, to).is_ok() {
                    intervals.list.push(found);
                }
            };
            // Ends with one or two digits. A multiple of ten units has one digit.
            for low in -100..100 {
                for high in low + 1..=100 {
                    let is_short = low % 10 == 0 && high % 10 == 0;
                    add(
                        low,
                        high,
                        if is_short { one_digit(low / 10, high / 10) } else { two_digits(low, high) },
                    );
                }
            }
            // Away from zero, ends with three digits. Ends with fewer digits were added above.
            let half = |end: i32| if end % 5 == 0 { 2 } else { 1 };
            for low in -MOST..MOST {
                for high in WIDTHS.map(|width| low + width) {
                    if (low < -100 || high > 100) && high <= MOST && (low % 10 != 0 || high % 10 != 0) {
                        let shape = if low >= 0 || high <= 0 { 32 } else { 1 };
                        add(low, high, half(low) * half(high) * shape);
                    }
                }
            }
        }
        intervals
    }

    /// The mass and the distance of each interval, minus the smallest distance.
    ///
    /// The distance counts values outside and the cost of the width.
    fn candidates(&self, gamma: f64, intervals: &Intervals, sorted: &[(f64, u64)]) -> Vec<Candidates> {
        let records = sorted.last().map_or(0, |(_, up_to)| *up_to);
        let up_to = |place: usize| if place == 0 { 0 } else { sorted[place - 1].1 };
        let below: Vec<u64> = intervals
            .ends
            .iter()
            .map(|end| up_to(sorted.partition_point(|(value, _)| *value < *end)))
            .collect();
        let not_above: Vec<u64> = intervals
            .ends
            .iter()
            .map(|end| up_to(sorted.partition_point(|(value, _)| *value <= *end)))
            .collect();
        let slope = Self::slope(gamma);
        let distance = |interval: &Interval| {
            let inside = not_above[interval.high] - below[interval.low];
            let [low, high] = intervals.bounds(interval);
            let price = slope * self.ln_width(high - low) / gamma;
            u128::from(records - inside) * RECORD
                + u128::from(records) * self.toll(high - low)
                + (price * RECORD as f64) as u128
        };
        let distances: Vec<u128> = intervals.list.iter().map(distance).collect();
        let least = distances.iter().min().copied().unwrap_or(0);
        let candidate = |(interval, distance): (&Interval, u128)| Candidates {
            mass: interval.mass,
            distance: distance - least,
        };
        intervals.list.iter().zip(distances).map(candidate).collect()
    }

    /// Distinct values in order, clamped to `within`, with the number of records up to each.
    ///
    /// NaN is left out.
    fn sorted(&self, values: &[f64]) -> Vec<(f64, u64)> {
        let mut held: Vec<f64> =
            values.iter().filter_map(|value| self.within.hold(*value)).map(|value| value + 0.0).collect();
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
    intervals: Intervals,
    candidates: Vec<Candidates>,
}

impl Weighed {
    fn choose(&self, stream: &mut Stream) -> Option<[f64; 2]> {
        let chosen = self.ladder.choose(&self.candidates.iter().copied(), stream);
        chosen.map(|(number, _)| self.intervals.bounds(&self.intervals.list[number]))
    }
}

/// Prior weight of an interval whose ends have one digit.
///
/// An interval that ends at ten occurs again with the next unit.
fn one_digit(low: i32, high: i32) -> u64 {
    let round = |end: i32| match end.abs() {
        0 | 1 | 10 => 4,
        2 | 5 => 3,
        _ => 1,
    };
    // Most columns begin at zero, and few have values on both sides of it.
    let shape = match (low, high) {
        (0, _) => 1024,
        (_, 0) => 64,
        _ if low == -high => 64,
        _ if low > 0 || high < 0 => 64,
        _ => 4,
    };
    48 * round(low) * round(high) * shape
}

/// Prior weight of an interval whose ends have two digits.
///
/// All of these together weigh about as much as all intervals with one digit.
fn two_digits(low: i32, high: i32) -> u64 {
    let round = |end: i32| if end % 5 == 0 { 3 } else { 1 };
    let shape = match (low, high) {
        (0, _) => 2720,
        (_, 0) => 128,
        _ if low > 0 || high < 0 => 256,
        _ => 4,
    };
    round(low) * round(high) * shape
}

impl Paid<Enclosure> {
    /// Returns two round numbers as bounds.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Bounds, Error> {
        let mut stream = self.key()?.stream(0);
        let enclosure = self.mechanism;
        let chosen = enclosure.weigh(self.neighbors, &enclosure.sorted(&values.0)).choose(&mut stream);
        Ok(chosen.and_then(|[low, high]| Bounds::new(low, high).ok()).unwrap_or(enclosure.within))
    }
}

#[cfg(test)]
mod tests;
