//! A model file: weights, everything needed to use them, and the payment.

use std::{collections::HashMap, path::Path, sync::Arc};

use safetensors::serialize;

use super::{Configuration, Folder, LabelUse, Learner, PaymentRecord};
use crate::{
    Error,
    data::Examples,
    learner::{
        Evaluation, NetworkModel, Prediction, Predictor,
        glm::Curves,
        loss::Target,
        prepared::Transform,
        tensors::{CONFIGURATION, SHAPE, damaged, read_model, text, weights},
    },
    network, run,
};

/// A model with its settings and its payment.
pub struct Model {
    /// The complete settings.
    pub configuration: Configuration,
    /// Shape of an example, channels first, before features are computed.
    pub shape: Vec<usize>,
    /// Names of the classes; `None` for a model that predicts numbers.
    pub classes: Option<Vec<String>>,
    /// The payment: its receipt, ε and δ.
    pub paid: PaymentRecord,
    /// The privacy statement in words.
    pub statement: String,
    /// What predicts.
    pub predictor: Predictor,
}

const LOSS: &str = "quell.loss";
const CLASSES: &str = "quell.classes";
const PAID: &str = "quell.paid";
const STATEMENT: &str = "quell.statement";

impl Model {
    /// How the label of a table was used in training.
    #[must_use]
    pub fn label_use(&self) -> LabelUse {
        // The model of a labelling run has no learner, and predicts a target.
        self.configuration.learner.map_or(LabelUse::Target, Learner::label_use)
    }

    /// Compares public records of a table with the schema of the model, and returns remarks.
    ///
    /// A message may show a value. Records of which most do not fit are refused.
    pub fn check_public_records(&self, path: &Path) -> Result<Vec<String>, Error> {
        self.configuration.data.check_public_table(path, self.label_use())
    }

    /// Computes the features on which the model was trained.
    pub fn features(&self, examples: Examples) -> Result<Examples, Error> {
        self.configuration.computed_features().transform(examples)
    }

    /// Predicts the class or the number of each example.
    /// `None` where the outputs are not numbers (NaN).
    pub fn predict(&self, examples: &Examples) -> Result<Vec<Option<Prediction>>, Error> {
        if self.configuration.computed_features().is_raw() {
            return Ok(self.predict_from(examples));
        }
        Ok(self.predict_from(&self.configuration.computed_features().apply(examples)?))
    }

    /// Predicts like [`Model::predict`], from the features of each example.
    #[must_use]
    pub fn predict_from(&self, features: &Examples) -> Vec<Option<Prediction>> {
        let schema = self.configuration.data.schema.as_ref();
        // A score of two classes may say "the second" where there is one class alone.
        let named = |class: u32| {
            let names = self.classes.as_ref()?;
            names.get((class as usize).min(names.len().saturating_sub(1))).cloned()
        };
        let convert = |target| match target {
            Target::Class(class) => named(class).map(Prediction::Class),
            Target::Number(number) => {
                let unscaled = schema.and_then(|schema| schema.unscaled(number));
                Some(unscaled.unwrap_or(f64::from(number)))
                    .filter(|number| number.is_finite())
                    .map(Prediction::Number)
            }
        };
        self.predictor.fitted().predict(features, &convert)
    }

    /// Compares the predictions with the targets, from features. The result is exact, not private.
    #[must_use]
    pub fn evaluate(&self, features: &Examples) -> Evaluation {
        self.predictor.evaluate(features).in_units(self.configuration.data.target_bounds())
    }

    /// What each column of a table adds to the scores; `None` if the model is no sum over columns.
    ///
    /// This follows from the released weights and the schema, so it costs nothing.
    pub fn curves(&self) -> Result<Option<Curves>, Error> {
        let Configuration { data, model, .. } = &self.configuration;
        match (&self.predictor, &data.schema) {
            (Predictor::Network(network), Some(schema))
                if self.configuration.computed_features().is_raw() && network.preparation.is_none() =>
            {
                Curves::new(network, &model.layers, &schema.plain(), self.classes.as_deref())
            }
            _ => Ok(None),
        }
    }

