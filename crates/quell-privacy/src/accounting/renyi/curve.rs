//! Rényi divergences of single releases, as functions of the order.

use std::sync::Arc;

use super::sampled::{self, FixedSizeMoments};
use crate::{
    Error, Event, Neighbors,
    accounting::pld::{Law, Masses, fixed_size_rate, one_law_each_way, upper_masses},
    special::ROUNDOFF,
};

/// A bound ε(α) on the Rényi divergence of order α between neighbours, for every α > 1.
#[derive(Clone, Debug)]
pub(crate) enum Curve {
    /// ρα: Gaussian noise, continuous [Mir17, Corollary 3] or discrete [CKS20, Theorem 4], and anything ρ-zCDP [BS16].
    Linear { rho: f64 },
    /// Laplace noise. [Mir17, Proposition 6]
    Laplace { epsilon: f64 },
    /// The worst pair of bounded range ε at each order. [DDR20]
    BoundedRange { epsilon: f64 },
    /// Finitely many losses with their probabilities under P.
    Atoms { atoms: Vec<(f64, f64)> },
    /// Given at some orders.
    Given { points: Vec<(f64, f64)> },
    /// Gaussian noise on a Poisson sample, a record added or removed. [MTZ19]
    SampledGaussian { rate: f64, sigma: f64 },
    /// Anything with a pair of bounded loss on a Poisson sample: the grids that dominate it, one for each direction.
    Grid { directions: Arc<Vec<Masses>>, h: f64 },
    /// Anything with a Rényi curve on a Poisson sample. [ZW19, Theorem 5]
    Sampled { rate: f64, inner: Box<Curve> },
    /// A sample of fixed size, a record replaced. [WBK19, Theorems 9 and 27]
    FixedSize { rate: f64, inner: Box<Curve>, moments: FixedSizeMoments },
    /// No bound at any order.
    Infinite,
}

impl Curve {
    /// ε(α), rounded up.
    pub(crate) fn at(&self, alpha: f64) -> f64 {
        let value = match self {
            Self::Linear { rho } => rho * alpha,
            Self::Laplace { epsilon } => {
                // ln( α/(2α-1) e^((α-1)ε) + (α-1)/(2α-1) e^(-αε) ) / (α-1), less its leading term (α-1)ε.
                let weight = (alpha - 1.0) / (2.0 * alpha - 1.0);
                epsilon + (weight * (-(2.0 * alpha - 1.0) * epsilon).exp_m1()).ln_1p() / (alpha - 1.0)
            }
            Self::BoundedRange { epsilon } => bounded_range(alpha, *epsilon),
            Self::Atoms { atoms } => {
                let top = atoms.iter().map(|(loss, _)| *loss).fold(f64::NEG_INFINITY, f64::max);
                let below: f64 = atoms.iter().map(|(loss, p)| p * ((alpha - 1.0) * (loss - top)).exp_m1()).sum();
                top + below.ln_1p() / (alpha - 1.0)
            }
            Self::Given { points } => given(alpha, points),
            Self::SampledGaussian { rate, sigma } => sampled::gaussian(alpha, *rate, *sigma),
            Self::Grid { directions, h } => {
                let largest = directions.iter().map(|masses| ln_moment(masses, *h, alpha - 1.0)).fold(0.0, f64::max);
                largest / (alpha - 1.0)
            }
            Self::Sampled { rate, inner } => between_integers(alpha, |a| sampled::general(a, *rate, |k| inner.at(k))),
            Self::FixedSize { rate, inner, moments } => {
                between_integers(alpha, |a| sampled::fixed_size(a, *rate, |k| inner.at(k), moments))
            }
            Self::Infinite => f64::INFINITY,
        };
        // What rounding and quadrature may have lost: relatively, more at large orders, where many terms are added, and next to
        // one, where they cancel; and absolutely, where a small divergence is the difference of larger numbers.
        let lost = match self {
            Self::Laplace { epsilon } => 16.0 * ROUNDOFF * epsilon,
            Self::BoundedRange { epsilon } if *epsilon >= SMALL_RANGE => 16.0 * ROUNDOFF * (epsilon + 1.0 / (alpha - 1.0)),
            Self::Atoms { atoms } => 16.0 * ROUNDOFF * atoms.last().map_or(0.0, |(loss, _)| loss.abs()),
            _ => 0.0,
        };
        let relative = 1e-11 + 1e-13 * alpha + 1e-14 / (alpha - 1.0);
        if value.is_nan() { f64::INFINITY } else { value.max(0.0) * (1.0 + relative) + lost }
    }
}

