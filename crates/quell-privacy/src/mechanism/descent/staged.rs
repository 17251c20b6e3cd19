//! Descents of different settings, one after the other, in one plan.

use super::{Batches, Descent};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Sealed},
};

/// Runs with settings of their own, and then the runs of one descent.
///
/// The first runs prepare what the others use, such as principal components. All are paid for together, and
/// their cost is judged as a whole.
///
/// ```
/// use quell_privacy::{
///     Event, Neighbors,
///     mechanism::{Clipping, Descent, Mechanism, Sampling, StagedDescent},
///     units::{ClipNorm, NoiseMultiplier, SamplingRate},
/// };
/// let rate = SamplingRate::new(0.01)?;
/// let clipping = Clipping::Flat { norm: ClipNorm::new(1.0)? };
/// let noise_multiplier = NoiseMultiplier::new(4.0)?;
/// let descent = Descent { sampling: Sampling::Poisson { rate }, clipping, noise_multiplier, dimension: 10 };
/// let preparation = Descent {
///     sampling: Sampling::Full,
///     noise_multiplier: NoiseMultiplier::new(7.0)?,
///     dimension: 3,
///     ..descent.clone()
/// };
/// let staged = StagedDescent { preparation: vec![(preparation.clone(), 2)], descent: descent.clone() };
/// assert_eq!(staged.clone().at_run(1).descent, preparation);
/// assert_eq!(staged.clone().at_run(2).descent, descent);
/// let of = |descent: &Descent| descent.event(Neighbors::AddRemove);
/// let event = Event::Composed(vec![of(&preparation).repeated(2), of(&descent).repeated(98)]);
/// assert_eq!(staged.event_of_runs(Neighbors::AddRemove, 100), event);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StagedDescent {
    /// What the first runs are, and how many there are of each kind.
    pub preparation: Vec<(Descent, u64)>,
    /// What all later runs are.
    pub descent: Descent,
}

impl StagedDescent {
    /// Runs of one kind, without preparation.
    #[must_use]
    pub fn of(descent: Descent) -> Self {
        Self { preparation: Vec::new(), descent }
    }

    /// The kinds of the first `runs` runs, and how many there are of each.
    fn stages(&self, runs: u64) -> Vec<(&Descent, u64)> {
        let mut left = runs;
        let mut stages = Vec::new();
        for (descent, count) in &self.preparation {
            stages.push((descent, left.min(*count)));
            left -= left.min(*count);
        }
        stages.push((&self.descent, left));
        stages.retain(|(_, count)| *count > 0);
        stages
    }
}

impl Sealed for StagedDescent {}

impl Mechanism for StagedDescent {
    fn event(&self, neighbors: Neighbors) -> Event {
        self.event_of_runs(neighbors, 1)
    }

    fn check(&self, neighbors: Neighbors) -> Result<(), Error> {
        self.preparation.iter().try_for_each(|(descent, _)| descent.check(neighbors))?;
        self.descent.check(neighbors)
    }

    fn distance(&self) -> f64 {
        self.distance_of_runs(1)
    }

    /// A value without preparation, so that a run is of one kind.
    fn at_run(self, run: u64) -> Self {
        let mut left = run;
        for (descent, count) in self.preparation {
            if left < count {
                return Self::of(descent);
            }
            left -= count;
        }
        Self::of(self.descent)
    }

    /// # Theorem
    /// Events compose adaptively, whatever their order [ZDW22, Theorem 10]. The runs are those of
    /// [`Mechanism::at_run`], each counted once.
    fn event_of_runs(&self, neighbors: Neighbors, runs: u64) -> Event {
        let mut events: Vec<Event> = self
            .stages(runs)
            .into_iter()
            .map(|(descent, count)| descent.event_of_runs(neighbors, count))
            .collect();
        if events.len() == 1 { events.remove(0) } else { Event::Composed(events) }
    }

