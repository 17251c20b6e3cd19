//! Mean and deviation of features, as public settings.

use serde::{Deserialize, Serialize};

use crate::Error;

/// Maps each feature x to (x - mean) / deviation.
///
/// Mean and deviation are settings: they are known from another source or were paid for. They are never read
/// from private records without payment.
///
/// Each list has one number for all features, or one for each channel of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// The number to subtract.
    pub mean: Vec<f32>,
    /// The number to divide by, above 0.
    pub deviation: Vec<f32>,
}

impl Scaling {
    /// Mean and deviation of each channel.
    pub(in crate::data) fn per_channel(
        &self,
        channels: usize,
    ) -> Result<impl Iterator<Item = (f32, f32)> + use<'_>, Error> {
        for (name, numbers) in [("mean", &self.mean), ("deviation", &self.deviation)] {
            if numbers.len() != 1 && numbers.len() != channels {
                let expected = "one number, or one for each channel";
                return Err(Error::Setting { name, found: format!("a list of {}", numbers.len()), expected });
            }
        }
        if let Some(mean) = self.mean.iter().find(|mean| !mean.is_finite()) {
            return Err(Error::Setting {
                name: "mean",
                found: mean.to_string(),
                expected: "a finite number",
            });
        }
        if let Some(deviation) =
            self.deviation.iter().find(|deviation| !deviation.is_normal() || **deviation < 0.0)
        {
            return Err(Error::Setting {
                name: "deviation",
                found: deviation.to_string(),
                expected: "a number above 0",
            });
        }
        let of = |numbers: &[f32], channel: usize| numbers[if numbers.len() == 1 { 0 } else { channel }];
        Ok((0..channels).map(move |channel| (of(&self.mean, channel), of(&self.deviation, channel))))
    }
}
