//! The registry of methods that train, and of jobs that a folder can hold.

use quell_privacy::{
    Event, Neighbors,
    mechanism::{HiddenDescent, ObjectivePerturbation, OutputPerturbation, PosteriorSample},
};
use serde_json::Value;

use super::{
    Configuration, Folder, Job, Learner, Model, Training, Tuning, labels::Labelling, model::SavedModel,
};
use crate::{
    Error,
    learner::{
        Method, Predictor, PublicFacts, Subject,
        dp_sgd::{self, DpSgd},
        factorization::{self, Factorizing},
        glm::{self, Algorithm, FrankWolfe, Glm, Minimized, Minimizer},
        naive_bayes::{self, NaiveBayes},
        prepared::Prepared,
        synthesis::{self, Synthesis},
        tensors::damaged,
        tree::{self, Tree},
        unsupervised::{self, Unsupervised},
    },
    network::Architecture,
};

/// Keeps [`Registered`] to the methods of this crate: a job states the cost that its method states.
mod sealed {
    pub trait Sealed {}
    impl Sealed for super::DpSgd {}
    impl Sealed for super::Prepared {}
    impl Sealed for super::Glm {}
    impl Sealed for super::FrankWolfe {}
    impl<M: super::Minimizer> Sealed for super::Minimized<M> {}
    impl Sealed for super::Unsupervised {}
    impl Sealed for super::NaiveBayes {}
    impl Sealed for super::Tree {}
    impl Sealed for super::Factorizing {}
    impl Sealed for super::Synthesis {}
}

/// A method that a configuration can ask for.
pub trait Registered: Method<Recipe: LearnerSettings> + sealed::Sealed {}

impl<M: Method<Recipe: LearnerSettings> + sealed::Sealed> Registered for M {}

/// The settings of a learner. All methods of the learner share them.
pub trait LearnerSettings: Sized {
    /// The learner.
    const LEARNER: Learner;

    /// The settings in a configuration, and the model.
    fn section(configuration: &mut Configuration) -> (&mut Self, &mut Architecture);

    /// Reads the model of a file. By default it is a network.
    fn restore(saved: &mut SavedModel<'_>) -> Result<Predictor, Error> {
        saved.network()
    }
}

impl LearnerSettings for dp_sgd::Recipe {
    const LEARNER: Learner = Learner::DpSgd;

    fn section(configuration: &mut Configuration) -> (&mut Self, &mut Architecture) {
        (&mut configuration.training, &mut configuration.model)
    }
}

impl LearnerSettings for glm::Recipe {
    const LEARNER: Learner = Learner::Glm;

    fn section(configuration: &mut Configuration) -> (&mut Self, &mut Architecture) {
        (&mut configuration.glm, &mut configuration.model)
    }
}

impl LearnerSettings for naive_bayes::Recipe {
    const LEARNER: Learner = Learner::NaiveBayes;

    fn section(configuration: &mut Configuration) -> (&mut Self, &mut Architecture) {
        (&mut configuration.naive_bayes, &mut configuration.model)
    }
}

impl LearnerSettings for tree::Recipe {
    const LEARNER: Learner = Learner::Tree;

    fn section(configuration: &mut Configuration) -> (&mut Self, &mut Architecture) {
        (&mut configuration.tree, &mut configuration.model)
    }
}

impl LearnerSettings for unsupervised::Recipe {
    const LEARNER: Learner = Learner::Unsupervised;

    fn section(configuration: &mut Configuration) -> (&mut Self, &mut Architecture) {
        (&mut configuration.unsupervised, &mut configuration.model)
    }

    fn restore(saved: &mut SavedModel<'_>) -> Result<Predictor, Error> {
        unsupervised::restore(saved.bytes, saved.width())
    }
}

impl LearnerSettings for factorization::Recipe {
    const LEARNER: Learner = Learner::Factorization;

    fn section(configuration: &mut Configuration) -> (&mut Self, &mut Architecture) {
        (&mut configuration.factorization, &mut configuration.model)
    }

    fn restore(saved: &mut SavedModel<'_>) -> Result<Predictor, Error> {
        let items = saved.classes.as_ref().map_or(0, Vec::len);
        Ok(Predictor::Factorization(factorization::restore(saved.bytes, items)?))
    }
}

impl LearnerSettings for synthesis::Recipe {
    const LEARNER: Learner = Learner::Synthesis;

    fn section(configuration: &mut Configuration) -> (&mut Self, &mut Architecture) {
        (&mut configuration.synthesis, &mut configuration.model)
    }

    fn restore(saved: &mut SavedModel<'_>) -> Result<Predictor, Error> {
        let schema = saved.configuration.data.schema.as_ref().ok_or_else(|| damaged("the schema"))?;
        Ok(Predictor::Synthesizer(synthesis::restore(saved.bytes, schema)?))
    }
}

/// Code that works for any job.
pub trait Driver {
    /// The result of the driver.
    type Output;

    /// Works on the job.
    fn drive<J: Job>(self, job: &J) -> Self::Output;
}

/// Plans the training that a configuration asks for, and passes it to a driver.
///
/// This reads the data. Nothing is paid before the driver calls [`Job::go`].
pub fn train<D: Driver>(configuration: Configuration, driver: D) -> Result<D::Output, Error> {
    // Settings that a search found are settings like any others.
    let configuration = Configuration { search: None, ..configuration }.with_learner()?;
    with_method(&configuration.clone(), Start(configuration, driver))
}

