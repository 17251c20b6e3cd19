//! The choice of a learner.

use quell_privacy::{Neighbors, ledger::Unit};
use serde::{Deserialize, Serialize};

use super::Configuration;
use crate::{
    Error,
    learner::{
        Privacy,
        dp_sgd::{Recipe, Sample},
        factorization,
        glm::{self, Family},
        naive_bayes,
        schedule::{Schedule, Shape},
        synthesis, tree,
        unsupervised::Kind,
    },
    network,
};

/// A learner. Its settings are a section of a configuration; those of DP-SGD are `training`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learner {
    /// DP-SGD, for all networks.
    DpSgd,
    /// Linear models.
    Glm,
    /// Models without labels: clusters and principal components.
    Unsupervised,
    /// Naive Bayes.
    NaiveBayes,
    /// A decision tree.
    Tree,
    /// Recommendations from ratings.
    Factorization,
    /// Synthetic data.
    Synthesis,
}

impl Configuration {
    /// Names the learner, if the settings do not.
    ///
    /// A linear model takes the settings that it shares with DP-SGD from either section.
    pub(super) fn with_learner(mut self) -> Result<Self, Error> {
        let learner = *self.learner.get_or_insert(self.default_learner());
        self.check_model(learner)?;
        self.check_sections(learner)?;
        if self.data.ratings.is_some() && learner != Learner::Factorization {
            return Err(Error::Setting {
                name: "model",
                found: "not for ratings, and the data is described as ratings".into(),
                expected: "factorization",
            });
        }
        match learner {
            Learner::DpSgd => {}
            Learner::Glm => self.share_settings()?,
            Learner::Unsupervised | Learner::NaiveBayes | Learner::Tree | Learner::Synthesis => {
                self.share_guarantee(learner)?;
            }
            Learner::Factorization => {
                self.share_guarantee(learner)?;
                self.describe_ratings()?;
            }
        }
        Ok(self)
    }

    /// Checks that the name of the model is known, and that the learner has such a model.
    fn check_model(&self, learner: Learner) -> Result<(), Error> {
        let Some(name) = self.model.name.as_deref().filter(|_| self.model.layers.is_empty()) else {
            return Ok(());
        };
        let all = model_names();
        if !all.iter().any(|known| known == name) {
            return Err(network::Error::NoModel { name: name.into(), models: all }.into());
        }
        if learner == Learner::DpSgd && !network::models().iter().any(|model| model.name == name) {
            return Err(Error::Setting {
                name: "method",
                found: format!("dp-sgd, and the model {name} is no network"),
                expected: "no method, or a network such as logistic or mlp",
            });
        }
        Ok(())
    }

    /// Refuses settings in the sections of learners that do not train the model.
    fn check_sections(&self, learner: Learner) -> Result<(), Error> {
        let is_given = |of: Learner| match of {
            Learner::DpSgd => false,
            Learner::Glm => self.has_linear_settings(),
            Learner::Unsupervised => has_settings(&self.unsupervised, |own| &mut own.privacy),
            Learner::NaiveBayes => has_settings(&self.naive_bayes, |own| &mut own.privacy),
            Learner::Tree => has_settings(&self.tree, |own| &mut own.privacy),
            Learner::Synthesis => has_settings(&self.synthesis, |own| &mut own.privacy),
            Learner::Factorization => has_settings(&self.factorization, |own| &mut own.privacy),
        };
        // Some settings of DP-SGD are shared by all, and each learner checks the others.
        let sections = [
            (Learner::Glm, "glm, such as quantile, regularization, radius or waves"),
            (Learner::Unsupervised, "unsupervised, such as clusters or components"),
            (Learner::NaiveBayes, "naive_bayes"),
            (Learner::Tree, "tree"),
            (Learner::Synthesis, "synthesis"),
            (Learner::Factorization, "factorization"),
        ];
        // The other learners name the settings of linear models that they do not have.
        let checks_linear = matches!(learner, Learner::DpSgd | Learner::Glm);
        let other = sections
            .into_iter()
            .find(|(of, _)| *of != learner && is_given(*of) && (checks_linear || *of != Learner::Glm));
        other.map_or(Ok(()), |(_, section)| {
            Err(Error::Setting {
                name: "learner",
                found: format!("{}, and there are settings of {section}", learner.name()),
                expected: "settings of this learner alone",
            })
        })
    }

