//! What a learner says that releases only sums, and how it becomes a method.

use quell_privacy::{
    ledger::{Book, Lease, Terms, Unit},
    mechanism::Descent,
};
use serde_json::Value;

use super::{Estimates, Releases, Sums};
use crate::{
    Error,
    data::Examples,
    learner::{Control, Method, PlannedCost, Predictor, Results, Subject, signal::NOISE_ALONE},
    network::Architecture,
};

/// A learner that releases only sums over all records. Every such learner is a [`Method`].
///
/// The methods have the meaning of those of [`Method`].
pub trait SumLearner: Sized {
    /// The settings, some of which may be missing.
    type Recipe;
    /// What the learner makes of the releases.
    type Estimates: Estimates;

    /// Completes the settings from public facts.
    fn plan(
        recipe: &mut Self::Recipe,
        model: &mut Architecture,
        subject: &Subject<'_>,
    ) -> Result<Self, Error>;

    /// What is paid for: the runs and their cost.
    fn sums(&self) -> &Sums;

    /// Number of weights that are fitted.
    fn parameters(&self) -> usize;

    /// The settings, for the report: names and values.
    fn settings(&self) -> Vec<(&'static str, Value)>;

    /// Remarks on the settings, for the person who trains.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is released, as a noun phrase for the report.
    fn releases(&self) -> &'static str {
        "the noisy sum of each run"
    }

    /// Checks facts about the records that are public under these terms.
    fn check(&self, terms: &Terms, examples: &Examples) -> Result<(), Error>;

    /// Prepares the records, one for each privacy unit.
    fn task<'a>(
        &self,
        examples: &'a Examples,
        unit: Unit,
    ) -> Result<<Self::Estimates as Estimates>::Task<'a>, Error>;

    /// The estimates before the first release.
    fn first(&self) -> Self::Estimates;

    /// The model that follows from the releases so far.
    fn model(&self, estimates: &Self::Estimates) -> Predictor;

    /// Further results of a finished run.
    fn results(&self, _: &Predictor) -> Results {
        Results::default()
    }
}

impl<L: SumLearner> Method for L {
    type Recipe = L::Recipe;
    type Mechanism = Descent;
    type Task<'a> = <L::Estimates as Estimates>::Task<'a>;
    type State = Releases<L::Estimates>;

    fn plan(recipe: &mut L::Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        <L as SumLearner>::plan(recipe, model, subject)
    }

    fn parameters(&self) -> usize {
        SumLearner::parameters(self)
    }

    fn cost(&self) -> PlannedCost {
        self.sums().cost()
    }

    fn mechanism(&self) -> (Descent, u64) {
        self.sums().mechanism()
    }

    fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        self.sums().spent_after(runs)
    }

    fn records(&self) -> u64 {
        self.sums().records
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        SumLearner::settings(self)
    }

    fn remarks(&self) -> Vec<String> {
        SumLearner::remarks(self)
    }

    fn remarks_on(&self, state: &Self::State) -> Vec<String> {
        state.are_noise(self.sums().noise()).then(|| NOISE_ALONE.into()).into_iter().collect()
    }

    fn releases(&self) -> &'static str {
        SumLearner::releases(self)
    }

    fn check(&self, terms: &Terms, examples: &Examples) -> Result<(), Error> {
        SumLearner::check(self, terms, examples)
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Self::Task<'a>, Error> {
        SumLearner::task(self, examples, unit)
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<Releases<L::Estimates>, Error> {
        Releases::new(self.first(), self.sums().runs, saved)
    }

    fn fit<B: Book>(
        &self,
        lease: Lease<'_, Descent, B>,
        task: &mut Self::Task<'_>,
        state: &mut Self::State,
        watch: impl FnMut(&Self::State) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        self.sums().fit(lease, task, state, watch)
    }

    fn model(&self, state: &Self::State) -> Predictor {
        SumLearner::model(self, state.estimates())
    }

    fn results(&self, model: &Predictor) -> Results {
        SumLearner::results(self, model)
    }
}
