//! From events to laws: the dominating pairs of an event, in each direction.
//!
//! Several releases on one sample become one law in [`composite`](super::composite).

use std::sync::Arc;

use super::{
    atoms::Atoms,
    best_of::best_of,
    composite::composite,
    law::Law,
    privacy_loss::{Direction, PrivacyLoss},
};
use crate::{
    Error, Event, Neighbors,
    accounting::hidden_state::{HIDDEN_IN_A_SAMPLE, last_iterate},
    event::{MOST_REPETITIONS, no_trials, too_many},
};

/// What is known about the privacy loss of one release.
enum ReleaseLoss {
    /// No outcome depends on the record.
    Free,
    /// The loss has this law.
    Law(Law),
    /// There is no guarantee.
    NonPrivate,
}

impl ReleaseLoss {
    /// Adds `count` such releases to a sum of losses.
    fn add_to(self, loss: &mut PrivacyLoss, count: u64) {
        match self {
            Self::Free => {}
            Self::Law(law) => loss.push(law, count),
            Self::NonPrivate => loss.non_private |= count > 0,
        }
    }

    fn map(self, sampled: impl FnOnce(Law) -> Law) -> Self {
        if let Self::Law(law) = self { Self::Law(sampled(law)) } else { self }
    }
}

/// The privacy loss of the event, in each direction; in one if it is symmetric.
pub(crate) fn privacy_losses(event: &Event, neighbors: Neighbors) -> Result<Vec<PrivacyLoss>, Error> {
    let mut remove = PrivacyLoss::default();
    collect(event, neighbors, Direction::Remove, 1, &mut remove)?;
    let total = remove.factors.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
    if total.is_none_or(|total| total > MOST_REPETITIONS) {
        return Err(too_many(event));
    }
    let asymmetric =
        remove.factors.iter().any(|(law, _)| matches!(law, Law::Removed { .. } | Law::Perturbed { .. }));
    let mut losses = vec![remove.finish()];
    if asymmetric {
        let mut add = PrivacyLoss::default();
        collect(event, neighbors, Direction::Add, 1, &mut add)?;
        losses.push(add.finish());
    }
    Ok(losses)
}

