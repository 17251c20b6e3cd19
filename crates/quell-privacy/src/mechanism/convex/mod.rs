//! Linear models that minimise a convex loss, released with noise.
//!
//! [`OutputPerturbation`] adds noise to the minimiser. [`ObjectivePerturbation`] adds a random linear term to
//! what is minimised. Both rest on a certified bound on the gradient at the point that was found
//! ([`problem`]), in arithmetic of 106 bits ([`double`]). [`HiddenDescent`] takes noisy steps and releases the
//! last iterate. [`PosteriorSample`] and [`LogConcaveSample`] draw
//! weights from distributions that fall with the loss.

mod double;
mod hidden;
mod log_concave;
mod loss;
mod newton;
mod objective;
mod output;
mod posterior;
mod problem;
mod records;

pub use hidden::HiddenDescent;
pub use log_concave::LogConcaveSample;
pub use loss::ConvexLoss;
pub use objective::ObjectivePerturbation;
pub use output::OutputPerturbation;
pub use posterior::PosteriorSample;
pub use problem::LinearObjective;
pub use records::{LinearRecords, Rows};
