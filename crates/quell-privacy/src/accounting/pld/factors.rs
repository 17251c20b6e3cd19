//! From events to laws: which dominating pairs an event is made of, in each direction.

use std::sync::Arc;

use super::{atoms::Atoms, composite::composite, law::Law};
use crate::{
    Error, Event, Neighbors,
    event::{MOST_REPETITIONS, too_many},
};

/// The laws whose sum is the privacy loss, for one direction of the change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    pub(crate) factors: Vec<(Law, u64)>,
    pub(crate) non_private: bool,
    /// Σ μ² over the Gaussians, which compose to one.
    gaussian: f64,
}

impl Direction {
    /// The law, if there is just one.
    pub(crate) fn single(&self) -> Option<&Law> {
        match self.factors.as_slice() {
            [(law, 1)] => Some(law),
            _ => None,
        }
    }

    /// The laws of mechanisms that really have this event, where the dominating laws are not attained.
    ///
    /// Each element is one mechanism; the truth is at least what any of them attains.
    pub(crate) fn attained(&self) -> Option<Vec<Vec<(Law, u64)>>> {
        let by = |way| -> Vec<(Law, u64)> { self.factors.iter().map(|(law, count)| (law.attained(way), *count)).collect() };
        let (remove, add) = (by(Way::Remove), by(Way::Add));
        if remove == self.factors {
            return None;
        }
        Some(if add == remove { vec![remove] } else { vec![remove, add] })
    }

    /// The probability of an infinite loss that some mechanism with this event attains, rounded down.
    pub(crate) fn infinite(&self) -> f64 {
        let ln_finite = |(law, count): &(Law, u64)| *count as f64 * (-law.attained(Way::Remove).infinite().min(1.0)).ln_1p();
        -self.factors.iter().map(ln_finite).sum::<f64>().exp_m1() * (1.0 - 1e-12)
    }

    /// μ, if everything is Gaussian.
    pub(crate) fn gaussian(&self) -> Option<f64> {
        match self.single() {
            Some(Law::Gaussian { mu }) => Some(*mu),
            _ => None,
        }
    }

    fn push(&mut self, law: Law, count: u64) {
        if let Law::Gaussian { mu } = law {
            self.gaussian += mu * mu * count as f64;
            return;
        }
        // Laws that are written several times are composed as one power; among many laws only the newest are compared.
        if let Some((_, times)) = self.factors.iter_mut().rev().take(64).find(|(known, _)| *known == law) {
            // More than there may be is found by `directions`.
            *times = times.saturating_add(count);
        } else if count > 0 {
            self.factors.push((law, count));
        }
    }

    fn finish(mut self) -> Self {
        if self.gaussian > 0.0 {
            self.factors.push((Law::Gaussian { mu: self.gaussian.sqrt() }, 1));
        }
        self
    }
}

/// Which of two neighbouring datasets has the record.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Way {
    Remove,
    Add,
}

/// The event's laws: one direction if it is symmetric, else two.
pub(crate) fn directions(event: &Event, neighbors: Neighbors) -> Result<Vec<Direction>, Error> {
    let mut remove = Direction::default();
    collect(event, neighbors, Way::Remove, 1, &mut remove)?;
    let total = remove.factors.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
    if total.is_none_or(|total| total > MOST_REPETITIONS) {
        return Err(too_many(event));
    }
    let asymmetric = remove.factors.iter().any(|(law, _)| matches!(law, Law::Removed { .. }));
    let mut directions = vec![remove.finish()];
    if asymmetric {
        let mut add = Direction::default();
        collect(event, neighbors, Way::Add, 1, &mut add)?;
        directions.push(add.finish());
    }
    Ok(directions)
}

