//! All releases of a run so far, and the estimates that follow from them.

use quell_privacy::mechanism::Contributions;
use safetensors::serialize;

use crate::{
    Error,
    learner::{
        ProtectedRecords, Snapshot,
        signal::is_noise,
        tensors::{Tensor, TensorFile},
    },
};

/// What a learner makes of the releases so far.
///
/// # Contract
/// Estimates depend on public settings and on the releases alone. The same releases in the same order yield
/// the same estimates.
pub trait Estimates {
    /// The records, as the learner reads them.
    type Task<'t>: ProtectedRecords;
    /// The vectors that a run sums.
    type Vectors<'a>: Contributions
    where
        Self: 'a;

    /// The vectors that the next run sums, filled up to `dimension`; `None` if all runs are over.
    fn vectors<'a>(&'a self, task: &'a Self::Task<'_>, dimension: usize) -> Option<Self::Vectors<'a>>;

    /// Number of numbers of a vector in the next run; 0 if all runs are over.
    ///
    /// It may be less than a release has. The rest of the release is noise, and is not kept.
    fn length(&self) -> usize;

    /// Uses the release of the next run; `None` if it was lost.
    fn apply(&mut self, released: Option<&[f64]>);
}

/// All releases of a run so far, and the estimates that follow from them. Both are public.
#[derive(Clone, Debug)]
pub struct Releases<E> {
    estimates: E,
    /// The releases, in the order of the runs; `None` for a run that was lost.
    releases: Vec<Option<Vec<f32>>>,
}

/// The name of the tensor with the number of runs that are over.
const POSITION: &str = "position";
/// The name of the tensor with the only release, in checkpoints of earlier versions.
const SINGLE: &str = "weights";

impl<E: Estimates> Releases<E> {
    /// The state before the first run, or a saved state.
    ///
    /// A saved state is restored by repeating what was done with its releases.
    pub(in crate::learner) fn new(estimates: E, runs: u64, saved: Option<&[u8]>) -> Result<Self, Error> {
        let mut state = Self { estimates, releases: Vec::new() };
        if let Some(bytes) = saved {
            state.restore(bytes, runs)?;
        }
        Ok(state)
    }

    /// The estimates that follow from the releases so far.
    pub fn estimates(&self) -> &E {
        &self.estimates
    }

    /// Counts runs as lost until `position` runs are over.
    pub(in crate::learner) fn skip_to(&mut self, position: u64) {
        while self.position() < position {
            self.apply(None);
        }
    }

    /// Uses the release of the next run; `None` if it was lost.
    pub(in crate::learner) fn apply(&mut self, released: Option<&[f32]>) {
        let length = self.estimates.length();
        let kept = released.map(|released| released[..length.min(released.len())].to_vec());
        let wide: Option<Vec<f64>> = kept.as_ref().map(|kept| kept.iter().map(|x| f64::from(*x)).collect());
        self.estimates.apply(wide.as_deref());
        self.releases.push(kept);
    }

    /// Whether no release so far can be told from noise of this standard deviation. False without any.
    pub(in crate::learner) fn are_noise(&self, noise: f64) -> bool {
        let released = || self.releases.iter().flatten().flatten();
        let squares: f64 = released().map(|x| (f64::from(*x) / noise).powi(2)).sum();
        let count = released().count();
        noise > 0.0 && count > 0 && is_noise(squares, count as f64)
    }

    /// The tensors of a checkpoint.
    pub(in crate::learner) fn tensors(&self) -> impl Iterator<Item = (String, Tensor)> {
        let releases =
            self.releases.iter().enumerate().filter_map(|(run, release)| {
                Some((release_name(run as u64), Tensor::single(release.as_ref()?)))
            });
        releases.chain([(POSITION.to_owned(), Tensor::double(&[self.releases.len() as f64]))])
    }

    /// Repeats what was done with the releases that [`Snapshot::save`] wrote.
    fn restore(&mut self, bytes: &[u8], runs: u64) -> Result<(), Error> {
        let file = TensorFile::of_checkpoint(bytes)?;
        if !file.has(POSITION) && file.has(SINGLE) {
            return self.restore_single(&file);
        }
        let position = file.double(POSITION)?.first().copied();
        let position = position.filter(|position| (0.0..=runs as f64).contains(position));
        for run in 0..position.ok_or_else(|| file.damaged(POSITION))? as u64 {
            let (name, length) = (release_name(run), self.estimates.length());
            if !file.has(&name) {
                self.apply(None);
                continue;
            }
            let release = file.single(&name)?;
            if release.len() != length {
                return Err(file.damaged(&name));
            }
            self.apply(Some(&release));
        }
        Ok(())
    }

    /// Repeats the one release of a checkpoint of earlier versions.
    ///
    /// Naive Bayes stored it like weights, in double precision.
    fn restore_single(&mut self, file: &TensorFile<'_>) -> Result<(), Error> {
        let release: Vec<f32> = file.double(SINGLE)?.iter().map(|sum| *sum as f32).collect();
        if release.len() != self.estimates.length() {
            return Err(file.damaged(SINGLE));
        }
        self.apply(Some(&release));
        Ok(())
    }
}

/// The name of the tensor with the release of a run.
fn release_name(run: u64) -> String {
    format!("release.{run}")
}

impl<E: Estimates> Snapshot for Releases<E> {
    fn position(&self) -> u64 {
        self.releases.len() as u64
    }

    fn taken(&self) -> u64 {
        self.releases.iter().flatten().count() as u64
    }

    /// The file is a safetensors file.
    fn save(&self) -> Result<Vec<u8>, Error> {
        serialize(self.tensors(), None).map_err(|_| Error::saved("checkpoint", "not writable", "tensors"))
    }
}
