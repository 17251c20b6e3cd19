//! Several trials, all of which may be released.

use crate::{
    Error, Event, Neighbors,
    ledger::{Paid, Trial},
    mechanism::{Mechanism, Sealed, TrialPlan},
};

/// Several trials, each of which runs once and may be released.
///
/// It costs as much as all trials together, where [`BestOf`](super::BestOf) hides all trials but one. Run number k of
/// the plan is trial number k. A trial that is interrupted is lost and not repeated.
///
/// ```
/// use quell_privacy::{Event, Neighbors, mechanism::{AllTrials, Count, Mechanism, TrialPlan}, units::Epsilon};
/// let count = Count::for_epsilon(Epsilon::new(0.5)?)?;
/// let trial = TrialPlan::default().then(&count, 1, Neighbors::AddRemove);
/// let trials = AllTrials::new(vec![trial.clone(), trial], Neighbors::AddRemove);
/// assert!(matches!(trials.event_of_runs(Neighbors::AddRemove, 2), Event::Composed(all) if all.len() == 2));
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AllTrials {
    trials: Vec<TrialPlan>,
    neighbors: Neighbors,
    /// Number of the first trial.
    first: u64,
}

impl AllTrials {
    /// One trial for each of these plans.
    #[must_use]
    pub fn new(trials: Vec<TrialPlan>, neighbors: Neighbors) -> Self {
        Self { trials, neighbors, first: 0 }
    }
}

impl Sealed for AllTrials {}

impl Mechanism for AllTrials {
    fn event(&self, neighbors: Neighbors) -> Event {
        self.event_of_runs(neighbors, 1)
    }

    fn check(&self, neighbors: Neighbors) -> Result<(), Error> {
        let is_planned = self.trials.iter().all(|trial| !trial.parts.is_empty());
        if neighbors == self.neighbors && is_planned && !self.trials.is_empty() {
            return Ok(());
        }
        let because = "its trials are planned for other neighbours, or for nothing";
        Err(Error::Unfit { what: "a series of trials", because })
    }

    fn distance(&self) -> f64 {
        self.distance_of_runs(1)
    }

    /// A value with one trial, or with none after the last.
    fn at_run(self, run: u64) -> Self {
        let trials = usize::try_from(run).ok().and_then(|run| self.trials.into_iter().nth(run));
        Self { trials: trials.into_iter().collect(), first: self.first.saturating_add(run), ..self }
    }

    /// # Theorem
    /// Events compose adaptively [ZDW22, Theorem 10]. Each trial is an event of its own inside of the composition, also
    /// if it is the only one. So a ledger counts one run for each trial, and the event is that of no other mechanism:
    /// a charge for steps cannot be resumed as a trial, nor a trial as steps.
    fn event_of_runs(&self, neighbors: Neighbors, runs: u64) -> Event {
        let taken = usize::try_from(runs).ok().and_then(|runs| self.trials.get(..runs));
        let Some(trials) = taken.filter(|_| neighbors == self.neighbors) else { return Event::NonPrivate };
        let events = trials.iter().map(|trial| match trial.event() {
            event @ Event::Composed(_) => event,
            event => Event::Composed(vec![event]),
        });
        Event::Composed(events.collect())
    }

    fn distance_of_runs(&self, runs: u64) -> f64 {
        let taken = self.trials.iter().take(usize::try_from(runs).unwrap_or(usize::MAX));
        taken.map(TrialPlan::distance).sum()
    }
}

impl std::fmt::Display for AllTrials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.trials.len() == 1 { "" } else { "s" };
        write!(f, "{} trial{plural} with a score that is shown", self.trials.len())
    }
}

impl Paid<AllTrials> {
    /// The trial of this run.
    pub fn trial(mut self) -> Result<Trial, Error> {
        self.mechanism.check(self.neighbors)?;
        let kind = usize::try_from(self.mechanism.first).unwrap_or(usize::MAX);
        let plan = self.mechanism.trials.remove(0);
        let terms = (self.receipt().dataset.clone(), self.unit, self.neighbors);
        Trial::new((kind, plan), terms, self.split_randomness())
    }
}
