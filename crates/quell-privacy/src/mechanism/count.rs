//! How many records there are.

use super::{Mechanism, Sealed};
use crate::{Event, Neighbors, units::Scale};

/// A number of records, plus discrete Laplace noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Scale of the noise.
    pub scale: Scale,
}

impl Sealed for Count {}

impl Mechanism for Count {
    fn event(&self, _: Neighbors) -> Event {
        Event::DiscreteLaplace { scale: self.scale, sensitivity: 1 }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "count with discrete Laplace noise of scale {}", self.scale.get())
    }
}
