//! The training loop over the steps that were paid for.

use quell_privacy::{
    ledger::{Book, Lease},
    mechanism::Descent,
    units::ClipNorm,
};

use super::{Checkpoint, Plan};
use crate::{
    Error,
    learner::{Control, Gradients, Supervised},
    network::{Network, Workspace},
    random::PublicRandom,
};

/// Takes all remaining steps of the lease, and calls `watch` with public progress after each.
pub fn train<B: Book>(
    mut lease: Lease<'_, Descent, B>,
    plan: &Plan,
    network: &Network,
    task: &mut Supervised<'_>,
    checkpoint: &mut Checkpoint,
    mut watch: impl FnMut(&Checkpoint) -> Result<Control, Error>,
) -> Result<(), Error> {
    let mut workspace = Workspace::default();
    while let Some(paid) = lease.next() {
        let (paid, run) = (paid?, lease.position() - 1);
        let mut batches = paid.start(task.records())?;
        if let Some(norm) = checkpoint.clip_norm() {
            batches = batches.with_clip_norm(norm);
        }
        let mut is_saved = false;
        for position in run * plan.steps_per_run().. {
            task.reseed(PublicRandom::of(plan.seed, position).bits());
            let noise = plan.noise(checkpoint);
            let mut gradients = Gradients::new(network, &*task, checkpoint.weights(), &mut workspace);
            let Some(released) = batches.next(&mut gradients) else { break };
            checkpoint.apply(plan, &released?, position, noise)?;
            let control = watch(checkpoint)?;
            if control == Control::Stop {
                return Ok(());
            }
            is_saved = control == Control::Saved;
        }
        // A run of several batches is confirmed once all of its batches are saved.
        if is_saved {
            lease.confirm()?;
        }
    }
    Ok(())
}

impl Plan {
    /// Standard deviation of the noise in the next gradient sum.
    fn noise(&self, checkpoint: &Checkpoint) -> f64 {
        let norm = checkpoint.clip_norm().map_or(self.descent.clipping.norm(), ClipNorm::get);
        self.descent.noise_multiplier.get() * norm
    }
}
