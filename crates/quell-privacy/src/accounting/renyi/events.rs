//! The Rényi curve of one release.
//!
//! [`parts`](super::parts) adds up the curves of all releases of an event.

use std::sync::Arc;

use super::{curve::Curve, parts::Parts, sampled::FixedSizeMoments};
use crate::{
    Error, Event, Neighbors,
    accounting::{
        hidden_state::{HIDDEN_IN_A_SAMPLE, last_iterate},
        pld::{Law, fixed_size_rate, one_law_each_way, upper_masses},
    },
    event::no_trials,
};

fn unsupported(event: &Event, because: &'static str) -> Error {
    Error::Unsupported { accountant: "Rényi", event: event.to_string(), because }
}

/// Number of grid points for a dominating pair.
const CELLS: usize = 4096;

/// The curve of one release.
pub(super) fn single(event: &Event, neighbors: Neighbors) -> Result<Curve, Error> {
    let reach = neighbors.reach();
    let linear = |mu: f64| Curve::Linear { rho: mu * mu / 2.0 };
    Ok(match event {
        Event::Gaussian { noise_multiplier } => linear(reach / noise_multiplier.get()),
        Event::DiscreteGaussian { sensitivity: 0, .. } => {
            return Err(Error::Malformed {
                event: event.to_string(),
                because: "expected a sensitivity of at least one",
            });
        }
        Event::DiscreteGaussian { deviation, sensitivity } => {
            linear(reach * f64::from(*sensitivity) / deviation.get())
        }
        Event::Laplace { noise_multiplier } => Curve::Laplace { epsilon: reach / noise_multiplier.get() },
        Event::Exponential { epsilon } if epsilon.get() > 0.0 => {
            Curve::BoundedRange { epsilon: epsilon.get() }
        }
        Event::Exponential { .. } => Curve::Linear { rho: 0.0 },
        Event::Pure { epsilon } if epsilon.get() == 0.0 => Curve::Linear { rho: 0.0 },
        Event::ZeroConcentrated { rho } => Curve::Linear { rho: rho.get() },
        Event::Renyi { curve } => {
            let points: Vec<(f64, f64)> =
                curve.iter().map(|(order, epsilon)| (order.get(), epsilon.get())).collect();
            if points.is_empty() || points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                return Err(Error::Malformed {
                    event: event.to_string(),
                    because: "expected orders in increasing order",
                });
            }
            Curve::Given { points }
        }
        Event::DiscreteLaplace { .. } | Event::RandomizedResponse { .. } | Event::Pure { .. } => {
            match one_law_each_way(event, neighbors)?.first() {
                Some(Law::Atoms(atoms)) => Curve::Atoms { atoms: atoms.list() },
                _ => Curve::Infinite,
            }
        }
        Event::Approximate { .. } => {
            return Err(unsupported(event, "because a δ above zero makes every order infinite"));
        }
        Event::NonPrivate => Curve::Infinite,
        Event::PoissonSampled { rate, event: inner } => poisson_sampled(event, rate.get(), inner, neighbors)?,
        Event::SampledWithoutReplacement { batch, records, event: inner } => {
            let rate = fixed_size_rate(event, *batch, *records, neighbors)?;
            refuse_hidden_state(inner)?;
            let curve = summed(inner, neighbors)?;
            if is_free(&curve) {
                return Ok(curve);
            }
            let moments = match one_law_each_way(inner, neighbors).as_deref() {
                Ok([Law::Gaussian { mu, .. }]) => FixedSizeMoments::Gaussian { mu: *mu },
                _ => FixedSizeMoments::Unknown,
            };
            if rate == 1.0 { curve } else { Curve::FixedSize { rate, inner: Box::new(curve), moments } }
        }
        Event::SampledWithReplacement { batch, records, event: inner } => {
            fixed_size_rate(event, (*batch).min(*records), *records, neighbors)?;
            refuse_hidden_state(inner)?;
            if let Ok(curve) = summed(inner, neighbors)
                && is_free(&curve)
            {
                return Ok(curve);
            }
            return Err(unsupported(
                event,
                "because a record that is drawn several times contributes several times",
            ));
        }
        Event::Composed(_) | Event::Repeated { .. } => summed(event, neighbors)?,
        Event::PerturbedObjective { noise_multiplier, curvature_ratio } => {
            let (mu, shift) = (noise_multiplier.get().recip(), curvature_ratio.get().ln_1p());
            Curve::PerturbedObjective { mu, shift, neighbors }
        }
        Event::BestOf { expected, trials } => {
            if trials.is_empty() || *expected == 0 {
                return Err(no_trials(event));
            }
            let trials: Result<Vec<Curve>, Error> =
                trials.iter().map(|trial| summed(trial, neighbors)).collect();
            Curve::best_of(*expected, trials?)
        }
        Event::HiddenState { noise_multiplier, contraction, steps, diameter } => {
            linear(last_iterate(*noise_multiplier, *contraction, *steps, *diameter, neighbors)?.upper)
        }
    })
}

