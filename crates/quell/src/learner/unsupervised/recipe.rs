//! The settings of a model without labels, some of which may be missing.

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    learner::{Privacy, section::Guaranteed},
    network::Architecture,
};

/// The settings of a model without labels. Missing settings are chosen from public facts alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// The privacy guarantee.
    pub privacy: Privacy,
    /// A public number of records (or users). It need not be exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Number of clusters, for k-means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,
    /// Number of components, for principal components.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<usize>,
    /// Number of runs that move the centres of clusters, for k-means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Number of runs that divide the space to find the first centres, for k-means on few columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<u64>,
}

impl Guaranteed for Recipe {
    fn guarantee(&mut self) -> (&mut Privacy, &mut Option<u64>) {
        (&mut self.privacy, &mut self.records)
    }
}

/// A model without labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// k-means: centres of clusters.
    KMeans,
    /// Principal components: directions of large variance.
    Components,
}

impl Kind {
    /// All models without labels.
    pub const ALL: [Self; 2] = [Self::KMeans, Self::Components];

    /// The name, as settings write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KMeans => "kmeans",
            Self::Components => "components",
        }
    }

    /// The model in words, for a title.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::KMeans => "Clusters by k-means",
            Self::Components => "Principal components",
        }
    }

    /// One sentence on the model and its use.
    #[must_use]
    pub fn purpose(self) -> &'static str {
        match self {
            Self::KMeans => "k-means: the centres of --clusters K groups of similar records.",
            Self::Components => "Principal components: the --components K directions of most variance.",
        }
    }

    /// The model with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The model that the settings name.
    pub(super) fn of(model: &Architecture) -> Result<Self, Error> {
        let name = model.name.as_deref();
        name.and_then(Self::named).ok_or_else(|| Error::Setting {
            name: "model",
            found: name.unwrap_or("not named").into(),
            expected: "a model without labels: kmeans or components",
        })
    }
}

impl Recipe {
    /// Refuses settings of the other model.
    pub(super) fn check(&self, kind: Kind) -> Result<(), Error> {
        let others: &[(&'static str, bool)] = match kind {
            Kind::KMeans => &[("components", self.components.is_some())],
            Kind::Components => &[
                ("clusters", self.clusters.is_some()),
                ("iterations", self.iterations.is_some()),
                ("levels", self.levels.is_some()),
            ],
        };
        match others.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Error::Setting {
                name,
                found: format!("given, and the model is {}", kind.name()),
                expected: "a model with this setting, or no such setting",
            }),
            None => Ok(()),
        }
    }
}
