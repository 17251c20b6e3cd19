//! Averages of noisy counts, and the nearest counts that are possible.

/// The average of noisy measurements of the same counts, the more exact ones with more weight.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// Σ wᵢ yᵢ / σ², where yᵢ = wᵢ · counts + σ · noise.
    weighted: Vec<f64>,
    /// Σ wᵢ² / σ².
    precision: f64,
}

impl Measured {
    /// Adds a release of `weight` times the counts, with noise of standard deviation `noise`.
    pub(super) fn add(&mut self, release: &[f64], weight: f64, noise: f64) {
        self.weighted.resize(release.len(), 0.0);
        let factor = weight / (noise * noise);
        for (sum, y) in self.weighted.iter_mut().zip(release) {
            *sum += factor * y;
        }
        self.precision += factor * weight;
    }

    /// Whether anything was measured.
    pub(super) fn is_empty(&self) -> bool {
        self.precision == 0.0
    }

    /// Unbiased estimates of the counts; empty if nothing was measured.
    pub(super) fn counts(&self) -> Vec<f64> {
        self.weighted.iter().map(|sum| sum / self.precision).collect()
    }

    /// The variance of each estimate.
    pub(super) fn variance(&self) -> f64 {
        self.precision.recip()
    }
}

/// The nearest numbers that are not negative and have this sum.
pub(super) fn possible(numbers: &[f64], sum: f64) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut total, mut shift) = (0.0, 0.0);
    for (count, number) in sorted.iter().enumerate() {
        total += number;
        let candidate = (total - sum) / (count + 1) as f64;
        if *number <= candidate {
            break;
        }
        shift = candidate;
    }
    numbers.iter().map(|number| (number - shift).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::PublicRandom;

    #[test]
    fn exact_measurements_count_more() {
        let mut measured = Measured::default();
        assert!(measured.is_empty() && measured.counts().is_empty());
        // Twice the counts with noise 1, then half the counts with noise 1: precisions 4 and 1/4.
        measured.add(&[20.0, 8.0], 2.0, 1.0);
        measured.add(&[2.0, 0.0], 0.5, 1.0);
        let counts = measured.counts();
        assert!((counts[0] - (10.0 * 4.0 + 4.0 * 0.25) / 4.25).abs() < 1e-12);
        assert!((counts[1] - 16.0 / 4.25).abs() < 1e-12);
        assert!((measured.variance() - 1.0 / 4.25).abs() < 1e-12);
    }

    /// The conditions of Karush, Kuhn and Tucker: positive numbers move alike, and the others would fall below.
    #[test]
    fn the_projection_is_the_nearest_possible_point() {
        let mut random = PublicRandom::new(4);
        for case in 0..200 {
            let numbers: Vec<f64> = (0..=case % 17).map(|_| f64::from(10.0 * random.normal())).collect();
            let sum = f64::from(random.between(0.5, 40.0));
            let found = possible(&numbers, sum);
            assert!((found.iter().sum::<f64>() - sum).abs() < 1e-9 && found.iter().all(|x| *x >= 0.0));
            let moves: Vec<f64> = numbers.iter().zip(&found).map(|(y, x)| y - x).collect();
            let shift = moves.iter().zip(&found).find(|(_, x)| **x > 0.0).unwrap().0;
            for (moved, x) in moves.iter().zip(&found) {
                assert!(if *x > 0.0 { (moved - shift).abs() < 1e-9 } else { *moved <= shift + 1e-9 });
            }
        }
    }
}