fn refuse_hidden_state(inner: &Event) -> Result<(), Error> {
    if inner.has_hidden_state() { Err(unsupported(inner, HIDDEN_IN_A_SAMPLE)) } else { Ok(()) }
}

/// The sum of an event's curves as one curve, for sampling theorems.
fn summed(event: &Event, neighbors: Neighbors) -> Result<Curve, Error> {
    let mut parts = Parts::new(event, neighbors)?.curves;
    let rho = |(curve, count): &(Curve, f64)| {
        if let Curve::Linear { rho } = curve { Some(rho * count) } else { None }
    };
    let linear: Option<f64> = parts.iter().map(rho).sum();
    match (linear, parts.as_slice()) {
        (Some(rho), _) => Ok(Curve::Linear { rho }),
        (None, [(_, 1.0)]) => Ok(parts.remove(0).0),
        (None, _) => Ok(Curve::Sum { parts }),
    }
}

/// Whether no outcome depends on the record, on a sample or not.
fn is_free(curve: &Curve) -> bool {
    matches!(curve, Curve::Linear { rho: 0.0 })
}

fn poisson_sampled(event: &Event, rate: f64, inner: &Event, neighbors: Neighbors) -> Result<Curve, Error> {
    // A sample of a sample is a sample: a record must enter both.
    if let Event::PoissonSampled { rate: second, event: inner } = inner {
        return poisson_sampled(
            event,
            (rate * second.get() * (1.0 + f64::EPSILON)).min(1.0),
            inner,
            neighbors,
        );
    }
    if rate < 1.0 {
        refuse_hidden_state(inner)?;
    }
    let curve = summed(inner, neighbors)?;
    if rate == 1.0 || is_free(&curve) {
        return Ok(curve);
    }
    // If a dominating pair is known, its own divergences are the tightest bound.
    let laws = match laws(event, neighbors) {
        Ok(laws) => laws,
        Err(Error::Unsupported { .. }) => Vec::new(),
        Err(other) => return Err(other),
    };
    if let [Law::Removed { inner, .. }, ..] = laws.as_slice()
        && let Law::Gaussian { mu, .. } = **inner
    {
        return Ok(Curve::SampledGaussian { rate, sigma: 1.0 / mu });
    }
    if is_bounded(inner)
        && !laws.is_empty()
        && let Some((directions, h)) = upper_masses(&laws, CELLS, 0.0, 0.0)
        && directions.iter().all(|masses| masses.infinite == 0.0)
    {
        return Ok(Curve::Grid { directions: Arc::new(directions), h });
    }
    Ok(match neighbors {
        Neighbors::AddRemove => {
            Curve::Sampled { rate, inner: Box::new(curve), symmetric: is_symmetric(inner) }
        }
        Neighbors::Replace => Curve::RevealedSample { rate, inner: Box::new(curve) },
    })
}

