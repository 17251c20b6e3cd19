//! Sums of outer products, Σ g xᵀ over rows of two matrices.
//!
//! This is the gradient of a linear layer for a batch. A general matrix product would add everything in
//! single precision. This module adds in single precision within a block of rows, and in double precision
//! across blocks. The sums of a block go from registers straight into the double-precision totals. Both
//! matrices are stored in panels, so that all reads are sequential.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::{MACHINE, balance::Factor, fast};

/// Numbers of g in a panel.
///
/// With [`VECTORS`] this gives twelve sums. They and their factors fit into the sixteen registers of most
/// processors.
const HEIGHT: usize = 6;
/// Vectors of x in a panel.
const VECTORS: usize = 2;

/// Numbers in the longest vector register of any processor.
const LONGEST: usize = 16;

/// Numbers of x that stay in the second-level cache while g is read.
const CACHED: usize = 1 << 16;

/// Rows that are written to the panels together.
const FEW: usize = 4;

/// A range of consecutive rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    pub(crate) rows: Range<usize>,
    /// Whether these rows end a block.
    pub(crate) last: bool,
}

/// The memory layout of a matrix in panels.
///
/// Each segment has its panels in order, and each panel has its rows in order. The last panel is padded with
/// zeros.
#[derive(Clone, Copy)]
pub(crate) struct Panels {
    width: usize,
    columns: usize,
}

impl Panels {
    /// The layout of the matrix with rows g.
    pub(crate) fn left(width: usize) -> Self {
        Self { width, columns: HEIGHT }
    }

    /// The layout of the matrix with rows x.
    pub(crate) fn right(width: usize) -> Self {
        struct Lanes;
        impl WithSimd for Lanes {
            type Output = usize;

            fn with_simd<S: Simd>(self, _: S) -> usize {
                S::F32_LANES
            }
        }
        Self { width, columns: VECTORS * MACHINE.dispatch(Lanes) }
    }

    /// Length of a row with its padding.
    pub(crate) fn padded(self) -> usize {
        self.width.next_multiple_of(self.columns)
    }

    /// Writes the rows of a segment, each multiplied by its factor.
    ///
    /// A row with scale zero becomes zeros, even if it holds NaN or infinities.
    pub(crate) fn write(self, segment: &mut [f32], factors: &[Factor], rows: &[f32]) {
        fast(
            #[inline(always)]
            || match self.columns {
                2 => self.write_in::<2>(segment, factors, rows),
                6 => self.write_in::<6>(segment, factors, rows),
                8 => self.write_in::<8>(segment, factors, rows),
                16 => self.write_in::<16>(segment, factors, rows),
                32 => self.write_in::<32>(segment, factors, rows),
                columns => unreachable!("no processor has panels of {columns}"),
            },
        );
    }

    #[inline(always)]
    fn write_in<const COLUMNS: usize>(self, segment: &mut [f32], factors: &[Factor], rows: &[f32]) {
        let length = factors.len() * COLUMNS;
        // A few rows at a time: they stay in the cache while they are copied to every panel.
        for (group, (factors, rows)) in factors.chunks(FEW).zip(rows.chunks(FEW * self.width)).enumerate() {
            for (panel, start) in segment.chunks_exact_mut(length).zip((0..self.width).step_by(COLUMNS)) {
                let places = &mut panel.as_chunks_mut::<COLUMNS>().0[group * FEW..];
                for (place, (factor, row)) in
                    places.iter_mut().zip(factors.iter().zip(rows.chunks_exact(self.width)))
                {
                    let row = &row[start..];
                    let numbers = row.first_chunk().copied().unwrap_or_else(|| {
                        let mut last = [0.0; COLUMNS];
                        last[..row.len()].copy_from_slice(row);
                        last
                    });
                    let Factor { scale, power } = *factor;
                    // Zero times NaN or infinity is not zero.
                    *place = if scale == 0.0 { [0.0; COLUMNS] } else { numbers.map(|x| scale * (power * x)) };
                }
            }
        }
    }

