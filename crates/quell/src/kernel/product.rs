//! Matrix products, computed by the `gemm` crate.

/// A view of a slice as a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    numbers: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix with contiguous rows of `columns` numbers.
    pub(crate) fn new(numbers: &'a [f32], columns: usize) -> Self {
        Self::strided(numbers, numbers.len().checked_div(columns).unwrap_or(0), columns, columns)
    }

    /// A matrix with rows of `columns` numbers that begin `stride` numbers apart.
    pub(crate) fn strided(numbers: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        let end = if rows == 0 || columns == 0 { 0 } else { (rows - 1) * stride + columns };
        assert!(
            end <= numbers.len() && stride >= columns,
            "a matrix of {rows} rows of {columns} is not in the slice"
        );
        Self { numbers, rows, columns, row_stride: stride, column_stride: 1 }
    }

    /// Selects `count` columns, beginning with column `from`.
    fn columns(self, from: usize, count: usize) -> Self {
        Self { numbers: self.numbers.get(from * self.column_stride..).unwrap_or(&[]), columns: count, ..self }
    }

    /// Copies the matrix to contiguous rows, in which the columns are repeated `times` times.
    fn copied(self, times: usize) -> Vec<f32> {
        let number =
            |row: usize, column: usize| self.numbers[row * self.row_stride + column * self.column_stride];
        let places = (0..self.rows)
            .flat_map(|row| (0..times * self.columns).map(move |column| (row, column % self.columns)));
        places.map(|(row, column)| number(row, column)).collect()
    }

    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// Whether a product replaces the result or is added to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    Overwrite,
    Add,
}

/// Up to this many numbers in the result, `gemm` may sum along the depth.
///
/// It does so if both matrices are contiguous along the depth.
const FEW: usize = 256;
/// Up to this many columns, the number of rows decides how `gemm` splits large depths.
///
/// It splits depths beyond [`DEEP`] differently if there are more than this many rows, too.
const NARROW: usize = 64;
/// The depth up to which `gemm` does not split a narrow product. This module splits larger depths itself.
const DEEP: usize = 512;

/// Writes `left · right` to `result`, or adds it. Rows of `result` begin `stride` numbers apart.
///
/// A row of the result does not depend on the other rows, to the last bit, because the contribution of an
/// example must depend on that example alone. `gemm` sums in other orders for few rows than for many. This
/// function avoids the code paths that do.
pub(crate) fn multiply(left: Matrix<'_>, right: Matrix<'_>, result: &mut [f32], stride: usize, into: Into) {
    let (rows, columns, depth) = (left.rows, right.columns, left.columns);
    assert_eq!(depth, right.rows, "the matrices do not fit");
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(stride >= columns && (rows - 1) * stride + columns <= result.len(), "the result does not fit");
    if columns == 1 {
        // `gemm` has a separate path for a single column. Two equal columns avoid it.
        let mut doubled = vec![0.0; 2 * rows];
        if into == Into::Add {
            doubled
                .chunks_exact_mut(2)
                .zip(result.iter().step_by(stride))
                .for_each(|(to, from)| to.fill(*from));
        }
        multiply(left, Matrix::new(&right.copied(2), 2), &mut doubled, 2, into);
        result.iter_mut().step_by(stride).zip(doubled.chunks_exact(2)).for_each(|(to, from)| *to = from[0]);
        return;
    }
    if rows == 1 {
        // `gemm` has a separate path for a single row. Two equal rows avoid it.
        let mut doubled = vec![0.0; 2 * columns];
        if into == Into::Add {
            doubled[..columns].copy_from_slice(&result[..columns]);
        }
        multiply(Matrix { rows: 2, row_stride: 0, ..left }, right, &mut doubled, columns, into);
        result[..columns].copy_from_slice(&doubled[..columns]);
        return;
    }
    if rows * columns <= FEW && left.column_stride == 1 && right.row_stride == 1 {
        return split_depth(left, Matrix::new(&right.copied(1), columns), result, stride, into);
    }
    split_depth(left, right, result, stride, into);
}

