//! Whether training has settled, as far as released gradient sums show.

use serde::{Deserialize, Serialize};

use crate::learner::signal::is_noise;

/// How much the clipped gradients of the last steps agreed with each other.
///
/// If all gradients are clipped and point the same way, their mean is as long as the clip norm. At a minimum
/// they cancel. The length of the mean is estimated from the released sum, whose noise has a public size. So
/// this costs nothing more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::learner) struct Agreement {
    /// The running mean of the squared length of the mean gradient, over the squared clip norm.
    square: f64,
    /// The variance of `square`.
    variance: f64,
    /// Number of steps.
    count: u64,
    /// The squared lengths of all sums, in units of the noise. Earlier versions did not keep it.
    #[serde(default)]
    squares: f64,
    /// The numbers in all these sums.
    #[serde(default)]
    numbers: f64,
    /// What `squares` would have besides noise, if all gradients were clipped and agreed.
    #[serde(default)]
    most: f64,
}

/// How much of the last steps counts: about ten of them.
const DECAY: f64 = 0.9;
/// The share of the clip norm from which on training has not settled.
const LEAST: f64 = 0.5;
/// Standard deviations by which the estimate must exceed the square of this share.
const MARGIN: f64 = 6.0;

/// The share of the clip norm that the mean gradient of any records has, over the steps of a run.
const FAINT: f64 = 0.1;

impl Agreement {
    /// Adds a released sum, with the standard deviation of its noise.
    ///
    /// `longest` is the length of the sum if all gradients of the expected batch are clipped and agree.
    pub(super) fn add(&mut self, sum: &[f32], noise: f64, longest: f64) {
        // The squared length of d noises has mean dσ² and variance 2dσ⁴.
        let (dimension, unit) = (sum.len() as f64, (noise / longest).powi(2));
        let length: f64 = sum.iter().map(|x| (f64::from(*x) / longest).powi(2)).sum();
        self.count = self.count.saturating_add(1);
        self.squares += length / unit;
        self.numbers += dimension;
        self.most += 1.0 / unit;
        let share = (1.0 - DECAY).max(1.0 / self.count as f64);
        self.square += share * (length - dimension * unit - self.square);
        let own = 2.0 * dimension * unit * unit;
        self.variance = (1.0 - share).powi(2) * self.variance + share * share * own;
    }

    /// Whether no sum so far can be told from noise, although gradients that agree a little could be.
    pub(in crate::learner) fn is_noise(&self) -> bool {
        let little = self.numbers + FAINT * FAINT * self.most;
        self.numbers > 0.0 && is_noise(self.squares, self.numbers) && !is_noise(little, self.numbers)
    }

    /// The length of the mean gradient over the clip norm, if it shows that training has not settled.
    pub(in crate::learner) fn unsettled(&self) -> Option<f64> {
        let least = self.square - MARGIN * self.variance.sqrt();
        (self.count > 1 && least > LEAST * LEAST).then(|| self.square.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_that_agree_are_seen_and_noise_alone_is_not() {
        let mut agreed = Agreement::default();
        let mut cancelled = Agreement::default();
        for step in 0..50 {
            // Noise of one: its squared length in 400 dimensions is 400.
            let noise = |k: usize| if (k + step).is_multiple_of(2) { 1.0 } else { -1.0 };
            let sum: Vec<f32> = (0..400).map(noise).collect();
            cancelled.add(&sum, 1.0, 100.0);
            let sum: Vec<f32> = sum.iter().map(|x| x + 4.5).collect();
            agreed.add(&sum, 1.0, 100.0);
        }
        // The mean has a length of 4.5·√400 = 90.
        assert!((agreed.unsettled().unwrap() - 0.9).abs() < 0.01, "{agreed:?}");
        assert_eq!(cancelled.unsettled(), None);
        assert!(cancelled.is_noise() && !agreed.is_noise() && !Agreement::default().is_noise());
    }

    #[test]
    fn noise_that_could_explain_the_length_is_no_sign() {
        let mut short = Agreement::default();
        for _ in 0..50 {
            short.add(&[60.0, 0.0], 100.0, 100.0);
        }
        assert_eq!(short.unsettled(), None);
        assert!(!short.is_noise(), "nothing could be seen in so much noise");
    }
}