    /// The learner for settings that name none: a linear model for tables, and DP-SGD for other data.
    ///
    /// Settings that the default for tables does not have ask for DP-SGD, and so does a model that is not
    /// linear.
    fn default_learner(&self) -> Learner {
        let has_ratings =
            self.data.ratings.is_some() || has_settings(&self.factorization, |own| &mut own.privacy);
        if has_ratings || self.model.name.as_deref() == Some(factorization::NAME) {
            return Learner::Factorization;
        }
        let is_synthesis = self.model.name.as_deref() == Some(synthesis::NAME);
        if is_synthesis || has_settings(&self.synthesis, |own| &mut own.privacy) {
            return Learner::Synthesis;
        }
        let is_unsupervised = self.model.name.as_deref().and_then(Kind::named).is_some();
        if is_unsupervised || has_settings(&self.unsupervised, |own| &mut own.privacy) {
            return Learner::Unsupervised;
        }
        if self.model.name.as_deref() == Some(naive_bayes::NAME) {
            return Learner::NaiveBayes;
        }
        if self.model.name.as_deref() == Some(tree::NAME) {
            return Learner::Tree;
        }
        let asks_for_dp_sgd = self.training.sampling.rate.is_some() || !self.training.suits_linear_models();
        let is_table = self.data.schema.is_some() && self.features.is_raw() && self.model.layers.is_empty();
        let is_linear = match self.model.name.as_deref().map(Family::named) {
            // `logistic` is a network, too. The other linear models are nothing else.
            None | Some(Some(Family::Logistic)) => is_table && !asks_for_dp_sgd,
            Some(family) => family.is_some(),
        };
        if is_linear || self.has_linear_settings() { Learner::Glm } else { Learner::DpSgd }
    }

    /// Whether settings of linear models are given.
    ///
    /// The neighbours do not count: a command sets those of all learners.
    fn has_linear_settings(&self) -> bool {
        has_settings(&self.glm, |own| &mut own.privacy)
    }

    /// Moves the settings that both learners have from the section of DP-SGD. They override.
    fn share_settings(&mut self) -> Result<(), Error> {
        if !self.training.suits_linear_models() {
            let name = self.model.name.as_deref().unwrap_or("a linear model");
            return Err(Error::Setting {
                name: "model",
                found: format!(
                    "{name}, which has no {}",
                    self.training.settings_of_networks().join(" and no ")
                ),
                expected: "a network, or no such setting",
            });
        }
        let Recipe { privacy, sampling, steps, schedule, .. } = std::mem::take(&mut self.training);
        let own = &mut self.glm;
        own.privacy = overridden(own.privacy, privacy);
        own.records = sampling.records.or(own.records);
        own.steps = steps.or(own.steps);
        own.sampling_rate = sampling.rate.or(own.sampling_rate);
        own.learning_rate = schedule.map(|schedule| schedule.learning_rate).or(own.learning_rate);
        Ok(())
    }

    /// Checks the settings of ratings. All ratings of one user together are protected.
    fn describe_ratings(&mut self) -> Result<(), Error> {
        if self.data.ratings.is_none() {
            return Err(Error::Setting {
                name: "the data",
                found: "not described as ratings".into(),
                expected: "the columns of users, items and ratings, and a public list of items",
            });
        }
        if !self.features.is_raw() {
            return Err(Error::Setting {
                name: "features",
                found: "given".into(),
                expected: "none for ratings",
            });
        }
        self.data.unit = Unit::User;
        Ok(())
    }

