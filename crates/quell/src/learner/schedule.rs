//! Learning-rate schedules. They depend on public numbers alone.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    range::{NOT_NEGATIVE, POSITIVE, UP_TO_ONE},
};

/// A learning rate that first rises linearly (warm-up), and then follows its shape.
///
/// ```
/// use quell::learner::schedule::Schedule;
/// let schedule: Schedule =
///     serde_json::from_str(r#"{"learning_rate": 0.5, "warm_up": 2, "shape": {"linear": {}}}"#)?;
/// let rates: Vec<f64> = (0..6).map(|step| schedule.learning_rate(step, 6)).collect();
/// assert_eq!(rates, [0.25, 0.5, 0.5, 0.375, 0.25, 0.125]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The largest learning rate, reached at the end of the warm-up.
    pub learning_rate: f64,
    /// Warm-up steps w. Step i, counted from zero, has (i + 1)/w of the largest learning rate.
    #[serde(default)]
    pub warm_up: u64,
    /// The learning rate after the warm-up.
    #[serde(default)]
    pub shape: Shape,
}

/// How the learning rate changes after the warm-up.
///
/// In the formulas, t counts the steps after the warm-up, and T is their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// It stays constant.
    #[default]
    Constant,
    /// It falls linearly to `last` times the largest rate.
    ///
    /// The step after the run would have that rate. So no step of the run has a rate of zero.
    Linear {
        /// Final learning rate divided by the largest.
        #[serde(default)]
        last: f64,
    },
    /// It falls along half a cosine wave.
    ///
    /// At step t it is (1 + cos πt/T)/2 of the way from `last` up to the largest rate.
    Cosine {
        /// Final learning rate divided by the largest.
        #[serde(default)]
        last: f64,
    },
    /// It is multiplied by a factor at every step.
    Exponential {
        /// The factor.
        factor: f64,
    },
    /// It is multiplied by a factor at regular intervals.
    Step {
        /// The factor.
        factor: f64,
        /// Steps between two multiplications.
        every: u64,
    },
    /// It falls as √(w/i) at the i-th step of the run.
    ///
    /// w is the number of warm-up steps, at least one.
    InverseSqrt,
}

impl Schedule {
    /// A constant learning rate.
    #[must_use]
    pub fn constant(learning_rate: f64) -> Self {
        Self { learning_rate, warm_up: 0, shape: Shape::Constant }
    }

    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        POSITIVE.check("learning_rate", self.learning_rate)?;
        match self.shape {
            Shape::Constant | Shape::InverseSqrt => Ok(()),
            Shape::Linear { last } | Shape::Cosine { last } => NOT_NEGATIVE.check("last", last),
            Shape::Exponential { factor } => UP_TO_ONE.check("factor", factor),
            Shape::Step { factor, every } => {
                UP_TO_ONE.check("factor", factor)?;
                POSITIVE.check("every", every as f64)
            }
        }
    }

    /// The learning rate of a step, counted from zero, in a run of `steps` steps.
    ///
    /// After the run, linear and cosine schedules stay at their final value.
    #[must_use]
    pub fn learning_rate(&self, step: u64, steps: u64) -> f64 {
        if step < self.warm_up {
            return self.learning_rate * (step as f64 + 1.0) / self.warm_up as f64;
        }
        let since = (step - self.warm_up) as f64;
        let left = steps.saturating_sub(self.warm_up).max(1) as f64;
        let part = (since / left).min(1.0);
        let factor = match self.shape {
            Shape::Constant => 1.0,
            Shape::Linear { last } => 1.0 + (last - 1.0) * part,
            Shape::Cosine { last } => last + (1.0 - last) * 0.5 * (1.0 + (PI * part).cos()),
            Shape::Exponential { factor } => factor.powf(since),
            Shape::Step { factor, every } => factor.powf((since / every.max(1) as f64).floor()),
            Shape::InverseSqrt => (self.warm_up.max(1) as f64 / (step as f64 + 1.0)).sqrt(),
        };
        self.learning_rate * factor
    }
}
