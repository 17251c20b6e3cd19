//! The state of a run: the releases of the preparation, and the checkpoint of DP-SGD. It is public.

use std::cell::OnceCell;

use safetensors::serialize;

use super::Transform;
use crate::{
    Error,
    features::Pca,
    learner::{
        Predictor, Snapshot,
        dp_sgd::Checkpoint,
        unsupervised::{self, Plan},
    },
};

/// The releases of the preparation, and the checkpoint of DP-SGD.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) preparation: unsupervised::State,
    pub(super) checkpoint: Checkpoint,
    /// Number of runs of the preparation.
    runs: u64,
    /// The transform, once the preparation is over and the transform was asked for.
    transform: OnceCell<Transform>,
}

impl State {
    pub(super) fn new(plan: &Plan, checkpoint: Checkpoint, saved: Option<&[u8]>) -> Result<Self, Error> {
        let preparation = plan.state(saved)?;
        Ok(Self { preparation, checkpoint, runs: plan.sums.runs, transform: OnceCell::new() })
    }

    /// The transform that follows from the preparation.
    ///
    /// Before the preparation is over, it keeps the first features.
    pub(super) fn transform(&self, width: usize, outputs: usize) -> Transform {
        if self.preparation.position() < self.runs {
            let axis = |place: usize| f32::from(place / width == place % width);
            let components = (0..outputs * width).map(axis).collect();
            let components = Pca { mean: vec![0.0; width], components, variances: vec![0.0; outputs] };
            return Transform { components };
        }
        let found = || match self.preparation.estimates().model() {
            Predictor::Components(found) => Transform { components: found.pca },
            _ => unreachable!("a preparation by components finds components"),
        };
        self.transform.get_or_init(found).clone()
    }
}

impl AsRef<Checkpoint> for State {
    fn as_ref(&self) -> &Checkpoint {
        &self.checkpoint
    }
}

impl AsMut<Checkpoint> for State {
    fn as_mut(&mut self) -> &mut Checkpoint {
        &mut self.checkpoint
    }
}

impl Snapshot for State {
    fn position(&self) -> u64 {
        match self.preparation.position() {
            position if position < self.runs => position,
            position => position + self.checkpoint.position(),
        }
    }

    fn taken(&self) -> u64 {
        self.preparation.taken() + self.checkpoint.taken()
    }

    /// The file is a safetensors file, with the tensors of both parts.
    fn save(&self) -> Result<Vec<u8>, Error> {
        let (tensors, metadata) = self.checkpoint.tensors()?;
        serialize(tensors.into_iter().chain(self.preparation.tensors()), Some(metadata))
            .map_err(|_| Error::saved("checkpoint", "not writable", "tensors"))
    }
}
