//! The privacy loss of an event in one direction, as a sum of independent losses.
//!
//! Which losses an event has is in [`events`](super::events).

use super::law::Law;
use crate::{Bound, special::PreciseSum};

/// The privacy loss of an event in one direction: a sum of independent losses.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrivacyLoss {
    /// The laws of the losses, each with its number of repetitions.
    pub(crate) factors: Vec<(Law, u64)>,
    /// Whether some release has no guarantee.
    pub(crate) non_private: bool,
    /// Σ μ² over the Gaussians, which compose to one Gaussian …
    gaussian: PreciseSum,
    /// … and the same sum over the Gaussians that some mechanism attains.
    attained_gaussian: PreciseSum,
}

impl PrivacyLoss {
    /// The law, if there is exactly one.
    pub(crate) fn single(&self) -> Option<&Law> {
        match self.factors.as_slice() {
            [(law, 1)] => Some(law),
            _ => None,
        }
    }

    /// Whether no outcome depends on the record.
    pub(crate) fn is_free(&self) -> bool {
        self.factors.is_empty() && !self.non_private
    }

    /// Laws of mechanisms that really have this event, for lower bounds.
    ///
    /// `None` if the dominating laws are attained. Each element is one mechanism; the truth is at least what
    /// any of them attains.
    pub(crate) fn attained(&self) -> Option<Vec<Vec<(Law, u64)>>> {
        let by = |direction| -> Vec<(Law, u64)> {
            self.factors.iter().map(|(law, count)| (law.attained(direction), *count)).collect()
        };
        let (remove, add) = (by(Direction::Remove), by(Direction::Add));
        if remove == self.factors {
            return None;
        }
        Some(if add == remove { vec![remove] } else { vec![remove, add] })
    }

    /// The probability of an infinite loss that some mechanism with this event attains, rounded down.
    pub(crate) fn infinite(&self) -> f64 {
        let ln_finite = |(law, count): &(Law, u64)| {
            *count as f64 * (-law.attained(Direction::Remove).infinite().min(1.0)).ln_1p()
        };
        -self.factors.iter().map(ln_finite).collect::<PreciseSum>().value().exp_m1() * (1.0 - 1e-12)
    }

    /// μ, if all laws are Gaussian: from above, and what some mechanism attains.
    pub(crate) fn gaussian(&self) -> Option<Bound> {
        match self.single() {
            Some(Law::Gaussian { mu, attained }) => Some(Bound { lower: *attained, upper: *mu }),
            _ => None,
        }
    }

    /// Adds `count` independent losses with this law.
    pub(super) fn push(&mut self, law: Law, count: u64) {
        if let Law::Gaussian { mu, attained } = law {
            self.gaussian.add(mu * mu * count as f64);
            self.attained_gaussian.add(attained * attained * count as f64);
            return;
        }
        // Equal laws are composed as one power. Among many laws, only the newest are compared.
        if let Some((_, times)) = self.factors.iter_mut().rev().take(64).find(|(known, _)| *known == law) {
            // `privacy_losses` rejects counts that are too large.
            *times = times.saturating_add(count);
        } else if count > 0 {
            self.factors.push((law, count));
        }
    }

    /// The sum with all its Gaussians as one law.
    pub(super) fn finish(mut self) -> Self {
        let square = self.gaussian.value();
        if square > 0.0 {
            let attained = self.attained_gaussian.value().sqrt();
            self.factors.push((Law::Gaussian { mu: square.sqrt(), attained }, 1));
        }
        self
    }
}

/// The direction of the change between two neighbouring datasets.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Direction {
    Remove,
    Add,
}
