//! Selection: the best of several candidates or trials, the first counts above a threshold, and randomized response.

mod all_trials;
mod best_of;
mod exponential;
mod randomized_response;
mod scores;
mod sparse_vector;

pub use all_trials::AllTrials;
pub use best_of::{Best, BestOf, TrialPlan};
pub use exponential::Selection;
pub use randomized_response::RandomizedResponse;
pub use scores::TotalScores;
pub use sparse_vector::{AboveThreshold, GaussianSparseVector, SparseVector};
