//! Decimal numbers between public bounds: the candidates for quantiles.

use super::Bounds;

/// Multiples of a power of ten between bounds; rounder ones weigh more.
///
/// There are at most 10⁹ + 1 points. A multiple of 10ʲ steps has weight 1 + 10 + … + 10ʲ. This is as if a
/// number of digits were chosen first, and then a number with at most so many digits. Integers and short
/// decimals, where real columns have their ties, are therefore found as easily as on a grid of their own. The
/// grid depends on the bounds alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decimals {
    bounds: Bounds,
    /// The step is 10 to this power.
    exponent: i32,
    /// 10 to the absolute value of `exponent`.
    power: f64,
    /// The lowest point, as a multiple of the step.
    first: i64,
    /// The highest point, as a multiple of the step.
    last: i64,
    /// The largest power of ten, in steps, whose multiples get extra weight.
    longest: u32,
}

/// The bounds are at most 10 to this power steps apart.
const DIGITS: i32 = 9;

/// Point indices stay below 10 to this power, where every integer is a floating-point number.
const LARGEST: i32 = 15;

impl Decimals {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let digits = |number: f64| number.log10().ceil() as i32;
        let largest = bounds.lower().abs().max(bounds.upper().abs());
        let exponent = (digits(bounds.upper() - bounds.lower()) - DIGITS).max(digits(largest) - LARGEST);
        let power = format!("1e{}", exponent.abs()).parse().unwrap_or(1.0);
        let mut decimals = Self { bounds, exponent, power, first: i64::MIN, last: i64::MAX, longest: 0 };
        (decimals.first, decimals.last) = (decimals.index(bounds.lower()), decimals.index(bounds.upper()));
        decimals.longest = (decimals.last - decimals.first).max(1).ilog10();
        decimals
    }

    /// The point nearest to a number; `None` for NaN. Infinities are clamped to the bounds.
    pub(crate) fn place(self, value: f64) -> Option<i64> {
        self.bounds.hold(value).map(|value| self.index(value).clamp(self.first, self.last))
    }

    fn index(self, value: f64) -> i64 {
        let steps = if self.exponent < 0 { value * self.power } else { value / self.power };
        steps.round() as i64
    }

    /// The number at a point, clamped to the bounds.
    pub(crate) fn value(self, index: i64) -> f64 {
        // The quotient of two integers is the floating-point number nearest to the decimal.
        let value = if self.exponent < 0 { index as f64 / self.power } else { index as f64 * self.power };
        value.clamp(self.bounds.lower(), self.bounds.upper()) + 0.0
    }

    /// The lowest and the highest point.
    pub(crate) fn ends(self) -> (i64, i64) {
        (self.first, self.last)
    }

    /// The total weight of the points `from` to `to`.
    ///
    /// It is zero if `to` is just before `from`.
    pub(crate) fn mass(self, from: i64, to: i64) -> u64 {
        (self.up_to(to) - self.up_to(from - 1)).unsigned_abs()
    }

    /// The total weight of all points.
    pub(crate) fn total(self) -> u64 {
        self.mass(self.first, self.last)
    }

    /// Σ 10ʲ⌊x/10ʲ⌋: the weight of the points up to x, up to a constant.
    fn up_to(self, index: i64) -> i64 {
        let (mut multiples, mut power, mut sum) = (index, 1, index);
        for _ in 0..self.longest {
            (multiples, power) = (multiples.div_euclid(10), power * 10);
            sum += multiples * power;
        }
        sum
    }

    /// The point at position `place` of the total weight of `from` to `to`.
    pub(crate) fn point(self, from: i64, to: i64, mut place: u64) -> i64 {
        let mut power = 1_i64;
        for _ in 0..=self.longest {
            let (before, last) = ((from - 1).div_euclid(power), to.div_euclid(power));
            let (multiples, each) = ((last - before).unsigned_abs(), power.unsigned_abs());
            if place < multiples * each {
                return (before + 1 + (place / each) as i64) * power;
            }
            place -= multiples * each;
            power *= 10;
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(lower: f64, upper: f64) -> Decimals {
        Decimals::new(Bounds::new(lower, upper).unwrap())
    }

    #[test]
    fn integers_and_short_decimals_are_on_the_grid_as_they_are_written() {
        for (lower, upper) in
            [(0.0, 100.0), (-50.0, 120.5), (17.0, 90.0), (-1e6, 1e6), (0.0, 1.0), (0.123, 7.0)]
        {
            let grid = decimals(lower, upper);
            for value in [0.5, 0.25, 0.3, 1.0, 17.0, 40.0, 63.0, 99.0, -7.0, 0.1, 3.75] {
                if (lower..=upper).contains(&value) && (upper - lower < 1e6 || value.fract() == 0.0) {
                    assert_eq!(
                        grid.value(grid.place(value).unwrap()).to_bits(),
                        value.to_bits(),
                        "{value} in [{lower}, {upper}]"
                    );
                }
            }
        }
    }

    #[test]
    fn any_bounds_have_a_grid_and_any_number_a_place_on_it() {
        let tiny = f64::from_bits(1);
        for (lower, upper) in [
            (0.0, 1e-150),
            (-1e150, 1e150),
            (1e150, f64::from_bits(1e150_f64.to_bits() + 1)),
            (1e15, 1e15 + 1.0),
            (-1e-150, 1e150),
            (1.0, f64::from_bits(1.0_f64.to_bits() + 1)),
            (0.0, 9.99),
            (123.456, 123.457),
        ] {
            let Ok(bounds) = Bounds::new(lower, upper) else { continue };
            let grid = Decimals::new(bounds);
            assert!(grid.first <= grid.last && grid.last - grid.first <= 1_000_000_001, "{grid:?}");
            assert!(u128::from(grid.total()) <= crate::noise::ladder::MOST_MASS, "{grid:?}");
            let mut before = i64::MIN;
            for value in [
                f64::NEG_INFINITY,
                -1e300,
                lower,
                0.0,
                tiny,
                0.5 * lower + 0.5 * upper,
                upper,
                1e300,
                f64::INFINITY,
            ] {
                let place = grid.place(value).unwrap();
                assert!(
                    (grid.first..=grid.last).contains(&place)
                        && bounds.hold(grid.value(place)) == Some(grid.value(place))
                );
                if bounds.hold(value) == Some(value) {
                    assert!(place >= before, "{value} in [{lower}, {upper}]");
                    before = place;
                }
            }
            assert_eq!(grid.place(-0.0), grid.place(0.0));
            assert_eq!(grid.place(f64::NAN), None);
        }
    }

    #[test]
    fn every_place_of_a_mass_belongs_to_a_point_as_often_as_it_is_round() {
        let grid = Decimals { first: -250, last: 1234, longest: 3, ..decimals(-1.0, 1.0) };
        for (from, to) in [(-250, 1234), (-7, 12), (5, 5), (100, 100), (0, 0), (1, 9), (-1000, -1), (3, 2)] {
            let mut counts = std::collections::BTreeMap::new();
            for place in 0..grid.mass(from, to) {
                *counts.entry(grid.point(from, to, place)).or_insert(0) += 1;
            }
            let expected =
                |index: i64| [1, 10, 100, 1000].into_iter().filter(|power| index % power == 0).sum::<i64>();
            let all: Vec<(i64, i64)> = (from..=to).map(|index| (index, expected(index))).collect();
            assert!(counts.into_iter().eq(all), "[{from}, {to}]");
        }
    }
}
