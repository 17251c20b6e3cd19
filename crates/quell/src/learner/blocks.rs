//! Sums of blocks of records, on all threads.

use rayon::prelude::*;

use crate::kernel::numbers::add_totals;

/// Adds up blocks, each thread its share of them: `total` computes the sum of some blocks.
///
/// The order follows from the blocks and the number of threads, whichever thread is first.
pub(super) fn add_blocks(
    blocks: &[&[usize]],
    sum: &mut [f64],
    total: impl Fn(&[&[usize]]) -> Vec<f64> + Sync + Send,
) {
    let threads = rayon::current_num_threads().clamp(1, blocks.len().max(1));
    let per_thread = blocks.len().div_ceil(threads).max(1);
    let totals: Vec<Vec<f64>> = blocks.par_chunks(per_thread).map(total).collect();
    for total in &totals {
        add_totals(&mut sum[..total.len()], total);
    }
}
