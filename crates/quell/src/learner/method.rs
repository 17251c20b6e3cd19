//! The interface between a learning method and the run that pays for it.

use quell_privacy::{
    Bound, Event, Neighbors,
    ledger::{Book, Lease, Ledger, Terms, Unit},
    mechanism::Mechanism,
    units::Delta,
};
use serde_json::Value;

use super::{Control, Predictor, PublicFacts};
use crate::{
    Error,
    data::{Examples, Schema},
    network::Architecture,
    terms,
};

/// A learning method with complete settings: what is paid for, and how a model is fitted.
///
/// [`Training`](crate::run::Training) reads the data, charges the ledger for the mechanism, saves the state
/// and writes the model of any method.
///
/// # Contract
/// A method depends on its settings and on public facts alone. [`Method::fit`] releases nothing but what the
/// lease pays for, and its errors do not depend on the records.
///
/// A method has one mechanism, which runs once or several times. Each run may be put to another use, and may
/// depend on what earlier runs released. Releases of several kinds are one mechanism whose event is composed.
pub trait Method: Sized {
    /// The settings, some of which may be missing.
    type Recipe;
    /// The mechanism that the ledger is charged for.
    type Mechanism: Mechanism;
    /// The records, as the method reads them.
    type Task<'a>;
    /// What a run saves between two steps.
    type State: Snapshot;

    /// Completes the settings from public facts. Nothing is charged yet.
    ///
    /// The choices are written into `recipe` and `model`, which then yield the same method again.
    fn plan(
        recipe: &mut Self::Recipe,
        model: &mut Architecture,
        subject: &Subject<'_>,
    ) -> Result<Self, Error>;

    /// Number of weights that are fitted.
    fn parameters(&self) -> usize;

    /// The privacy cost of the whole method.
    ///
    /// ε is that of the event at δ, and covers the distance of the mechanism from its event.
    fn cost(&self) -> PlannedCost;

    /// The mechanism, and how often it runs.
    fn mechanism(&self) -> (Self::Mechanism, u64);

    /// Number of steps in one run of the mechanism.
    fn steps_per_run(&self) -> u64 {
        1
    }

    /// Upper bound on ε after the first `runs` runs.
    fn spent_after(&self, runs: u64) -> Result<f64, Error>;

    /// Number of records (or users) that the plan was made for: a public number.
    fn records(&self) -> u64;

    /// The settings, for the report: names and values.
    fn settings(&self) -> Vec<(&'static str, Value)>;

    /// Remarks on the settings, for the person who trains. They depend on public facts alone.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Remarks on the result, for the person who trains. They follow from released values.
    fn remarks_on(&self, _: &Self::State) -> Vec<String> {
        Vec::new()
    }

    /// Whether the state must be saved after this step, besides the usual checkpoints.
    fn saves_at(&self, _: u64) -> bool {
        false
    }

    /// What is released, as a noun phrase for the report: `every iterate`.
    fn releases(&self) -> &'static str;

    /// Checks facts about the records that are public under these terms.
    fn check(&self, terms: &Terms, examples: &Examples) -> Result<(), Error>;

    /// Prepares the records, one for each privacy unit. Nothing is released.
    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Self::Task<'a>, Error>;

    /// The state before the first step, or a saved state.
    fn state(&self, saved: Option<&[u8]>) -> Result<Self::State, Error>;

    /// Takes all remaining steps of the lease, and calls `watch` after each.
    fn fit<B: Book>(
        &self,
        lease: Lease<'_, Self::Mechanism, B>,
        task: &mut Self::Task<'_>,
        state: &mut Self::State,
        watch: impl FnMut(&Self::State) -> Result<Control, Error>,
    ) -> Result<(), Error>;

    /// The model that a state holds.
    fn model(&self, state: &Self::State) -> Predictor;

    /// Further results of a finished run, which follow from its model and are as public.
    fn results(&self, _: &Predictor) -> Results {
        Results::default()
    }

    /// Pays for all runs and fits a model to records in memory.
    ///
    /// A [`Training`](crate::run::Training) does the same with files, and can be resumed.
    fn train<B: Book>(&self, examples: &Examples, ledger: &mut Ledger<B>) -> Result<Predictor, Error> {
        let terms = ledger.state()?.terms().clone();
        terms::check(ledger, terms.unit, self.cost().neighbors)?;
        self.check(&terms, examples)?;
        let (mut task, mut state) = (self.task(examples, terms.unit)?, self.state(None)?);
        let (mechanism, runs) = self.mechanism();
        let lease = ledger.reserve(mechanism, runs)?;
        self.fit(lease, &mut task, &mut state, |_| Ok(Control::Continue))?;
        Ok(self.model(&state))
    }

    /// The privacy event of the whole method.
    fn event(&self) -> Event {
        let (mechanism, runs) = self.mechanism();
        mechanism.event_of_runs(self.cost().neighbors, runs)
    }

    /// Number of steps.
    fn steps(&self) -> u64 {
        self.mechanism().1.saturating_mul(self.steps_per_run())
    }
}

/// Records as a method reads them, one for each privacy unit.
pub trait ProtectedRecords {
    /// Number of records. It is private, unless the neighbouring relation is replacement.
    fn records(&self) -> usize;

