//! Features that a network learned elsewhere: what comes out of all its layers but the last.
//!
//! Whoever names the file declares it public. It is the same for every record, and its layers look at one record at a time.

use std::path::Path;

use crate::{
    Error,
    data::{Examples, Scaling},
    dp_sgd::outputs,
    features::Features,
    run::Model,
};

/// A file and the model in it.
pub(super) struct Public<'p> {
    path: &'p Path,
    model: Model,
    /// BLAKE3 of the file.
    digest: String,
}

impl<'p> Public<'p> {
    /// Reads a file; one of another digest is refused.
    pub(super) fn open(path: &'p Path, digest: Option<&str>) -> Result<Self, Error> {
        let unfit = |found: String, expected| Error::PublicNetwork { path: path.to_owned(), found, expected };
        let bytes = Model::read(path).map_err(|error| match error {
            Error::Absent { .. } => unfit("does not exist".into(), "the model.safetensors of a run"),
            other => unfit(format!("cannot be read ({other})"), "the model.safetensors of a run"),
        })?;
        let found = blake3::hash(&bytes).to_hex().to_string();
        if digest.is_some_and(|digest| digest != found) {
            return Err(unfit("is not what it was when it was first used".into(), "the same file again"));
        }
        let no_model = |error: Error| unfit(format!("holds no model ({error})"), "the model.safetensors of a run");
        // Networks that look through networks could look through each other for ever.
        if let Features::Network { .. } = Model::describe(&bytes).map_err(no_model)?.features {
            return Err(unfit("looks at what another network makes of records".into(), "one that looks at records"));
        }
        Ok(Self { path, model: Model::restore(&bytes).map_err(no_model)?, digest: found })
    }

    pub(super) fn digest(self) -> String {
        self.digest
    }

    /// What was taken off the records it learned from, and what they were divided by.
    pub(super) fn scaling(&self) -> Option<Scaling> {
        self.model.configuration.data.scaling.clone()
    }

    /// How many numbers come out for a record of that shape.
    pub(super) fn outputs(&self, shape: &[usize]) -> Result<usize, Error> {
        let unfit = |found: String, expected| Error::PublicNetwork { path: self.path.to_owned(), found, expected };
        if shape != self.model.shape {
            let found = format!("looks at records of {}", super::written(&self.model.shape));
            return Err(unfit(found, "one for records of the same shape as these"));
        }
        match self.model.trunk() {
            Err(Error::NoLayers { .. }) => Err(unfit("has one layer".into(), "at least two: the last one is taken away")),
            trunk => Ok(trunk?.0.outputs()),
        }
    }

    /// What the network sees in each record, before it decides.
    pub(super) fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        let width = self.outputs(examples.shape())?;
        let (trunk, weights) = self.model.trunk()?;
        let seen = self.model.features(examples.clone())?;
        examples.with_features(&[width], outputs(&trunk, weights, &seen).concat())
    }
}
