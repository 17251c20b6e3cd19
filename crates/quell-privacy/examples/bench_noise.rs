//! Times noise, one JSON object a line; benches/noise.py sets the peers beside it.

// A benchmark needs a clock; the walls are those of the library.
#![allow(clippy::disallowed_types)]

use std::{num::NonZero, thread, time::Instant};

use quell_privacy::{Error, bench, units::Scale};

/// Best of several runs: at least five, for at least a second.
fn best(
    name: &str,
    threads: usize,
    numbers: usize,
    mut run: impl FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    let mut rounds = 0;
    while rounds < 5 || begin.elapsed().as_secs_f64() < 1.0 {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
        rounds += 1;
    }
    println!(r#"{{"name": "{name}", "threads": {threads}, "numbers": {numbers}, "seconds": {best}}}"#);
    Ok(())
}

fn main() -> Result<(), Error> {
    let all = thread::available_parallelism().map_or(1, NonZero::get);
    for numbers in [1_000_000, 10_000_000] {
        let mut indices = vec![0_i64; numbers];
        for threads in [1, all] {
            best("rounded gaussian", threads, numbers, || bench::gaussian(threads, &mut indices))?;
            best("rounded laplace", threads, numbers, || bench::laplace(threads, &mut indices))?;
        }
    }
    let mut bytes = vec![0; 8_000_000];
    best("eight bytes of the cipher", 1, 1_000_000, || bench::bytes(&mut bytes))?;
    let mut numbers = vec![0; 100_000];
    for scale in [1.0, 1000.0] {
        let scale_checked = Scale::new(scale)?;
        best(&format!("discrete gaussian, scale {scale}"), 1, numbers.len(), || {
            bench::exact_gaussian(scale_checked, &mut numbers)
        })?;
        best(&format!("discrete laplace, scale {scale}"), 1, numbers.len(), || {
            bench::exact_laplace(scale_checked, &mut numbers)
        })?;
    }
    Ok(())
}
