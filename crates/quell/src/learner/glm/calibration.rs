//! When a linear model is calibrated, and how its releases are used.

use quell_privacy::units::Delta;

use super::{Plan, Recipe};
use crate::{
    Error,
    learner::{
        calibration::{Calibration, Correction},
        loss::Loss,
    },
};

/// The least number of records, in noise multipliers of a step, with which predictions are calibrated.
///
/// With fewer records, the correction is mostly noise (docs/evidence.md).
const CALIBRATED: f64 = 40.0;

/// The calibration that the settings ask for, or the usual one for these records, steps and δ.
pub(super) fn chosen(
    recipe: &Recipe,
    (loss, outputs): (Loss, usize),
    (records, steps, delta): (u64, u64, Delta),
) -> Result<Option<Calibration>, Error> {
    let usual = Calibration::of(loss, outputs).filter(|_| recipe.method.standardizes());
    match (usual, recipe.calibration) {
        (None, Some(true)) => Err(Error::Setting {
            name: "calibration",
            found: "true, and the method or the model has none".into(),
            expected: "false, or a model that predicts probabilities or expected numbers",
        }),
        (None, _) | (_, Some(false)) => Ok(None),
        (calibration, Some(true)) => Ok(calibration),
        (calibration, None) => {
            // The noise of a step, as if there were as many Gaussian releases.
            let noise = recipe.privacy.gaussian_noise(delta, steps)?;
            Ok(calibration.filter(|_| records as f64 >= CALIBRATED * noise))
        }
    }
}

impl Plan {
    /// The correction of the fitted model, from the sum of `releases` releases.
    pub(super) fn correction(&self, sum: &[f64], releases: u64) -> Correction {
        let Some(calibration) = self.calibration.filter(|_| releases > 0) else { return Correction::NONE };
        let releases = releases as f64;
        let mean: Vec<f64> = sum.iter().map(|x| x / releases).collect();
        let noise = self.descent.noise_multiplier.get() / releases.sqrt();
        calibration.correction(&mean, self.records as f64, noise)
    }
}
