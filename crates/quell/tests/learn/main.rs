//! The parts of a learner that are functions of numbers: against PyTorch, against their formulas, and at their edges.
#![allow(missing_docs, clippy::unwrap_used)]

mod average;
mod bayes;
mod convex;
mod golden;
mod loss;
mod optimizer;
mod schedule;

/// Numbers without pattern in [-1, 1), the same in every run (SplitMix64).
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let number = |index: u64| {
        let mut z = (seed << 32).wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (1..=count as u64).map(number).collect()
}

#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance * (1.0 + expected.abs()),
        "{found} is not {expected} to {tolerance}"
    );
}
