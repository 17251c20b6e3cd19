//! The loops that decide the speed, on slices that are handed in. They know neither records nor layers.
//!
//! Images lie with channels last (row, column, channel), so that a patch is a few long runs, a convolution is one product for all examples of a chunk, and
//! no transposition is ever needed. `product` is the one place with `unsafe`.

pub(crate) mod balance;
pub(crate) mod numbers;
pub(crate) mod outer;
pub(crate) mod patches;
pub(crate) mod product;
pub(crate) mod search;

use std::{cell::Cell, sync::LazyLock};

/// The vector instructions of this machine, looked up once.
static MACHINE: LazyLock<pulp::Arch> = LazyLock::new(pulp::Arch::new);

/// Runs a loop compiled for them.
#[inline(always)]
pub(crate) fn fast<R>(work: impl FnOnce() -> R) -> R {
    MACHINE.dispatch(work)
}

thread_local! {
    static SCRATCH: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Lends numbers that nobody needs afterwards, of any value. Where they are lent twice at once, the second are new.
pub(crate) fn scratch<R>(count: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut numbers = SCRATCH.take();
    if numbers.len() < count {
        numbers.resize(count, 0.0);
    }
    let result = work(&mut numbers[..count]);
    SCRATCH.set(numbers);
    result
}
