//! The student of a vote: ordinary training on public rows, of which a few have labels.
//!
//! [`representatives()`] chooses the rows to ask about. [`Propagation`] spreads the answers to all other rows
//! along a graph of nearest neighbours. [`SoftLabelTraining`] trains any network on the resulting soft
//! labels.
//!
//! Nothing here costs privacy. The rows are public, and the answers were paid for.

mod propagation;
mod representatives;
mod training;

pub use propagation::Propagation;
pub use representatives::representatives;
pub use training::{SoftLabelTraining, Views};

use crate::{Error, Input};

/// The number of rows of `width` numbers.
/// An error if there are no rows, if the last row is incomplete, or if a number is not finite.
fn count_rows(points: &[f32], width: usize) -> Result<usize, Error> {
    if width == 0 {
        return Err(Error::Setting { name: "width", found: "0".into(), expected: "a whole number above 0" });
    }
    if points.is_empty() {
        return Err(Error::Missing { what: Input::PublicRecords });
    }
    let rows = points.len() / width;
    if points.len() != rows * width {
        return Err(Error::Length {
            what: "the last public row",
            found: points.len() % width,
            expected: width,
        });
    }
    if let Some(value) = points.iter().find(|value| !value.is_finite()) {
        // The value is public, so the message may show it.
        return Err(Error::OutOfRange {
            what: "a number of a public row",
            value: f64::from(*value),
            range: "(-inf, inf)",
        });
    }
    Ok(rows)
}