    /// The blake3 hash of everything that predictions depend on, in hexadecimal digits.
    pub fn digest(&self) -> Result<String, Error> {
        let mut hasher = blake3::Hasher::new();
        let loss = self.predictor.network().map(|model| model.loss);
        let settings = (self.configuration.write()?, &self.shape, &self.classes, loss);
        hasher.update(&serde_json::to_vec(&settings).map_err(|_| unwritable())?);
        self.predictor.fitted().hash(&mut |bytes| {
            hasher.update(bytes);
        });
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Writes a safetensors file.
    /// The tensors of a network are named by the number of their layer. Everything else is text in the
    /// metadata.
    pub fn save(&self) -> Result<Vec<u8>, Error> {
        let failed = |_| unwritable();
        let mut metadata = HashMap::from([
            (CONFIGURATION.to_owned(), self.configuration.write()?),
            (SHAPE.to_owned(), serde_json::to_string(&self.shape).map_err(failed)?),
            (CLASSES.to_owned(), serde_json::to_string(&self.classes).map_err(failed)?),
            (PAID.to_owned(), serde_json::to_string(&self.paid).map_err(failed)?),
            (STATEMENT.to_owned(), self.statement.clone()),
        ]);
        if let Some(NetworkModel { loss, .. }) = self.predictor.network() {
            metadata.insert(LOSS.to_owned(), serde_json::to_string(loss).map_err(failed)?);
        }
        serialize(self.predictor.fitted().tensors(), Some(metadata)).map_err(|_| unwritable())
    }

    /// Opens a model by its file, or by the folder of its run.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            return Folder::open(path)?.model();
        }
        read_model(path).and_then(|bytes| Self::restore(&bytes)).map_err(|error| match error {
            // These errors name the file that is to blame.
            Error::Absent { .. }
            | Error::Unreadable { .. }
            | Error::Network(network::Error::PublicNetwork { .. }) => error,
            error => run::Error::UnreadableModel { path: path.to_owned(), because: error.to_string() }.into(),
        })
    }

    /// Reads a model from bytes that [`Model::save`] wrote.
    pub fn restore(bytes: &[u8]) -> Result<Self, Error> {
        let text = |name: &str| text(bytes, name);
        let configuration = Configuration::parse(&text(CONFIGURATION)?)?;
        let shape: Vec<usize> = serde_json::from_str(&text(SHAPE)?).map_err(|_| damaged(SHAPE))?;
        let classes: Option<Vec<String>> =
            serde_json::from_str(&text(CLASSES)?).map_err(|_| damaged(CLASSES))?;
        let paid = serde_json::from_str(&text(PAID)?).map_err(|_| damaged(PAID))?;
        let statement = text(STATEMENT)?;
        let features = configuration.computed_features().output_shape(&shape)?;
        let mut saved = SavedModel { bytes, configuration, features, classes };
        let predictor = saved.restore()?;
        let SavedModel { configuration, classes, .. } = saved;
        Ok(Self { configuration, shape, classes, paid, statement, predictor })
    }
}

/// The parts of a model file from which its predictor is read.
pub struct SavedModel<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) configuration: Configuration,
    /// Shape of an example after features are computed, channels first.
    pub(super) features: Vec<usize>,
    pub(super) classes: Option<Vec<String>>,
}

impl SavedModel<'_> {
    /// Number of features.
    pub(super) fn width(&self) -> usize {
        self.features.iter().product()
    }

    /// Reads a network.
    pub(super) fn network(&mut self) -> Result<Predictor, Error> {
        let Self { bytes, configuration, features, classes } = self;
        let loss = match text(bytes, LOSS) {
            Ok(loss) => serde_json::from_str(&loss).map_err(|_| damaged(LOSS))?,
            // Earlier versions stored the loss in the settings alone.
            Err(_) => configuration.training.loss.ok_or_else(|| damaged("the loss"))?,
        };
        let (preparation, features) = match &configuration.training.preparation {
            Some(preparation) => {
                let transform = Transform::restore(bytes, preparation, features.iter().product())?;
                (Some(transform), preparation.output_shape(features))
            }
            None => (None, features.clone()),
        };
        let network =
            configuration.model.build(&features, loss.outputs(classes.as_ref().map_or(1, Vec::len)))?;
        let weights = weights(bytes, &network)?;
        let predictor = Predictor::network_of(Arc::new(network), weights, loss)
            .within(configuration.data.target_bounds());
        Ok(match preparation {
            Some(transform) => predictor.prepared_by(transform),
            None => predictor,
        })
    }
}

/// The error for a model that cannot be written.
fn unwritable() -> Error {
    Error::saved("model", "not writable", "tensors and text")
}