    fn distance_of_runs(&self, runs: u64) -> f64 {
        self.stages(runs).into_iter().map(|(descent, count)| descent.distance_of_runs(count)).sum()
    }
}

impl std::fmt::Display for StagedDescent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (descent, count) in &self.preparation {
            write!(f, "{count} × {descent}; then ")?;
        }
        self.descent.fmt(f)
    }
}

/// A mechanism each run of which is a run of a descent.
pub trait Descends: Mechanism {
    /// Starts the batches of one run over so many records. See [`Paid<Descent>::start`](Paid::start).
    fn start(paid: Paid<Self>, records: usize) -> Result<Batches, Error>;
}

impl Descends for Descent {
    fn start(paid: Paid<Self>, records: usize) -> Result<Batches, Error> {
        paid.start(records)
    }
}

impl Descends for StagedDescent {
    fn start(paid: Paid<Self>, records: usize) -> Result<Batches, Error> {
        // The ledger hands out `at_run`, which has no preparation.
        paid.map(|staged| staged.at_run(0).descent).start(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        accounting::Pld,
        mechanism::{Clipping, Sampling},
        units::{ClipNorm, Delta, NoiseMultiplier, SamplingRate},
    };

    fn descent(noise: f64, sampling: Sampling) -> Descent {
        Descent {
            sampling,
            clipping: Clipping::Flat { norm: ClipNorm::new(1.0).unwrap() },
            noise_multiplier: NoiseMultiplier::new(noise).unwrap(),
            dimension: 4,
        }
    }

    fn staged() -> StagedDescent {
        let rate = SamplingRate::new(0.01).unwrap();
        StagedDescent {
            preparation: vec![(descent(16.0, Sampling::Full), 1), (descent(30.0, Sampling::Full), 2)],
            descent: descent(8.0, Sampling::Poisson { rate }),
        }
    }

    /// What is charged for n runs is what the n runs are that are handed out.
    #[test]
    fn each_run_is_charged_as_what_it_is() {
        let staged = staged();
        let neighbors = Neighbors::AddRemove;
        for runs in 1..8 {
            let one_by_one: Vec<Event> =
                (0..runs).map(|run| staged.clone().at_run(run).event(neighbors)).collect();
            let delta = Delta::new(1e-6).unwrap();
            let epsilon = |event: &Event| Pld::default().epsilon(event, neighbors, delta).unwrap();
            let together = epsilon(&staged.event_of_runs(neighbors, runs));
            let apart = epsilon(&Event::Composed(one_by_one));
            assert!(together.lower <= apart.upper && apart.lower <= together.upper, "{together:?} {apart:?}");
            assert!((together.upper / apart.upper - 1.0).abs() < 2e-3, "{together:?} {apart:?}");
            let distances: f64 = (0..runs).map(|run| staged.clone().at_run(run).distance()).sum();
            assert!((staged.distance_of_runs(runs) / distances - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_run_that_is_handed_out_is_of_one_kind() {
        let staged = staged();
        for run in 0..6 {
            let one = staged.clone().at_run(run);
            assert!(one.preparation.is_empty());
            assert_eq!(one.clone().at_run(0), one);
        }
        // Without preparation, the event is that of the descent alone: earlier charges stay the same.
        let plain = StagedDescent::of(staged.descent.clone());
        let event = |runs| plain.event_of_runs(Neighbors::AddRemove, runs);
        assert_eq!(event(1), staged.descent.event(Neighbors::AddRemove));
        assert_eq!(event(9), staged.descent.event(Neighbors::AddRemove).repeated(9));
    }

    #[test]
    fn a_kind_of_run_that_is_not_valid_is_refused() {
        let mut invalid = staged();
        invalid.preparation[1].0.dimension = usize::MAX;
        assert!(invalid.check(Neighbors::AddRemove).is_err());
        assert!(
            invalid.event_of_runs(Neighbors::AddRemove, 3) != staged().event_of_runs(Neighbors::AddRemove, 3)
        );
    }
}
