//! Randomness, and how it becomes noise without an intermediate floating-point number.
//!
//! A sampler that works in floating point leaves traces of the value under the noise in the last bits of its
//! result [Mir12]. Here values lie on a grid and noise is an integer, so there are no such bits. `exact`
//! draws from discrete distributions. `rounded` draws from continuous distributions rounded to a fine grid.
//! `select` and `ladder` choose among candidates. Nothing here depends on records or budgets; `accounting`
//! computes what the noise costs.

pub mod bench;
mod blocks;
pub(crate) mod exact;
mod fixed;
pub(crate) mod ladder;
pub(crate) mod random;
pub(crate) mod rounded;
pub(crate) mod select;
#[cfg(test)]
pub(crate) mod tests;
