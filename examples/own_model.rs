//! An own model: a function that writes the gradient of one record is all that Quell needs.

use quell::{
    ledger::InMemory,
    privacy::{
        mechanism::{Clipping, Descent, PerRecord, Sampling},
        units::{ClipNorm, Delta, Epsilon, NoiseMultiplier, SamplingRate},
    },
};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (records, steps, rate) = (5000, 200, 0.05);
    let data: Vec<(f32, f32)> = (0..records).map(|i| i as f32 / 2500.0 - 1.0).map(|x| (x, 0.7 * x)).collect();
    let mut ledger = InMemory::ledger("line", Epsilon::new(4.0)?, Delta::new(1e-5)?)?;
    let descent = Descent {
        sampling: Sampling::Poisson { rate: SamplingRate::new(rate)? },
        clipping: Clipping::Flat { norm: ClipNorm::new(1.0)? },
        noise_multiplier: NoiseMultiplier::new(2.0)?,
        dimension: 1,
    };
    let mut slope = 0.0_f32;
    for paid in ledger.reserve(descent, steps)? {
        // The gradient of (slope · x - y)² / 2 at one record.
        let gradient = |record: usize, out: &mut [f32]| {
            let (x, y) = data[record];
            out[0] = (slope * x - y) * x;
        };
        let step =
            paid?.start(records)?.next(&mut PerRecord::new(1, gradient)).ok_or("one batch a run")??;
        slope -= step.sum[0] / (rate as f32 * records as f32);
    }
    assert!((slope - 0.7).abs() < 0.2, "{slope}");
    Ok(())
}
