//! The loops of a nearest-neighbour search.

use std::ops::AddAssign;

use super::fast;

/// Values that are compared together. Nearly always none of them is at or below the bound.
const GROUP: usize = 16;

/// Appends every index where `value + offset` is not above the bound to `found`.
///
/// NaN is not above any bound, so its index is appended too.
pub(crate) fn not_above(values: &[f32], offsets: &[f32], bound: f32, found: &mut Vec<u32>) {
    #[inline(always)]
    fn is_found(value: f32, offset: f32, bound: f32) -> bool {
        #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "NaN must be found")]
        let is_found = !(value + offset > bound);
        is_found
    }
    fast(
        #[inline(always)]
        || {
            let (value_chunks, value_rest) = values.as_chunks::<GROUP>();
            let (offset_chunks, offset_rest) = offsets.as_chunks::<GROUP>();
            for (chunk, (values, offsets)) in value_chunks.iter().zip(offset_chunks).enumerate() {
                let some = values
                    .iter()
                    .zip(offsets)
                    .fold(false, |some, (value, offset)| some | is_found(*value, *offset, bound));
                if !some {
                    continue;
                }
                // Write every index and advance only for those found: no branch can be mispredicted.
                let (mut places, mut count) = ([0; GROUP], 0);
                for (place, (value, offset)) in values.iter().zip(offsets).enumerate() {
                    places[count % GROUP] = (chunk * GROUP + place) as u32;
                    count += usize::from(is_found(*value, *offset, bound));
                }
                found.extend_from_slice(&places[..count]);
            }
            let before = value_chunks.len() * GROUP;
            let rest = value_rest.iter().zip(offset_rest).enumerate();
            let rest = rest.filter(|(_, (value, offset))| is_found(**value, **offset, bound));
            found.extend(rest.map(|(place, _)| (before + place) as u32));
        },
    );
}

/// Computes the dot products of a vector with some rows of a matrix.
pub(crate) fn products_with(
    vector: &[f32],
    matrix: &[f32],
    rows: impl Iterator<Item = usize>,
    products: &mut [f32],
) {
    // Closures, because a function passed by name would not be compiled for the vector unit.
    for_rows::<f32, 32>(
        vector,
        matrix,
        rows,
        products,
        #[inline(always)]
        |x, y| x * y,
    );
}

/// Computes Σ (x - y)² of a vector and some rows of a matrix.
///
/// The sums are in double precision and in a fixed order. So a distance does not depend on the other rows, on
/// the machine, or on which of the two vectors is the row. Nothing cancels, even if the vectors are close.
pub(crate) fn squared_distances(
    vector: &[f32],
    matrix: &[f32],
    rows: impl Iterator<Item = usize>,
    distances: &mut [f64],
) {
    for_rows::<f64, 16>(
        vector,
        matrix,
        rows,
        distances,
        #[inline(always)]
        |x, y| {
            let difference = f64::from(x) - f64::from(y);
            difference * difference
        },
    );
}

/// Computes Σ term(x, y) for every row.
#[inline(always)]
fn for_rows<T: Copy + Default + AddAssign, const LANES: usize>(
    vector: &[f32],
    matrix: &[f32],
    rows: impl Iterator<Item = usize>,
    sums: &mut [T],
    term: impl Fn(f32, f32) -> T,
) {
    let width = vector.len();
    fast(
        #[inline(always)]
        || {
            let (chunks, rest) = vector.as_chunks::<LANES>();
            for (sum, row) in sums.iter_mut().zip(rows) {
                let (row_chunks, row_rest) = matrix[row * width..(row + 1) * width].as_chunks::<LANES>();
                let mut lanes = [T::default(); LANES];
                for (x, y) in chunks.iter().zip(row_chunks) {
                    for (lane, (x, y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
                        *lane += term(*x, *y);
                    }
                }
                *sum = pairwise_sum(lanes);
                rest.iter().zip(row_rest).for_each(|(x, y)| *sum += term(*x, *y));
            }
        },
    );
}

/// Sums the lanes pairwise. In a sequential sum, each addition would wait for the one before it.
#[inline(always)]
fn pairwise_sum<T: Copy + AddAssign, const LANES: usize>(lanes: [T; LANES]) -> T {
    // `black_box` stores the lanes first. A compiler that saw the final additions of pairs would split the
    // lanes into pairs from the start.
    let mut lanes = std::hint::black_box(lanes);
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(&high[..half]).for_each(|(low, high)| *low += *high);
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut random = crate::random::PublicRandom::new(seed);
        (0..count).map(|_| random.between(-1.0, 1.0)).collect()
    }

    #[test]
    fn places_are_found_in_order_and_what_is_no_number_is_found() {
        for count in [0, 1, 31, 32, 33, 200] {
            let (mut values, offsets) = (numbers(count, 1), numbers(count, 2));
            if let Some(value) = values.get_mut(20) {
                *value = f32::NAN;
            }
            for bound in [-3.0, -1.5, 0.0, 3.0, f32::INFINITY, f32::NAN] {
                let mut found = vec![7];
                not_above(&values, &offsets, bound, &mut found);
                let sums = values.iter().zip(&offsets).map(|(value, offset)| value + offset);
                let above = sums.enumerate().map(|(place, sum)| (place as u32, sum > bound));
                let right =
                    std::iter::once(7).chain(above.filter(|(_, above)| !above).map(|(place, _)| place));
                assert!(right.eq(found.iter().copied()), "{count} numbers, bound {bound}");
            }
        }
    }

    #[test]
    fn products_and_distances_are_those_of_the_definition() {
        for width in [1, 2, 15, 16, 17, 31, 32, 33, 100] {
            let (vector, matrix) = (numbers(width, 3), numbers(11 * width, 4));
            for rows in [&[][..], &[5], &[0, 10], &[1, 2, 4, 8], &[0, 1, 2, 3, 4, 5, 6, 9, 10]] {
                let (mut products, mut distances) = (vec![f32::NAN; rows.len()], vec![f64::NAN; rows.len()]);
                products_with(&vector, &matrix, rows.iter().copied(), &mut products);
                squared_distances(&vector, &matrix, rows.iter().copied(), &mut distances);
                for (row, (product, distance)) in rows.iter().zip(products.iter().zip(distances)) {
                    let pairs = || {
                        vector.iter().zip(&matrix[row * width..]).map(|(x, y)| (f64::from(*x), f64::from(*y)))
                    };
                    let exact: f64 = pairs().map(|(x, y)| x * y).sum();
                    assert!((f64::from(*product) - exact).abs() < 1e-5, "width {width}, row {row}");
                    let exact: f64 = pairs().map(|(x, y)| (x - y) * (x - y)).sum();
                    assert!((distance - exact).abs() <= 1e-14 * exact, "width {width}, row {row}");
                }
            }
        }
    }
}