    /// The privacy unit: what one record is.
    fn unit(&self) -> Unit;
}

/// Results of a finished run besides its model. All of them are public.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// A file for the folder of the run, if there is one.
    pub file: Option<ResultFile>,
    /// Results in words, one per line.
    pub lines: Vec<String>,
    /// Results as JSON.
    pub json: serde_json::Map<String, Value>,
}

/// A file for the folder of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultFile {
    /// What it holds, as a noun phrase.
    pub what: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its contents.
    pub text: String,
}

/// The state of a method between two steps. It is public.
pub trait Snapshot {
    /// Number of steps that are over, including lost ones.
    fn position(&self) -> u64;

    /// Number of steps that were taken.
    fn taken(&self) -> u64;

    /// Serializes the state.
    fn save(&self) -> Result<Vec<u8>, Error>;
}

/// Public facts about the examples that a method is planned for.
pub struct Subject<'a> {
    /// Shape of an example, channels first.
    pub shape: &'a [usize],
    /// Whether the examples are features that were computed from the records.
    pub are_features: bool,
    /// The number of records and of classes.
    pub facts: PublicFacts,
    /// The public facts about the columns, if the data is a table and the examples are no other features.
    pub schema: Option<&'a Schema>,
}

impl Subject<'_> {
    /// Checks that an example has the features that the schema describes.
    pub(crate) fn check_schema(&self) -> Result<(), Error> {
        let (described, width) =
            (self.schema.map(|schema| schema.features().len()), self.shape.iter().product::<usize>());
        if described.is_none_or(|features| features == width) {
            return Ok(());
        }
        Err(Error::Setting {
            name: "the schema",
            found: "of other features than those of an example".into(),
            expected: "the schema of this table, or none for data that is no table",
        })
    }
}

/// The privacy cost of a method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedCost {
    /// ε, as an interval.
    pub epsilon: Bound,
    /// δ.
    pub delta: Delta,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// The ε that the settings ask for, if they do.
    pub requested: Option<f64>,
}

/// Checks that examples have `width` features: a public fact.
pub(crate) fn check_width(examples: &Examples, width: usize) -> Result<(), Error> {
    if examples.width() == width {
        return Ok(());
    }
    Err(Error::Setting {
        name: "the data",
        found: format!("of {} features, and the plan is for data of {width} features", examples.width()),
        expected: "data with the features of the plan",
    })
}

/// Checks that examples have the features and the classes that a model was planned for: public facts.
pub(crate) fn check_targets(examples: &Examples, width: usize, classes: Option<usize>) -> Result<(), Error> {
    let found = (examples.width(), examples.classes().map(<[String]>::len));
    if found == (width, classes) {
        return Ok(());
    }
    let name = |(width, classes): (usize, Option<usize>)| match classes {
        Some(classes) => format!("of {width} features and {classes} classes"),
        None => format!("of {width} features and a number"),
    };
    Err(Error::Setting {
        name: "the data",
        found: format!("{}, and the plan is for data {}", name(found), name((width, classes))),
        expected: "data with the features and the targets of the plan",
    })
}

/// Names the model, or refuses another name.
pub(crate) fn name_model(model: &mut Architecture, name: &'static str) -> Result<(), Error> {
    match model.name.get_or_insert_with(|| name.into()) {
        known if known == name => Ok(()),
        other => Err(Error::Setting {
            name: "model",
            found: format!("{other}, and the learner is that of {name}"),
            expected: "the model of the learner, or no learner",
        }),
    }
}