fn collect(event: &Event, neighbors: Neighbors, way: Way, count: u64, into: &mut Direction) -> Result<(), Error> {
    match event {
        Event::Composed(events) => events.iter().try_for_each(|e| collect(e, neighbors, way, count, into)),
        Event::Repeated { count: times, event } => {
            let count = count.checked_mul(*times).filter(|count| *count <= MOST_REPETITIONS);
            collect(event, neighbors, way, count.ok_or_else(|| too_many(event))?, into)
        }
        Event::NonPrivate => {
            into.non_private |= count > 0;
            Ok(())
        }
        Event::PoissonSampled { rate, event: inner } => {
            if rate.get() == 1.0 {
                return collect(inner, neighbors, way, count, into);
            }
            if let Some(law) = poisson_sampled(rate.get(), inner, neighbors, way)? {
                into.push(law, count);
            } else {
                into.non_private |= count > 0;
            }
            Ok(())
        }
        Event::SampledWithoutReplacement { batch, records, event: inner } => {
            let rate = fixed_size_rate(event, *batch, *records, neighbors)?;
            match only(inner, neighbors, way)? {
                Some(law) if rate == 1.0 => into.push(law, count),
                Some(law) => into.push(Law::FixedSize { rate, inner: Box::new(law) }, count),
                None => into.non_private |= count > 0,
            }
            Ok(())
        }
        Event::SampledWithReplacement { batch, records, event: inner } => {
            fixed_size_rate(event, (*batch).min(*records), *records, neighbors)?;
            into.push(with_replacement(event, inner, *batch, *records, neighbors)?, count);
            Ok(())
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
        | Event::Renyi { .. } => {
            match leaf(event, neighbors)? {
                Some(law) => into.push(law, count),
                None => into.non_private |= count > 0,
            }
            Ok(())
        }
    }
}

fn unsupported(event: &Event, because: &'static str) -> Error {
    Error::Unsupported { accountant: "PLD", event: event.to_string(), because }
}

/// The law of an event that is neither sampled nor composed; `None` if it has no guarantee.
fn leaf(event: &Event, neighbors: Neighbors) -> Result<Option<Law>, Error> {
    let reach = neighbors.reach();
    let atoms = |atoms: Atoms| Ok(Some(Law::Atoms(Arc::new(atoms))));
    let shift = |sensitivity: u32| {
        let shift = sensitivity.checked_mul(reach as u32).filter(|s| (1..=1_000_000).contains(s));
        shift.ok_or_else(|| Error::Malformed { event: event.to_string(), because: "expected a sensitivity in [1, 500000]" })
    };
    match event {
        Event::Gaussian { noise_multiplier } => Ok(Some(Law::Gaussian { mu: reach / noise_multiplier.get() })),
        Event::Laplace { noise_multiplier } => Ok(Some(Law::Laplace { epsilon: reach / noise_multiplier.get() })),
        Event::DiscreteGaussian { deviation, sensitivity } => {
            if deviation.get() > 2e4 {
                return Err(unsupported(event, "with a deviation above 20000: the Rényi accountant has one"));
            }
            atoms(Atoms::discrete_gaussian(deviation.get(), shift(*sensitivity)?))
        }
        Event::DiscreteLaplace { scale, sensitivity } => atoms(Atoms::discrete_laplace(scale.get(), shift(*sensitivity)?)),
        Event::RandomizedResponse { choices, randomized } => {
            if neighbors != Neighbors::Replace {
                return Err(unsupported(
                    event,
                    "when records are added or removed, since the number of answers shows; use replace",
                ));
            }
            if *choices < 2 {
                return Err(Error::Malformed { event: event.to_string(), because: "expected at least two choices" });
            }
            match Atoms::randomized_response(*choices, randomized.get()) {
                Some(response) => atoms(response),
                None => Ok(None),
            }
        }
        Event::Exponential { epsilon } | Event::Pure { epsilon } if epsilon.get() == 0.0 => atoms(Atoms::pure(0.0)),
        Event::Exponential { epsilon } => Ok(Some(Law::BoundedRange { epsilon: epsilon.get() })),
        Event::Pure { epsilon } => atoms(Atoms::pure(epsilon.get())),
        Event::Approximate { epsilon, delta } => atoms(Atoms::approximate(epsilon.get(), delta.get())),
        Event::ZeroConcentrated { .. } | Event::Renyi { .. } => {
            Err(unsupported(event, "because Rényi bounds have no dominating pair; the Rényi accountant has one"))
        }
        Event::NonPrivate => Ok(None),
        Event::PoissonSampled { .. }
        | Event::SampledWithoutReplacement { .. }
        | Event::SampledWithReplacement { .. }
        | Event::Composed(_)
        | Event::Repeated { .. } => Err(unsupported(event, "inside a sample")),
    }
}

/// The one law an event consists of, as sampling theorems need it; `None` if it has no guarantee.
fn only(event: &Event, neighbors: Neighbors, way: Way) -> Result<Option<Law>, Error> {
    let mut direction = Direction::default();
    collect(event, neighbors, way, 1, &mut direction)?;
    let direction = direction.finish();
    if direction.non_private {
        return Ok(None);
    }
    // The sampling theorems are about one pair that dominates whichever of two datasets has the record.
    let is_symmetric = |(law, _): &(Law, u64)| {
        matches!(law, Law::Gaussian { .. } | Law::Laplace { .. } | Law::BoundedRange { .. } | Law::Atoms(_) | Law::Between { .. })
    };
    match direction.single() {
        _ if !direction.factors.iter().all(is_symmetric) || direction.factors.is_empty() => {
            Err(unsupported(event, "inside a sample: it is not a composition of unsampled releases"))
        }
        Some(law) => Ok(Some(law.clone())),
        None => match composite(&direction) {
            Some(law) => Ok(Some(law)),
            None => Err(unsupported(event, "inside a sample: its composition has no bound")),
        },
    }
}

fn poisson_sampled(rate: f64, inner: &Event, neighbors: Neighbors, way: Way) -> Result<Option<Law>, Error> {
    match neighbors {
        Neighbors::AddRemove => Ok(only(inner, neighbors, way)?.map(|law| match way {
            Way::Remove => Law::Removed { rate, inner: Box::new(law) },
            Way::Add => Law::Added { rate, inner: Box::new(law) },
        })),
        // The theorems are about noise on contributions, not about sensitivities: `one` is the law of one contribution.
        Neighbors::Replace => {
            if !is_additive_noise(inner) && !matches!(inner, Event::NonPrivate) {
                return Err(unsupported(
                    inner,
                    "on a Poisson sample when a record is replaced: a sample may also lose the record, about which its guarantee says nothing",
                ));
            }
            Ok(match (only(inner, Neighbors::AddRemove, way)?, only(inner, neighbors, way)?) {
                (Some(Law::Gaussian { mu }), _) => Some(Law::Exchanged { rate, mu }),
                (Some(one), Some(two)) => {
                    let bound = Box::new(Law::FixedSize { rate, inner: Box::new(two) });
                    Some(Law::Replaced { rate, one: Box::new(one), bound })
                }
                _ => None,
            })
        }
    }
}

/// Whether the event is noise on a sum of contributions, whose law for a replaced record dominates that for a lost one.
///
/// # Theorem
/// Let C be the output without the record, A with it and B with its replacement. By advanced joint convexity [BBG18,
/// Theorem 2] the sampled pair has, at ε' = ln(1 + q(e^ε - 1)), the profile q((1 - β)δ_AC(ε) + βδ_AB(ε)) at most, with β in
/// [0, 1]. A shift by one contribution is dominated by a shift by two, so that is at most qδ_AB(ε): a sample of fixed size.
fn is_additive_noise(event: &Event) -> bool {
    match event {
        Event::Gaussian { .. } | Event::Laplace { .. } | Event::DiscreteGaussian { .. } | Event::DiscreteLaplace { .. } => true,
        // Several Gaussians are one Gaussian.
        Event::Composed(events) => events.iter().all(is_additive_noise),
        Event::Repeated { event, .. } => is_additive_noise(event),
        Event::RandomizedResponse { .. }
        | Event::Exponential { .. }
        | Event::Pure { .. }
        | Event::Approximate { .. }
        | Event::ZeroConcentrated { .. }
        | Event::Renyi { .. }
        | Event::PoissonSampled { .. }
        | Event::SampledWithoutReplacement { .. }
        | Event::SampledWithReplacement { .. }
        | Event::NonPrivate => false,
    }
}

/// The sampling rate of a batch of fixed size; the theorems are about replacing a record.
pub(crate) fn fixed_size_rate(event: &Event, batch: u64, records: u64, neighbors: Neighbors) -> Result<f64, Error> {
    if neighbors != Neighbors::Replace {
        return Err(unsupported(
            event,
            "when records are added or removed: a sample of fixed size shows their number; use replace",
        ));
    }
    if batch == 0 || batch > records || records > 1 << 53 {
        return Err(Error::Malformed { event: event.to_string(), because: "expected 0 < batch ≤ records" });
    }
    Ok(batch as f64 / records as f64)
}

/// Chances of many draws below this are called infinite.
const SMALLEST_PART: f64 = 1e-100;

/// m draws with replacement out of n, one record replaced.
///
/// # Theorem
/// [BBG18, Theorem 10]: with q = 1 - (1 - 1/n)^m and Bⱼ the chance that the record is drawn j times,
/// δ'(ln(1 + q(e^ε - 1))) ≤ Σ_{j≥1} Bⱼ δⱼ(ε), δⱼ the profile for groups of j. That is a mixture with weights Bⱼ/q of
/// the profiles of samples of fixed size with rate q.
fn with_replacement(event: &Event, inner: &Event, batch: u64, records: u64, neighbors: Neighbors) -> Result<Law, Error> {
    let base = only(inner, neighbors, Way::Remove)?;
    let group = |j: f64| match base {
        Some(Law::Gaussian { mu }) => Ok(Law::Gaussian { mu: mu * j }),
        Some(Law::Laplace { epsilon }) => Ok(Law::Laplace { epsilon: epsilon * j }),
        _ => Err(unsupported(event, "because groups of records are only worked out for Gaussian and Laplace noise")),
    };
    let (m, n) = (batch as f64, records as f64);
    if m > 30.0 * n {
        return Err(unsupported(event, "with more than thirty draws a record"));
    }
    let miss = if records == 1 { 0.0 } else { (m * (-1.0 / n).ln_1p()).exp() };
    let rate = if records == 1 { 1.0 } else { -(m * (-1.0 / n).ln_1p()).exp_m1() };
    let mut parts = Vec::new();
    // Bⱼ = C(m, j) n^-j (1 - 1/n)^(m-j), by recurrence.
    let mut chance = if records == 1 { 0.0 } else { miss * m / (n - 1.0) };
    let mut left = 1.0;
    let mut j = 1.0;
    while j <= m && parts.len() < 256 && left > SMALLEST_PART {
        if records == 1 {
            chance = f64::from(u8::from(j == m));
        }
        if chance > 0.0 {
            parts.push((chance / rate, Law::FixedSize { rate, inner: Box::new(group(j)?) }));
        }
        chance *= (m - j) / ((j + 1.0) * (n - 1.0).max(1.0));
        left = if j > m / n { chance / rate } else { 1.0 };
        j += 1.0;
    }
    // What was cut off is called infinite: with at most thirty draws a record the terms more than halve from here on.
    let rest = if j > m { 0.0 } else { 2.0 * chance / rate };
    if rest > 0.0 {
        parts.push((rest, Law::Atoms(Arc::new(Atoms::approximate(0.0, 1.0)))));
    }
    Ok(Law::Mixture(parts))
}