/// ln Σ w e^(θ·loss) over the grid; infinite where mass is.
fn ln_moment(masses: &Masses, h: f64, theta: f64) -> f64 {
    if masses.infinite > 0.0 {
        return f64::INFINITY;
    }
    let loss = |index: i64| masses.offset + index as f64 * h;
    let top = masses.indices.last().map_or(0.0, |&last| loss(last));
    let terms = masses.indices.iter().zip(&masses.weights);
    let sum: f64 = terms.map(|(&index, w)| w * (theta * (loss(index) - top)).exp()).sum();
    let moment = theta * top + sum.ln();
    if moment.is_nan() { f64::INFINITY } else { moment }
}

/// Below this a bounded range is taken as ε²/8-zCDP.
const SMALL_RANGE: f64 = 0.01;

/// ln of the largest E[(dP/dQ)^α] over the pairs with losses t and t - ε, over α - 1.
fn bounded_range(alpha: f64, epsilon: f64) -> f64 {
    if epsilon < SMALL_RANGE {
        return (alpha * epsilon * epsilon / 8.0).min(epsilon); // ε²/8-zCDP, and tight enough where the exact form cancels
    }
    // f(t) = (e^((α-1)t) (1 - e^(-αε)) - e^(αt) (e^-ε - e^(-αε))) / (1 - e^-ε), largest where f' = 0.
    let (a, b) = (-(-alpha * epsilon).exp_m1(), -(-(alpha - 1.0) * epsilon).exp_m1());
    // e^-ε - e^(-αε) = e^-ε b
    let t = (((alpha - 1.0) * a) / (alpha * b)).ln() + epsilon;
    let t = t.clamp(0.0, epsilon);
    // f(t) = e^((α-1)t) (a - e^(t-ε) b) / (1 - e^-ε)
    t + ((a - (t - epsilon).exp() * b) / -(-epsilon).exp_m1()).ln() / (alpha - 1.0)
}

/// (α-1)ε(α) is convex, so between given orders a chord bounds it; ε(1) is at most ε at any given order.
fn given(alpha: f64, points: &[(f64, f64)]) -> f64 {
    let after = points.partition_point(|(order, _)| *order < alpha);
    let Some(&(high, at_high)) = points.get(after) else { return f64::INFINITY };
    let Some(&(low, at_low)) = after.checked_sub(1).and_then(|i| points.get(i)) else { return at_high };
    let share = (alpha - low) / (high - low);
    let chord = ((1.0 - share) * (low - 1.0) * at_low + share * (high - 1.0) * at_high) / (alpha - 1.0);
    chord.min(at_high)
}

/// The chord of (α-1)ε(α), which is convex and zero at 1, between the integers next to α.
fn between_integers(alpha: f64, at: impl Fn(u32) -> f64) -> f64 {
    let (low, high) = (alpha.floor(), alpha.ceil());
    if high > 1e5 {
        return f64::INFINITY;
    }
    if low == high {
        return at(alpha as u32);
    }
    let scaled = |order: f64| if order <= 1.0 { 0.0 } else { (order - 1.0) * at(order as u32) };
    ((high - alpha) * scaled(low) + (alpha - low) * scaled(high)) / (alpha - 1.0)
}

fn unsupported(event: &Event, because: &'static str) -> Error {
    Error::Unsupported { accountant: "Rényi", event: event.to_string(), because }
}

/// The curves an event is made of, each with how often it occurs.
pub(crate) fn curves(event: &Event, neighbors: Neighbors) -> Result<Vec<(Curve, f64)>, Error> {
    let mut into = Vec::new();
    collect(event, neighbors, 1.0, &mut into)?;
    Ok(into)
}

fn collect(event: &Event, neighbors: Neighbors, count: f64, into: &mut Vec<(Curve, f64)>) -> Result<(), Error> {
    match event {
        Event::Composed(events) => events.iter().try_for_each(|e| collect(e, neighbors, count, into)),
        Event::Repeated { count: times, event } => collect(event, neighbors, count * *times as f64, into),
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
        | Event::NonPrivate => {
            if count > 0.0 {
                into.push((single(event, neighbors)?, count));
            }
            Ok(())
        }
    }
}

