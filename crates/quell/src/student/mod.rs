//! The student of a vote: ordinary training on public data of which few rows were labelled, some of them wrongly.
//!
//! [`representatives`] says which rows are worth a question, [`Propagation`] carries the answers to all other rows along a graph of nearest neighbours, and a
//! [`Recipe`] trains any network on what arrives there. Nothing here sees a private record, and nothing here costs anything: the answers were paid for.

mod choice;
mod lesson;
mod propagation;
mod training;
mod upright;
mod views;

pub use choice::representatives;
pub use propagation::Propagation;
pub use training::Recipe;
pub use upright::upright;
pub use views::Views;

use crate::Error;

/// How many rows of `width` finite numbers there are; an error if there are none, or numbers are left over.
fn count_rows(points: &[f32], width: usize) -> Result<usize, Error> {
    if width == 0 {
        return Err(Error::Setting { name: "width", found: "0".into(), expected: "a whole number above 0" });
    }
    if points.is_empty() {
        return Err(Error::Missing { what: "public row", hint: "a student learns from public data: give some" });
    }
    let rows = points.len() / width;
    if points.len() != rows * width {
        return Err(Error::Length { what: "the last public row", found: points.len() % width, expected: width });
    }
    if let Some(value) = points.iter().find(|value| !value.is_finite()) {
        // It is public, so it may be said.
        return Err(Error::OutOfRange { what: "a number of a public row", value: f64::from(*value), range: "(-inf, inf)" });
    }
    Ok(rows)
}
