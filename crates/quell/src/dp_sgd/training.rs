//! The steps that were paid for, one after the other.

use quell_privacy::{
    ledger::{Book, Lease, Receipt},
    mechanism::{ClippedSum, Epoch},
};

use super::{Gradients, Plan, Progress, Release, Supervised};
use crate::{
    Error,
    network::{Network, Workspace},
};

/// What who watches wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// Go on.
    On,
    /// Say that everything so far is safe, and go on: who watches has written it down.
    Saved,
    /// Stop after this step.
    Stop,
}

/// A lease of either kind.
pub enum Leased<'l, B> {
    /// Of sums.
    Sums(Lease<'l, ClippedSum, B>),
    /// Of epochs.
    Epochs(Lease<'l, Epoch, B>),
}

impl<B: Book> Leased<'_, B> {
    /// The line that paid.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        match self {
            Self::Sums(lease) => lease.receipt(),
            Self::Epochs(lease) => lease.receipt(),
        }
    }

    /// Number of the step, or of the epoch, that comes next.
    #[must_use]
    pub fn position(&self) -> u64 {
        match self {
            Self::Sums(lease) => lease.position(),
            Self::Epochs(lease) => lease.position(),
        }
    }

    /// Leases so many steps at a time; epochs one by one.
    #[must_use]
    pub fn in_blocks_of(self, steps: u64) -> Self {
        match self {
            Self::Sums(lease) => Self::Sums(lease.in_blocks_of(steps)),
            Self::Epochs(lease) => Self::Epochs(lease.in_blocks_of(1)),
        }
    }
}

/// Takes all steps that the lease has left. After each step `watch` is told; what it sees is public.
pub fn train<B: Book>(
    lease: Leased<'_, B>,
    plan: &Plan,
    network: &Network,
    task: &mut Supervised<'_>,
    progress: &mut Progress,
    mut watch: impl FnMut(&Progress) -> Result<Going, Error>,
) -> Result<(), Error> {
    let mut workspace = Workspace::default();
    match lease {
        Leased::Sums(mut lease) => {
            while let Some(paid) = lease.next() {
                let (mut paid, position) = (paid?, lease.position() - 1);
                if let Some(norm) = progress.clip_norm() {
                    paid = paid.with_clip_norm(norm);
                }
                task.reseed(crate::chance::Chance::of(plan.seed, position).bits());
                let noise = plan.noise(progress);
                let mut gradients = Gradients::new(network, &*task, progress.weights(), &mut workspace);
                let released = paid.run(task.records(), &mut gradients)?;
                progress.follow(plan, &released, position, noise)?;
                match watch(progress)? {
                    Going::On => {}
                    Going::Saved => lease.confirm()?,
                    Going::Stop => return Ok(()),
                }
            }
        }
        Leased::Epochs(mut lease) => {
            while let Some(paid) = lease.next() {
                let (mut paid, epoch) = (paid?, lease.position() - 1);
                if let Some(norm) = progress.clip_norm() {
                    paid = paid.with_clip_norm(norm);
                }
                let batches = plan.release.steps() / plan.release.runs().max(1);
                let mut running = paid.start(task.records())?;
                for batch in 0.. {
                    let position = epoch * batches + batch;
                    task.reseed(crate::chance::Chance::of(plan.seed, position).bits());
                    let noise = plan.noise(progress);
                    let mut gradients = Gradients::new(network, &*task, progress.weights(), &mut workspace);
                    let Some(released) = running.next(&mut gradients) else { break };
                    let released = released?;
                    progress.follow(plan, &released, position, noise)?;
                    if let Some(norm) = released.next_norm {
                        running = running.with_clip_norm(norm);
                    }
                    match watch(progress)? {
                        // What is safe in the middle of an epoch is not all of it.
                        Going::On | Going::Saved => {}
                        Going::Stop => return Ok(()),
                    }
                }
                lease.confirm()?;
            }
        }
    }
    Ok(())
}

impl Plan {
    /// Standard deviation of the noise in a sum.
    fn noise(&self, progress: &Progress) -> f64 {
        let norm = match &self.release {
            Release::Sums(ClippedSum { clipping, .. }, _) | Release::Epochs(Epoch { clipping, .. }, _) => clipping.norm(),
        };
        self.release.noise_multiplier() * progress.clip_norm().map_or(norm, quell_privacy::units::ClipNorm::get)
    }
}
