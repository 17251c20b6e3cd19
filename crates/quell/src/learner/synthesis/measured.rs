//! Averages of noisy counts.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
