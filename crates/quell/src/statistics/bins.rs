//! Public bins of numbers: a number is in exactly one of them.

use quell_privacy::mechanism::Bounds;

use crate::Error;

/// Bins of numbers, given by their edges. Edges are public: do not derive them from the data.
///
/// A bin has its lower edge and not its upper one; the last bin has both. Bins between bounds take every number:
/// one beyond the bounds counts as the bound, as in all statistics. Bins between given edges take the numbers
/// between them, and no other. So a number is in one bin at most.
///
/// ```
/// use quell::{privacy::mechanism::Bounds, statistics::Bins};
/// let decades = Bins::equal(Bounds::new(0.0, 100.0)?, 10)?;
/// assert_eq!(decades.names()[..2], ["[0, 10)", "[10, 20)"]);
/// assert_eq!((decades.place(10.0), decades.place(-3.0), decades.place(100.0)), (Some(1), Some(0), Some(9)));
/// let adults = Bins::new(vec![18.0, 65.0])?;
/// assert_eq!((adults.place(18.0), adults.place(70.0)), (Some(0), None));
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// The edges, of which each is larger than the one before.
    edges: Vec<f64>,
    /// Whether a number beyond the outer edges is in the nearest bin.
    takes_all: bool,
}

/// The most bins of a column.
const MOST_BINS: usize = 10_000;

impl Bins {
    /// Bins between these edges. A number beyond them is in no bin.
    pub fn new(edges: Vec<f64>) -> Result<Self, Error> {
        let wrong = |found: String| Error::Setting {
            name: "edges",
            found,
            expected: "two or more increasing numbers",
        };
        if !(2..=MOST_BINS + 1).contains(&edges.len()) {
            return Err(wrong(format!("a list of {} numbers", edges.len())));
        }
        if let Some(place) = edges.iter().position(|edge| !edge.is_finite()) {
            return Err(wrong(format!("a list whose number {} is not finite", place + 1)));
        }
        match edges.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(wrong(format!("a list with {} after {}", pair[1], pair[0]))),
            // There is one zero.
            None => Ok(Self { edges: edges.into_iter().map(|edge| edge + 0.0).collect(), takes_all: false }),
        }
    }

    /// Bins of equal width between two bounds. A number beyond them is in the nearest bin.
    ///
    /// Edges are rounded to the digits that a person would write, by less than a hundredth of the width: six bins
    /// between 17 and 90 begin at 17, 29.2, 41.3, 53.5, 65.7 and 77.8. Names and counts use the rounded edges.
    pub fn equal(bounds: Bounds, count: usize) -> Result<Self, Error> {
        let wrong = |expected| Error::Setting { name: "bins", found: count.to_string(), expected };
        if !(1..=MOST_BINS).contains(&count) {
            return Err(wrong("a whole number from 1 to 10000"));
        }
        let (lower, upper) = (bounds.lower(), bounds.upper());
        let width = upper / count as f64 - lower / count as f64;
        // Of powers of ten, the largest that is at most a hundredth of the width.
        let unit = (0.01 * width).log10().floor() as i32;
        let edge = |place: usize| match place {
            0 => lower,
            _ if place == count => upper,
            _ => {
                let share = place as f64 / count as f64;
                rounded(lower * (1.0 - share) + upper * share, unit)
            }
        };
        let edges: Vec<f64> = (0..=count).map(edge).collect();
        let bins = Self::new(edges).map_err(|_| wrong("fewer bins, or bounds that are further apart"))?;
        Ok(Self { takes_all: true, ..bins })
    }

    /// Number of bins.
    #[must_use]
    pub fn count(&self) -> usize {
        self.edges.len() - 1
    }

    /// The bin of a number; `None` if it is in no bin, or no number.
    #[must_use]
    pub fn place(&self, number: f64) -> Option<usize> {
        let is_within = number >= self.edges[0] && number <= self.edges[self.count()];
        let below = self.edges.partition_point(|edge| *edge <= number);
        (is_within || self.takes_all && !number.is_nan()).then(|| below.clamp(1, self.count()) - 1)
    }

    /// The names of the bins, each of which is another: `[0, 10)`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        (0..self.count()).map(|place| self.name(place)).collect()
    }

    /// The name of one bin.
    #[must_use]
    pub fn name(&self, place: usize) -> String {
        let end = if place + 1 == self.count() { ']' } else { ')' };
        format!("[{}, {}{end}", self.edges[place], self.edges[place + 1])
    }
}

