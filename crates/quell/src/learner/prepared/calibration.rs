//! The run after the steps: one sum over all records, which corrects the scores of the fitted network.
//!
//! Gradients of unusual records are clipped, so a network is too sure of its predictions. With much noise and
//! few steps it is not sure enough. Both are mostly a matter of scale and offset (docs/evidence.md). The
//! correction becomes part of the last layer.

use quell_privacy::{
    mechanism::{Clipper, Clipping, Contributions, Descent, Sampling},
    units::{ClipNorm, Delta, NoiseMultiplier},
};

use super::Recalibration;
use crate::{
    Error,
    kernel::numbers::squared_length,
    layer::Spec,
    learner::{
        Privacy, Subject, Supervised,
        blocks::add_blocks,
        calibration::{Calibration, Correction},
        dp_sgd::Recipe,
    },
    network::{Architecture, Network, Task},
};

/// The last run of a plan: what it sums, and with which noise.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LastRun {
    calibration: Calibration,
    pub(super) descent: Descent,
}

/// Noise of the calibration, over that of one release with the whole guarantee.
///
/// Costs grow with one over the square of the noise, so a sixteenth of the budget is for the calibration.
const NOISE_RATIO: f64 = 4.0;

/// The least number of records, in noise multipliers of the calibration, with which a network is calibrated.
///
/// With fewer records, the correction is mostly noise (docs/evidence.md).
const CALIBRATED: f64 = 400.0;

impl LastRun {
    /// The calibration that the settings ask for, or the usual one for the guarantee and the records.
    ///
    /// Settings with a noise multiplier fix the steps and their cost, so nothing is added to them. Those of a
    /// run that was planned before are of this kind.
    pub(super) fn chosen(
        recipe: &Recipe,
        model: &Architecture,
        subject: &Subject<'_>,
        (records, delta): (u64, Delta),
    ) -> Result<Option<Self>, Error> {
        let Privacy { epsilon, noise_multiplier: of_steps, .. } = recipe.privacy;
        let asked = match recipe.calibration {
            Some(Recalibration::None {}) => return Ok(None),
            None if epsilon.is_none() || of_steps.is_some() => return Ok(None),
            asked => asked,
        };
        let Some(calibration) = suitable(recipe, model, subject) else {
            return asked.map_or(Ok(None), |_| {
                Err(Error::Setting {
                    name: "calibration",
                    found: "given, and the network has no such correction".into(),
                    expected: "none, or a network for classes whose last layer is linear",
                })
            });
        };
        let noise = match asked {
            Some(Recalibration::Scores { noise_multiplier: Some(noise) }) => noise,
            _ => {
                let whole = Privacy { delta: Some(delta.get()), noise_multiplier: None, ..recipe.privacy };
                NOISE_RATIO * whole.gaussian_noise(delta, 1)?
            }
        };
        if asked.is_none() && (records as f64) < CALIBRATED * noise {
            return Ok(None);
        }
        let descent = Descent {
            sampling: Sampling::Full,
            clipping: Clipping::Flat { norm: ClipNorm::new(1.0)? },
            noise_multiplier: NoiseMultiplier::new(noise)?,
            dimension: calibration.length(),
        };
        Ok(Some(Self { calibration, descent }))
    }

    /// Number of numbers in the release.
    pub(super) fn length(&self) -> usize {
        self.calibration.length()
    }

    /// The settings that yield the same run again.
    pub(super) fn settings(&self) -> Recalibration {
        Recalibration::Scores { noise_multiplier: Some(self.descent.noise_multiplier.get()) }
    }

    /// The vectors of all records, at the weights of the fitted network.
    pub(super) fn vectors<'a>(
        &self,
        network: &'a Network,
        weights: &'a [f32],
        records: &'a Supervised<'a>,
    ) -> Vectors<'a> {
        Vectors { calibration: self.calibration, network, weights, records }
    }

    /// Corrects the scores of a network by the released sum, in the weights of its last layer.
    pub(super) fn correct(&self, released: &[f32], records: u64, network: &Network, weights: &mut [f32]) {
        let sum: Vec<f64> = released.iter().map(|x| f64::from(*x)).collect();
        let noise = self.descent.noise_multiplier.get();
        let Correction { scale, offset } = self.calibration.correction(&sum, records as f64, noise);
        let (last, outputs) = (network.parts().last().copied().unwrap_or(0), network.outputs());
        let first = weights.len().saturating_sub(last);
        for weight in &mut weights[first..] {
            *weight = (scale * f64::from(*weight)) as f32;
        }
        // With two outputs, the score of the second class is their difference. With more, there is no offset.
        if let Some(bias) = weights.last_mut().filter(|_| outputs <= 2) {
            *bias += offset as f32;
        }
    }
}

/// The calibration of a network for classes; `None` if its last layer is not linear.
fn suitable(recipe: &Recipe, model: &Architecture, subject: &Subject<'_>) -> Option<Calibration> {
    let classes = subject.facts.classes?;
    let loss = recipe.loss(Some(classes));
    // All models that have a name end with a linear layer.
    let is_linear = model.layers.last().is_none_or(|last| matches!(last, Spec::Linear { .. }));
    Calibration::of(loss, loss.outputs(classes)).filter(|_| loss.classifies() && is_linear)
}

/// The vectors of all records in the calibration, of length at most one.
///
/// A record with several examples has the mean of their vectors. Each example passes through the network alone:
/// the last digit of an output may decide on its range, so no other example may change it.
pub(super) struct Vectors<'a> {
    calibration: Calibration,
    network: &'a Network,
    weights: &'a [f32],
    records: &'a Supervised<'a>,
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.calibration.length()
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let length = self.calibration.length();
        add_blocks(blocks, sum, |blocks| {
            let (mut total, mut vector, mut single) =
                (vec![0.0; length], vec![0.0; length], self.network.single());
            for record in blocks.iter().flat_map(|block| *block) {
                vector.fill(0.0);
                let examples = self.records.examples(*record);
                let fraction = 1.0 / examples as f32;
                for number in 0..examples {
                    let outputs =
                        single.outputs(self.weights, |input| self.records.gather(*record, number, input));
                    let target = self.records.target_of(*record, number);
                    self.calibration.add(outputs, target, fraction, &mut vector);
                }
                let mut scale = [0.0];
                clipper.scales(&[squared_length(&vector)], &mut scale);
                // Zero times a number that is not finite is not zero.
                if scale[0] != 0.0 {
                    for (total, x) in total.iter_mut().zip(&vector) {
                        *total += f64::from(scale[0]) * f64::from(*x);
                    }
                }
            }
            total
        });
    }
}

#[cfg(test)]
mod tests;
