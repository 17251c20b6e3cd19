//! Learning rates over the steps of a run. A function of public numbers alone.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    range::{NOT_NEGATIVE, POSITIVE, UP_TO_ONE},
};

/// A learning rate that first rises in equal parts, and then follows its shape.
///
/// ```
/// use quell::schedule::Schedule;
/// let schedule: Schedule = serde_json::from_str(r#"{"learning_rate": 0.5, "warm_up": 2, "shape": {"linear": {}}}"#)?;
/// let rates: Vec<f64> = (0..6).map(|step| schedule.learning_rate(step, 6)).collect();
/// assert_eq!(rates, [0.25, 0.5, 0.5, 0.375, 0.25, 0.125]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The largest learning rate, reached when warm.
    pub learning_rate: f64,
    /// Steps until then: step i, counted from zero, has i + 1 of so many parts.
    #[serde(default)]
    pub warm_up: u64,
    /// What happens after that.
    #[serde(default)]
    pub shape: Shape,
}

/// How a learning rate changes once it is warm. In the formulas t counts steps from there, of T that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// Not at all.
    #[default]
    Constant,
    /// Along a line, to `last` times the largest, which the step after the run would have: no step of the run is wasted.
    Linear {
        /// What it falls to, over the largest.
        #[serde(default)]
        last: f64,
    },
    /// Along half a wave, (1 + cos πt/T)/2 of the way above `last`.
    Cosine {
        /// What it falls to, over the largest.
        #[serde(default)]
        last: f64,
    },
    /// By a factor per step.
    Exponential {
        /// The factor.
        factor: f64,
    },
    /// By a factor now and then.
    Step {
        /// The factor.
        factor: f64,
        /// Steps between.
        every: u64,
    },
    /// As √(w/i) at the i-th step of all, with w steps of warming up, at least one.
    InverseSqrt,
}

impl Schedule {
    /// One learning rate throughout.
    #[must_use]
    pub fn constant(learning_rate: f64) -> Self {
        Self { learning_rate, warm_up: 0, shape: Shape::Constant }
    }

    /// Whether every setting is in its range.
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

    /// The learning rate of a step, counted from zero, of a run of so many. After the run it stays where it would have got to.
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
