//! The waves of an additive model: how many there are, and how large.

use quell_privacy::mechanism::Descent;

use super::Plan;
use crate::Error;

/// The most waves of a number.
pub(super) const MOST_WAVES: usize = 8;

/// Chooses the number of waves: eight where noise is small for each column, or none.
///
/// The threshold was found on five tables (docs/evidence.md): with fewer records, lines predict as well as curves.
pub(super) fn curves(descent: &Descent, runs: u64, records: u64, columns: usize) -> u64 {
    let noise = descent.noise_multiplier.get() / (runs as f64).sqrt();
    if records as f64 / (noise * (columns as f64).sqrt()) < 150.0 { 0 } else { MOST_WAVES as u64 }
}

/// The amplitudes of a number of waves. Curves of one or two waves stay close to lines.
pub(super) fn amplitudes(waves: u64) -> Result<Vec<f32>, Error> {
    if waves > MOST_WAVES as u64 {
        let expected = "a number in [0, 8]";
        return Err(Error::Setting { name: "waves", found: waves.to_string(), expected });
    }
    let [strength, decay] = if waves <= 2 { [0.5, 1.0] } else { [1.0, 0.5] };
    Ok((1..=waves).map(|order| (strength * (order as f64).powf(-decay)) as f32).collect())
}

impl Plan {
    /// The sum of the squared amplitudes of the waves of a number, over that of the number.
    pub(super) fn wave_power(&self) -> f64 {
        self.waves.iter().map(|amplitude| f64::from(*amplitude).powi(2)).sum()
    }

    /// Whether an additive model has straight lines without a setting, because curves would fit noise.
    pub(super) fn is_too_noisy_for_curves(&self) -> bool {
        curves(&self.descent, self.runs, self.records, self.columns.count) == 0
    }
}