/// Plans the training of a method, and passes it to a driver.
struct Start<D>(Configuration, D);

impl<D: Driver> ForMethod for Start<D> {
    type Output = Result<D::Output, Error>;

    fn call<M: Registered>(self) -> Self::Output {
        Ok(self.1.drive(&Training::<M>::new(self.0)?))
    }
}

/// Code that works for any method.
pub(super) trait ForMethod {
    type Output;
    fn call<M: Registered>(self) -> Self::Output;
}

/// Calls `code` for the method that a configuration asks for.
pub(super) fn with_method<F: ForMethod>(configuration: &Configuration, code: F) -> F::Output {
    match (configuration.learner, configuration.glm.method) {
        (Some(Learner::DpSgd) | None, _) if configuration.training.preparation.is_some() => {
            code.call::<Prepared>()
        }
        (Some(Learner::DpSgd) | None, _) => code.call::<DpSgd>(),
        (Some(Learner::Unsupervised), _) => code.call::<Unsupervised>(),
        (Some(Learner::NaiveBayes), _) => code.call::<NaiveBayes>(),
        (Some(Learner::Tree), _) => code.call::<Tree>(),
        (Some(Learner::Factorization), _) => code.call::<Factorizing>(),
        (Some(Learner::Synthesis), _) => code.call::<Synthesis>(),
        (Some(Learner::Glm), Algorithm::OutputPerturbation) => code.call::<Minimized<OutputPerturbation>>(),
        (Some(Learner::Glm), Algorithm::ObjectivePerturbation) => {
            code.call::<Minimized<ObjectivePerturbation>>()
        }
        (Some(Learner::Glm), Algorithm::HiddenState) => code.call::<Minimized<HiddenDescent>>(),
        (Some(Learner::Glm), Algorithm::FrankWolfe) => code.call::<FrankWolfe>(),
        (Some(Learner::Glm), Algorithm::OnePosterior) => code.call::<Minimized<PosteriorSample>>(),
        (Some(Learner::Glm), _) => code.call::<Glm>(),
    }
}

/// Reconstructs the job of a folder and passes it to a driver.
pub fn resume<D: Driver>(folder: &Folder, driver: D) -> Result<D::Output, Error> {
    if let Some(settings) = folder.ballots_configuration()? {
        return Ok(driver.drive(&settings.open()?));
    }
    if let Some(settings) = folder.search()? {
        return Ok(driver.drive(&Tuning::new(settings)?));
    }
    if folder.is_labelling() {
        return Ok(driver.drive(&Labelling::new(folder.labels_configuration()?)?));
    }
    train(folder.configuration()?, driver)
}

/// How a model was trained, for reports.
pub struct Description {
    /// The privacy event of the whole training.
    pub event: Event,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// Number of records (or users) that the training was planned for: a public number.
    pub records: u64,
    /// Number of weights that were fitted. Constants that standardise columns do not count.
    pub weights: usize,
    /// What was released, as a noun phrase.
    pub releases: &'static str,
    /// The settings of the method: names and values.
    pub settings: Vec<(&'static str, Value)>,
}

impl SavedModel<'_> {
    /// Reads the model, as the learner of its settings wrote it.
    pub(super) fn restore(&mut self) -> Result<Predictor, Error> {
        struct Restore<'s, 'b>(&'s mut SavedModel<'b>);
        impl ForMethod for Restore<'_, '_> {
            type Output = Result<Predictor, Error>;

            fn call<M: Registered>(self) -> Self::Output {
                M::Recipe::restore(self.0)
            }
        }
        with_method(&self.configuration.clone(), Restore(self))
    }
}

impl Model {
    /// Describes how the model was trained. The model of a labelling run was not trained on private records.
    pub fn description(&self) -> Result<Description, Error> {
        struct Describe<'m>(&'m Model);
        impl ForMethod for Describe<'_> {
            type Output = Result<Description, Error>;

            fn call<M: Registered>(self) -> Self::Output {
                describe::<M>(self.0)
            }
        }
        with_method(&self.configuration, Describe(self))
    }
}

fn describe<M: Registered>(model: &Model) -> Result<Description, Error> {
    let mut configuration = model.configuration.clone();
    let facts = PublicFacts { records: None, classes: model.classes.as_ref().map(Vec::len) };
    let features = configuration.computed_features();
    let (are_features, shape) = (!features.is_raw(), features.output_shape(&model.shape)?);
    let schema = configuration.data.schema.as_ref().filter(|_| !are_features);
    let schema = schema.map(|schema| M::Recipe::LEARNER.label_use().columns(schema));
    let (recipe, architecture) = M::Recipe::section(&mut configuration);
    let subject = Subject { shape: &shape, are_features, facts, schema: schema.as_ref() };
    let method = M::plan(recipe, architecture, &subject)?;
    let search = model.configuration.search.as_ref();
    let mut settings = method.settings();
    if let Some(search) = search {
        let kinds = search.candidates.len();
        let text = format!("the best of {} expected trials, drawn from {kinds} candidates", search.expected);
        settings.insert(0, ("search", Value::String(text)));
    }
    Ok(Description {
        event: match search {
            Some(search) => search.event().ok_or_else(|| damaged("the record of the search"))?,
            None => method.event(),
        },
        neighbors: method.cost().neighbors,
        records: method.records(),
        weights: method.parameters(),
        releases: if search.is_some() { "the best model" } else { method.releases() },
        settings,
    })
}