    /// Moves the guarantee and the number of records from the section of DP-SGD. They override.
    ///
    /// For learners that share nothing else with DP-SGD.
    fn share_guarantee(&mut self, learner: Learner) -> Result<(), Error> {
        let Recipe { privacy, seed, .. } = self.training;
        let sampling = Sample { records: self.training.sampling.records, ..Sample::default() };
        let of_networks = self.training != (Recipe { privacy, sampling, seed, ..Recipe::default() });
        if of_networks || self.has_linear_settings() {
            let name = self.model.name.as_deref().unwrap_or(learner.name());
            return Err(Error::Setting {
                name: "model",
                found: format!("{name}, and there are settings of other models"),
                expected: "no steps, epochs, batches, clipping, learning rate, method, quantile or regularization",
            });
        }
        (self.training, self.glm) = (Recipe::default(), glm::Recipe::default());
        let (own, records) = match learner {
            Learner::NaiveBayes => (&mut self.naive_bayes.privacy, &mut self.naive_bayes.records),
            Learner::Tree => (&mut self.tree.privacy, &mut self.tree.records),
            Learner::Factorization => (&mut self.factorization.privacy, &mut self.factorization.records),
            Learner::Synthesis => (&mut self.synthesis.privacy, &mut self.synthesis.records),
            _ => (&mut self.unsupervised.privacy, &mut self.unsupervised.records),
        };
        *own = overridden(*own, privacy);
        *records = sampling.records.or(*records);
        match learner {
            Learner::Tree if seed != 0 => self.tree.tree_seed = Some(seed),
            Learner::Synthesis if seed != 0 => self.synthesis.seed = seed,
            _ => {}
        }
        Ok(())
    }
}

/// Whether a section has settings besides the neighbours, which a command sets in all sections.
fn has_settings<R: Clone + Default + PartialEq>(own: &R, privacy: fn(&mut R) -> &mut Privacy) -> bool {
    let mut none = R::default();
    privacy(&mut none).neighbors = privacy(&mut own.clone()).neighbors;
    *own != none
}

/// The names of all models: those of tables, those without labels, and networks.
#[must_use]
pub fn model_names() -> Vec<String> {
    let tables = Family::ALL.into_iter().map(Family::name).chain([naive_bayes::NAME, tree::NAME]);
    let without_labels = Kind::ALL.into_iter().map(Kind::name).chain([factorization::NAME, synthesis::NAME]);
    let networks = network::models().iter().map(|model| model.name);
    let mut names: Vec<String> = Vec::new();
    for name in tables.chain(without_labels).chain(networks) {
        // Logistic regression is both.
        if !names.iter().any(|known| known == name) {
            names.push(name.into());
        }
    }
    names
}

/// A guarantee, with the settings of another one where it has some.
fn overridden(own: Privacy, by: Privacy) -> Privacy {
    // The noise determines ε.
    let epsilon = own.epsilon.filter(|_| by.noise_multiplier.is_none());
    Privacy {
        epsilon: by.epsilon.or(epsilon),
        delta: by.delta.or(own.delta),
        noise_multiplier: by.noise_multiplier.or(own.noise_multiplier),
        neighbors: if by.neighbors == Neighbors::default() { own.neighbors } else { by.neighbors },
    }
}

impl Learner {
    /// The name, as a configuration writes it.
    fn name(self) -> &'static str {
        match self {
            Self::DpSgd => "dp-sgd",
            Self::Glm => "glm",
            Self::Unsupervised => "unsupervised",
            Self::NaiveBayes => "naive-bayes",
            Self::Tree => "tree",
            Self::Synthesis => "synthesis",
            Self::Factorization => "factorization",
        }
    }
}

impl Recipe {
    /// The settings that are given and that linear models do not have.
    fn settings_of_networks(&self) -> Vec<&'static str> {
        let usual = Self::default();
        let has_schedule = self
            .schedule
            .is_some_and(|schedule| schedule != Schedule { warm_up: 0, shape: Shape::Constant, ..schedule });
        [
            ("epochs", self.epochs.is_some()),
            ("batch size", self.sampling.batch.is_some()),
            ("choice of sampling", self.sampling.by != usual.sampling.by),
            ("clip norm", self.clipping != usual.clipping),
            ("choice of loss", self.loss.is_some()),
            ("optimizer", self.optimizer.is_some()),
            ("preparation", self.preparation.is_some()),
            ("schedule", has_schedule),
            ("choice of average", self.average != usual.average),
            ("augmentation", self.augmentation.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
        .collect()
    }

    /// Whether linear models have all settings that are given.
    fn suits_linear_models(&self) -> bool {
        self.settings_of_networks().is_empty()
    }
}
