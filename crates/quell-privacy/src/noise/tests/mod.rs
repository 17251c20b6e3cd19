//! Checks that noise has the distribution that was charged for.
//!
//! Each test also rejects wrong noise. Seeds are fixed, so results are repeatable. At the chosen thresholds correct noise fails once in a
//! million.

mod blocks;
mod exact;
mod ladder;
mod random;
mod rounded;
mod select;

use super::random::{Randomness, Stream};

/// ln of one over the false-alarm rate of 10⁻⁶.
const SURPRISE: f64 = 13.815_510_557_964_274;

/// A stream for one test.
pub(crate) fn stream(seed: u64) -> Stream {
    Randomness::seeded(seed).key().unwrap().stream(0)
}

/// Whether numbers come from the distribution with P[X ≤ k] = `up_to(k)`.
///
/// By [Mas90]: the empirical distribution function of n numbers is farther than √(ln(2/α)/2n) from the true
/// one with probability at most α, for every distribution.
fn fits(numbers: &[i64], up_to: impl Fn(i64) -> f64) -> bool {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let n = sorted.len() as f64;
    let bound = ((SURPRISE + 2_f64.ln()) / (2.0 * n)).sqrt();
    let mut seen = 0;
    for same in sorted.chunk_by(|a, b| a == b) {
        let before = (seen as f64 / n - up_to(same[0] - 1)).abs();
        seen += same.len();
        let after = (seen as f64 / n - up_to(same[0])).abs();
        if before.max(after) > bound {
            return false;
        }
    }
    true
}

/// Whether counts come from these probabilities.
///
/// Pearson's statistic is nearly χ² with d degrees of freedom, which exceeds d + 2√(dx) + 2x with probability
/// at most e^-x [LM00, Lemma 1].
pub(crate) fn agrees(counts: &[u64], probabilities: &[f64]) -> bool {
    assert_eq!(counts.len(), probabilities.len());
    let n = counts.iter().sum::<u64>() as f64;
    let statistic: f64 =
        counts.iter().zip(probabilities).map(|(&count, p)| (count as f64 - n * p).powi(2) / (n * p)).sum();
    let d = (counts.len() - 1) as f64;
    statistic <= d + 2.0 * (d * SURPRISE).sqrt() + 2.0 * SURPRISE
}

/// Whether the failures are consistent with a failure rate of one in twenty.
///
/// By Chernoff's bound: f successes in n Bernoulli draws of probability at most p < f/n have probability at
/// most e^(-n D(f/n‖p)).
pub(crate) fn one_in_twenty(failures: usize, runs: usize) -> bool {
    let (share, p) = (failures as f64 / runs as f64, 0.05);
    let term = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    share <= p || runs as f64 * (term(share, p) + term(1.0 - share, 1.0 - p)) <= SURPRISE
}

/// Whether a Bernoulli draw succeeds with this probability.
fn is_coin(probability: f64, tosses: u64, mut coin: impl FnMut() -> bool) -> bool {
    let ones = (0..tosses).filter(|_| coin()).count() as u64;
    agrees(&[ones, tosses - ones], &[probability, 1.0 - probability])
}

/// Whether pairs are uncorrelated.
///
/// √n r is nearly standard normal, and 4.9 is exceeded once in a million.
fn uncorrelated(left: &[i64], right: &[i64]) -> bool {
    let product = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(&a, &b)| a as f64 * b as f64).sum::<f64>();
    let correlation = product(left, right) / (product(left, left) * product(right, right)).sqrt();
    correlation.abs() * (left.len() as f64).sqrt() < 4.9
}

/// How many numbers have each remainder, to test that none is avoided.
fn remainders(numbers: &[i64], modulus: i64) -> Vec<u64> {
    let mut counts = vec![0; modulus as usize];
    for number in numbers {
        counts[number.rem_euclid(modulus) as usize] += 1;
    }
    counts
}