/// The nearest multiple of a power of ten, without the digits that arithmetic adds: 0.3, not 0.30000000000000004.
fn rounded(number: f64, unit: i32) -> f64 {
    let text = match usize::try_from(-unit) {
        Ok(digits) => format!("{number:.digits$}"),
        Err(_) => format!("{:.0}e{unit}", number / 10_f64.powi(unit)),
    };
    text.parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_in_one_bin_at_most() {
        let bins = Bins::new(vec![-1.5, 0.0, 0.25, 10.0]).unwrap();
        assert_eq!(bins.names(), ["[-1.5, 0)", "[0, 0.25)", "[0.25, 10]"]);
        let all = Bins { takes_all: true, ..bins.clone() };
        for (number, place) in [(-1.5, 0), (-0.0, 1), (0.25_f64.next_down(), 1), (0.25, 2), (10.0, 2)] {
            assert_eq!((bins.place(number), all.place(number)), (Some(place), Some(place)), "{number}");
        }
        for (number, nearest) in [(f64::NEG_INFINITY, 0), (-1.6, 0), (10.0_f64.next_up(), 2), (f64::MAX, 2)] {
            assert_eq!((bins.place(number), all.place(number)), (None, Some(nearest)), "{number}");
        }
        assert_eq!((bins.place(f64::NAN), all.place(f64::NAN)), (None, None));
    }

    #[test]
    fn equal_bins_have_short_and_different_names() {
        let names = |lower: f64, upper: f64, count| {
            Bins::equal(Bounds::new(lower, upper).unwrap(), count).unwrap().names()
        };
        assert_eq!(names(0.1, 0.7, 6)[1..3], ["[0.2, 0.3)", "[0.3, 0.4)"]);
        assert_eq!(names(-1.0, 1.0, 4), ["[-1, -0.5)", "[-0.5, 0)", "[0, 0.5)", "[0.5, 1]"]);
        assert_eq!(names(17.0, 90.0, 3), ["[17, 41.3)", "[41.3, 65.7)", "[65.7, 90]"]);
        assert_eq!(names(0.0, 1.0, 3), ["[0, 0.333)", "[0.333, 0.667)", "[0.667, 1]"]);
        assert_eq!(names(0.0, 3e5, 7)[1..3], ["[42900, 85700)", "[85700, 128600)"]);
        assert_eq!(names(1e6, 1e6 + 0.3, 3)[1], "[1000000.1, 1000000.2)");
        assert_eq!(names(-1e-9, 2e-9, 3)[1], "[0, 0.000000001)");
        let mut all = names(17.0, 90.0, 10_000);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 10_000);
    }

    #[test]
    fn rounding_moves_an_edge_by_less_than_a_hundredth_of_the_width() {
        for (lower, upper) in [(17.0, 90.0), (-1e150, 1e150), (0.0, 1e-140), (1e9, 1e9 + 1.0), (-0.7, 0.1)] {
            for count in [1, 2, 3, 7, 64, 999] {
                let bins = Bins::equal(Bounds::new(lower, upper).unwrap(), count).unwrap();
                let width = upper / count as f64 - lower / count as f64;
                for (place, edge) in bins.edges.iter().enumerate() {
                    let exact = lower + width * place as f64;
                    assert!((edge - exact).abs() < 0.01 * width, "{edge} of {lower} to {upper}");
                }
            }
        }
    }

    #[test]
    fn edges_that_make_no_bins_are_refused() {
        for edges in [vec![], vec![1.0], vec![1.0, 1.0], vec![2.0, 1.0], vec![0.0, f64::NAN], vec![-0.0, 0.0]]
        {
            assert!(matches!(Bins::new(edges), Err(Error::Setting { name: "edges", .. })));
        }
        for (upper, count) in [(2.0, 0), (2.0, 10_001), (1.0_f64.next_up(), 3)] {
            let made = Bins::equal(Bounds::new(1.0, upper).unwrap(), count);
            assert!(matches!(made, Err(Error::Setting { name: "bins", .. })), "{upper} {count}");
        }
    }
}
