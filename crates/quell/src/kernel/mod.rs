//! The performance-critical loops. They work on slices and know neither records nor layers.
//!
//! Images are stored with channels last (row, column, channel). So a patch consists of a few long runs, a
//! convolution is one matrix product for all examples of a chunk, and nothing has to be transposed. Only
//! `product` contains `unsafe` code.

pub(crate) mod balance;
pub(crate) mod numbers;
pub(crate) mod outer;
pub(crate) mod patches;
pub(crate) mod product;
pub(crate) mod search;

use std::{cell::Cell, sync::LazyLock};

/// The vector instructions of this machine, detected once.
static MACHINE: LazyLock<pulp::Arch> = LazyLock::new(pulp::Arch::new);

/// Runs a closure compiled for the vector instructions of this machine.
#[inline(always)]
pub(crate) fn fast<R>(work: impl FnOnce() -> R) -> R {
    MACHINE.dispatch(work)
}

thread_local! {
    static SCRATCH: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Lends a reusable buffer with arbitrary contents to `work`.
///
/// A nested call gets a newly allocated buffer.
pub(crate) fn scratch<R>(count: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut numbers = SCRATCH.take();
    if numbers.len() < count {
        numbers.resize(count, 0.0);
    }
    let result = work(&mut numbers[..count]);
    SCRATCH.set(numbers);
    result
}
