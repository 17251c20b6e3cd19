//! The choice of a learner.

use quell_privacy::{Neighbors, ledger::Unit};

use super::{
    Configuration, Learner,
    models::{LEARNERS, Row, model_names, named_models},
};
use crate::{
    Error,
    data::Schema,
    features::Features,
    learner::{
        Privacy,
        dp_sgd::{Recipe, Sample, Sampler},
        glm,
        prepared::Preparation,
        schedule::{Schedule, Shape},
        section::Section as _,
    },
    network::{self, Architecture},
};

impl Configuration {
    /// Names the learner, if the settings do not.
    ///
    /// A linear model takes the settings that it shares with DP-SGD from either section.
    pub(super) fn with_learner(mut self) -> Result<Self, Error> {
        let mut learner = self.learner.unwrap_or_else(|| self.default_learner());
        if self.learner.is_none() && learner == Learner::Glm && self.suits_small_network() {
            learner = Learner::DpSgd;
            self.model.name = Some(SMALL_NETWORK.into());
        }
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

    /// The learner for settings that name none: a linear model for tables, and DP-SGD for other data.
    ///
    /// A named model, ratings or the section of a learner choose their learner. Settings that only DP-SGD has ask
    /// for DP-SGD.
    fn default_learner(&mut self) -> Learner {
        if self.data.ratings.is_some() {
            return Learner::Factorization;
        }
        let name = self.model.name.as_deref();
        let named = named_models().into_iter().filter(|model| Some(model.name) == name);
        let by_name: Vec<Learner> = named.map(|model| model.learner).collect();
        // `logistic` is a network, too. The other linear models are nothing else.
        if let [learner] = by_name[..]
            && learner != Learner::DpSgd
        {
            return learner;
        }
        let is_other = |row: &&Row| !matches!(row.learner, Learner::DpSgd | Learner::Glm);
        if let Some(row) = LEARNERS.iter().filter(is_other).find(|row| (row.section)(self).is_given()) {
            return row.learner;
        }
        let asks_for_dp_sgd = self.training.sampling.rate.is_some() || !self.training.suits_linear_models();
        let is_table =
            self.data.schema.is_some() && self.computed_features().is_raw() && self.model.layers.is_empty();
        let may_be_linear = self.model.name.is_none() || by_name.contains(&Learner::Glm);
        let is_linear = may_be_linear && is_table && !asks_for_dp_sgd;
        if is_linear || self.glm.is_given() { Learner::Glm } else { Learner::DpSgd }
    }

    /// Whether a table without a named model gets a small network, by public facts alone.
    ///
    /// Only a network sees what columns say together, and it needs many records (docs/evidence.md, Defaults).
    /// A number as the target keeps an additive model: it was as good, and much better where tails are heavy.
    fn suits_small_network(&self) -> bool {
        let Recipe { privacy, seed, .. } = self.training;
        let sampling = Sample { records: self.training.sampling.records, ..Sample::default() };
        let has_others = self.training != (Recipe { privacy, sampling, seed, ..Recipe::default() });
        if has_others
            || self.model.name.is_some()
            || self.glm.is_given()
            || privacy.noise_multiplier.is_some()
        {
            return false;
        }
        let (Some(schema), Some(records)) = (&self.data.schema, sampling.records) else { return false };
        let has_classes = schema.label.as_ref().is_some_and(|label| label.classes.is_some());
        let noise = privacy.delta_for(records).and_then(|delta| privacy.gaussian_noise(delta, 1));
        // Errors in the guarantee are reported by the plan.
        let Ok(noise) = noise else { return false };
        let width = schema.features().len().max(1) as f64;
        has_classes && has_numbers(schema) && records as f64 / (noise * width.sqrt()) >= LEAST_FOR_NETWORK
    }

    /// Standardises the columns of a table for a named network, if no setting says otherwise.
    ///
    /// A model that has layers is planned already, or somebody's own.
    fn prepare_columns(&mut self) {
        let Recipe { privacy, sampling, clipping, schedule, preparation, augmentation, .. } = &self.training;
        if *preparation == Some(Preparation::None {}) {
            self.training.preparation = None;
            return;
        }
        // A clip norm or a learning rate was found for numbers on some scale.
        let is_tuned = clipping.is_some() || schedule.is_some() || augmentation.is_some();
        let is_bound = privacy.epsilon.is_none() || privacy.noise_multiplier.is_some();
        let may_prepare = preparation.is_none() && sampling.by != Sampler::Shuffled && !is_tuned && !is_bound;
        let is_named = self.model.name.is_some() && self.model.layers.is_empty();
        let is_table =
            self.computed_features().is_raw() && self.data.schema.as_ref().is_some_and(has_numbers);
        if may_prepare && is_named && is_table {
            self.training.preparation = Some(Preparation::Standardize { noise_multiplier: None });
        }
    }

    /// Chooses features for pictures, if no setting names features, a model or a preparation.
    ///
    /// A linear model of scattering features was better than networks of pixels on all data of the evidence.
    pub(super) fn choose_features(&mut self, shape: &[usize], classes: Option<usize>, records: Option<u64>) {
        let Recipe { preparation, augmentation, sampling, .. } = &self.training;
        let is_open = self.learner == Some(Learner::DpSgd)
            && self.features.is_none()
            && self.model == Architecture::default()
            && preparation.is_none()
            && augmentation.is_none();
        let features = Features::scattering();
        let numbers = features.output_shape(shape).map(|output| output.iter().product::<usize>() as u64);
        let fits = |numbers: u64| {
            let records = sampling.records.or(records).unwrap_or(u64::MAX);
            numbers <= MOST_FEATURES && numbers.saturating_mul(records) <= MOST_FEATURES_OF_ALL
        };
        if is_open && classes.is_some() && shape.len() == 3 && numbers.is_ok_and(fits) {
            self.features = Some(features);
        }
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
        let sampling = Sample { records: self.training.sampling.records, ..Sample::default() };
        let of_networks = self.training != (Recipe { privacy, sampling, seed, ..Recipe::default() });
        if of_networks || self.glm.is_given() {
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
        *records = sampling.records.or(*records);
        section.set_seed(seed);
        Ok(())
    }
}

/// The network of a large table.
const SMALL_NETWORK: &str = "mlp-small";

/// The fewest records for a network: for each unit of noise in a sum, and each root of a number of features.
const LEAST_FOR_NETWORK: f64 = 275.0;

/// The most features of a picture that are computed without a setting.
const MOST_FEATURES: u64 = 1 << 16;
/// The most features of all pictures that are computed without a setting: four gigabytes.
const MOST_FEATURES_OF_ALL: u64 = 1 << 30;

/// Whether a column of a schema has numbers.
fn has_numbers(schema: &Schema) -> bool {
    schema.columns.iter().any(|column| column.bounds.is_some())
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

    /// Whether linear models have all settings that are given.
    fn suits_linear_models(&self) -> bool {
        self.settings_of_networks().is_empty()
    }
}
