//! The state of a DP-SGD run. It is public, because it follows from released values alone.

use std::{borrow::Cow, collections::HashMap};

use quell_privacy::{mechanism::Step, units::ClipNorm};
use safetensors::{Dtype, SafeTensors, serialize};
use serde::{Deserialize, Serialize};

use super::{Plan, agreement::Agreement};
use crate::{
    Error,
    learner::{
        Snapshot,
        average::Mean,
        optimizer::{Stepper, Update},
        tensors::{Tensor, numbers},
    },
    network::Network,
};

/// Weights, optimizer state, average, clip norm and step counters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    weights: Vec<f32>,
    stepper: Stepper,
    mean: Mean,
    clip_norm: Option<ClipNorm>,
    position: u64,
    taken: u64,
    agreement: Agreement,
}

/// The part of the state that is not stored as a tensor.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counters {
    position: u64,
    taken: u64,
    optimizer_steps: u64,
    averaged: u64,
    clip_norm: Option<f64>,
    #[serde(default)]
    agreement: Agreement,
}

/// Texts of a file by their keys.
type Metadata = HashMap<String, String>;

/// Key of the counters in the metadata of a file.
const COUNTERS: &str = "quell.progress";

impl Checkpoint {
    /// The state before the first step.
    pub fn new(network: &Network, plan: &Plan) -> Result<Self, Error> {
        let weights = network.initialize(plan.seed);
        let stepper = plan.optimizer.start(&network.parts())?;
        let mean = plan.average.start(weights.len())?;
        let agreement = Agreement::default();
        Ok(Self { weights, stepper, mean, clip_norm: None, position: 0, taken: 0, agreement })
    }

    /// The weights at which the next gradient is computed.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The clip norm of the next step, if clipping is adaptive.
    #[must_use]
    pub fn clip_norm(&self) -> Option<ClipNorm> {
        self.clip_norm
    }

    /// How much the gradients of the last steps agreed.
    pub(in crate::learner) fn agreement(&self) -> Agreement {
        self.agreement
    }

    /// The weights of the model: the average of the iterates, or the last iterate.
    #[must_use]
    pub fn model(&self) -> Cow<'_, [f32]> {
        self.mean.weights().map_or(Cow::Borrowed(&self.weights), Cow::Owned)
    }

    /// Updates the weights with a released gradient sum.
    ///
    /// `position` is the number of the step in the plan. `noise` is the standard deviation of the noise in
    /// the sum.
    pub fn apply(&mut self, plan: &Plan, released: &Step, position: u64, noise: f64) -> Result<(), Error> {
        let scale = 1.0 / plan.expected_batch;
        let learning_rate = plan.schedule.learning_rate(position, plan.steps());
        let update = Update { learning_rate, scale, noise_variance: (noise * scale).powi(2) };
        self.stepper.step(&mut self.weights, &released.sum, update)?;
        self.mean.add(&self.weights)?;
        let noise_multiplier = plan.descent.noise_multiplier.get();
        if noise_multiplier > 0.0 {
            self.agreement.add(&released.sum, noise, noise / noise_multiplier * plan.expected_batch);
        }
        self.clip_norm = released.next_norm.or(self.clip_norm);
        self.position = position + 1;
        self.taken += 1;
        Ok(())
    }

    /// Restores a state that [`Snapshot::save`] wrote for the same plan.
    pub fn restore(bytes: &[u8], network: &Network, plan: &Plan) -> Result<Self, Error> {
        let damaged =
            |part: &str| Error::saved(part, "missing or damaged", "the contents of a checkpoint of this run");
        let file = SafeTensors::deserialize(bytes).map_err(|_| damaged("the file"))?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|_| damaged("the header"))?;
        let text = header
            .metadata()
            .as_ref()
            .and_then(|metadata| metadata.get(COUNTERS))
            .ok_or_else(|| damaged("counters"))?;
        let counters: Counters = serde_json::from_str(text).map_err(|_| damaged("counters"))?;
        let singles =
            |name: &str| numbers(&file, name, Dtype::F32, f32::from_le_bytes).ok_or_else(|| damaged(name));
        let mut checkpoint = Self::new(network, plan)?;
        let weights = singles("weights")?;
        if weights.len() != checkpoint.weights.len() {
            return Err(Error::Length {
                what: "weights",
                found: weights.len(),
                expected: checkpoint.weights.len(),
            });
        }
        checkpoint.weights = weights;
        let names: Vec<&'static str> = checkpoint.stepper.state().iter().map(|(name, _)| *name).collect();
        let moments =
            names.iter().map(|name| singles(&format!("optimizer.{name}"))).collect::<Result<Vec<_>, _>>()?;
        let state: Vec<(&str, &[f32])> =
            names.iter().copied().zip(moments.iter().map(Vec::as_slice)).collect();
        checkpoint.stepper.restore(counters.optimizer_steps, &state)?;
        let average =
            numbers(&file, "average", Dtype::F64, f64::from_le_bytes).ok_or_else(|| damaged("average"))?;
        checkpoint.mean.restore(counters.averaged, &average)?;
        checkpoint.clip_norm = counters.clip_norm.map(ClipNorm::new).transpose()?;
        (checkpoint.position, checkpoint.taken) = (counters.position, counters.taken);
        checkpoint.agreement = counters.agreement;
        Ok(checkpoint)
    }
}

impl Snapshot for Checkpoint {
    fn position(&self) -> u64 {
        self.position
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    /// The file is a safetensors file.
    fn save(&self) -> Result<Vec<u8>, Error> {
        let (tensors, metadata) = self.tensors()?;
        serialize(tensors, Some(metadata)).map_err(|_| Error::saved("checkpoint", "not writable", "tensors"))
    }
}

impl Checkpoint {
    /// The tensors of a file, and its metadata.
    pub(in crate::learner) fn tensors(&self) -> Result<(Vec<(String, Tensor)>, Metadata), Error> {
        let counters = Counters {
            position: self.position,
            taken: self.taken,
            optimizer_steps: self.stepper.steps(),
            averaged: self.mean.count(),
            clip_norm: self.clip_norm.map(ClipNorm::get),
            agreement: self.agreement,
        };
        let text = serde_json::to_string(&counters)
            .map_err(|_| Error::saved("counters", "not writable", "numbers"))?;
        let mut tensors = vec![
            ("weights".to_owned(), Tensor::single(&self.weights)),
            ("average".into(), Tensor::double(self.mean.state())),
        ];
        tensors.extend(
            self.stepper
                .state()
                .into_iter()
                .map(|(name, values)| (format!("optimizer.{name}"), Tensor::single(values))),
        );
        Ok((tensors, [(COUNTERS.to_owned(), text)].into()))
    }
}

impl AsRef<Self> for Checkpoint {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsMut<Self> for Checkpoint {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}
