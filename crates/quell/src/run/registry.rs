//! The registry of methods that train, and of jobs that a folder can hold.

use quell_privacy::{Event, Neighbors};
use serde_json::Value;

use super::{Configuration, Folder, Job, Model, Training, labels::Labelling};
use crate::{
    Error,
    learner::{
        Method, PublicFacts, Subject,
        dp_sgd::{self, DpSgd},
    },
    network::Architecture,
};

/// Keeps [`Registered`] to the methods of this crate: a job states the cost that its method states.
mod sealed {
    pub trait Sealed {}
    impl Sealed for super::DpSgd {}
}

/// A method that a configuration can ask for.
pub trait Registered: Method + sealed::Sealed {
    /// The settings of this method in a configuration, and the model.
    fn section(configuration: &mut Configuration) -> (&mut Self::Recipe, &mut Architecture);
}

impl Registered for DpSgd {
    fn section(configuration: &mut Configuration) -> (&mut dp_sgd::Recipe, &mut Architecture) {
        (&mut configuration.training, &mut configuration.model)
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
    Ok(driver.drive(&Training::<DpSgd>::new(configuration)?))
}

/// Reconstructs the job of a folder and passes it to a driver.
pub fn resume<D: Driver>(folder: &Folder, driver: D) -> Result<D::Output, Error> {
    if let Some(settings) = folder.ballots_configuration()? {
        return Ok(driver.drive(&settings.open()?));
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
    /// What was released, as a noun phrase.
    pub releases: &'static str,
    /// The settings of the method: names and values.
    pub settings: Vec<(&'static str, Value)>,
}

impl Model {
    /// Describes how the model was trained. The model of a labelling run was not trained on private records.
    pub fn description(&self) -> Result<Description, Error> {
        describe::<DpSgd>(self)
    }
}

fn describe<M: Registered>(model: &Model) -> Result<Description, Error> {
    let mut configuration = model.configuration.clone();
    let facts = PublicFacts { records: None, classes: model.classes.as_ref().map(Vec::len) };
    let are_features = !configuration.features.is_raw();
    let shape = configuration.features.output_shape(&model.shape)?;
    let (recipe, architecture) = M::section(&mut configuration);
    let method = M::plan(recipe, architecture, &Subject { shape: &shape, are_features, facts })?;
    Ok(Description {
        event: method.event(),
        neighbors: method.cost().neighbors,
        records: method.records(),
        releases: method.releases(),
        settings: method.settings(),
    })
}
