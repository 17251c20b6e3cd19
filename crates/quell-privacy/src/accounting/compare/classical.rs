//! Classical composition of events from the (ε, δ) guarantees of single releases.

use super::{closed, closed::Guarantee};
use crate::{
    Error, Event, Neighbors,
    accounting::{Conversion, Renyi},
    event::{MOST_REPETITIONS, too_many},
    special::PreciseSum,
    units::Delta,
};

/// ε by basic composition of all releases of an event. [DR14, Theorem 3.16]
///
/// Guarantees given as (ε, δ) are used as they are. The remaining δ is shared equally among the releases that
/// have a whole profile.
pub(super) fn basic(event: &Event, neighbors: Neighbors, delta: Delta) -> Result<f64, Error> {
    let mut releases = Vec::new();
    flatten(event, 1.0, &mut releases);
    let own_deltas =
        releases.iter().map(|(one, count)| count * own_delta(one)).collect::<PreciseSum>().value();
    let sharing: f64 = releases.iter().filter(|(one, _)| shares(one)).map(|(_, count)| count).sum();
    let remaining = (delta.get() - own_deltas * (1.0 + 1e-9)) * (1.0 - 1e-9);
    if remaining < 0.0 {
        return Ok(f64::INFINITY);
    }
    let mut sum = PreciseSum::default();
    for (one, count) in releases {
        let epsilon = match one {
            Event::Pure { epsilon } | Event::Exponential { epsilon } | Event::Approximate { epsilon, .. } => {
                epsilon.get()
            }
            _ => match Delta::new(remaining / sharing) {
                Ok(each) => single(one, neighbors, each)?,
                Err(_) => f64::INFINITY,
            },
        };
        sum.add(count * epsilon);
    }
    let sum = sum.value();
    Ok(if sum.is_nan() { f64::INFINITY } else { sum * (1.0 + 1e-12) })
}

/// ε of one release.
fn single(one: &Event, neighbors: Neighbors, delta: Delta) -> Result<f64, Error> {
    match closed::epsilon(one, neighbors, delta) {
        Ok(bound) => Ok(bound.upper),
        Err(Error::Unsupported { .. }) => {
            Ok(Renyi::for_delta(one, neighbors, delta)?.epsilon(delta, Conversion::Tight).upper)
        }
        Err(other) => Err(other),
    }
}

fn flatten<'a>(event: &'a Event, count: f64, into: &mut Vec<(&'a Event, f64)>) {
    match event {
        Event::Composed(events) => events.iter().for_each(|event| flatten(event, count, into)),
        Event::Repeated { count: times, event } => flatten(event, count * *times as f64, into),
        _ if count > 0.0 => into.push((event, count)),
        _ => {}
    }
}

fn own_delta(one: &Event) -> f64 {
    if let Event::Approximate { delta, .. } = one { delta.get() } else { 0.0 }
}

fn shares(one: &Event) -> bool {
    !matches!(one, Event::Pure { .. } | Event::Exponential { .. } | Event::Approximate { .. })
}

/// ε by a theorem about one repeated (ε, δ) guarantee.
///
/// If the release has a whole profile, half of δ goes to the steps, shared equally, as one would do by hand.
pub(super) fn repeated(
    accountant: &'static str,
    event: &Event,
    neighbors: Neighbors,
    delta: Delta,
    compose: impl Fn(Guarantee, u64, Delta) -> f64,
) -> Result<f64, Error> {
    let (one, count) = unrepeated(event)?;
    let guarantee = match one {
        Event::Pure { epsilon } | Event::Exponential { epsilon } => {
            Guarantee { epsilon: epsilon.get(), delta: 0.0 }
        }
        Event::Approximate { epsilon, delta } => Guarantee { epsilon: epsilon.get(), delta: delta.get() },
        Event::NonPrivate if count > 0 => return Ok(f64::INFINITY),
        Event::Composed(_) => {
            let because = "because its theorem is about equal guarantees";
            return Err(Error::Unsupported { accountant, event: one.to_string(), because });
        }
        _ => match Delta::new(delta.get() / 2.0 / count.max(1) as f64) {
            Ok(each) => {
                Guarantee { epsilon: closed::epsilon(one, neighbors, each)?.upper, delta: each.get() }
            }
            Err(_) => return Ok(f64::INFINITY),
        },
    };
    // Nothing was released. A guarantee that is infinite at so small a δ would say otherwise.
    if count == 0 {
        return Ok(0.0);
    }
    let composed = compose(guarantee, count, delta);
    Ok(if composed.is_nan() { f64::INFINITY } else { composed })
}

/// An event and its number of repetitions.
pub(super) fn unrepeated(event: &Event) -> Result<(&Event, u64), Error> {
    let Event::Repeated { count, event: inner } = event else { return Ok((event, 1)) };
    let (once, times) = unrepeated(inner)?;
    let count = times.checked_mul(*count).filter(|count| *count <= MOST_REPETITIONS);
    Ok((once, count.ok_or_else(|| too_many(event))?))
}
