//! Generalised linear models: private regression and classification of tables.
//!
//! A [`Recipe`] holds the settings, some of which may be missing. A [`Plan`] is complete: all its numbers are
//! public and fixed before the first record is read. [`Glm`] offers it to
//! [`Training`](crate::run::Training), which pays and keeps the results.
//!
//! The default method needs no setting but ε. Every run of its one mechanism releases a noisy sum over all
//! records. The first runs find the mean of every column, the next ones its spread. Both standardise the
//! columns. All other runs are gradients of the loss.

mod algorithm;
mod cholesky;
mod columns;
mod frank_wolfe;
mod method;
mod minimizer;
mod plan;
mod recipe;
mod standardization;
mod state;
mod vectors;

pub use algorithm::Algorithm;
use columns::Columns;
pub use frank_wolfe::FrankWolfe;
pub use method::Glm;
pub(crate) use minimizer::{MOST_RECORDS, short};
pub use minimizer::{Minimized, Minimizer, Problem, Weights};
pub use plan::Plan;
pub use recipe::{Family, Recipe};
use standardization::Standardization;
pub use state::State;
