//! Shared parts of learners that release only sums over all records.
//!
//! [`Sums`] is what such a learner pays for: a number of runs of one mechanism, each of which releases a noisy sum
//! of one vector for each record. [`Releases`] holds what was released, and [`Estimates`] is what a learner
//! makes of it. What a run sums may depend on earlier releases, and on nothing else. [`SumLearner`] is what is
//! left for a learner to say; every such learner is a [`Method`](super::Method).

mod counts;
mod learner;
mod moments;
mod releases;
mod sparse;

pub(super) use counts::nearest_counts;
pub use learner::SumLearner;
pub(super) use moments::{Moments, Spectrum};
pub use releases::{Estimates, Releases};
pub(super) use sparse::{Sparse, add_sparse};

use quell_privacy::{
    Bound, Neighbors,
    ledger::{Book, Lease},
    mechanism::{Clipping, Descent, Sampling},
    units::{ClipNorm, Delta},
};

use super::{Control, PlannedCost, Privacy, ProtectedRecords as _, privacy};
use crate::{Error, terms};

/// Runs of one mechanism, each of which sums one vector for each record, and their cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// The mechanism that the ledger is charged for: sums of vectors of length at most one.
    pub descent: Descent,
    /// Number of runs of the mechanism that are paid for.
    pub runs: u64,
    /// When two datasets are neighbours.
    pub neighbors: Neighbors,
    /// δ of the guarantee.
    pub delta: Delta,
    /// ε of all runs, as an interval.
    pub epsilon: Bound,
    /// Number of records (or users) that the runs were planned for: a public number.
    pub records: u64,
    /// The ε that the settings ask for, if they do.
    requested: Option<f64>,
}

impl Sums {
    /// Plans `runs` runs that release `dimension` numbers each, with the least noise that is private enough.
    pub(super) fn new(privacy: &Privacy, records: u64, runs: u64, dimension: usize) -> Result<Self, Error> {
        let delta = privacy.delta_for(records)?;
        let clipping = Clipping::Flat { norm: ClipNorm::new(1.0)? };
        let (descent, epsilon) = privacy.calibrate(delta, runs, |noise_multiplier| {
            Ok(Descent { sampling: Sampling::Full, clipping: clipping.clone(), noise_multiplier, dimension })
        })?;
        let (neighbors, requested) = (privacy.neighbors, privacy.epsilon);
        Ok(Self { descent, runs, neighbors, delta, epsilon, records, requested })
    }

    /// Standard deviation of the noise in each number of a release.
    #[must_use]
    pub fn noise(&self) -> f64 {
        self.descent.noise_multiplier.get()
    }

    /// The privacy cost of all runs.
    pub(super) fn cost(&self) -> PlannedCost {
        let Self { epsilon, delta, neighbors, requested, .. } = *self;
        PlannedCost { epsilon, delta, neighbors, requested }
    }

    /// The mechanism, and how often it runs.
    pub(super) fn mechanism(&self) -> (Descent, u64) {
        (self.descent.clone(), self.runs)
    }

    /// Upper bound on ε after the first `runs` runs.
    pub(super) fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        privacy::spent_after(&self.descent, runs, self.neighbors, self.delta)
    }

    /// Writes noise, δ and the number of records into the settings, so that they yield the same plan again.
    pub(super) fn complete(&self, privacy: &mut Privacy, records: &mut Option<u64>) {
        privacy.noise_multiplier = Some(self.noise());
        privacy.delta = Some(self.delta.get());
        *records = Some(self.records);
    }

    /// Takes all remaining runs of the lease, and calls `watch` after each.
    fn fit<E: Estimates, B: Book>(
        &self,
        mut lease: Lease<'_, Descent, B>,
        task: &E::Task<'_>,
        state: &mut Releases<E>,
        mut watch: impl FnMut(&Releases<E>) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        terms::check_lease(&mut lease, task.unit(), self.neighbors)?;
        while let Some(paid) = lease.next() {
            let (paid, run) = (paid?, lease.position() - 1);
            state.skip_to(run);
            let Some(mut vectors) = state.estimates().vectors(task, self.descent.dimension) else { break };
            let Some(released) = paid.start(task.records())?.next(&mut vectors) else { continue };
            drop(vectors);
            state.apply(Some(&released?.sum));
            match watch(state)? {
                Control::Stop => return Ok(()),
                Control::Saved => lease.confirm()?,
                Control::Continue => {}
            }
        }
        // A kill after the last lease loses the last runs.
        state.skip_to(self.runs);
        Ok(())
    }
}
