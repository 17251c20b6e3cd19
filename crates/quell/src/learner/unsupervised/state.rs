//! The state of a run: everything that was released, and the estimates that follow from it.

use safetensors::{Dtype, SafeTensors, serialize};

use super::{Plan, components::Directions, kmeans::KMeans, plan::Goal, vectors::Stage};
use crate::{
    Error,
    learner::{
        Predictor, Snapshot,
        tensors::{Tensor, numbers},
    },
};

/// All releases of a run so far. It is public.
#[derive(Clone, Debug)]
pub struct State {
    width: usize,
    estimates: Estimates,
    /// The releases, in the order of the runs; `None` for a run that was lost.
    releases: Vec<Option<Vec<f32>>>,
}

/// What is known after the releases so far.
#[derive(Clone, Debug)]
enum Estimates {
    Clusters(Box<KMeans>),
    Components(Box<Directions>),
}

/// The name of the tensor with the number of runs that are over.
const POSITION: &str = "position";

impl State {
    /// The state before the first run, or a saved state.
    pub(super) fn new(plan: &Plan, saved: Option<&[u8]>) -> Result<Self, Error> {
        let facts = plan.facts();
        let estimates = match plan.goal {
            Goal::Clusters(schedule) => Estimates::Clusters(Box::new(KMeans::new(facts, schedule))),
            Goal::Components(count) => Estimates::Components(Box::new(Directions::new(facts, count))),
        };
        let mut state = Self { width: plan.width, estimates, releases: Vec::new() };
        if let Some(bytes) = saved {
            state.restore(bytes, plan)?;
        }
        Ok(state)
    }

    /// What the next run sums; `None` if all runs are over.
    pub(super) fn stage(&self) -> Option<Stage<'_>> {
        match &self.estimates {
            Estimates::Clusters(clusters) => clusters.stage(),
            Estimates::Components(directions) => directions.stage(),
        }
    }

    /// Counts runs as lost until `position` runs are over.
    pub(super) fn skip_to(&mut self, position: u64) {
        while (self.releases.len() as u64) < position {
            self.apply(None);
        }
    }

    /// Uses the release of the next run; `None` if it was lost.
    pub(super) fn apply(&mut self, released: Option<&[f32]>) {
        // A vector of the stage may be shorter than a release. The rest is noise.
        let length = self.stage().map_or(0, |stage| stage.length(self.width));
        let kept = released.map(|released| released[..length.min(released.len())].to_vec());
        let wide: Option<Vec<f64>> = kept.as_ref().map(|kept| kept.iter().map(|x| f64::from(*x)).collect());
        match &mut self.estimates {
            Estimates::Clusters(clusters) => clusters.apply(wide.as_deref()),
            Estimates::Components(directions) => directions.apply(wide.as_deref()),
        }
        self.releases.push(kept);
    }

    /// The model that follows from the releases so far.
    pub(super) fn model(&self) -> Predictor {
        match &self.estimates {
            Estimates::Clusters(clusters) => Predictor::Clusters(clusters.model()),
            Estimates::Components(directions) => Predictor::Components(directions.model()),
        }
    }

    /// Repeats what was done with the releases that [`Snapshot::save`] wrote.
    fn restore(&mut self, bytes: &[u8], plan: &Plan) -> Result<(), Error> {
        let damaged =
            |part: &str| Error::saved(part, "missing or damaged", "the contents of a checkpoint of this run");
        let file = SafeTensors::deserialize(bytes).map_err(|_| damaged("the file"))?;
        let position = numbers(&file, POSITION, Dtype::F64, f64::from_le_bytes);
        let position = position.and_then(|position| position.first().copied());
        let position = position.filter(|position| (0.0..=plan.runs as f64).contains(position));
        for run in 0..position.ok_or_else(|| damaged(POSITION))? as u64 {
            let (name, length) =
                (release_name(run), self.stage().map_or(0, |stage| stage.length(self.width)));
            if file.tensor(&name).is_err() {
                self.apply(None);
                continue;
            }
            let release = numbers(&file, &name, Dtype::F32, f32::from_le_bytes)
                .filter(|values| values.len() == length && values.iter().all(|value| value.is_finite()))
                .ok_or_else(|| damaged(&name))?;
            self.apply(Some(&release));
        }
        Ok(())
    }
}

/// The name of the tensor with the release of a run.
fn release_name(run: u64) -> String {
    format!("release.{run}")
}

impl Snapshot for State {
    fn position(&self) -> u64 {
        self.releases.len() as u64
    }

    fn taken(&self) -> u64 {
        self.releases.iter().flatten().count() as u64
    }

    /// The file is a safetensors file.
    fn save(&self) -> Result<Vec<u8>, Error> {
        let releases =
            self.releases.iter().enumerate().filter_map(|(run, release)| {
                Some((release_name(run as u64), Tensor::single(release.as_ref()?)))
            });
        let position = (POSITION.to_owned(), Tensor::double(&[self.releases.len() as f64]));
        serialize(releases.chain([position]), None)
            .map_err(|_| Error::saved("checkpoint", "not writable", "tensors"))
    }
}
