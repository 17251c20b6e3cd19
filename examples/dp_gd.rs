//! DP gradient descent: clip before averaging, noise on the mean, all iterates released.
//!
//! w₀ = 0, and wₜ = wₜ₋₁ - η(ĝₜ + N(0, λ²I)), where ĝₜ is the mean over n records of gradients that are clipped to
//! length C. A record is replaced, so ĝₜ moves by at most 2C/n.

use quell::{
    learner::convex::{DpGdNoise, Glm, Logistic},
    ledger::InMemory,
    privacy::{
        Event, Neighbors,
        accounting::closed,
        ledger::{Budget, Composition, Ledger, Terms, Unit},
        mechanism::{Clipping, Descent, PerRecord, Sampling},
        units::{ClipNorm, Delta, Epsilon, NoiseMultiplier},
    },
};

const RECORDS: usize = 4000;
const STEPS: u64 = 60;
const CLIP: f64 = 0.5;

/// Records on a circle, in the class of the half-plane that they lie in.
fn records() -> Vec<([f32; 2], f64)> {
    let angles = (0..RECORDS).map(|i| i as f32 * 2.399_963);
    angles.map(|angle| ([angle.cos(), angle.sin()], f64::from(u8::from(angle.cos() > 0.0)))).collect()
}

/// The two noises, and all iterates of a descent with the smaller one.
fn train() -> Result<(), Box<dyn std::error::Error>> {
    let (epsilon, delta, clip) = (Epsilon::new(1.0)?, Delta::new(1e-5)?, ClipNorm::new(CLIP)?);
    let noise = DpGdNoise::new(RECORDS as u64, STEPS, clip, epsilon, delta)?;
    // The noise multiplier is that of the sum, over C.
    let multiplier = |lambda: f64| NoiseMultiplier::new(lambda * RECORDS as f64 / CLIP);
    for (name, lambda) in [("basic composition", noise.basic), ("exact profile", noise.tight)] {
        let event = Event::gaussian(multiplier(lambda)?).repeated(STEPS);
        let cost = closed::epsilon(&event, Neighbors::Replace, delta)?;
        println!("{name}: λ = {lambda:.5}, so that ε ≤ {:.4}", cost.upper);
    }
    assert!(noise.basic > 10.0 * noise.tight);

    let records = records();
    let terms = Terms {
        dataset: "circle".into(),
        unit: Unit::Example,
        neighbors: Neighbors::Replace,
        budget: Budget { epsilon: Some(epsilon), delta },
        composition: Composition::Combined,
    };
    let mut ledger = Ledger::create(InMemory::new("circle"), terms)?;
    let descent = Descent {
        sampling: Sampling::Full,
        clipping: Clipping::Flat { norm: clip },
        // The ledger also charges for the rounding of the noise: a part in a thousand covers it.
        noise_multiplier: multiplier(1.001 * noise.tight)?,
        dimension: 2,
    };
    let mut iterates = vec![[0.0_f32; 2]];
    for paid in ledger.reserve(descent.clone(), STEPS)? {
        let [a, b] = iterates[iterates.len() - 1];
        let gradient = |record: usize, out: &mut [f32]| {
            let ([x, y], target) = records[record];
            let slope = Logistic { target }.derivative(f64::from(a * x + b * y)) as f32;
            out.copy_from_slice(&[slope * x, slope * y]);
        };
        let step =
            paid?.start(RECORDS)?.next(&mut PerRecord::new(2, gradient)).ok_or("one batch a run")??;
        // The sum is divided by the number of records, which is public where records are replaced.
        let eta = 4.0 / RECORDS as f32;
        iterates.push([a - eta * step.sum[0], b - eta * step.sum[1]]);
    }
    // All of w₁, …, w_T are released. The last one separates the half-planes.
    let [a, b] = iterates[STEPS as usize];
    println!("w₁ = {:.3?}, w_T = {:.3?}", iterates[1], [a, b]);
    assert!(iterates.len() as u64 == STEPS + 1 && a > 2.0 && b.abs() < 0.2 * a, "{a} {b}");
    // The budget is spent: not even one more step is sold.
    assert!(ledger.charge(descent).is_err());
    Ok(())
}

/// Clipping after averaging: what one record does to a mean.
fn clip_after_averaging() {
    let n = 1000_u32;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / f64::from(n);
    let before = |values: &[f64]| mean(&values.iter().map(|x| x.clamp(0.0, 1.0)).collect::<Vec<_>>());
    let after = |values: &[f64], most: f64| mean(values).clamp(0.0, most);
    // Neighbours: one record is replaced by a huge value.
    let zeros = vec![0.0; n as usize];
    let mut outlier = zeros.clone();
    outlier[0] = 1e6;
    let moved = before(&outlier) - before(&zeros);
    println!("clipped before averaging: one of {n} records moves the mean by {moved}");
    assert!(moved == 1.0 / f64::from(n));
    let moved = after(&outlier, 1.0) - after(&zeros, 1.0);
    println!("clipped to [0, 1] after averaging: by {moved}, whatever n is");
    assert!(moved == 1.0);
    // Clipping the mean to [0, 1/n] makes that small, and the answer wrong.
    let small = 1.0 / f64::from(n);
    assert!(after(&outlier, small) - after(&zeros, small) == small);
    let ones = vec![0.9; n as usize];
    let off = before(&ones) - after(&ones, small);
    println!("clipped to [0, 1/{n}] after averaging: a mean of 0.9 is off by {off:.3}");
    assert!((before(&ones) - 0.9).abs() < 1e-9 && off > 0.89);
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    train()?;
    clip_after_averaging();
    Ok(())
}
