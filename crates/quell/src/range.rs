//! Checks of settings: each is in its range, or there is an error that names it.

use crate::Error;

/// An interval that settings are checked against, and how it is written.
pub(crate) struct Range {
    contains: fn(f64) -> bool,
    written: &'static str,
}

pub(crate) const POSITIVE: Range = Range { contains: |x| x > 0.0 && x.is_finite(), written: "(0, inf)" };
pub(crate) const NOT_NEGATIVE: Range = Range { contains: |x| x >= 0.0 && x.is_finite(), written: "[0, inf)" };
/// Of what a part is kept: all of it would be for ever.
pub(crate) const BELOW_ONE: Range = Range { contains: |x| (0.0..1.0).contains(&x), written: "[0, 1)" };
pub(crate) const INSIDE_UNIT: Range = Range { contains: |x| x > 0.0 && x < 1.0, written: "(0, 1)" };
pub(crate) const UP_TO_ONE: Range = Range { contains: |x| x > 0.0 && x <= 1.0, written: "(0, 1]" };

impl Range {
    pub(crate) fn check(&self, what: &'static str, value: f64) -> Result<(), Error> {
        if (self.contains)(value) { Ok(()) } else { Err(Error::OutOfRange { what, value, range: self.written }) }
    }
}
