//! The candidates for the nearest neighbours of a query, selected by a fast rounded product.
//!
//! Let x be the query and y a record. Let t = ‖y‖² - 2 x·y, the squared distance minus ‖x‖². A matrix product
//! gives t with an error of at most γ (‖x‖² + ‖y‖²), in any order of addition. Here γ is the number of
//! additions times 2⁻²⁴, and |2 x·y| ≤ ‖x‖² + ‖y‖². So every record has an interval that contains t.
//!
//! A record is dropped only if the intervals of k other records lie entirely below its interval. The distances
//! of the remaining records are computed exactly. So the rounding of the product and the size of its blocks
//! affect the time of the search only, and not its answer.

/// The largest width for which the product gives a bound.
/// Above it, all distances are computed exactly.
const WIDEST: usize = 1 << 20;

/// The largest squared length without overflow in intermediate results.
const LONGEST: f64 = 1e36;

/// An upper bound on the total error from products below the smallest normal number.
const TINY: f64 = 4.0 * f32::MIN_POSITIVE as f64;

/// The error bound of the product.
#[derive(Clone, Copy)]
pub(super) struct Margin {
    /// The error as a share of each of the two squared lengths.
    share: f64,
    /// The width of an interval for an offset of 1.
    spread: f32,
}

impl Margin {
    pub(super) fn new(width: usize) -> Self {
        // 16 more additions cover the rounding of lengths, of sums of two numbers, and of the distance
        // itself. The factor 1.1 covers γ beyond its first order.
        let share = if width > WIDEST { f64::NAN } else { 1.1 * (width as f64 + 16.0) / f64::from(1 << 24) };
        Self { share, spread: (2.0 * share / (1.0 - share)) as f32 }
    }

    /// The offset of a record; NaN if there is no bound.
    /// -2 x·y plus the offset is the lower end of the record's interval.
    pub(super) fn offset(self, squared_length: f64) -> f32 {
        if squared_length > LONGEST { f32::NAN } else { (squared_length * (1.0 - self.share)) as f32 }
    }

    /// The amount by which all intervals of a query must be widened.
    pub(super) fn of_query(self, squared_length: f64) -> f64 {
        if squared_length > LONGEST { f64::NAN } else { 2.0 * self.share * squared_length + TINY }
    }
}

/// The candidates of one query, of which the nearest `wanted` are kept.
pub(super) struct Candidates {
    /// One integer for each candidate: the upper end of its interval, then its record.
    /// The integers have the order of the upper ends, then of the records.
    keys: Vec<u64>,
    wanted: usize,
    /// The number of candidates at which some are dropped.
    limit: usize,
    margin: Margin,
    widening: f64,
    /// A record whose interval begins above this bound is not among the nearest.
    bound: f32,
}

/// The number of extra candidates from which dropping some saves time.
const SLACK: usize = 32;

impl Candidates {
    pub(super) fn new(wanted: usize, margin: Margin, squared_length: f64) -> Self {
        let limit = wanted.saturating_mul(2).saturating_add(SLACK);
        Self {
            keys: Vec::new(),
            wanted,
            limit,
            margin,
            widening: margin.of_query(squared_length),
            bound: f32::INFINITY,
        }
    }

    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    pub(super) fn bound(&self) -> f32 {
        self.bound
    }

    /// Adds a candidate, given its product with -2 times the query, and its offset.
    /// A record with an infinite offset is never a neighbour.
    #[inline]
    pub(super) fn push(&mut self, record: usize, product: f32, offset: f32) {
        if offset == f32::INFINITY {
            return;
        }
        let upper = product + offset + self.margin.spread * offset;
        self.keys.push(key(if upper.is_nan() { f32::INFINITY } else { upper }, record));
    }

    /// Drops candidates if there are many.
    pub(super) fn tidy(&mut self, offsets: &[f32]) {
        if self.keys.len() >= self.limit {
            self.drop_far(offsets);
            self.limit = self.keys.len().saturating_mul(2).saturating_add(SLACK);
        }
    }

