//! Loops of a search for the nearest of many vectors.

use super::fast;

/// How many numbers are looked at together: nearly always none of them is wanted.
const TOGETHER: usize = 32;

/// The places where `value + offset` is not above the bound. What is no number is above nothing, so its place is among them.
pub(crate) fn not_above(values: &[f32], offsets: &[f32], bound: f32, found: &mut Vec<u32>) {
    #[inline(always)]
    fn wanted(value: f32, offset: f32, bound: f32) -> bool {
        #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "what is no number is found")]
        let wanted = !(value + offset > bound);
        wanted
    }
    fast(
        #[inline(always)]
        || {
            let (value_chunks, value_rest) = values.as_chunks::<TOGETHER>();
            let (offset_chunks, offset_rest) = offsets.as_chunks::<TOGETHER>();
            for (chunk, (values, offsets)) in value_chunks.iter().zip(offset_chunks).enumerate() {
                let some = values.iter().zip(offsets).fold(false, |some, (value, offset)| some | wanted(*value, *offset, bound));
                if !some {
                    continue;
                }
                // Written at every place and kept at some: no branch to be guessed wrong.
                let (mut places, mut count) = ([0; TOGETHER], 0);
                for (place, (value, offset)) in values.iter().zip(offsets).enumerate() {
                    places[count % TOGETHER] = (chunk * TOGETHER + place) as u32;
                    count += usize::from(wanted(*value, *offset, bound));
                }
                found.extend_from_slice(&places[..count]);
            }
            let before = value_chunks.len() * TOGETHER;
            let rest = value_rest.iter().zip(offset_rest).enumerate();
            let rest = rest.filter(|(_, (value, offset))| wanted(**value, **offset, bound));
            found.extend(rest.map(|(place, _)| (before + place) as u32));
        },
    );
}

/// The product of a vector with some rows of a matrix, each into its place of `products`.
pub(crate) fn products_with(vector: &[f32], matrix: &[f32], rows: impl Iterator<Item = usize>, products: &mut [f32]) {
    const LANES: usize = 8;
    /// As many rows as a vector unit can add up without waiting for itself.
    const ROWS: usize = 4;

    #[inline(always)]
    fn with_each(vector: &[f32], rows: [&[f32]; ROWS]) -> [f32; ROWS] {
        let mut sums = [[0.0_f32; LANES]; ROWS];
        let (chunks, rest) = vector.as_chunks::<LANES>();
        let [a, b, c, d] = rows.map(|row| row.as_chunks::<LANES>().0);
        for ((((x, a), b), c), d) in chunks.iter().zip(a).zip(b).zip(c).zip(d) {
            for lane in 0..LANES {
                sums[0][lane] += x[lane] * a[lane];
                sums[1][lane] += x[lane] * b[lane];
                sums[2][lane] += x[lane] * c[lane];
                sums[3][lane] += x[lane] * d[lane];
            }
        }
        let tails = rows.map(|row| &row[row.len() - rest.len()..]);
        let mut totals = [0.0; ROWS];
        for ((total, lanes), tail) in totals.iter_mut().zip(sums).zip(tails) {
            *total = lanes.iter().sum::<f32>() + rest.iter().zip(tail).map(|(x, y)| x * y).sum::<f32>();
        }
        totals
    }

    let width = vector.len();
    let mut rows = rows.map(|row| &matrix[row * width..(row + 1) * width]);
    fast(
        #[inline(always)]
        || {
            for products in products.chunks_mut(ROWS) {
                let Some(first) = rows.next() else { return };
                // The last few are made up to four.
                let four = [first, rows.next().unwrap_or(first), rows.next().unwrap_or(first), rows.next().unwrap_or(first)];
                products.iter_mut().zip(with_each(vector, four)).for_each(|(to, product)| *to = product);
            }
        },
    );
}

/// Σ (x - y)², in double precision and in one order, so that it is the same on every machine: nothing cancels, however near the two are.
pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 16;
    fast(
        #[inline(always)]
        || {
            let difference = |x: &f32, y: &f32| f64::from(*x) - f64::from(*y);
            let mut lanes = [0.0_f64; LANES];
            let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
            for (a, b) in a.iter().zip(b) {
                for (lane, (x, y)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                    let difference = difference(x, y);
                    *lane += difference * difference;
                }
            }
            let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| difference(x, y).powi(2)).sum();
            lanes.iter().sum::<f64>() + rest
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut chance = crate::chance::Chance::new(seed);
        (0..count).map(|_| chance.between(-1.0, 1.0)).collect()
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
                let right = std::iter::once(7).chain(above.filter(|(_, above)| !above).map(|(place, _)| place));
                assert!(right.eq(found.iter().copied()), "{count} numbers, bound {bound}");
            }
        }
    }

    #[test]
    fn products_and_distances_are_those_of_the_definition() {
        for width in [1, 2, 7, 8, 9, 16, 17, 100] {
            let (vector, matrix) = (numbers(width, 3), numbers(11 * width, 4));
            for rows in [&[][..], &[5], &[0, 10], &[1, 2, 4, 8], &[0, 1, 2, 3, 4, 5, 6, 9, 10]] {
                let mut products = vec![f32::NAN; rows.len()];
                products_with(&vector, &matrix, rows.iter().copied(), &mut products);
                for (row, product) in rows.iter().zip(products) {
                    let pairs = || vector.iter().zip(&matrix[row * width..]).map(|(x, y)| (f64::from(*x), f64::from(*y)));
                    let exact: f64 = pairs().map(|(x, y)| x * y).sum();
                    assert!((f64::from(product) - exact).abs() < 1e-5, "width {width}, row {row}");
                    let exact: f64 = pairs().map(|(x, y)| (x - y) * (x - y)).sum();
                    let found = squared_distance(&vector, &matrix[row * width..(row + 1) * width]);
                    assert!((found - exact).abs() <= 1e-14 * exact, "width {width}, row {row}");
                }
            }
        }
    }
}
