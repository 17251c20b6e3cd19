//! Times the accountant on the four rows of `make bench`, one JSON object a line; benches/accounting.py sets the peers beside it.

// A benchmark needs a clock; the walls are those of the library.
#![allow(clippy::disallowed_types)]

use std::time::Instant;

use quell_privacy::{
    Bound, Error, Event, Neighbors,
    accounting::{Calibration, Conversion, Pld, Renyi, Target},
    units::{Delta, Epsilon, NoiseMultiplier, SamplingRate},
};

fn step(rate: f64, sigma: f64) -> Result<Event, Error> {
    Ok(Event::gaussian(NoiseMultiplier::new(sigma)?).poisson_sampled(SamplingRate::new(rate)?))
}

/// Best of several runs: at least five, for at least a second.
fn best<T>(mut run: impl FnMut() -> Result<T, Error>) -> Result<(f64, T), Error> {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    for round in 0.. {
        let start = Instant::now();
        let value = run()?;
        best = best.min(start.elapsed().as_secs_f64());
        if round >= 4 && begin.elapsed().as_secs_f64() > 1.0 {
            return Ok((best, value));
        }
    }
    unreachable!("the loop returns")
}

fn print(row: &str, accountant: &str, seconds: f64, bound: Bound, value: Option<f64>) {
    let lower = if bound.lower > 0.0 { bound.lower.to_string() } else { "null".to_owned() };
    let value = value.map_or_else(|| "null".to_owned(), |v| v.to_string());
    println!(
        r#"{{"row": "{row}", "accountant": "{accountant}", "seconds": {seconds}, "lower": {lower}, "upper": {}, "value": {value}}}"#,
        bound.upper
    );
}

fn main() -> Result<(), Error> {
    let neighbors = Neighbors::AddRemove;
    let distinct: Result<Vec<Event>, Error> =
        (0..1000).map(f64::from).map(|i| step(0.005 + 1e-5 * i, 0.9 + 1e-3 * i)).collect();
    let rows = [
        ("one_run", step(0.01, 1.1)?.repeated(10_000), 1e-5),
        ("thousand_distinct", Event::Composed(distinct?), 1e-5),
        ("million_steps", step(0.001, 1.0)?.repeated(1_000_000), 1e-6),
    ];
    for (row, event, delta) in &rows {
        let delta = Delta::new(*delta)?;
        let (seconds, bound) = best(|| Pld::default().epsilon(event, neighbors, delta))?;
        print(row, "pld", seconds, bound, None);
        let (seconds, bound) = best(|| Ok(Renyi::new(event, neighbors)?.epsilon(delta, Conversion::Tight)))?;
        print(row, "rdp", seconds, bound, None);
    }
    let (epsilon, delta, rate) = (Epsilon::new(2.0)?, Delta::new(1e-5)?, SamplingRate::new(0.01)?);
    let calibration = Calibration::new(Target::EpsilonDelta { epsilon, delta }, neighbors);
    let (seconds, noise) = best(|| calibration.least_noise(|z| Event::dp_sgd(z, rate, 6000)))?;
    let judge = Pld { relative: 4e-4, absolute: 1e-5, ..Pld::default() };
    let bound = judge.epsilon(&Event::dp_sgd(noise, rate, 6000), neighbors, delta)?;
    print("calibrate", "pld", seconds, bound, Some(noise.get()));
    Ok(())
}
