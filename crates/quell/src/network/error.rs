//! Errors about named models and public networks.

use std::path::PathBuf;

use crate::{
    Hint,
    error::{listed, quoted},
    hint::nearest,
};

/// Why a named model or a public network cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no model of this name.
    #[error("there is no model {}, expected one of {}", quoted(name), listed(models))]
    NoModel {
        /// The requested name.
        name: String,
        /// The names of all models.
        models: Vec<String>,
    },
    /// The file of a public network cannot be used for features.
    #[error("the public network {} {found}, expected {expected}", path.display())]
    PublicNetwork {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl Error {
    /// What to try next.
    pub(crate) fn hint(&self) -> Hint {
        match self {
            Self::NoModel { name, models } => match nearest(name, models.iter().map(String::as_str)) {
                Some(near) => Hint::DidYouMean { name: near.to_owned() },
                None => Hint::ChooseModel,
            },
            Self::PublicNetwork { .. } => Hint::RestoreNetwork,
        }
    }
}