    fn drop_far(&mut self, offsets: &[f32]) {
        if self.wanted == 0 || self.keys.len() <= self.wanted {
            return;
        }
        let (_, last, _) = self.keys.select_nth_unstable(self.wanted - 1);
        let bound = f64::from(number(*last)) + self.widening;
        self.bound = (bound as f32).next_up();
        let (bound, margin) = (self.bound, self.margin);
        self.keys.retain(|key| {
            let lower = number(*key) - margin.spread * offsets[record(*key)];
            // A candidate without a bound (NaN) stays.
            !matches!(lower.partial_cmp(&bound), Some(std::cmp::Ordering::Greater))
        });
    }

    /// The candidates whose exact distance is needed, in no order.
    pub(super) fn remaining(&mut self, offsets: &[f32]) -> impl Iterator<Item = usize> {
        self.drop_far(offsets);
        self.keys.drain(..).map(record)
    }

    /// Records the exact distance of a candidate.
    pub(super) fn measured(&mut self, record: usize, distance: f32) {
        self.keys.push(key(distance, record));
    }

    /// The nearest candidates, nearest first, once all distances are recorded.
    /// Of two candidates at the same distance, the lower index comes first.
    pub(super) fn nearest(self) -> impl Iterator<Item = (usize, f32)> {
        let Self { mut keys, wanted, .. } = self;
        if wanted > 0 && keys.len() > wanted {
            keys.select_nth_unstable(wanted - 1);
        }
        keys.truncate(wanted);
        keys.sort_unstable();
        keys.into_iter().map(|key| (record(key), number(key)))
    }
}

/// Encodes a number, then a record, as an integer with the same order.
fn key(number: f32, record: usize) -> u64 {
    let bits = number.to_bits();
    let ordered = if number.is_sign_negative() { !bits } else { bits | 1 << 31 };
    u64::from(ordered) << 32 | record as u64
}

fn number(key: u64) -> f32 {
    let ordered = (key >> 32) as u32;
    f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
}

fn record(key: u64) -> usize {
    key as u32 as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_numbers_and_then_records() {
        let numbers = [f32::NEG_INFINITY, -3.5, -1e-40, 0.0, 1e-40, 2.0, f32::MAX, f32::INFINITY];
        let keys: Vec<u64> =
            numbers.iter().flat_map(|x| [key(*x, 0), key(*x, 7), key(*x, u32::MAX as usize)]).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(
            numbers.iter().all(|x| number(key(*x, 9)).to_bits() == x.to_bits() && record(key(*x, 9)) == 9)
        );
    }

    #[test]
    fn intervals_hold_the_truth_though_products_are_off_by_all_they_may_be() {
        for width in [1, 64, 784, WIDEST] {
            let (margin, error) = (Margin::new(width), width as f64 / f64::from(1 << 24));
            for (x, y) in [(1.0_f64, 1.0_f64), (100.0, 1e-3), (1e-6, 30.0), (1e30, 1e35), (1e-40, 1e-40)] {
                for cosine in [-1.0, 0.0, 1.0] {
                    let product = -2.0 * cosine * (x * y).sqrt();
                    for off in [-1.0, 1.0] {
                        // One query with records at the ends of its interval: an equally near record must not
                        // be dropped.
                        let mut candidates = Candidates::new(1, margin, x);
                        let offsets = [margin.offset(y); 2];
                        candidates.push(0, (product - off * error * (x + y)) as f32, offsets[0]);
                        candidates.push(1, (product + off * error * (x + y)) as f32, offsets[1]);
                        candidates.drop_far(&offsets);
                        assert_eq!(
                            candidates.keys.len(),
                            2,
                            "width {width}, lengths {x} and {y}, cosine {cosine}"
                        );
                    }
                }
            }
        }
        assert!(Margin::new(WIDEST + 1).offset(1.0).is_nan() && Margin::new(1).offset(1e37).is_nan());
    }
}
