//! Entry points for `examples/bench_noise.rs`, not part of the library.
//!
//! They draw noise without data, so they reveal nothing and charge nothing.

use super::{
    exact::{Ratio, discrete_gaussian, discrete_laplace},
    random::Key,
    rounded::{Shape, add_on},
};
use crate::{Error, units::Scale};

/// Adds rounded Gaussian noise on the given number of threads.
pub fn gaussian(threads: usize, indices: &mut [i64]) -> Result<(), Error> {
    add_on(threads, Shape::Gaussian, &Key::fresh()?, indices);
    Ok(())
}

/// Adds rounded Laplace noise on the given number of threads.
pub fn laplace(threads: usize, indices: &mut [i64]) -> Result<(), Error> {
    add_on(threads, Shape::Laplace, &Key::fresh()?, indices);
    Ok(())
}

/// Fills a slice with draws from the discrete Gaussian distribution.
pub fn exact_gaussian(scale: Scale, numbers: &mut [i64]) -> Result<(), Error> {
    let mut stream = Key::fresh()?.stream(0);
    numbers.fill_with(|| discrete_gaussian(Ratio::above(scale), &mut stream));
    Ok(())
}

/// Fills a slice with draws from the discrete Laplace distribution.
pub fn exact_laplace(scale: Scale, numbers: &mut [i64]) -> Result<(), Error> {
    let mut stream = Key::fresh()?.stream(0);
    numbers.fill_with(|| discrete_laplace(Ratio::above(scale), &mut stream));
    Ok(())
}

/// Draws random bytes only, to measure the cipher's share of the time.
pub fn bytes(bytes: &mut [u8]) -> Result<(), Error> {
    Key::fresh()?.stream(0).fill(bytes);
    Ok(())
}
