//! Real numbers on a grid, so that noise can be added without a trace of the number under it.

use super::Noise;
use crate::{
    Error, Event,
    noise::{
        random::Stream,
        rounded::{self, GRID, Shape},
    },
    units::NoiseMultiplier,
};

impl Noise {
    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::Laplace => Shape::Laplace,
            Self::Gaussian => Shape::Gaussian,
        }
    }

    pub(crate) fn event(self, noise_multiplier: NoiseMultiplier) -> Event {
        match self {
            Self::Laplace => Event::Laplace { noise_multiplier },
            Self::Gaussian => Event::Gaussian { noise_multiplier },
        }
    }

    /// What noise of this scale exceeds in one case of twenty.
    pub(crate) fn error(self, scale: f64) -> f64 {
        match self {
            Self::Laplace => scale * 20.0_f64.ln(),
            Self::Gaussian => 1.96 * scale,
        }
    }
}

/// The multiples of a step that belongs to the scale of the noise: 2³⁰ of them to one scale. (THEORY, Noise)
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    step: f64,
}

/// Indices stay within this. A contribution is 2³⁰/z steps long, at most 2⁵⁰ for the least noise multiplier there is.
const LARGEST: f64 = (1_u64 << 60) as f64;

/// One part in 2⁵⁰ off every contribution makes up for the rounding of a product and a quotient.
const SHAVED: f64 = 1.0 - 1.0 / (1_u64 << 50) as f64;

impl Grid {
    /// For noise of this scale.
    pub(crate) fn new(scale: f64) -> Result<Self, Error> {
        let step = scale / GRID as f64;
        // A subnormal step has lost digits.
        if step.is_normal() && scale.is_finite() {
            Ok(Self { step })
        } else {
            Err(Error::OutOfRange { what: "noise scale", value: scale, range: "[1e-298, 1e308]" })
        }
    }

    /// The next grid point towards zero. What is no number is zero.
    ///
    /// # Theorem
    /// |index · step| ≤ |value|, so no norm grows: the quotient errs by a part in 2⁵³ and the value was shaved by one in 2⁵⁰.
    pub(crate) fn toward_zero(self, value: f64) -> i64 {
        let index = value * SHAVED / self.step;
        // A cast takes NaN to zero and cuts the fraction.
        index.clamp(-LARGEST, LARGEST) as i64
    }

    /// The nearest grid point, at most half a step and a part in 2⁵² away. What is no number is zero.
    pub(crate) fn nearest(self, value: f64) -> i64 {
        (value / self.step).clamp(-LARGEST, LARGEST).round_ties_even() as i64
    }

    /// The number at an index.
    pub(crate) fn value(self, index: i128) -> f64 {
        index as f64 * self.step
    }

    /// A sum of indices plus noise, as a number.
    pub(crate) fn release(self, noise: Noise, sum: i128, stream: &mut Stream) -> f64 {
        self.value(sum + i128::from(rounded::sample(noise.shape(), stream)))
    }
}