    /// Returns one panel of a segment.
    #[inline(always)]
    fn panel<'a>(self, numbers: &'a [f32], segment: &Segment, number: usize) -> &'a [f32] {
        let length = segment.rows.len() * self.columns;
        &numbers[segment.rows.start * self.padded() + number * length..][..length]
    }
}

/// Computes `matrix += Σ g xᵀ` and `bias += Σ ug` for some numbers of g.
pub(crate) struct Products<'a> {
    pub(crate) segments: &'a [Segment],
    pub(crate) left: (Panels, &'a [f32]),
    pub(crate) right: (Panels, &'a [f32]),
    /// u: for each row, a constant input of one after rescaling.
    pub(crate) ones: &'a [f32],
    /// Index of the first number of g in the range. It begins a panel.
    pub(crate) first: usize,
    /// The totals: one row for each number of g, as long as x.
    pub(crate) matrix: &'a mut [f64],
    pub(crate) bias: &'a mut [f64],
}

impl Products<'_> {
    /// Chooses how many of `height` numbers of g one task takes.
    ///
    /// Each thread gets several tasks, so that one slow thread does not delay the rest.
    pub(crate) fn rows(height: usize, threads: usize) -> usize {
        HEIGHT * height.div_ceil(HEIGHT).div_ceil(6 * threads).clamp(1, 16)
    }

    pub(crate) fn add(self) {
        MACHINE.dispatch(self);
    }
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { segments, left: (left, gradients), right: (right, inputs), ones, first, matrix, bias } =
            self;
        let before = first / HEIGHT;
        let (width, whole) = (right.width, VECTORS * S::F32_LANES);
        assert_eq!(right.columns, whole, "the panels are those of another machine");
        let depth: usize = segments.iter().map(|segment| segment.rows.len()).sum();
        let together = (CACHED / (depth * whole).max(1)).max(1);
        for panels in (0..width.div_ceil(whole)).collect::<Vec<_>>().chunks(together) {
            for (panel, rows) in matrix.chunks_mut(HEIGHT * width).enumerate() {
                for &number in panels {
                    let columns = number * whole..((number + 1) * whole).min(width);
                    let mut sums = [[simd.splat_f32s(0.0); VECTORS]; HEIGHT];
                    for segment in segments {
                        let gradients =
                            left.panel(gradients, segment, before + panel).as_chunks::<HEIGHT>().0;
                        let inputs =
                            S::as_simd_f32s(right.panel(inputs, segment, number)).0.as_chunks::<VECTORS>().0;
                        multiply(simd, gradients, inputs, &mut sums);
                        if segment.last {
                            add_wide(simd, &sums, rows, width, columns.clone());
                            sums = [[simd.splat_f32s(0.0); VECTORS]; HEIGHT];
                        }
                    }
                }
            }
        }
        for (panel, bias) in bias.chunks_mut(HEIGHT).enumerate() {
            let mut sums = [0.0_f32; HEIGHT];
            for segment in segments {
                let gradients = left.panel(gradients, segment, before + panel).as_chunks::<HEIGHT>().0;
                for (gradient, one) in gradients.iter().zip(&ones[segment.rows.clone()]) {
                    sums.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += one * x);
                }
                if segment.last {
                    bias.iter_mut().zip(&sums).for_each(|(total, x)| *total += f64::from(*x));
                    sums = [0.0; HEIGHT];
                }
            }
        }
    }
}

/// Computes `sums += Σ g xᵀ` in registers.
#[inline(always)]
fn multiply<S: Simd>(
    simd: S,
    left: &[[f32; HEIGHT]],
    right: &[[S::f32s; VECTORS]],
    sums: &mut [[S::f32s; VECTORS]; HEIGHT],
) {
    for (left, right) in left.iter().zip(right) {
        for (sums, left) in sums.iter_mut().zip(left) {
            let left = simd.splat_f32s(*left);
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = simd.mul_add_e_f32s(left, *right, *sum);
            }
        }
    }
}