fn single(event: &Event, neighbors: Neighbors) -> Result<Curve, Error> {
    let reach = neighbors.reach();
    let linear = |mu: f64| Curve::Linear { rho: mu * mu / 2.0 };
    Ok(match event {
        Event::Gaussian { noise_multiplier } => linear(reach / noise_multiplier.get()),
        Event::DiscreteGaussian { deviation, sensitivity } => linear(reach * f64::from(*sensitivity) / deviation.get()),
        Event::Laplace { noise_multiplier } => Curve::Laplace { epsilon: reach / noise_multiplier.get() },
        Event::Exponential { epsilon } if epsilon.get() > 0.0 => Curve::BoundedRange { epsilon: epsilon.get() },
        Event::Exponential { .. } => Curve::Linear { rho: 0.0 },
        Event::ZeroConcentrated { rho } => Curve::Linear { rho: rho.get() },
        Event::Renyi { curve } => {
            let points: Vec<(f64, f64)> = curve.iter().map(|(order, epsilon)| (order.get(), epsilon.get())).collect();
            if points.is_empty() || points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                return Err(Error::Malformed { event: event.to_string(), because: "expected orders in increasing order" });
            }
            Curve::Given { points }
        }
        Event::DiscreteLaplace { .. } | Event::RandomizedResponse { .. } | Event::Pure { .. } => {
            match one_law_each_way(event, neighbors)?.first() {
                Some(Law::Atoms(atoms)) => Curve::Atoms { atoms: atoms.list() },
                _ => Curve::Infinite,
            }
        }
        Event::Approximate { .. } => return Err(unsupported(event, "because a δ above zero makes every order infinite")),
        Event::NonPrivate => Curve::Infinite,
        Event::PoissonSampled { rate, event: inner } => poisson_sampled(event, rate.get(), inner, neighbors)?,
        Event::SampledWithoutReplacement { batch, records, event: inner } => {
            let rate = fixed_size_rate(event, *batch, *records, neighbors)?;
            let curve = only(inner, neighbors)?;
            let moments = match one_law_each_way(inner, neighbors).as_deref() {
                Ok([Law::Gaussian { mu }]) => FixedSizeMoments::Gaussian { mu: *mu },
                _ => FixedSizeMoments::Unknown,
            };
            if rate == 1.0 { curve } else { Curve::FixedSize { rate, inner: Box::new(curve), moments } }
        }
        Event::SampledWithReplacement { .. } => return Err(unsupported(event, "with replacement; the PLD accountant has one")),
        Event::Composed(_) | Event::Repeated { .. } => return Err(unsupported(event, "inside a sample")),
    })
}

/// The sum of an event's curves, as sampling theorems need it.
fn only(event: &Event, neighbors: Neighbors) -> Result<Curve, Error> {
    let parts = curves(event, neighbors)?;
    let rho: Option<f64> =
        parts.iter().map(|(curve, count)| if let Curve::Linear { rho } = curve { Some(rho * count) } else { None }).sum();
    match (rho, parts.as_slice()) {
        (Some(rho), _) => Ok(Curve::Linear { rho }),
        (None, [(curve, 1.0)]) => Ok(curve.clone()),
        _ => Err(unsupported(event, "inside a sample: it is not a single release")),
    }
}

fn poisson_sampled(event: &Event, rate: f64, inner: &Event, neighbors: Neighbors) -> Result<Curve, Error> {
    if rate == 1.0 {
        return only(inner, neighbors);
    }
    if neighbors == Neighbors::Replace {
        return Err(unsupported(event, "when a record is replaced; the PLD accountant has one"));
    }
    // Where a dominating pair is known its own divergences are the tightest bound.
    match one_law_each_way(event, neighbors) {
        Ok(laws) => match laws.first() {
            Some(Law::Removed { rate, inner }) if matches!(**inner, Law::Gaussian { .. }) => {
                let Law::Gaussian { mu } = **inner else { return Ok(Curve::Infinite) };
                Ok(Curve::SampledGaussian { rate: *rate, sigma: 1.0 / mu })
            }
            Some(_) => {
                let grid = upper_masses(&laws, 4096);
                Ok(grid.map_or(Curve::Infinite, |(directions, h)| Curve::Grid { directions: Arc::new(directions), h }))
            }
            None => Ok(Curve::Infinite),
        },
        Err(_) => Ok(Curve::Sampled { rate, inner: Box::new(only(inner, neighbors)?) }),
    }
}