fn collect(
    event: &Event,
    neighbors: Neighbors,
    direction: Direction,
    count: u64,
    into: &mut PrivacyLoss,
) -> Result<(), Error> {
    match event {
        Event::Composed(events) => {
            events.iter().try_for_each(|e| collect(e, neighbors, direction, count, into))
        }
        Event::Repeated { count: times, event } => {
            let count = count.checked_mul(*times).filter(|count| *count <= MOST_REPETITIONS);
            collect(event, neighbors, direction, count.ok_or_else(|| too_many(event))?, into)
        }
        Event::NonPrivate => {
            into.non_private |= count > 0;
            Ok(())
        }
        Event::PoissonSampled { rate, event: inner } => {
            if rate.get() == 1.0 {
                return collect(inner, neighbors, direction, count, into);
            }
            poisson_sampled(rate.get(), inner, neighbors, direction)?.add_to(into, count);
            Ok(())
        }
        Event::SampledWithoutReplacement { batch, records, event: inner } => {
            let rate = fixed_size_rate(event, *batch, *records, neighbors)?;
            let sampled =
                |law: Law| if rate == 1.0 { law } else { Law::FixedSize { rate, inner: Box::new(law) } };
            only(inner, neighbors, direction)?.map(sampled).add_to(into, count);
            Ok(())
        }
        Event::SampledWithReplacement { batch, records, event: inner } => {
            fixed_size_rate(event, (*batch).min(*records), *records, neighbors)?;
            with_replacement(event, inner, *batch, *records, neighbors)?.add_to(into, count);
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
        | Event::Renyi { .. }
        | Event::HiddenState { .. } => {
            leaf(event, neighbors)?.map_or(ReleaseLoss::NonPrivate, ReleaseLoss::Law).add_to(into, count);
            Ok(())
        }
        Event::BestOf { expected, trials } => {
            best_trial(event, *expected, trials, neighbors)?.add_to(into, count);
            Ok(())
        }
        Event::PerturbedObjective { noise_multiplier, curvature_ratio } => {
            if neighbors == Neighbors::Replace {
                return Err(unsupported(event, "when a record is replaced; use the Rényi accountant"));
            }
            let (mu, ratio) = (noise_multiplier.get().recip(), curvature_ratio.get());
            into.push(Law::perturbed_objective(mu, ratio, direction), count);
            Ok(())
        }
    }
}

fn unsupported(event: &Event, because: &'static str) -> Error {
    Error::Unsupported { accountant: "PLD", event: event.to_string(), because }
}

/// The law of an event that is neither sampled nor composed; `None` without a guarantee.
fn leaf(event: &Event, neighbors: Neighbors) -> Result<Option<Law>, Error> {
    let reach = neighbors.reach();
    let atoms = |atoms: Atoms| Ok(Some(Law::Atoms(Arc::new(atoms))));
    let shift = |sensitivity: u32| {
        let shift = sensitivity.checked_mul(reach as u32).filter(|s| (1..=1_000_000).contains(s));
        shift.ok_or_else(|| Error::Malformed {
            event: event.to_string(),
            because: "expected a sensitivity in [1, 500000]",
        })
    };
    match event {
        Event::Gaussian { noise_multiplier } => Ok(Some(Law::gaussian(reach / noise_multiplier.get()))),
        Event::Laplace { noise_multiplier } => {
            Ok(Some(Law::Laplace { epsilon: reach / noise_multiplier.get() }))
        }
        Event::DiscreteGaussian { deviation, sensitivity } => {
            if deviation.get() > 2e4 {
                return Err(unsupported(event, "with a deviation above 20000; use the Rényi accountant"));
            }
            atoms(Atoms::discrete_gaussian(deviation.get(), shift(*sensitivity)?))
        }
        Event::DiscreteLaplace { scale, sensitivity } => {
            atoms(Atoms::discrete_laplace(scale.get(), shift(*sensitivity)?))
        }
        Event::RandomizedResponse { choices, randomized } => {
            if neighbors != Neighbors::Replace {
                return Err(unsupported(
                    event,
                    "when records are added or removed, because the number of answers reveals the number of records; use replace",
                ));
            }
            if *choices < 2 {
                return Err(Error::Malformed {
                    event: event.to_string(),
                    because: "expected at least two choices",
                });
            }
            match Atoms::randomized_response(*choices, randomized.get()) {
                Some(response) => atoms(response),
                None => Ok(None),
            }
        }
        Event::Exponential { epsilon } | Event::Pure { epsilon } if epsilon.get() == 0.0 => {
            atoms(Atoms::pure(0.0))
        }
        Event::Exponential { epsilon } => Ok(Some(Law::BoundedRange { epsilon: epsilon.get() })),
        Event::Pure { epsilon } => atoms(Atoms::pure(epsilon.get())),
        Event::Approximate { epsilon, delta } => atoms(Atoms::approximate(epsilon.get(), delta.get())),
        Event::ZeroConcentrated { .. } | Event::Renyi { .. } => {
            Err(unsupported(event, "because Rényi bounds have no dominating pair; use the Rényi accountant"))
        }
        Event::HiddenState { noise_multiplier, contraction, steps, diameter } => {
            let mu = last_iterate(*noise_multiplier, *contraction, *steps, *diameter, neighbors)?;
            Ok(Some(Law::Gaussian { mu: mu.upper, attained: mu.lower }))
        }
        Event::NonPrivate => Ok(None),
        Event::PoissonSampled { .. }
        | Event::SampledWithoutReplacement { .. }
        | Event::SampledWithReplacement { .. }
        | Event::Composed(_)
        | Event::Repeated { .. }
        | Event::PerturbedObjective { .. }
        | Event::BestOf { .. } => Err(unsupported(event, "inside a sample")),
    }
}

/// The single law of an event, as sampling theorems need it.
fn only(event: &Event, neighbors: Neighbors, direction: Direction) -> Result<ReleaseLoss, Error> {
    if event.has_hidden_state() {
        return Err(unsupported(event, HIDDEN_IN_A_SAMPLE));
    }
    let mut loss = PrivacyLoss::default();
    collect(event, neighbors, direction, 1, &mut loss)?;
    let mut loss = loss.finish();
    if loss.non_private {
        return Ok(ReleaseLoss::NonPrivate);
    }
    // A release that never depends on the record does not depend on it in a sample either.
    loss.factors.retain(|(law, _)| !law.is_trivial());
    // The sampling theorems need one pair that dominates in both directions.
    let is_symmetric = |(law, _): &(Law, u64)| {
        matches!(
            law,
            Law::Gaussian { .. }
                | Law::Laplace { .. }
                | Law::BoundedRange { .. }
                | Law::Atoms(_)
                | Law::Between { .. }
        )
    };
    match loss.single() {
        _ if loss.is_free() => Ok(ReleaseLoss::Free),
        _ if !loss.factors.iter().all(is_symmetric) => {
            Err(unsupported(event, "inside a sample: it is not a composition of unsampled releases"))
        }
        Some(law) => Ok(ReleaseLoss::Law(law.clone())),
        None => match composite(&loss) {
            Some(law) => Ok(ReleaseLoss::Law(law)),
            None => Err(unsupported(event, "inside a sample: its composition has no bound")),
        },
    }
}

fn poisson_sampled(
    rate: f64,
    inner: &Event,
    neighbors: Neighbors,
    direction: Direction,
) -> Result<ReleaseLoss, Error> {
    match neighbors {
        Neighbors::AddRemove => Ok(only(inner, neighbors, direction)?.map(|law| match direction {
            Direction::Remove => Law::Removed { rate, inner: Box::new(law) },
            Direction::Add => Law::Added { rate, inner: Box::new(law) },
        })),
        // The theorems are about noise on contributions, not about sensitivities: `one` is the law of one
        // contribution.
        Neighbors::Replace => {
            if let Ok(ReleaseLoss::Free) = only(inner, neighbors, direction) {
                return Ok(ReleaseLoss::Free);
            }
            if !is_additive_noise(inner) && !matches!(inner, Event::NonPrivate) {
                return Err(unsupported(
                    inner,
                    "on a Poisson sample when a record is replaced: a sample may also lose the record, about which its guarantee says nothing",
                ));
            }
            Ok(match (only(inner, Neighbors::AddRemove, direction)?, only(inner, neighbors, direction)?) {
                (ReleaseLoss::Law(Law::Gaussian { mu, .. }), _) => {
                    ReleaseLoss::Law(Law::Exchanged { rate, mu })
                }
                (ReleaseLoss::Law(one), ReleaseLoss::Law(two)) => {
                    let bound = Box::new(Law::FixedSize { rate, inner: Box::new(two) });
                    ReleaseLoss::Law(Law::Replaced { rate, one: Box::new(one), bound })
                }
                _ => ReleaseLoss::NonPrivate,
            })
        }
    }
}

/// Whether the event is additive noise on a sum of contributions.
///
/// For such noise the law of a replaced record dominates that of a lost record.
///
/// # Theorem
/// Let C be the output without the record, A with it and B with its replacement. By advanced joint convexity
/// [BBG18, Theorem 2] the sampled pair has, at ε' = ln(1 + q(e^ε - 1)), the profile q((1 - β)δ_AC(ε) +
/// βδ_AB(ε)) at most, with β in [0, 1]. A shift by one contribution is dominated by a shift by two, so that
/// is at most qδ_AB(ε): a sample of fixed size.
fn is_additive_noise(event: &Event) -> bool {
    match event {
        Event::Gaussian { .. }
        | Event::Laplace { .. }
        | Event::DiscreteGaussian { .. }
        | Event::DiscreteLaplace { .. } => true,
        // Several Gaussians compose to one Gaussian.
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
        | Event::NonPrivate
        | Event::PerturbedObjective { .. }
        | Event::HiddenState { .. }
        | Event::BestOf { .. } => false,
    }
}

/// The loss of the best of a random number of trials.
fn best_trial(
    event: &Event,
    expected: u32,
    trials: &[Event],
    neighbors: Neighbors,
) -> Result<ReleaseLoss, Error> {
    if trials.is_empty() || expected == 0 {
        return Err(no_trials(event));
    }
    let mut losses = Vec::new();
    for trial in trials {
        losses.extend(privacy_losses(trial, neighbors)?);
    }
    if losses.iter().any(|loss| loss.non_private) {
        return Ok(ReleaseLoss::NonPrivate);
    }
    losses.retain(|loss| !loss.is_free());
    if losses.is_empty() {
        return Ok(ReleaseLoss::Free);
    }
    match best_of(f64::from(expected).recip(), &losses) {
        Some(law) => Ok(ReleaseLoss::Law(law)),
        None => Err(unsupported(event, "because no bound on the profile of its trials was found")),
    }
}

/// The sampling rate of a batch of fixed size; the theorems require the replace relation.
pub(crate) fn fixed_size_rate(
    event: &Event,
    batch: u64,
    records: u64,
    neighbors: Neighbors,
) -> Result<f64, Error> {
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

/// Numbers of draws with a smaller probability than this are counted as infinite loss.
const SMALLEST_PART: f64 = 1e-100;

/// m draws with replacement out of n records, with one record replaced.
///
/// # Theorem
/// [BBG18, Theorem 10]: with q = 1 - (1 - 1/n)^m and Bⱼ the probability that the record is drawn j times,
/// δ'(ln(1 + q(e^ε - 1))) ≤ Σ_{j≥1} Bⱼ δⱼ(ε), δⱼ the profile for groups of j. That is a mixture with weights
/// Bⱼ/q of the profiles of samples of fixed size with rate q.
fn with_replacement(
    event: &Event,
    inner: &Event,
    batch: u64,
    records: u64,
    neighbors: Neighbors,
) -> Result<ReleaseLoss, Error> {
    let base = only(inner, neighbors, Direction::Remove)?;
    if matches!(base, ReleaseLoss::Free) {
        return Ok(ReleaseLoss::Free);
    }
    let group = |j: f64| match base {
        ReleaseLoss::Law(Law::Gaussian { mu, .. }) => Ok(Law::gaussian(mu * j)),
        ReleaseLoss::Law(Law::Laplace { epsilon }) => Ok(Law::Laplace { epsilon: epsilon * j }),
        _ => Err(unsupported(
            event,
            "because groups of records are only worked out for Gaussian and Laplace noise",
        )),
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
    // The terms that were cut off count as infinite losses. With at most thirty draws per record, each
    // further term is less than half of the one before.
    let rest = if j > m { 0.0 } else { 2.0 * chance / rate };
    if rest > 0.0 {
        parts.push((rest, Law::Atoms(Arc::new(Atoms::approximate(0.0, 1.0)))));
    }
    Ok(ReleaseLoss::Law(Law::Mixture(parts)))
}

/// The single law of an event, in each direction; empty without a guarantee.
pub(crate) fn one_law_each_way(event: &Event, neighbors: Neighbors) -> Result<Vec<Law>, Error> {
    let losses = privacy_losses(event, neighbors)?;
    if losses.iter().any(|loss| loss.non_private) {
        return Ok(Vec::new());
    }
    // An event without releases counts as one constant release.
    let one = |loss: &PrivacyLoss| {
        if loss.is_free() { Some(Law::nothing()) } else { loss.single().cloned() }
    };
    let laws: Option<Vec<Law>> = losses.iter().map(one).collect();
    laws.ok_or_else(|| Error::Unsupported {
        accountant: "PLD",
        event: event.to_string(),
        because: "as a single release",
    })
}
