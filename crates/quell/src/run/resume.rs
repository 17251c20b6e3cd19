//! The registry of jobs that can be resumed from a folder.

use super::{Folder, Job, Training, labels::Labelling};
use crate::Error;

/// Code that works for any job.
pub trait Driver {
    /// The result of the driver.
    type Output;

    /// Works on the job.
    fn drive<J: Job>(self, job: &J) -> Self::Output;
}

/// Reconstructs the job of a folder and passes it to a driver.
///
/// A new kind of job must be added here.
pub fn resume<D: Driver>(folder: &Folder, driver: D) -> Result<D::Output, Error> {
    if let Some(settings) = folder.ballots_configuration()? {
        return Ok(driver.drive(&settings.open()?));
    }
    if folder.is_labelling() {
        return Ok(driver.drive(&Labelling::new(folder.labels_configuration()?)?));
    }
    Ok(driver.drive(&Training::new(folder.configuration()?)?))
}
