//! Statistics of tables in which a user has several records.

use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Sealed, unit_event},
    units::{Delta, Epsilon, NoiseMultiplier, Rho},
};

/// A statistic of records, where each user has at most a known number of records.
///
/// # Contract
/// The caller must ensure one clause that is not enforced here: at most `records` records of each user reach
/// the mechanism, and which ones depends on this user's records alone.
#[derive(Clone, Debug, PartialEq)]
pub struct PerUser<M> {
    /// The statistic, with noise for all records of a user.
    pub mechanism: M,
    /// The most records of one user.
    pub records: u32,
}

impl PerUser<()> {
    /// The ε of one record that is this ε for a user with so many records, rounded down.
    pub fn epsilon_of_record(epsilon: Epsilon, records: u32) -> Result<Epsilon, Error> {
        if records <= 1 {
            return Ok(epsilon);
        }
        Epsilon::new(epsilon.get() / f64::from(records) * (1.0 - 1e-13))
    }

    /// The (ε, δ) of one record that is this (ε, δ) for a user with so many records.
    ///
    /// # Theorem
    /// The inverse of (nε, δ(e^(nε) - 1)/(e^ε - 1)) [Vad17, Lemma 2.2], rounded down.
    pub fn share_of_record(epsilon: Epsilon, delta: Delta, records: u32) -> Result<(Epsilon, Delta), Error> {
        let (each, n) = (Self::epsilon_of_record(epsilon, records)?, f64::from(records));
        if records <= 1 {
            return Ok((each, delta));
        }
        Ok((each, Delta::new(delta.get() / growth(each.get(), n) * (1.0 - 1e-11))?))
    }
}

impl<M: Mechanism> Sealed for PerUser<M> {}

impl<M: Mechanism> Mechanism for PerUser<M> {
    /// The event of the statistic when up to `records` records change.
    fn event(&self, neighbors: Neighbors) -> Event {
        group(&self.mechanism.event(neighbors), self.records)
    }

    fn check(&self, neighbors: Neighbors) -> Result<(), Error> {
        if self.records == 0 {
            return Err(Error::OutOfRange { what: "records of a user", value: 0.0, range: "[1, 2^32)" });
        }
        self.mechanism.check(neighbors)
    }

    fn distance(&self) -> f64 {
        self.mechanism.distance()
    }
}

impl<M: Mechanism> std::fmt::Display for PerUser<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noun = if self.records == 1 { "record" } else { "records" };
        write!(f, "{}, of at most {} {noun} of each user", self.mechanism, self.records)
    }
}

impl<M: Mechanism> Paid<PerUser<M>> {
    /// The statistic, to be run on records of which each user has at most the number that was paid for.
    pub fn of_records(self) -> Paid<M> {
        self.map(|limited| limited.mechanism)
    }
}

/// The event of a mechanism where a user changes up to `records` records.
///
/// # Theorem
/// (THEORY, Users) A user who is added, removed or replaced changes at most n = `records` records, one after
/// the other. Each change is one that the event covers. So sums and integers move by n times as much, ranges of
/// log-probabilities and pure ε add up [DMNS06], ρ grows by n² [BS16], and (ε, δ) becomes (nε, δ(e^(nε) -
/// 1)/(e^ε - 1)) [Vad17, Lemma 2.2]. Parts of a composition have independent noise. Every other event has no
/// bound here.
fn group(event: &Event, records: u32) -> Event {
    let n = f64::from(records);
    // Each of these is a handful of roundings.
    let (up, down) = (1.0 + 1e-14, 1.0 - 1e-14);
    if records == 1 {
        return event.clone();
    }
    match event {
        Event::Gaussian { noise_multiplier } => {
            unit_event(NoiseMultiplier::new(noise_multiplier.get() / n * down), Event::gaussian)
        }
        Event::Laplace { noise_multiplier } => {
            unit_event(NoiseMultiplier::new(noise_multiplier.get() / n * down), Event::laplace)
        }
        Event::DiscreteGaussian { deviation, sensitivity } => match sensitivity.checked_mul(records) {
            Some(sensitivity) => Event::DiscreteGaussian { deviation: *deviation, sensitivity },
            None => Event::NonPrivate,
        },
        Event::DiscreteLaplace { scale, sensitivity } => match sensitivity.checked_mul(records) {
            Some(sensitivity) => Event::DiscreteLaplace { scale: *scale, sensitivity },
            None => Event::NonPrivate,
        },
        Event::Exponential { epsilon } => {
            unit_event(Epsilon::new(n * epsilon.get() * up), |epsilon| Event::Exponential { epsilon })
        }
        Event::Pure { epsilon } => {
            unit_event(Epsilon::new(n * epsilon.get() * up), |epsilon| Event::Pure { epsilon })
        }
        Event::ZeroConcentrated { rho } => {
            unit_event(Rho::new(n * n * rho.get() * up), |rho| Event::ZeroConcentrated { rho })
        }
        Event::Approximate { epsilon, delta } => {
            let all = n * epsilon.get() * up;
            let delta = delta.get() * growth(epsilon.get(), n) * (1.0 + 1e-12);
            unit_event(Epsilon::new(all).and_then(|e| Ok((e, Delta::new(delta)?))), |(epsilon, delta)| {
                Event::Approximate { epsilon, delta }
            })
        }
        Event::Composed(events) => {
            Event::Composed(events.iter().map(|event| group(event, records)).collect())
        }
        Event::Repeated { count, event } => group(event, records).repeated(*count),
        Event::RandomizedResponse { .. }
        | Event::Renyi { .. }
        | Event::PoissonSampled { .. }
        | Event::SampledWithoutReplacement { .. }
        | Event::SampledWithReplacement { .. }
        | Event::NonPrivate
        | Event::PerturbedObjective { .. }
        | Event::HiddenState { .. }
        | Event::BestOf { .. } => Event::NonPrivate,
    }
}

/// By how much δ grows for a group of n records at ε each: (e^(nε) - 1)/(e^ε - 1).
fn growth(epsilon: f64, n: f64) -> f64 {
    if epsilon == 0.0 { n } else { (n * epsilon).exp_m1() / epsilon.exp_m1() }
}

#[cfg(test)]
mod tests;
