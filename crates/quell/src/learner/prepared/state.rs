//! The state of a run: the releases before and after the steps, and the checkpoint of DP-SGD. It is public.

use std::cell::OnceCell;

use quell_privacy::mechanism::{Clipper, Contributions};
use safetensors::serialize;

use super::{
    Plan, Transform,
    columns::{self, Quantiles, Standard},
};
use crate::{
    Error,
    learner::{
        Predictor, Snapshot, Supervised,
        dp_sgd::Checkpoint,
        sums::{Estimates, Releases},
        tensors::{Tensor, TensorFile},
        unsupervised,
    },
};

/// What a preparation knows after the releases so far. It is public.
#[derive(Clone, Debug)]
pub(super) enum Findings {
    Components(unsupervised::Findings),
    Standard(Standard),
    Quantiles(Quantiles),
}

/// The vectors that a run of a preparation sums.
pub(super) enum Vectors<'a> {
    Components(unsupervised::Vectors<'a>),
    Columns(columns::Vectors<'a>),
}

impl Findings {
    /// The transform that follows from the releases so far.
    pub(super) fn transform(&self) -> Transform {
        match self {
            Self::Components(found) => match found.model() {
                Predictor::Components(found) => Transform::Components(found.pca),
                _ => unreachable!("a preparation by components finds components"),
            },
            Self::Standard(standard) => Transform::PiecewiseLinear(standard.lines()),
            Self::Quantiles(quantiles) => Transform::PiecewiseLinear(quantiles.lines()),
        }
    }
}

impl Estimates for Findings {
    type Task<'t> = Supervised<'t>;
    type Vectors<'a> = Vectors<'a>;

    fn vectors<'a>(&'a self, task: &'a Supervised<'_>, dimension: usize) -> Option<Vectors<'a>> {
        let columns = |facts, stage| Vectors::Columns(columns::Vectors::new(task, facts, stage, dimension));
        Some(match self {
            Self::Components(found) => Vectors::Components(found.vectors(task, dimension)?),
            Self::Standard(standard) => columns(&standard.facts, standard.stage()?),
            Self::Quantiles(quantiles) => columns(&quantiles.facts, quantiles.stage()?),
        })
    }

    fn length(&self) -> usize {
        let of_stage = |facts: &columns::Facts, stage: Option<columns::Stage<'_>>| {
            stage.map_or(0, |stage| stage.length(facts.numbers.len()))
        };
        match self {
            Self::Components(found) => found.length(),
            Self::Standard(standard) => of_stage(&standard.facts, standard.stage()),
            Self::Quantiles(quantiles) => of_stage(&quantiles.facts, quantiles.stage()),
        }
    }

    fn apply(&mut self, released: Option<&[f64]>) {
        match self {
            Self::Components(found) => found.apply(released),
            Self::Standard(standard) => standard.apply(released),
            Self::Quantiles(quantiles) => quantiles.apply(released),
        }
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        match self {
            Self::Components(vectors) => vectors.dimension(),
            Self::Columns(vectors) => vectors.dimension(),
        }
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        match self {
            Self::Components(vectors) => vectors.add_clipped(blocks, clipper, sum),
            Self::Columns(vectors) => vectors.add_clipped(blocks, clipper, sum),
        }
    }
}

/// The releases of preparation and calibration, and the checkpoint of DP-SGD.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) preparation: Releases<Findings>,
    pub(super) checkpoint: Checkpoint,
    /// The release of the calibration, once there is one.
    pub(super) calibration: Option<Vec<f32>>,
    /// Number of runs of the preparation.
    runs: u64,
    /// Number of steps after it.
    steps: u64,
    /// The transform before the preparation is over.
    first: Transform,
    /// The transform, once the preparation is over and the transform was asked for.
    transform: OnceCell<Transform>,
}

impl State {
    /// The state before the first run, or a saved state.
    ///
    /// After `steps` steps, a calibration of `length` numbers is released, if there is one.
    pub(super) fn new(
        plan: &Plan,
        checkpoint: Checkpoint,
        (steps, length): (u64, Option<usize>),
        saved: Option<&[u8]>,
    ) -> Result<Self, Error> {
        let runs = plan.sums.runs;
        let preparation = Releases::new(plan.findings(), runs, saved)?;
        let calibration = match (saved, length) {
            (Some(bytes), Some(length)) => restored(bytes, length)?,
            _ => None,
        };
        let (first, transform) = (plan.first_transform(), OnceCell::new());
        Ok(Self { preparation, checkpoint, calibration, runs, steps, first, transform })
    }

    /// The transform that follows from the preparation.
    pub(super) fn transform(&self) -> &Transform {
        if self.preparation.position() < self.runs {
            return &self.first;
        }
        self.transform.get_or_init(|| self.preparation.estimates().transform())
    }
}

/// The name of the tensor with the release of the calibration.
const CALIBRATION: &str = "calibration";

/// The release of the calibration in a checkpoint; `None` if there was none yet, or if it was lost.
fn restored(bytes: &[u8], length: usize) -> Result<Option<Vec<f32>>, Error> {
    let file = TensorFile::of_checkpoint(bytes)?;
    if !file.has(CALIBRATION) {
        return Ok(None);
    }
    let released = file.single(CALIBRATION)?;
    if released.len() != length {
        return Err(file.damaged(CALIBRATION));
    }
    Ok(Some(released))
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
            position if self.calibration.is_some() => position + self.steps + 1,
            position => position + self.checkpoint.position(),
        }
    }

    fn taken(&self) -> u64 {
        let calibrated = u64::from(self.calibration.is_some());
        self.preparation.taken() + self.checkpoint.taken() + calibrated
    }

    /// The file is a safetensors file, with the tensors of all parts.
    fn save(&self) -> Result<Vec<u8>, Error> {
        let (mut tensors, metadata) = self.checkpoint.tensors()?;
        tensors.extend(self.preparation.tensors());
        tensors.extend(self.calibration.iter().map(|sum| (CALIBRATION.to_owned(), Tensor::single(sum))));
        serialize(tensors, Some(metadata)).map_err(|_| Error::saved("checkpoint", "not writable", "tensors"))
    }
}
