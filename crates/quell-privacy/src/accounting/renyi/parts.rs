//! The Rényi curves of all releases of an event.

use super::{
    curve::{Curve, sum},
    events::{cut_off, single},
};
use crate::{Error, Event, Neighbors};

/// The curves of an event, each with its number of occurrences.
///
/// They hold outside a set of outcomes of small probability.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) curves: Vec<(Curve, f64)>,
    /// Probability of the outcomes that the curves do not cover.
    pub(super) slack: f64,
}

impl Parts {
    /// The curves of an event, without leaving out any outcome.
    pub(super) fn new(event: &Event, neighbors: Neighbors) -> Result<Self, Error> {
        let mut parts = Self::default();
        parts.collect(event, neighbors, 1.0, None)?;
        Ok(parts)
    }

    /// The curves of an event outside as few outcomes as necessary.
    ///
    /// `tail` is the probability that may be left out of each release whose losses are unbounded.
    pub(super) fn outside(event: &Event, neighbors: Neighbors, tail: f64) -> Result<Self, Error> {
        let mut parts = Self::default();
        parts.collect(event, neighbors, 1.0, Some(tail))?;
        parts.slack *= 1.0 + 1e-9;
        Ok(parts)
    }

    /// Whether a dominating pair may give a smaller bound than one of the curves.
    pub(super) fn is_loose(&self) -> bool {
        self.curves.iter().any(|(curve, _)| matches!(curve, Curve::RevealedSample { .. }))
    }

    /// The divergence of all curves at one order.
    pub(super) fn divergence(&self, alpha: f64) -> f64 {
        sum(&self.curves, alpha)
    }

    fn collect(
        &mut self,
        event: &Event,
        neighbors: Neighbors,
        count: f64,
        tail: Option<f64>,
    ) -> Result<(), Error> {
        match event {
            Event::Composed(events) => {
                events.iter().try_for_each(|e| self.collect(e, neighbors, count, tail))
            }
            Event::Repeated { count: times, event } => {
                self.collect(event, neighbors, count * *times as f64, tail)
            }
            Event::Gaussian { .. }
            | Event::Laplace { .. }
            | Event::DiscreteGaussian { .. }
            | Event::DiscreteLaplace { .. }
            | Event::RandomizedResponse { .. }
            | Event::Exponential { .. }
            | Event::Pure { .. }
            | Event::Approximate { .. }
            | Event::ZeroConcentrated { .. }
            | Event::Renyi { .. }
            | Event::PoissonSampled { .. }
            | Event::SampledWithoutReplacement { .. }
            | Event::SampledWithReplacement { .. }
            | Event::NonPrivate
            | Event::PerturbedObjective { .. }
            | Event::HiddenState { .. }
            | Event::BestOf { .. } => {
                // An unsupported event is an error even if it occurs zero times.
                let (curve, slack) = match (single(event, neighbors), tail) {
                    (Err(Error::Unsupported { .. }), Some(tail)) => cut_off(event, neighbors, tail)?,
                    // A dominating pair gives a smaller bound than a revealed sample.
                    (Ok(curve @ Curve::RevealedSample { .. }), Some(tail)) => {
                        cut_off(event, neighbors, tail).unwrap_or((curve, 0.0))
                    }
                    (curve, _) => (curve?, 0.0),
                };
                if count > 0.0 {
                    self.curves.push((curve, count));
                    self.slack += count * slack;
                }
                Ok(())
            }
        }
    }
}