/// Adds single-precision sums to a range of columns of the double-precision rows.
#[inline(always)]
fn add_wide<S: Simd>(
    simd: S,
    sums: &[[S::f32s; VECTORS]; HEIGHT],
    rows: &mut [f64],
    width: usize,
    columns: Range<usize>,
) {
    let whole = VECTORS * S::F32_LANES;
    if rows.len() == HEIGHT * width && columns.len() == whole {
        // The same as below with all counts known at compile time, so that the sums stay in registers.
        for (i, sums) in sums.iter().enumerate() {
            let totals = &mut rows[i * width + columns.start..][..whole];
            totals
                .iter_mut()
                .zip(&narrow(simd, *sums)[..whole])
                .for_each(|(total, x)| *total += f64::from(*x));
        }
    } else {
        for (row, sums) in rows.chunks_exact_mut(width).zip(sums) {
            let totals = &mut row[columns.clone()];
            totals.iter_mut().zip(&narrow(simd, *sums)).for_each(|(total, x)| *total += f64::from(*x));
        }
    }
}

/// Copies the numbers out of vector registers.
#[inline(always)]
fn narrow<S: Simd>(_: S, vectors: [S::f32s; VECTORS]) -> [f32; VECTORS * LONGEST] {
    let mut numbers = [0.0; VECTORS * LONGEST];
    S::as_mut_simd_f32s(&mut numbers).0[..VECTORS].copy_from_slice(&vectors);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::balance::Balance;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 % 104_729) as f32 / 52_364.0) - 1.0).collect()
    }

    /// Writes both matrices to panels with these scales, and computes all sums of products.
    fn products(
        g: &[f32],
        x: &[f32],
        height: usize,
        width: usize,
        segments: &[Segment],
        scales: &[f32],
    ) -> (Vec<f64>, Vec<f64>) {
        let (left, right) = (Panels::left(height), Panels::right(width));
        let (mut gradients, mut inputs) =
            (vec![f32::NAN; scales.len() * left.padded()], vec![f32::NAN; scales.len() * right.padded()]);
        let mut ones = vec![f32::NAN; scales.len()];
        for segment in segments {
            let rows = segment.rows.clone();
            let of = |width: usize| rows.start * width..rows.end * width;
            let balanced: Vec<Balance> = rows
                .clone()
                .map(|row| Balance::new(scales[row], &x[row * width..(row + 1) * width]))
                .collect();
            let factors =
                |factor: fn(Balance) -> Factor| balanced.iter().copied().map(factor).collect::<Vec<_>>();
            left.write(&mut gradients[of(left.padded())], &factors(Balance::gradient), &g[of(height)]);
            right.write(&mut inputs[of(right.padded())], &factors(Balance::input), &x[of(width)]);
            ones[of(1)].iter_mut().zip(&balanced).for_each(|(one, balance)| *one = balance.one());
        }
        let (mut matrix, mut bias) = (vec![0.5; height * width], vec![0.25; height]);
        let rows = Products::rows(height, 2);
        for (tile, (matrix, bias)) in matrix.chunks_mut(rows * width).zip(bias.chunks_mut(rows)).enumerate() {
            let (left, right) = ((left, gradients.as_slice()), (right, inputs.as_slice()));
            Products { segments, left, right, ones: &ones, first: tile * rows, matrix, bias }.add();
        }
        (matrix, bias)
    }

    fn segments(ends: &[(usize, bool)]) -> Vec<Segment> {
        let starts = std::iter::once(0).chain(ends.iter().map(|(end, _)| *end));
        starts.zip(ends).map(|(start, (end, last))| Segment { rows: start..*end, last: *last }).collect()
    }

    #[test]
    fn products_are_those_of_the_definition_and_are_added_to_what_is_there() {
        for (height, width) in [(1, 1), (6, 16), (7, 17), (5, 15), (40, 33), (25, 100)] {
            let (g, x) = (numbers(20 * height), numbers(20 * width));
            let scales: Vec<f32> = (0..20).map(|row| [1.0, 0.5, 0.0][row % 3]).collect();
            for segments in
                [segments(&[(20, true)]), segments(&[(1, true), (8, false), (13, true), (20, true)])]
            {
                let (matrix, bias) = products(&g, &x, height, width, &segments, &scales);
                let sum = |i: usize, right: &dyn Fn(usize) -> f64| -> f64 {
                    (0..20).map(|row| f64::from(scales[row] * g[row * height + i]) * right(row)).sum()
                };
                for (i, j) in (0..height).flat_map(|i| (0..width).map(move |j| (i, j))) {
                    let exact = 0.5 + sum(i, &|row| f64::from(x[row * width + j]));
                    assert!((matrix[i * width + j] - exact).abs() < 1e-5, "{height} {width} at {i} {j}");
                }
                for (i, bias) in bias.iter().enumerate() {
                    assert!((bias - 0.25 - sum(i, &|_| 1.0)).abs() < 1e-5, "{height} {width} at {i}");
                }
            }
        }
    }

    #[test]
    fn where_a_segment_ends_within_a_block_changes_no_bit() {
        // The result must not depend on which thread takes which record.
        let (g, x) = (numbers(90 * 13), numbers(90 * 37));
        let whole = products(&g, &x, 13, 37, &segments(&[(60, true), (90, true)]), &[0.3; 90]);
        let cut = products(
            &g,
            &x,
            13,
            37,
            &segments(&[(17, false), (45, false), (60, true), (61, false), (90, true)]),
            &[0.3; 90],
        );
        assert_eq!(whole, cut);
        assert_ne!(
            whole,
            products(&g, &x, 13, 37, &segments(&[(17, true), (60, true), (90, true)]), &[0.3; 90])
        );
    }

    #[test]
    fn blocks_are_added_in_double_precision() {
        // 1 and 2⁻³⁰ a thousand times: in single precision the small ones are lost.
        let x: Vec<f32> = (0..1001).map(|row| if row == 0 { 1.0 } else { 1.0 / (1 << 30) as f32 }).collect();
        let blocks: Vec<(usize, bool)> = (1..=1001).map(|end| (end, true)).collect();
        let (matrix, bias) = products(&[1.0; 1001], &x, 1, 1, &segments(&blocks), &[1.0; 1001]);
        assert_eq!(matrix, [1.5 + 1000.0 / f64::from(1 << 30)]);
        assert_eq!(bias, [1001.25]);
    }

    #[test]
    fn scaled_numbers_that_are_subnormal_lose_nothing_to_huge_ones() {
        // One record whose gradient is clipped to a length of 2.4e-7: of sg, which is 8e-46, a float has no digit.
        let (length, g, x) = (2.4e-7_f64, 1e-10_f32, 3e38_f32);
        let scale = (length / f64::from(g) / f64::from(x)) as f32;
        let exact = f64::from(scale) * f64::from(g) * f64::from(x);
        let (matrix, bias) = products(&[g], &[x], 1, 1, &segments(&[(1, true)]), &[scale]);
        assert!(
            (matrix[0] - 0.5 - exact).abs() < 1e-12 && bias == [0.25],
            "{} instead of {exact}",
            matrix[0] - 0.5
        );
    }

    #[test]
    fn a_scale_of_zero_adds_nothing_whatever_is_there() {
        let (g, x) = ([f32::NAN, f32::INFINITY, 2.0], [f32::NAN, 1.0, 3.0]);
        let (matrix, bias) = products(&g, &x, 1, 1, &segments(&[(3, true)]), &[0.0, 0.0, 1.0]);
        assert_eq!((matrix, bias), (vec![6.5], vec![2.25]));
    }
}
