//! What distinguishes the algorithms whose steps are noisy sums.

use quell_privacy::{mechanism::Sampling, units::SamplingRate};

use super::{Algorithm, Family, Recipe, stages::Stage, theory::Theory};
use crate::{Error, learner::average::Average};

/// How an algorithm takes its steps, before the noise is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    /// Number of steps without a setting.
    pub(super) usual_steps: u64,
    /// How the batch of a step is sampled.
    pub(super) sampling: Sampling,
    /// For this many steps, one run more finds means of columns and one finds spreads; `None` if none does.
    pub(super) standardizing: Option<u64>,
    /// What the steps are used for.
    pub(super) uses: Uses,
    /// How much of the last step the next one repeats.
    pub(super) momentum: f64,
    /// How the iterates become the model.
    pub(super) averaging: Averaging,
    /// The factor of gradients before they are clipped to length one.
    pub(super) gradient_scale: f64,
    /// How the learning rate is chosen without a setting.
    pub(super) rate: Rate,
    /// Whether a penalty of the weights multiplies them in every step, and so bounds the learning rate.
    pub(super) penalty_shrinks: bool,
}

/// What the steps of an algorithm are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uses {
    /// All steps are gradients.
    Gradients,
    /// All steps are second moments.
    Moments,
    /// Second moments first, as many as two sevenths of the gradients, which follow.
    MomentsAndGradients,
    /// Epochs of reference gradients and epochs of corrections alternate; the number is that of batches in an epoch.
    Alternating(u32),
}

/// How the iterates become the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Averaging {
    /// The mean of the last three tenths of the iterates.
    LastThreeTenths,
    /// The mean of the second half of the iterates.
    LastHalf,
    /// The mean of all iterates, or that of a strongly convex loss if there is a penalty.
    Convex,
    /// The last iterate is the model.
    Last,
}

/// How a learning rate is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rate {
    /// By what was found on tables, for standardised columns.
    Measured,
    /// By the theory of excess risk.
    Theory,
    /// This number.
    Fixed(f64),
}

/// Default number of gradient steps of logistic regression. Twice as many gain nothing (docs/evidence.md).
///
/// All other losses have twice as many: with longer steps they diverge where all columns say the same.
pub(super) const STEPS: u64 = 45;
/// Sampling rate of stochastic gradient descent.
pub(super) const RATE: f64 = 0.02;
/// Batches in an epoch of variance reduction.
const BATCHES: u32 = 10;

impl Rules {
    /// The rules of the algorithm that a recipe names; refused if its steps are no noisy sums.
    pub(super) fn new(
        recipe: &Recipe,
        (family, classes): (Family, Option<usize>),
        theory: &Theory,
    ) -> Result<Self, Error> {
        let poisson = |usual: f64| -> Result<Sampling, Error> {
            Ok(Sampling::Poisson { rate: SamplingRate::new(recipe.sampling_rate.unwrap_or(usual))? })
        };
        let has_classes = classes.is_some();
        // Slopes are at most one for classes, and so are examples on the declared bounds.
        let declared = Self {
            usual_steps: theory.steps,
            sampling: Sampling::Full,
            standardizing: None,
            uses: Uses::Gradients,
            momentum: 0.0,
            averaging: Averaging::Convex,
            gradient_scale: 1.0,
            rate: Rate::Theory,
            penalty_shrinks: true,
        };
        let standardized = Self {
            usual_steps: if family == Family::Logistic { STEPS } else { 2 * STEPS },
            standardizing: Some(18),
            momentum: if has_classes { 0.8 } else { 0.9 },
            averaging: if has_classes { Averaging::LastThreeTenths } else { Averaging::LastHalf },
            gradient_scale: if has_classes { 7.0 } else { 1.5 },
            rate: Rate::Measured,
            ..declared
        };
        Ok(match recipe.method {
            Algorithm::Standardized => standardized,
            Algorithm::NoisyGd => declared,
            Algorithm::NoisySgd => Self { sampling: poisson(theory.sampling_rate)?, ..declared },
            Algorithm::Sgld => Self {
                usual_steps: 20 * (1.0 / RATE) as u64,
                sampling: poisson(RATE)?,
                // The last iterate is the sample.
                averaging: Averaging::Last,
                ..declared
            },
            Algorithm::Svrg => Self {
                usual_steps: 10 * u64::from(BATCHES),
                sampling: Sampling::Shuffled { batches: BATCHES },
                uses: Uses::Alternating(BATCHES),
                ..declared
            },
            Algorithm::Adassp => Self {
                usual_steps: 18,
                uses: Uses::Moments,
                momentum: 0.0,
                averaging: Averaging::Last,
                rate: Rate::Fixed(1.0),
                ..standardized
            },
            Algorithm::Newton => Self {
                usual_steps: 30,
                standardizing: Some(14),
                uses: Uses::MomentsAndGradients,
                momentum: 0.5,
                averaging: Averaging::LastHalf,
                rate: Rate::Fixed(0.3),
                // Newton's method divides by the weight of the penalty or more.
                penalty_shrinks: false,
                ..standardized
            },
            Algorithm::OutputPerturbation
            | Algorithm::ObjectivePerturbation
            | Algorithm::HiddenState
            | Algorithm::FrankWolfe
            | Algorithm::OnePosterior => {
                return Err(Error::Setting {
                    name: "method",
                    found: format!("{}, which another type plans", recipe.method.name()),
                    expected: "a method whose steps are noisy sums, such as standardized or newton",
                });
            }
        })
    }

    /// The average of this many iterates that becomes the model.
    pub(super) fn average(&self, steps: u64, regularization: f64) -> Average {
        match self.averaging {
            Averaging::LastThreeTenths => Average::Uniform { skip: 7 * (steps / 10) },
            Averaging::LastHalf => Average::Uniform { skip: steps / 2 },
            Averaging::Last => Average::None,
            // The rate of a strongly convex loss needs this average.
            Averaging::Convex if regularization > 0.0 => Average::Linear,
            Averaging::Convex => Average::Uniform { skip: 0 },
        }
    }

    /// What all runs are for, in their order: the steps, and the runs that find means and spreads before them.
    ///
    /// Steps of [`Uses::Alternating`] alternate.
    pub(super) fn stages(&self, steps: u64, has_numbers: bool, is_calibrated: bool) -> Vec<(Stage, u64)> {
        let part_of = |whole: u64| ((steps + whole / 2) / whole).max(1);
        let mut stages = Vec::new();
        if let Some(part) = self.standardizing.map(part_of) {
            stages.push((Stage::Means, part));
            stages.extend(has_numbers.then_some((Stage::Deviations, part)));
        }
        match self.uses {
            Uses::Gradients => stages.push((Stage::Gradient, steps)),
            Uses::Moments => stages.push((Stage::Moments, steps)),
            Uses::MomentsAndGradients => {
                stages.extend([(Stage::Moments, (2 * steps).div_ceil(7)), (Stage::Gradient, steps)]);
            }
            Uses::Alternating(batches) => {
                let steps = steps.next_multiple_of(batches.into());
                stages.extend([(Stage::Reference, steps), (Stage::Correction, steps)]);
            }
        }
        stages.extend(is_calibrated.then_some((Stage::Calibration, part_of(22))));
        stages
    }
}
