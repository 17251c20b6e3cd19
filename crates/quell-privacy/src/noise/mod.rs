//! Where chance comes from, and how it becomes noise without a floating-point number in between.
//!
//! A sampler that works in floating point leaves traces of the value under the noise in the last bits of what it returns
//! [Mir12]. Here values lie on a grid and noise is an integer, so there are no such bits: `exact` has the discrete
//! distributions, `rounded` the continuous ones rounded to a fine grid, `select` and `ladder` choose among candidates. Nothing here
//! knows a record or a budget: noise alone tells nothing, and what it costs is `accounting`'s business.

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
