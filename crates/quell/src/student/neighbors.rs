//! Nearest neighbours among the rows of one matrix, exactly, by blocks of products.

use rayon::prelude::*;

use crate::kernel::product::{Into, Matrix, multiply};

/// Rows of a block: its distances to some thousands of rows stay in the cache of one core.
const BLOCK: usize = 64;

/// The squared length of each row.
pub(super) fn squares(points: &[f32], width: usize) -> Vec<f32> {
    points.par_chunks_exact(width).map(|row| row.iter().map(|x| x * x).sum()).collect()
}

/// Hands to `each`, for every row of `points`, its squared distances to all rows of `others`, and collects what it makes of them.
pub(super) fn distances<T: Send>(
    points: &[f32],
    others: &[f32],
    width: usize,
    each: impl Fn(usize, &[f32]) -> T + Sync,
) -> Vec<T> {
    let (own, theirs) = (squares(points, width), squares(others, width));
    let blocks = points.par_chunks(BLOCK * width).enumerate();
    let each = &each;
    blocks
        .flat_map_iter(|(block, rows)| {
            let mut products = vec![0.0; rows.len() / width * theirs.len()];
            multiply(
                Matrix::new(rows, width),
                Matrix::new(others, width).transposed(),
                &mut products,
                theirs.len(),
                Into::Overwrite,
            );
            let mut found = Vec::with_capacity(BLOCK);
            for (place, distances) in products.chunks_exact_mut(theirs.len()).enumerate() {
                let row = block * BLOCK + place;
                // ‖a - b‖² = ‖a‖² + ‖b‖² - 2ab, which rounding may bring below zero.
                distances.iter_mut().zip(&theirs).for_each(|(d, square)| *d = (own[row] + square - 2.0 * *d).max(0.0));
                found.push(each(row, distances));
            }
            found
        })
        .collect()
}

/// For each row the nearest others with their squared distances, nearest first; of equally near ones those that stand first.
pub(super) fn nearest(points: &[f32], width: usize, count: usize) -> Vec<Vec<(usize, f32)>> {
    distances(points, points, width, |row, distances| {
        let mut others: Vec<(usize, f32)> = distances.iter().copied().enumerate().filter(|(other, _)| *other != row).collect();
        let before = |a: &(usize, f32), b: &(usize, f32)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
        if count < others.len() {
            others.select_nth_unstable_by(count, before);
            others.truncate(count);
        }
        others.sort_unstable_by(before);
        others
    })
}
