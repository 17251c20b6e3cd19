//! Features from a public network: the output of all its layers but the last.
//!
//! Naming the file declares it public. The network is the same for every record, and its layers process one
//! record at a time.

use std::path::Path;

use crate::{
    Error,
    data::{Examples, Scaling},
    features::Features,
    learner::outputs,
    network,
    run::Model,
};

/// A public model and its file.
pub(super) struct PublicNetwork<'p> {
    path: &'p Path,
    model: Model,
    /// BLAKE3 hash of the file.
    digest: String,
}

impl<'p> PublicNetwork<'p> {
    /// Reads a file, and refuses it if its hash is not `digest`.
    pub(super) fn open(path: &'p Path, digest: Option<&str>) -> Result<Self, Error> {
        let unfit = |found: String, expected| {
            network::Error::PublicNetwork { path: path.to_owned(), found, expected }.into()
        };
        let bytes = Model::read(path).map_err(|error| match error {
            Error::Absent { .. } => unfit("does not exist".into(), "the model.safetensors of a run"),
            other => unfit(format!("cannot be read ({other})"), "the model.safetensors of a run"),
        })?;
        let found = blake3::hash(&bytes).to_hex().to_string();
        if digest.is_some_and(|digest| digest != found) {
            return Err(unfit("has changed since it was first used".into(), "the unchanged file"));
        }
        let no_model =
            |error: Error| unfit(format!("contains no model ({error})"), "the model.safetensors of a run");
        // Networks that use the features of other networks could refer to each other in a cycle.
        if let Features::Network { .. } = Model::describe(&bytes).map_err(no_model)?.features {
            return Err(unfit("uses the features of another network".into(), "a network on raw records"));
        }
        Ok(Self { path, model: Model::restore(&bytes).map_err(no_model)?, digest: found })
    }

    pub(super) fn digest(self) -> String {
        self.digest
    }

    /// The scaling of the records that the model was trained on.
    pub(super) fn scaling(&self) -> Option<Scaling> {
        self.model.configuration.data.scaling.clone()
    }

    /// Number of features for records of a shape.
    pub(super) fn outputs(&self, shape: &[usize]) -> Result<usize, Error> {
        let unfit = |found: String, expected| {
            network::Error::PublicNetwork { path: self.path.to_owned(), found, expected }.into()
        };
        if shape != self.model.shape {
            let found = format!("expects records of {}", super::format_shape(&self.model.shape));
            return Err(unfit(found, "a network for records of the same shape as these"));
        }
        match self.model.trunk() {
            Err(Error::Network(network::Error::NoLayers { .. })) => {
                Err(unfit("has one layer".into(), "at least two, because the last one is removed"))
            }
            trunk => Ok(trunk?.0.outputs()),
        }
    }

    /// Computes the features of all records.
    pub(super) fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        let width = self.outputs(examples.shape())?;
        let (trunk, weights) = self.model.trunk()?;
        let inputs = self.model.features(examples.clone())?;
        examples.with_features(&[width], outputs(&trunk, weights, &inputs).concat())
    }
}
