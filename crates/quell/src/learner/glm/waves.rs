//! The waves of an additive model: how many there are, and how large.

use quell_privacy::mechanism::Descent;

use super::{Columns, Plan};
use crate::Error;

/// The most waves of a number.
pub(super) const MOST_WAVES: usize = 8;

/// The waves of a number where records are few: curves that stay close to lines.
const FEW_WAVES: usize = 2;

/// The fewest records for each unit of noise in a sum and each root of a column, for curves.
const LEAST_FOR_CURVES: f64 = 150.0;

/// The fewest records for each column of numbers, for all waves.
const LEAST_FOR_ALL_WAVES: usize = 100;

/// Chooses the number of waves from public facts.
///
/// There is none if the noise is large for each column: lines predict as well there. There are two if records are
/// few for each column of numbers: eight weights more for each fit chance, even without noise. Both thresholds were
/// found on tables (docs/evidence.md).
pub(super) fn curves(descent: &Descent, runs: u64, records: u64, columns: &Columns) -> u64 {
    let noise = descent.noise_multiplier.get() / (runs as f64).sqrt();
    if records as f64 / (noise * (columns.count as f64).sqrt()) < LEAST_FOR_CURVES {
        return 0;
    }
    let are_few = records < (LEAST_FOR_ALL_WAVES * columns.numbers()) as u64;
    if are_few { FEW_WAVES as u64 } else { MOST_WAVES as u64 }
}

/// The amplitudes of a number of waves. Curves of one or two waves stay close to lines.
pub(super) fn amplitudes(waves: u64) -> Result<Vec<f32>, Error> {
    if waves > MOST_WAVES as u64 {
        let expected = "a number in [0, 8]";
        return Err(Error::Setting { name: "waves", found: waves.to_string(), expected });
    }
    let [strength, decay] = if waves <= FEW_WAVES as u64 { [0.5, 1.0] } else { [1.0, 0.5] };
    Ok((1..=waves).map(|order| (strength * (order as f64).powf(-decay)) as f32).collect())
}

impl Plan {
    /// The sum of the squared amplitudes of the waves of a number, over that of the number.
    pub(super) fn wave_power(&self) -> f64 {
        self.waves.iter().map(|amplitude| f64::from(*amplitude).powi(2)).sum()
    }

    /// Whether an additive model has straight lines without a setting, because curves would fit noise.
    pub(super) fn is_too_noisy_for_curves(&self) -> bool {
        curves(&self.descent, self.runs, self.records, &self.columns) == 0
    }
}
