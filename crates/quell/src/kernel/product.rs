//! Matrix products, by the `gemm` crate.

/// A matrix in a slice.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    numbers: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Rows of `columns` numbers, one after the other.
    pub(crate) fn new(numbers: &'a [f32], columns: usize) -> Self {
        Self::strided(numbers, numbers.len().checked_div(columns).unwrap_or(0), columns, columns)
    }

    /// Rows of `columns` numbers that begin `stride` numbers apart.
    pub(crate) fn strided(numbers: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        let end = if rows == 0 || columns == 0 { 0 } else { (rows - 1) * stride + columns };
        assert!(end <= numbers.len() && stride >= columns, "a matrix of {rows} rows of {columns} is not in the slice");
        Self { numbers, rows, columns, row_stride: stride, column_stride: 1 }
    }

    pub(crate) fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }
}

/// What becomes of what is in the result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    Overwrite,
    Add,
}

/// `result = left · right`, or added to it; rows of the result begin `stride` numbers apart.
#[allow(unsafe_code)]
pub(crate) fn multiply(left: Matrix<'_>, right: Matrix<'_>, result: &mut [f32], stride: usize, into: Into) {
    let (rows, columns, depth) = (left.rows, right.columns, left.columns);
    assert_eq!(depth, right.rows, "the matrices do not fit");
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(stride >= columns && (rows - 1) * stride + columns <= result.len(), "the result does not fit");
    if rows == 1 {
        // A single row would be summed in another order than the same row among others. So it is not left alone.
        let mut twice = vec![0.0; 2 * columns];
        if into == Into::Add {
            twice[..columns].copy_from_slice(&result[..columns]);
        }
        multiply(Matrix { rows: 2, row_stride: 0, ..left }, right, &mut twice, columns, into);
        result[..columns].copy_from_slice(&twice[..columns]);
        return;
    }
    // SAFETY: every index that is read is one (i, j) with i < rows and j < columns of a `Matrix`, whose last element was checked to be in its slice when it was made;
    // every index that is written is below (rows - 1) · stride + columns, which was checked above. The result is borrowed mutably, so it overlaps neither.
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
            let (a, b) = (Matrix::strided(&left, rows, depth, depth), Matrix::strided(&right, depth, columns, columns));
            let mut result = vec![f32::NAN; rows * columns];
            multiply(a, b, &mut result, columns, Into::Overwrite);
            let mut other = vec![1.0; rows * columns];
            multiply(b.transposed(), a.transposed(), &mut other, rows, Into::Add);
            for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                let exact: f64 = (0..depth).map(|k| f64::from(left[i * depth + k]) * f64::from(right[k * columns + j])).sum();
                assert!((f64::from(result[i * columns + j]) - exact).abs() < 1e-5, "{rows} {columns} {depth}");
                assert!((f64::from(other[j * rows + i]) - 1.0 - exact).abs() < 1e-5, "{rows} {columns} {depth}");
            }
        }
    }

    #[test]
    fn a_row_of_a_product_is_the_same_whatever_rows_are_beside_it() {
        // Clause 2 of `Contributions`, to the last bit: products of at least two rows take one path through the kernel.
        for (depth, columns) in [(64, 16), (784, 100), (100, 10), (27, 32), (300, 1), (31, 7)] {
            let (left, right) = (numbers(70 * depth), numbers(depth * columns));
            let b = Matrix::new(&right, columns);
            let mut all = vec![0.0; 70 * columns];
            multiply(Matrix::new(&left, depth), b, &mut all, columns, Into::Overwrite);
            for (from, to) in [(0, 1), (3, 4), (0, 2), (5, 8), (60, 70), (1, 34)] {
                let mut some = vec![0.0; (to - from) * columns];
                multiply(Matrix::new(&left[from * depth..to * depth], depth), b, &mut some, columns, Into::Overwrite);
                let same = some.iter().zip(&all[from * columns..]).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
                assert_eq!(same, 0, "rows {from}..{to} at depth {depth}, {columns} columns");
            }
        }
    }
}
