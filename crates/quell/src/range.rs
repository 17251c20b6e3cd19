//! Range checks for settings. A value outside its range gives an error that names the setting.

use crate::Error;

/// An interval that a setting must lie in.
pub(crate) struct Range {
    contains: fn(f64) -> bool,
    /// The interval as error messages show it.
    notation: &'static str,
}

pub(crate) const POSITIVE: Range = Range { contains: |x| x > 0.0 && x.is_finite(), notation: "(0, inf)" };
pub(crate) const NOT_NEGATIVE: Range =
    Range { contains: |x| x >= 0.0 && x.is_finite(), notation: "[0, inf)" };
/// For shares and decay factors. A decay factor of one would never forget anything.
pub(crate) const BELOW_ONE: Range = Range { contains: |x| (0.0..1.0).contains(&x), notation: "[0, 1)" };
pub(crate) const INSIDE_UNIT: Range = Range { contains: |x| x > 0.0 && x < 1.0, notation: "(0, 1)" };
pub(crate) const UP_TO_ONE: Range = Range { contains: |x| x > 0.0 && x <= 1.0, notation: "(0, 1]" };

impl Range {
    /// Checks the setting that is called `what`.
    pub(crate) fn check(&self, what: &'static str, value: f64) -> Result<(), Error> {
        if (self.contains)(value) {
            Ok(())
        } else {
            Err(Error::OutOfRange { what, value, range: self.notation })
        }
    }
}
