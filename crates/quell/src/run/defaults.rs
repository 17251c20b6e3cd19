//! What is chosen where no setting says anything: learner, network, preparation and features.
//!
//! All choices follow from public facts: settings, schema, shape, guarantee and a declared number of records.
//! The guide has the rules (defaults.md), and docs/evidence.md has the measurements.

use super::{
    Configuration, Learner,
    models::{LEARNERS, Row, named_models},
};
use crate::{
    data::Schema,
    features::Features,
    learner::{
        dp_sgd::{Recipe, Sampler},
        prepared::Preparation,
        section::Section as _,
    },
    network::Architecture,
};

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
    schema.columns.iter().any(|column| column.bounds().is_some())
}

impl Configuration {
    /// The learner for settings that name none. It may name a network, too.
    pub(super) fn choose_learner(&mut self) -> Learner {
        let learner = self.default_learner();
        if learner == Learner::Glm && self.suits_small_network() {
            self.model.name = Some(SMALL_NETWORK.into());
            return Learner::DpSgd;
        }
        learner
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
    /// A number as the target keeps an additive model: people can read it, and it is much better where tails are
    /// heavy. On other tables a network was better at a large ε.
    fn suits_small_network(&self) -> bool {
        let privacy = self.training.privacy;
        if !self.training.is_guarantee_alone()
            || self.model.name.is_some()
            || self.glm.is_given()
            || privacy.noise_multiplier.is_some()
        {
            return false;
        }
        let (Some(schema), Some(records)) = (&self.data.schema, self.training.sampling.records) else {
            return false;
        };
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
    pub(super) fn prepare_columns(&mut self) {
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
}