/// Splits the product along the depth in the same way for any number of rows.
fn split_depth(left: Matrix<'_>, right: Matrix<'_>, result: &mut [f32], stride: usize, into: Into) {
    if right.columns > NARROW || left.columns <= DEEP {
        return run(left, right, result, stride, into);
    }
    for from in (0..left.columns).step_by(DEEP) {
        let count = DEEP.min(left.columns - from);
        let right = right.transposed().columns(from, count).transposed();
        run(left.columns(from, count), right, result, stride, if from == 0 { into } else { Into::Add });
    }
}

/// Calls `gemm`. The callers have checked the sizes of the matrices and of the result.
#[allow(unsafe_code)]
fn run(left: Matrix<'_>, right: Matrix<'_>, result: &mut [f32], stride: usize, into: Into) {
    let (rows, columns, depth) = (left.rows, right.columns, left.columns);
    assert!(
        depth == right.rows && rows > 0 && columns > 0 && (rows - 1) * stride + columns <= result.len(),
        "the result does not fit"
    );
    // SAFETY: `gemm` reads only elements (i, j) with i < rows and j < columns of a `Matrix`. When the
    // `Matrix` was created, its last element was checked to lie in its slice. `gemm` writes only below (rows
    // - 1) · stride + columns, which was checked above. The result is borrowed mutably, so it overlaps
    // neither matrix.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            result.as_mut_ptr(),
            1,
            stride as isize,
            into == Into::Add,
            left.numbers.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.numbers.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0_f32,
            1.0_f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 % 104_729) as f32 / 52_364.0) - 1.0).collect()
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for (rows, columns, depth) in [(1, 1, 1), (3, 5, 7), (17, 10, 33), (64, 40, 25), (5, 4, 0)] {
            let (left, right) = (numbers(rows * depth), numbers(depth * columns));
            let (a, b) = (
                Matrix::strided(&left, rows, depth, depth),
                Matrix::strided(&right, depth, columns, columns),
            );
            let mut result = vec![f32::NAN; rows * columns];
            multiply(a, b, &mut result, columns, Into::Overwrite);
            let mut other = vec![1.0; rows * columns];
            multiply(b.transposed(), a.transposed(), &mut other, rows, Into::Add);
            for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                let exact: f64 = (0..depth)
                    .map(|k| f64::from(left[i * depth + k]) * f64::from(right[k * columns + j]))
                    .sum();
                assert!(
                    (f64::from(result[i * columns + j]) - exact).abs() < 1e-5,
                    "{rows} {columns} {depth}"
                );
                assert!(
                    (f64::from(other[j * rows + i]) - 1.0 - exact).abs() < 1e-5,
                    "{rows} {columns} {depth}"
                );
            }
        }
    }

    #[test]
    fn a_row_of_a_product_is_the_same_whatever_rows_are_beside_it() {
        // Clause 2 of `Contributions`, to the last bit. Batches have up to 1024 rows.
        const ROWS: usize = 1100;
        for (depth, columns) in [
            (64, 16),
            (784, 100),
            (784, 10),
            (1100, 3),
            (100, 10),
            (27, 32),
            (300, 1),
            (600, 1),
            (31, 7),
            (4, 18),
            (2, 5),
            (1, 3),
            (700, 64),
            (700, 65),
            (9, 128),
        ] {
            let (left, right) = (numbers(ROWS * depth), numbers(depth * columns));
            for b in [Matrix::new(&right, columns), Matrix::new(&right, depth).transposed()] {
                for (into, stride) in [(Into::Overwrite, columns), (Into::Add, columns + 3)] {
                    let mut all = vec![0.5; ROWS * stride];
                    multiply(Matrix::new(&left, depth), b, &mut all, stride, into);
                    for (from, to) in [
                        (0, 1),
                        (3, 4),
                        (0, 2),
                        (5, 8),
                        (60, 70),
                        (1, 34),
                        (7, 71),
                        (7, 72),
                        (100, 330),
                        (9, 590),
                        (0, 1024),
                        (70, 1094),
                    ] {
                        let mut some = vec![0.5; (to - from) * stride];
                        multiply(
                            Matrix::new(&left[from * depth..to * depth], depth),
                            b,
                            &mut some,
                            stride,
                            into,
                        );
                        let differ = some
                            .iter()
                            .zip(&all[from * stride..])
                            .filter(|(a, b)| a.to_bits() != b.to_bits())
                            .count();
                        assert_eq!(differ, 0, "rows {from}..{to} at depth {depth}, {columns} columns");
                    }
                }
            }
        }
    }
}
