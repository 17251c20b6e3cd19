//! Stochastic gradient descent on people's records, through the trusted room.
//!
//! A [`Recipe`] is what somebody wants, with gaps. A [`Plan`] has none: all its numbers are public and fixed before the first record is looked at, and the mechanism in it is
//! what the ledger is asked to pay for. [`train`] takes the steps that were paid for; [`Progress`] is where it stands, and can be written down.

mod evaluation;
mod gradients;
mod plan;
mod progress;
mod recipe;
mod supervised;
mod training;

pub(crate) use evaluation::outputs;
pub use evaluation::{Evaluation, evaluate, predictions, scores};
pub use gradients::Gradients;
pub use plan::{Facts, Plan, Release, default_delta};
pub use progress::Progress;
pub(crate) use progress::{Tensor, numbers};
pub use recipe::{Clip, Privacy, Recipe, Sample, Sampler};
pub use supervised::{Augmentation, Supervised};
pub use training::{Going, Leased, train};
