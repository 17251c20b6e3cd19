//! The learner of a run: which settings it may have, and which it takes from other sections.
//!
//! `defaults` chooses what no setting names.

use quell_privacy::{Neighbors, ledger::Unit};

use super::{
    Configuration, Learner,
    models::{LEARNERS, model_names},
};
use crate::{
    Error,
    learner::{
        Privacy,
        dp_sgd::{Recipe, Sample},
        glm,
        schedule::{Schedule, Shape},
        section::Section as _,
    },
    network,
};

impl Configuration {
    /// Names the learner, if the settings do not.
    ///
    /// A linear model takes the settings that it shares with DP-SGD from either section.
    pub(super) fn with_learner(mut self) -> Result<Self, Error> {
        let learner = self.learner.unwrap_or_else(|| self.choose_learner());
        self.learner = Some(learner);
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
            Learner::DpSgd => self.prepare_columns(),
            Learner::Glm => self.share_settings()?,
            other => self.share_guarantee(other)?,
        }
        if learner == Learner::Factorization {
            self.describe_ratings()?;
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
    fn check_sections(&mut self, learner: Learner) -> Result<(), Error> {
        // Other learners have a message of their own for settings of linear models.
        let checks_linear = matches!(learner, Learner::DpSgd | Learner::Glm);
        let other = LEARNERS.iter().find(|row| {
            // Some settings of DP-SGD are shared by all, and each learner checks the others.
            let is_checked = row.learner != Learner::DpSgd && (checks_linear || row.learner != Learner::Glm);
            is_checked && row.learner != learner && (row.section)(self).is_given()
        });
        other.map_or(Ok(()), |row| {
            Err(Error::Setting {
                name: "learner",
                found: format!("{}, and there are settings of {}", learner.row().name, row.settings),
                expected: "settings of this learner alone",
            })
        })
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

    /// Sets the neighbouring relation of all learners.
    pub fn set_neighbors(&mut self, neighbors: Neighbors) {
        for row in &LEARNERS {
            (row.section)(self).guarantee().0.neighbors = neighbors;
        }
    }

    /// The first ε that a section of the settings states.
    #[must_use]
    pub fn stated_epsilon(&mut self) -> Option<f64> {
        LEARNERS.iter().find_map(|row| (row.section)(self).guarantee().0.epsilon)
    }

    /// The first δ that a section of the settings states.
    #[must_use]
    pub fn stated_delta(&mut self) -> Option<f64> {
        LEARNERS.iter().find_map(|row| (row.section)(self).guarantee().0.delta)
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
        if !self.computed_features().is_raw() {
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
        let stated = self.training.sampling.records;
        if !self.training.is_guarantee_alone() || self.glm.is_given() {
            let name = self.model.name.as_deref().unwrap_or(learner.row().name);
            return Err(Error::Setting {
                name: "model",
                found: format!("{name}, and there are settings of other models"),
                expected: "no steps, epochs, batches, clipping, learning rate, method, quantile or regularization",
            });
        }
        (self.training, self.glm) = (Recipe::default(), glm::Recipe::default());
        let section = (learner.row().section)(self);
        let (own, records) = section.guarantee();
        *own = overridden(*own, privacy);
        *records = stated.or(*records);
        section.set_seed(seed);
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
            ("calibration after its steps", self.calibration.is_some()),
            ("schedule", has_schedule),
            ("choice of average", self.average != usual.average),
            ("augmentation", self.augmentation.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
        .collect()
    }

    /// Whether nothing is given but the guarantee, the number of records and the seed.
    pub(super) fn is_guarantee_alone(&self) -> bool {
        let sampling = Sample { records: self.sampling.records, ..Sample::default() };
        *self == Self { privacy: self.privacy, sampling, seed: self.seed, ..Self::default() }
    }

    /// Whether linear models have all settings that are given.
    pub(super) fn suits_linear_models(&self) -> bool {
        self.settings_of_networks().is_empty()
    }
}
