//! Random views of an image that show the same thing.

use serde::{Deserialize, Serialize};

use super::upright::between;
use crate::{Error, random::PublicRandom, range::NOT_NEGATIVE};

/// The largest random changes from an image to a view, in either direction.
/// Pixels from outside the image are 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Views {
    /// Shift down and to the right, as a share of the longer side.
    pub shift: f32,
    /// Rotation in degrees.
    pub turn: f32,
    /// Change of size as a share, in each direction independently.
    pub stretch: f32,
    /// Shear: columns per row.
    pub lean: f32,
}

impl Default for Views {
    fn default() -> Self {
        Self { shift: 0.07, turn: 10.0, stretch: 0.1, lean: 0.2 }
    }
}

impl Views {
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        let settings =
            [("shift", self.shift), ("turn", self.turn), ("stretch", self.stretch), ("lean", self.lean)];
        settings.into_iter().try_for_each(|(name, value)| NOT_NEGATIVE.check(name, value.into()))?;
        crate::range::BELOW_ONE.check("stretch", self.stretch.into())
    }

    /// Writes a view, channels last, of an image of channels, rows and columns.
    pub(super) fn write(
        &self,
        [channels, height, columns]: [usize; 3],
        from: &[f32],
        to: &mut [f32],
        chance: &mut PublicRandom,
    ) {
        let mut up_to = |most: f32| chance.between(-1.0, 1.0) * most;
        let longer = height.max(columns) as f32;
        let (down, right) = (up_to(self.shift * longer), up_to(self.shift * longer));
        let (sine, cosine) = up_to(self.turn).to_radians().sin_cos();
        let (tall, wide) = (1.0 + up_to(self.stretch), 1.0 + up_to(self.stretch));
        let lean = up_to(self.lean);
        let middle = ((height as f32 - 1.0) / 2.0, (columns as f32 - 1.0) / 2.0);
        for row in 0..height {
            for column in 0..columns {
                // The point of the image for this pixel of the view: shifted, sheared, scaled, rotated.
                let (y, x) = (row as f32 - middle.0 - down, column as f32 - middle.1 - right);
                let x = x + lean * y;
                let (y, x) = (tall * y, wide * x);
                let (y, x) = (cosine * y - sine * x + middle.0, sine * y + cosine * x + middle.1);
                let pixel = &mut to[(row * columns + column) * channels..][..channels];
                for (to, plane) in pixel.iter_mut().zip(from.chunks_exact(height * columns)) {
                    *to = between(plane, height, columns, y, x, 0.0);
                }
            }
        }
    }
}

/// Writes an image unchanged, channels last.
pub(super) fn arrange([channels, height, columns]: [usize; 3], from: &[f32], to: &mut [f32]) {
    for (channel, plane) in from.chunks_exact(height * columns).enumerate() {
        to.iter_mut().skip(channel).step_by(channels).zip(plane).for_each(|(to, from)| *to = *from);
    }
}
