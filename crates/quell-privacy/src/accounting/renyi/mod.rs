//! Rényi differential privacy: curves ε(α), and their conversion to (ε, δ).
//!
//! Curves add up under composition.

mod curve;
mod events;
mod moment;
mod parts;
mod sampled;

use parts::Parts;

use super::{Bound, search::minimize_over_orders};
use crate::{
    Error, Event, Neighbors,
    special::ROUNDOFF,
    units::{Delta, Order},
};

/// The conversion of a Rényi bound to an (ε, δ) bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// ε = ε(α) + ln((α-1)/α) - (ln δ + ln α)/(α-1). [CKS20, Proposition 12; BBGHS20, Theorem 21]
    Tight,
    /// ε = ε(α) + ln(1/δ)/(α-1). [Mir17, Proposition 3]
    Classic,
}

/// The Rényi accountant.
///
/// # Theorem
/// Curves add under adaptive composition [Mir17, Proposition 1]; every order gives a valid ε, and the least
/// is returned.
///
/// ```
/// use quell_privacy::{Event, Neighbors, accounting::{Conversion, Renyi}};
/// use quell_privacy::units::{Delta, NoiseMultiplier, SamplingRate};
/// let votes = Event::dp_sgd(NoiseMultiplier::new(5.0)?, SamplingRate::new(0.01)?, 1000);
/// let renyi = Renyi::new(&votes, Neighbors::AddRemove)?;
/// let epsilon = renyi.epsilon(Delta::new(1e-6)?, Conversion::Tight).upper;
/// assert!((epsilon - 0.271056).abs() < 1e-5); // the result of the lecture's autodp
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Renyi {
    parts: Parts,
}

/// The share of δ that covers outcomes that were cut off.
const TAIL_SHARE: f64 = 1e-3;

/// Number of releases in an event.
fn releases(event: &Event) -> f64 {
    match event {
        Event::Composed(events) => events.iter().map(releases).sum::<f64>().max(1.0),
        Event::Repeated { count, event } => (*count as f64 * releases(event)).max(1.0),
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
        | Event::BestOf { .. } => 1.0,
    }
}

impl Renyi {
    /// Builds the curve of an event; fails if the event has no Rényi bound.
    pub fn new(event: &Event, neighbors: Neighbors) -> Result<Self, Error> {
        Ok(Self { parts: Parts::new(event, neighbors)? })
    }

    /// Builds a curve for answers at δ, even if parts have no Rényi bound.
    ///
    /// Such a part must be (ε, δ')-DP or have a dominating pair.
    ///
    /// # Theorem
    /// THEORY, Slack: each such part is replaced by its restriction to the outcomes outside a set, which has
    /// a Rényi bound; the probabilities of these sets are subtracted from δ.
    pub fn for_delta(event: &Event, neighbors: Neighbors, delta: Delta) -> Result<Self, Error> {
        match Parts::new(event, neighbors) {
            Ok(parts) if !parts.is_loose() => Ok(Self { parts }),
            Ok(_) | Err(Error::Unsupported { .. }) => {
                let tail = (TAIL_SHARE * delta.get() / releases(event)).max(f64::MIN_POSITIVE);
                Ok(Self { parts: Parts::outside(event, neighbors, tail)? })
            }
            Err(other) => Err(other),
        }
    }

    /// ε(α) of the whole event; infinite if some outcomes are left out ([`Renyi::for_delta`]).
    #[must_use]
    pub fn divergence(&self, order: Order) -> f64 {
        if self.parts.slack > 0.0 { f64::INFINITY } else { self.at(order.get()) }
    }

    /// ε(α) of the outcomes that are not left out.
    pub(in crate::accounting) fn at(&self, alpha: f64) -> f64 {
        self.parts.divergence(alpha)
    }

    /// The part of δ that remains after the slack; `None` if nothing remains.
    pub(in crate::accounting) fn left_of(&self, delta: f64) -> Option<f64> {
        Some((delta - self.parts.slack) * (1.0 - 1e-15)).filter(|remaining| *remaining > 0.0)
    }

    /// The least ε over all orders; a Rényi bound gives no lower bound.
    #[must_use]
    pub fn epsilon(&self, delta: Delta, conversion: Conversion) -> Bound {
        let Some(delta) = self.left_of(delta.get()) else {
            return Bound { lower: 0.0, upper: f64::INFINITY };
        };
        let (_, upper) = minimize_over_orders(|alpha| convert(conversion, alpha, self.at(alpha), delta));
        Bound { lower: 0.0, upper }
    }

    /// The least δ over all orders for a given ε.
    #[must_use]
    pub fn delta(&self, epsilon: f64) -> Bound {
        // [CKS20, Proposition 12]: δ = e^((α-1)(ε(α)-ε)) (1-1/α)^α / (α-1)
        let ln_delta = |alpha: f64| {
            (alpha - 1.0) * (self.at(alpha) - epsilon) + alpha * (-alpha.recip()).ln_1p() - (alpha - 1.0).ln()
        };
        let ln_delta = minimize_over_orders(ln_delta).1;
        // A probability that is too small to represent is not zero.
        let delta =
            (ln_delta + 1e-12 * (1.0 + ln_delta.abs())).exp().max(f64::MIN_POSITIVE) + self.parts.slack;
        Bound { lower: 0.0, upper: if delta < 1.0 { delta } else { 1.0 } }
    }
}

pub(crate) fn convert(conversion: Conversion, alpha: f64, divergence: f64, delta: f64) -> f64 {
    // Total variation is at most √(1 - e^-KL) [BH78], and KL is at most any ε(α): then ε = 0 is valid.
    if delta * delta * (1.0 - 1e-12) + (-divergence).exp_m1() >= 0.0 {
        return 0.0;
    }
    let terms = match conversion {
        Conversion::Tight => {
            [divergence, (-alpha.recip()).ln_1p(), -delta.ln() / (alpha - 1.0), -alpha.ln() / (alpha - 1.0)]
        }
        Conversion::Classic => [divergence, -delta.ln() / (alpha - 1.0), 0.0, 0.0],
    };
    let epsilon: f64 = terms.iter().sum();
    // The error of each term is a few units in its last place, and so is the error of their sum.
    let error = 8.0 * ROUNDOFF * terms.iter().map(|term| term.abs()).sum::<f64>();
    let rounded = epsilon + error;
    if rounded.is_nan() { f64::INFINITY } else { rounded.max(0.0) }
}
