//! The best of a random number of trials.

use std::num::NonZero;

use crate::{
    Error, Event, Neighbors,
    ledger::{Paid, Trial},
    mechanism::{Mechanism, PaidRuns, Sealed},
    noise::exact::bernoulli,
};

/// A search: a random number of trials, of which only the best is released.
///
/// Each trial is of a kind that is drawn uniformly. After each trial the search ends with probability one over
/// `expected`. A plan has [`BestOf::RUNS`] runs, which together are one search: a run continues the search of
/// the runs before it, and only the last run releases. So a search that was killed can go on, and releases
/// once, whoever resumes it.
///
/// # Contract
/// The clauses that the code does not enforce: the number of trials, and all trials but the best, stay
/// hidden; a run continues with what the run before it kept, or with nothing; what is released is what the
/// search found.
///
/// ```
/// use quell_privacy::{Neighbors, mechanism::{BestOf, Count, Mechanism, TrialPlan}, units::Epsilon};
/// let count = Count::for_epsilon(Epsilon::new(0.5)?)?;
/// let trial = TrialPlan::default().then(&count, 1, Neighbors::AddRemove);
/// let search = BestOf::new(10.try_into().unwrap(), vec![trial], Neighbors::AddRemove);
/// assert!(search.to_string().starts_with("the best of 10 expected trials"));
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BestOf {
    expected: NonZero<u32>,
    trials: Vec<TrialPlan>,
    neighbors: Neighbors,
    /// Number of this run in the plan.
    run: u64,
}

/// What one trial releases to the search: the runs of several mechanisms, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialPlan {
    /// The runs of each mechanism.
    pub(crate) parts: Vec<PaidRuns>,
}

impl TrialPlan {
    /// Adds `runs` runs of a mechanism to the plan.
    #[must_use]
    pub fn then<M: Mechanism>(mut self, mechanism: &M, runs: u64, neighbors: Neighbors) -> Self {
        self.parts.push(PaidRuns::new(mechanism, neighbors, runs));
        self
    }

    /// The privacy event of the trial.
    #[must_use]
    pub fn event(&self) -> Event {
        match self.parts.as_slice() {
            [part] => part.event.clone(),
            parts => Event::Composed(parts.iter().map(|part| part.event.clone()).collect()),
        }
    }

    pub(super) fn distance(&self) -> f64 {
        self.parts.iter().map(|part| part.distance).sum()
    }
}

/// The best trial so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Best<T> {
    /// Its score. A score that is not a number counts as the lowest.
    pub score: f64,
    /// Number of its kind.
    pub kind: usize,
    /// What it found.
    pub found: T,
}

impl BestOf {
    /// Number of runs in a plan: how often a search can be continued, and one run that releases.
    ///
    /// It must never change: old ledgers contain charges for so many runs.
    pub const RUNS: u64 = 1024;

    /// A search with so many expected trials of these kinds.
    #[must_use]
    pub fn new(expected: NonZero<u32>, trials: Vec<TrialPlan>, neighbors: Neighbors) -> Self {
        Self { expected, trials, neighbors, run: 0 }
    }

    /// Whether this is the run that releases.
    #[must_use]
    pub fn releases(&self) -> bool {
        self.run + 1 == Self::RUNS
    }
}

impl Sealed for BestOf {}

impl Mechanism for BestOf {
    /// # Theorem
    /// (THEORY, Best of several trials) The trials of a search are independent and equally distributed: the
    /// kind of each is drawn afresh, and noise is never shared. Their number is geometric and independent of
    /// them. Among equal scores the first trial wins, which is a uniformly random one, because the order of
    /// independent trials is random.
    fn event(&self, neighbors: Neighbors) -> Event {
        if neighbors != self.neighbors {
            return Event::NonPrivate;
        }
        let trials = self.trials.iter().map(TrialPlan::event).collect();
        Event::BestOf { expected: self.expected.get(), trials }
    }

    fn check(&self, neighbors: Neighbors) -> Result<(), Error> {
        if neighbors == self.neighbors && self.trials.iter().all(|trial| !trial.parts.is_empty()) {
            return Ok(());
        }
        let because = "its trials are planned for other neighbours, or for nothing";
        Err(Error::Unfit { what: "a search", because })
    }

    /// # Theorem
    /// Each trial is within its distance of the trial that is accounted for, so the search is within the
    /// expected number of trials times the largest distance.
    fn distance(&self) -> f64 {
        f64::from(self.expected.get()) * self.trials.iter().map(TrialPlan::distance).fold(0.0, f64::max)
    }

    fn at_run(self, run: u64) -> Self {
        Self { run, ..self }
    }

    /// All runs together are one search.
    fn event_of_runs(&self, neighbors: Neighbors, _: u64) -> Event {
        self.event(neighbors)
    }

    fn distance_of_runs(&self, _: u64) -> f64 {
        self.distance()
    }
}

impl std::fmt::Display for BestOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.expected.get() == 1 { "" } else { "s" };
        write!(f, "the best of {} expected trial{plural}; the others stay hidden", self.expected)
    }
}

impl Paid<BestOf> {
    /// Runs trials until a random draw ends the search, and returns the best.
    ///
    /// `best` is what an earlier run kept. `run` runs one trial and returns its score with what it found, or
    /// `None` if it was interrupted: then the search ends without a result, and the trial does not count.
    /// `keep` saves the best trial so far after each trial, and whether the search has ended: then there is
    /// nothing left but to [release](Self::release) it.
    pub fn search<T, E: From<Error>>(
        mut self,
        mut best: Option<Best<T>>,
        mut run: impl FnMut(&mut Trial) -> Result<Option<(f64, T)>, E>,
        mut keep: impl FnMut(&Best<T>, bool) -> Result<(), E>,
    ) -> Result<Option<Best<T>>, E> {
        self.mechanism.check(self.neighbors)?;
        let kinds = self.mechanism.trials.len() as u128;
        loop {
            let mut draws = self.key()?.stream(0);
            if kinds == 0 {
                return Ok(None);
            }
            let kind = draws.below(kinds) as usize;
            let plan = self.mechanism.trials[kind].clone();
            let terms = (self.receipt().dataset.clone(), self.unit, self.neighbors);
            let mut trial = Trial::new((kind, plan), terms, self.split_randomness())?;
            let Some((score, found)) = run(&mut trial)? else { return Ok(None) };
            let score = if score.is_nan() { f64::NEG_INFINITY } else { score };
            let newest = Best { score, kind, found };
            let best_so_far = match best.take() {
                Some(known) if known.score >= newest.score => known,
                _ => newest,
            };
            let is_last = bernoulli(1, u128::from(self.mechanism.expected.get()), &mut draws);
            keep(&best_so_far, is_last)?;
            if is_last {
                return Ok(Some(best_so_far));
            }
            best = Some(best_so_far);
        }
    }

    /// Releases what the search found. Only the last run of the plan may.
    pub fn release<T>(self, best: Best<T>) -> Result<Best<T>, Error> {
        if self.mechanism.releases() {
            return Ok(best);
        }
        let because = "only the last run of its plan releases";
        Err(Error::Unfit { what: "a run of a search", because })
    }
}
