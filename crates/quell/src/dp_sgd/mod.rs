//! Stochastic gradient descent on people's records, through the trusted room.

mod gradients;

pub use gradients::Gradients;
