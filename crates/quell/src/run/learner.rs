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
        synthesis,
        unsupervised::{self, Kind},
    },
};

/// A learner, by the name of its section in a configuration.
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
            Learner::Unsupervised | Learner::NaiveBayes | Learner::Synthesis => {
                self.share_guarantee(learner)?;
            }
            Learner::Factorization => {
                self.share_guarantee(learner)?;
                self.describe_ratings()?;
            }
        }
        Ok(self)
    }

    /// The learner for settings that name none: a linear model for tables, and DP-SGD for other data.
    ///
    /// Settings that the default for tables does not have ask for DP-SGD, and so does a model that is not
    /// linear.
    fn default_learner(&self) -> Learner {
        let mut no_ratings = factorization::Recipe::default();
        no_ratings.privacy.neighbors = self.factorization.privacy.neighbors;
        let has_ratings = self.data.ratings.is_some() || self.factorization != no_ratings;
        if has_ratings || self.model.name.as_deref() == Some(factorization::NAME) {
            return Learner::Factorization;
        }
        let mut no_synthesis = synthesis::Recipe::default();
        no_synthesis.privacy.neighbors = self.synthesis.privacy.neighbors;
        if self.model.name.as_deref() == Some(synthesis::NAME) || self.synthesis != no_synthesis {
            return Learner::Synthesis;
        }
        let mut none = unsupervised::Recipe::default();
        none.privacy.neighbors = self.unsupervised.privacy.neighbors;
        if self.model.name.as_deref().and_then(Kind::named).is_some() || self.unsupervised != none {
            return Learner::Unsupervised;
        }
        if self.model.name.as_deref() == Some(naive_bayes::NAME) {
            return Learner::NaiveBayes;
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
        let mut no_settings = glm::Recipe::default();
        no_settings.privacy.neighbors = self.glm.privacy.neighbors;
        self.glm != no_settings
    }

    /// Moves the settings that both learners have from the section of DP-SGD. They override.
    fn share_settings(&mut self) -> Result<(), Error> {
        if !self.training.suits_linear_models() {
            return Err(Error::Setting {
                name: "model",
                found: "a linear model, and there are settings that only networks have".into(),
                expected: "no epochs, batches of fixed size, clipping, optimizer or schedule, or the method dp-sgd",
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
            let name = self.model.name.as_deref().unwrap_or("one without labels");
            return Err(Error::Setting {
                name: "model",
                found: format!("{name}, and there are settings of other models"),
                expected: "no steps, epochs, batches, clipping, learning rate, method, quantile or regularization",
            });
        }
        (self.training, self.glm) = (Recipe::default(), glm::Recipe::default());
        let (own, records) = match learner {
            Learner::NaiveBayes => (&mut self.naive_bayes.privacy, &mut self.naive_bayes.records),
            Learner::Factorization => (&mut self.factorization.privacy, &mut self.factorization.records),
            Learner::Synthesis => (&mut self.synthesis.privacy, &mut self.synthesis.records),
            _ => (&mut self.unsupervised.privacy, &mut self.unsupervised.records),
        };
        *own = overridden(*own, privacy);
        *records = sampling.records.or(*records);
        Ok(())
    }
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

impl Recipe {
    /// Whether linear models have all settings that are given.
    fn suits_linear_models(&self) -> bool {
        let sampling =
            Sample { records: self.sampling.records, rate: self.sampling.rate, ..Sample::default() };
        let Self { privacy, steps, seed, .. } = *self;
        let schedule =
            self.schedule.map(|schedule| Schedule { warm_up: 0, shape: Shape::Constant, ..schedule });
        *self == Self { privacy, sampling, steps, schedule, seed, ..Self::default() }
    }
}
