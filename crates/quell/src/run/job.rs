//! The protocol of long-running work: plan, quote, go, resume.

use quell_privacy::{
    Bound, Neighbors,
    ledger::{Book, Budget, Composition, Ledger, Note, Spent, Terms, Unit},
    number::{Toward, format_exact, format_rounded},
    units::{Delta, Epsilon},
};
use serde_json::{Map, Value};

use super::{Folder, NewBudget, PaymentRecord};
use crate::{
    Error,
    learner::{Control, budget_for},
    terms,
};

/// Work that is planned, paid for, saved in a folder, and resumable.
///
/// Constructing a job reads the data and completes its settings. Nothing is paid before [`Job::go`].
pub trait Job {
    /// Name of the dataset whose ledger is charged.
    fn dataset(&self) -> String;

    /// Names that earlier versions gave the dataset. None if the settings name the dataset.
    fn former_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Public words about the charge: from which file, and for what.
    fn note(&self) -> Note {
        Note::default()
    }

    /// Whether the data is public, so that its ledger is only a demonstration.
    fn is_demonstration(&self) -> bool;

    /// The privacy guarantee of this job alone.
    fn guarantee(&self) -> Guarantee;

    /// The complete settings.
    fn settings(&self) -> Result<Settings, Error>;

    /// Remarks on the settings, for the person who pays. They depend on public facts alone.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// The terms with which to open a ledger that does not exist yet.
    fn terms(&self) -> Result<Terms, Error>;

    /// The total spent after this job. Nothing is paid.
    /// Refuses a ledger with other neighbours or another privacy unit.
    fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error>;

    /// Does the work, or continues from the state in the folder.
    /// Work that was paid for is not charged again.
    ///
    /// This method first writes the settings into the folder, so that [`resume`](super::resume()) finds them.
    fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Error>;
}

/// The callback of a job: it receives public progress and returns how to continue.
pub type Watch<'w> = dyn FnMut(Progress) -> Control + Send + 'w;

/// Public progress passed to the callback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The unit of the count, in the singular: `step`, `teacher`, `answer`.
    pub stage: &'static str,
    /// The number done so far.
    pub done: u64,
    /// The total number; 0 if it is private.
    pub of: u64,
    /// ε of the work so far, for jobs whose ε grows step by step.
    pub epsilon: Option<f64>,
    /// The newest accuracy on public test data.
    pub accuracy: Option<f64>,
}

impl Progress {
    /// Progress of work whose length and position are private.
    pub(super) fn hidden(stage: &'static str) -> Self {
        Self::counted(stage, 0, 0)
    }

    /// Progress with a count only.
    pub(super) fn counted(stage: &'static str, done: u64, of: u64) -> Self {
        Self { stage, done, of, epsilon: None, accuracy: None }
    }
}

/// The privacy guarantee of a job alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    /// ε, as an interval.
    pub epsilon: Bound,
    /// δ.
    pub delta: Delta,
    /// The privacy unit.
    pub unit: Unit,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// The releases that the guarantee covers.
    pub covers: Covered,
}

/// The releases of a job that its guarantee covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// Everything that the job releases.
    Everything,
    /// The answers of a vote, which are everything that the job releases. The guarantee holds for any votes.
    Votes,
    /// The answers of a vote. The job also releases their data-dependent cost, a second charge of the ledger.
    VotesWithoutCost,
}

impl Guarantee {
    /// Refuses a ledger with another privacy unit or other neighbours.
    pub(super) fn check<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<(), Error> {
        terms::check(ledger, self.unit, self.neighbors)
    }

    /// The terms of a new ledger. Without a budget, it can pay for this job alone.
    ///
    /// `requested` is the ε that the settings ask for.
    pub(super) fn terms(
        &self,
        dataset: String,
        budget: Option<NewBudget>,
        requested: Option<f64>,
    ) -> Result<Terms, Error> {
        let (epsilon, delta) = match budget {
            Some(budget) => (budget.epsilon, Delta::new(budget.delta)?),
            None => (requested.unwrap_or_else(|| budget_for(self.epsilon.upper)), self.delta),
        };
        let budget = Budget { epsilon: Some(Epsilon::new(epsilon)?), delta };
        let Self { unit, neighbors, .. } = *self;
        Ok(Terms { dataset, unit, neighbors, budget, composition: Composition::Combined })
    }
}

impl std::fmt::Display for Guarantee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (epsilon, delta) =
            (format_rounded(self.epsilon.upper, 4, Toward::Up), format_exact(self.delta.get()));
        let who = if self.unit == Unit::User { "user" } else { "record" };
        let change = match self.neighbors {
            Neighbors::AddRemove => "added or removed",
            Neighbors::Replace => "replaced",
        };
        let covers = match self.covers {
            Covered::Everything => "",
            Covered::Votes => ", for any votes",
            Covered::VotesWithoutCost => {
                ", for any votes; the revealed cost of the votes is not included and is a second charge"
            }
        };
        write!(f, "ε ≤ {epsilon} at δ = {delta} when one {who} is {change}{covers}")
    }
}

/// The complete settings of a job.
pub struct Settings {
    /// As TOML; empty if the job has no settings file.
    pub toml: String,
    /// As JSON, with values derived from the settings.
    pub json: Map<String, Value>,
    /// What the payment covers, in a few words: `5130 weights, 60 steps`.
    pub amount: String,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether the work is complete.
    pub is_finished: bool,
    /// The position reached, in words: `step 7 of 60`.
    pub position: String,
    /// The payment; `None` if the job stopped before it paid.
    pub paid: Option<PaymentRecord>,
    /// Results in words, one per line. All of them are public.
    pub results: Vec<String>,
    /// Remarks that are not results, such as steps that were lost.
    pub remarks: Vec<String>,
    /// Results as JSON.
    pub json: Map<String, Value>,
    /// The file in the folder that holds the results, if there is no model.
    pub answers: Option<&'static str>,
}