/// The dominating pairs of one release, in each direction; empty if it has no guarantee.
fn laws(event: &Event, neighbors: Neighbors) -> Result<Vec<Law>, Error> {
    if let (Event::PoissonSampled { rate, event: inner }, Neighbors::Replace) = (event, neighbors)
        && let Event::Laplace { .. } | Event::DiscreteLaplace { .. } | Event::DiscreteGaussian { .. } =
            **inner
    {
        // Additive noise, one record of a Poisson sample replaced (THEORY, Rényi on samples): the pair of
        // a sample of fixed size.
        let unsampled = one_law_each_way(inner, neighbors)?;
        let sampled = |law: Law| Law::FixedSize { rate: rate.get(), inner: Box::new(law) };
        return Ok(unsampled.into_iter().map(sampled).collect());
    }
    one_law_each_way(event, neighbors)
}

/// Whether the loss is bounded, so that a grid can represent all of it.
fn is_bounded(event: &Event) -> bool {
    match event {
        Event::Laplace { .. }
        | Event::DiscreteLaplace { .. }
        | Event::RandomizedResponse { .. }
        | Event::Exponential { .. }
        | Event::Pure { .. } => true,
        // A discrete Gaussian is stored with finitely many losses, but truly has infinitely many.
        Event::Gaussian { .. }
        | Event::DiscreteGaussian { .. }
        | Event::Approximate { .. }
        | Event::ZeroConcentrated { .. }
        | Event::Renyi { .. }
        | Event::NonPrivate
        | Event::PerturbedObjective { .. }
        | Event::HiddenState { .. }
        | Event::BestOf { .. } => false,
        Event::PoissonSampled { event, .. }
        | Event::SampledWithoutReplacement { event, .. }
        | Event::SampledWithReplacement { event, .. }
        | Event::Repeated { event, .. } => is_bounded(event),
        Event::Composed(events) => events.iter().all(is_bounded),
    }
}

/// Whether the sides of a dominating pair can be exchanged (THEORY, Rényi on samples).
///
/// The pair must have the same curve as the event.
fn is_symmetric(event: &Event) -> bool {
    match event {
        Event::Gaussian { .. }
        | Event::Laplace { .. }
        | Event::DiscreteGaussian { .. }
        | Event::DiscreteLaplace { .. }
        | Event::Pure { .. } => true,
        // The worst pair depends on the order, or there is none, or exchanging its sides changes it.
        Event::RandomizedResponse { .. }
        | Event::Exponential { .. }
        | Event::Approximate { .. }
        | Event::ZeroConcentrated { .. }
        | Event::Renyi { .. }
        | Event::PoissonSampled { .. }
        | Event::SampledWithoutReplacement { .. }
        | Event::SampledWithReplacement { .. }
        | Event::NonPrivate
        | Event::PerturbedObjective { .. }
        | Event::HiddenState { .. }
        | Event::BestOf { .. } => false,
        Event::Composed(events) => events.iter().all(is_symmetric),
        Event::Repeated { event, .. } => is_symmetric(event),
    }
}

/// The curve of a release without infinite losses and its tail.
///
/// Also returns the probability left out. The tail is left out only if losses are unbounded.
///
/// # Theorem
/// THEORY, Slack: a composition costs at most what it costs with each pair replaced by the one without the
/// rest, and the rests added to δ.
pub(super) fn cut_off(event: &Event, neighbors: Neighbors, tail: f64) -> Result<(Curve, f64), Error> {
    if let Event::Approximate { epsilon, delta } = event {
        // [KOV15]: randomized response, except for δ.
        return Ok((single(&Event::Pure { epsilon: *epsilon }, neighbors)?, delta.get()));
    }
    let laws = laws(event, neighbors).map_err(|error| match error {
        // Both accountants reject the event for the same reason.
        Error::Unsupported { event, because, .. } => {
            Error::Unsupported { accountant: "Rényi", event, because }
        }
        other => other,
    })?;
    if laws.is_empty() {
        return Ok((Curve::Infinite, 0.0));
    }
    let Some((directions, h)) = upper_masses(&laws, CELLS, tail, tail) else {
        return Err(unsupported(event, "because its losses are spread too far"));
    };
    let slack = directions.iter().map(|masses| masses.infinite).fold(0.0, f64::max);
    Ok((Curve::Grid { directions: Arc::new(directions), h }, slack))
}
