//! Selection: the best of several candidates, the first counts above a threshold, and randomized response.

mod exponential;
mod randomized_response;
mod sparse_vector;

pub use exponential::Selection;
pub use randomized_response::RandomizedResponse;
pub use sparse_vector::{AboveThreshold, GaussianSparseVector, SparseVector};
